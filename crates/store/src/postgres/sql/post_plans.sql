INSERT INTO plans (hash, bytes)
SELECT new.hash, new.bytes
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[])) AS new (hash, bytes)
WHERE EXISTS (SELECT 1 FROM spread WHERE partitions = $3)
ON CONFLICT (hash) DO NOTHING
