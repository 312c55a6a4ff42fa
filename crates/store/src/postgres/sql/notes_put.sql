INSERT INTO notes (execution, subject, sequence, place, at, by, reason, seal)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BYTEA[]), CAST($8 AS BYTEA[])
)
ON CONFLICT DO NOTHING
