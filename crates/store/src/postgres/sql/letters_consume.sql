DELETE FROM inbox
WHERE (execution, id_key) IN (SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[])))
