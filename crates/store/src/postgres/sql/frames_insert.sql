INSERT INTO frames (execution, sequence, frame, "values")
SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]))
