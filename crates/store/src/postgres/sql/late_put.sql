INSERT INTO late (execution, at, body)
SELECT execution, at, body
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]))
    WITH ORDINALITY AS new (execution, at, body, place)
ORDER BY place
