INSERT INTO inbox (execution, id_key, id, partition, body, posted_at, format)
SELECT CAST($1 AS BYTEA), CAST($2 AS BYTEA), CAST($3 AS BYTEA), CAST($4 AS BIGINT), CAST($5 AS BYTEA), CAST($6 AS BIGINT), 8
WHERE EXISTS (SELECT 1 FROM spread WHERE partitions = $7)
ON CONFLICT (execution, id_key) DO NOTHING
RETURNING 1
