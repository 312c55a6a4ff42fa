DELETE FROM pending_approvals
WHERE (execution, step_key, gate) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]))
)
