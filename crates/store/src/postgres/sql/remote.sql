SELECT execution, step, number, node FROM remote_attempts
WHERE execution = $1 AND EXISTS (
    SELECT 1 FROM nodes
    WHERE name = node AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
)
