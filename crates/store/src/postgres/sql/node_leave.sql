UPDATE nodes
SET alive_until = LEAST(alive_until, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))
WHERE name = $1
