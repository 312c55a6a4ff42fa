INSERT INTO executions (
    execution, id_key, id, workflow_key, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error,
    trigger_type, initiator_type, initiator_user_id, start_key, idempotency_key, session_id, partition, attempt_count,
    started_at, completed_at, organization_key, organization, workflow_id_key, workflow_id, trigger_id,
    parent, parent_id, workflow_name
)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BYTEA[]), CAST($8 AS BYTEA[]), CAST($9 AS BYTEA[]), CAST($10 AS BYTEA[]),
    CAST($11 AS BYTEA[]), CAST($12 AS BYTEA[]), CAST($13 AS BYTEA[]), CAST($14 AS BYTEA[]), CAST($15 AS BYTEA[]),
    CAST($16 AS BYTEA[]), CAST($17 AS BYTEA[]), CAST($18 AS BIGINT[]), CAST($19 AS BIGINT[]), CAST($20 AS BIGINT[]),
    CAST($21 AS BIGINT[]), CAST($22 AS BYTEA[]), CAST($23 AS BYTEA[]), CAST($24 AS BYTEA[]), CAST($25 AS BYTEA[]),
    CAST($26 AS BYTEA[]), CAST($27 AS BYTEA[]), CAST($28 AS BYTEA[]), CAST($29 AS BYTEA[])
)
