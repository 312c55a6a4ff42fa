-- Stops at the row that reaches $4 bytes.
SELECT sequence, frame, "values" FROM (
    SELECT sequence, frame, "values", octet_length(frame) + octet_length("values") AS own,
        sum(octet_length(frame) + octet_length("values")) OVER (ORDER BY sequence) AS bytes
    FROM frames WHERE execution = $1 AND sequence >= $2
    ORDER BY sequence LIMIT $3
) AS counted
WHERE bytes - own < $4 ORDER BY sequence
