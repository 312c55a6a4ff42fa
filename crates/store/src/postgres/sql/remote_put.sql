-- An earlier request to stop the attempt stays in force.
INSERT INTO remote_attempts (execution, step_key, step, number, node, to_stop)
SELECT given.execution, given.step_key, given.step, given.number, CAST($5 AS BYTEA), false
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]))
    AS given (execution, step_key, step, number)
ORDER BY given.execution, given.step_key, given.number
ON CONFLICT (execution, step_key, number) DO UPDATE SET node = excluded.node
