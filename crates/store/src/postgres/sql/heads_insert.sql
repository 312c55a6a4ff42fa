INSERT INTO heads (execution, partition, sequence, hash, seal, wake_at, ended)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BIGINT[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BIGINT[]), CAST($7 AS BOOLEAN[])
)
