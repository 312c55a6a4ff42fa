UPDATE executions
SET status = new.status, outcome = new.outcome, error = new.error, completed_at = new.completed_at
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BIGINT[])
) AS new (execution, status, outcome, error, completed_at)
WHERE executions.execution = new.execution
