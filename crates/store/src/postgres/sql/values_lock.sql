SELECT "values" FROM frames WHERE execution = $1 AND sequence = $2 FOR UPDATE
