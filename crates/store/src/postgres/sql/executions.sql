-- Executions in the catalogue, open approvals, quarantine.

-- name: execution
SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name, rollout,
    tokens, cost
FROM executions WHERE execution = $1

-- name: execution_by_id
SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name, rollout,
    tokens, cost
FROM executions WHERE id_key = $1

-- name: execution_by_start
SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name, rollout,
    tokens, cost
FROM executions WHERE start_key = $1

-- name: executions_insert
INSERT INTO executions (
    execution, id_key, id, workflow_key, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error,
    trigger_type, initiator_type, initiator_user_id, start_key, idempotency_key, session_id, partition, attempt_count,
    started_at, completed_at, organization_key, organization, workflow_id_key, workflow_id, trigger_id,
    parent, parent_id, workflow_name, rollout, tokens, cost
)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BYTEA[]), CAST($8 AS BYTEA[]), CAST($9 AS BYTEA[]), CAST($10 AS BYTEA[]),
    CAST($11 AS BYTEA[]), CAST($12 AS BYTEA[]), CAST($13 AS BYTEA[]), CAST($14 AS BYTEA[]), CAST($15 AS BYTEA[]),
    CAST($16 AS BYTEA[]), CAST($17 AS BYTEA[]), CAST($18 AS BIGINT[]), CAST($19 AS BIGINT[]), CAST($20 AS BIGINT[]),
    CAST($21 AS BIGINT[]), CAST($22 AS BYTEA[]), CAST($23 AS BYTEA[]), CAST($24 AS BYTEA[]), CAST($25 AS BYTEA[]),
    CAST($26 AS BYTEA[]), CAST($27 AS BYTEA[]), CAST($28 AS BYTEA[]), CAST($29 AS BYTEA[]), CAST($30 AS BYTEA[]),
    CAST($31 AS BIGINT[]), CAST($32 AS BIGINT[])
)

-- name: executions_change
UPDATE executions
SET status = new.status, outcome = new.outcome, error = new.error, completed_at = new.completed_at,
    tokens = new.tokens, cost = new.cost,
    workflow_hash = coalesce(new.workflow_hash, executions.workflow_hash),
    workflow_version = CASE WHEN new.workflow_hash IS NULL THEN executions.workflow_version ELSE new.workflow_version END,
    plan_hash = coalesce(new.plan_hash, executions.plan_hash)
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BIGINT[]), CAST($7 AS BIGINT[]), CAST($8 AS BYTEA[]), CAST($9 AS BYTEA[]), CAST($10 AS BYTEA[])
) AS new (execution, status, outcome, error, completed_at, tokens, cost, workflow_hash, workflow_version, plan_hash)
WHERE executions.execution = new.execution

-- name: executions
SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name, rollout,
    tokens, cost
FROM executions
WHERE execution < $1
    AND workflow_key = {workflow}
    AND organization_key = {organization}
    AND workflow_id_key = {workflow_id}
    AND initiator_user_id = {initiator}
    AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL) = {excludes_quarantined}
ORDER BY execution DESC LIMIT $2

-- name: executions_of_status
-- Reads a separate index range for each status, in the requested order.
SELECT found.*
FROM unnest(CAST($3 AS BYTEA[])) AS asked (status)
CROSS JOIN LATERAL (
    SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, executions.status, outcome, error,
        trigger_type, initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at,
        completed_at, organization, workflow_id, trigger_id, parent, parent_id, workflow_name, rollout,
    tokens, cost
    FROM executions
    WHERE executions.status = asked.status AND execution < $1
        AND workflow_key = {workflow}
        AND organization_key = {organization}
        AND workflow_id_key = {workflow_id}
        AND initiator_user_id = {initiator}
        AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL) = {excludes_quarantined}
    ORDER BY execution DESC LIMIT $2
) AS found
ORDER BY found.execution DESC LIMIT $2

-- name: executions_count
SELECT count(*) FROM (
    SELECT 1 FROM executions
    WHERE organization_key = $1 AND status = ANY ($2)
        AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL)
    LIMIT $3
) AS counted

-- name: executions_of_other_definitions_count
SELECT count(*) FROM (
    SELECT 1 FROM executions
    WHERE organization_key = $1 AND workflow_id_key = $2 AND completed_at IS NULL
        AND workflow_hash > {above}
        AND workflow_hash < {below}
        AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL)
    LIMIT $3
) AS counted

-- name: rollout_executions
SELECT execution, parent, parent_id, error, status, started_at, completed_at, tokens, cost FROM executions
WHERE rollout = $1
ORDER BY execution DESC LIMIT $2

-- name: pending_organizations
-- Skips from one organization to the next in the index of pending rows: one step for each organization, for any number
-- of rows.
WITH RECURSIVE found AS (
    (
        SELECT organization_key, organization FROM executions
        WHERE status = CAST('pending' AS BYTEA) AND organization_key IS NOT NULL
        ORDER BY organization_key LIMIT 1
    )
    UNION ALL
    SELECT next.organization_key, next.organization
    FROM found
    CROSS JOIN LATERAL (
        SELECT executions.organization_key, executions.organization FROM executions
        WHERE status = CAST('pending' AS BYTEA) AND executions.organization_key > found.organization_key
        ORDER BY executions.organization_key LIMIT 1
    ) AS next
)
-- Without the limit the planner would join all pending rows.
SELECT found.organization FROM found
CROSS JOIN LATERAL (
    SELECT 1 FROM executions JOIN heads ON heads.execution = executions.execution
    WHERE executions.status = CAST('pending' AS BYTEA) AND executions.organization_key = found.organization_key
        AND heads.quarantined IS NULL
    LIMIT 1
) AS unfinished

-- name: pending_approvals
SELECT execution, step, gate, organization, opened_at, expires_at, on_timeout FROM pending_approvals
WHERE execution <= $1 AND (execution < $1 OR (step, gate) > ($2, $3))
    AND organization_key = {organization}
ORDER BY execution DESC, step, gate LIMIT $4

-- name: gates_open
INSERT INTO pending_approvals (
    execution, step_key, step, gate, organization_key, organization, opened_at, expires_at, on_timeout
)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BIGINT[]), CAST($8 AS BIGINT[]), CAST($9 AS BYTEA[])
)
ON CONFLICT (execution, step_key, gate) DO NOTHING

-- name: gates_close
DELETE FROM pending_approvals
WHERE (execution, step_key, gate) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]))
)

-- name: gates_remove
DELETE FROM pending_approvals WHERE execution = $1

-- name: quarantine
UPDATE heads SET quarantined = $2 WHERE execution = $1

-- name: quarantined
SELECT heads.execution, executions.id, executions.organization, heads.quarantined FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.quarantined IS NOT NULL AND NOT heads.ended AND heads.execution > $1
    AND executions.organization_key = {organization}
ORDER BY heads.execution LIMIT $2

-- name: release_quarantine
UPDATE heads SET quarantined = NULL WHERE execution = $1 AND NOT ended AND quarantined IS NOT NULL
RETURNING 1

-- name: head_force_end
UPDATE heads SET ended = true, wake_at = NULL
WHERE execution = $1 AND NOT ended AND quarantined IS NOT NULL
RETURNING 1
