-- Numbers are assigned in the order of `place`.
INSERT INTO inbox (execution, id_key, id, partition, body, posted_at, format)
SELECT execution, id_key, id, partition, body, posted_at, 8 FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BIGINT[])
) WITH ORDINALITY AS new (execution, id_key, id, partition, body, posted_at, place)
ORDER BY place
ON CONFLICT (execution, id_key) DO NOTHING
