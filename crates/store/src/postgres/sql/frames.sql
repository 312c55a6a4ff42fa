SELECT sequence, frame, "values" FROM frames WHERE execution = $1 AND sequence >= $2 ORDER BY sequence LIMIT $3
