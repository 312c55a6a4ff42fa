INSERT INTO pending_approvals (
    execution, step_key, step, gate, organization_key, organization, opened_at, expires_at, on_timeout
)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BYTEA[])
)
ON CONFLICT (execution, step_key, gate) DO NOTHING
