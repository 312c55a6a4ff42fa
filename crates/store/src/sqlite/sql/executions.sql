-- Executions in the catalogue, open approvals, quarantine.

-- name: execution
SELECT * FROM executions WHERE execution = ?1

-- name: execution_by_id
SELECT * FROM executions WHERE id = ?1

-- name: execution_by_idempotency_key
SELECT * FROM executions
WHERE ifnull(organization, x'') = ifnull(?1, x'') AND ifnull(workflow_id, x'') = ifnull(?2, x'')
    AND iif(workflow_id IS NULL, ifnull(workflow, x''), x'') = iif(?2 IS NULL, ifnull(?3, x''), x'')
    AND idempotency_key = ?4

-- name: execution_insert
INSERT INTO executions (
    execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name, rollout, tokens, cost
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
    ?24, ?25, ?26, ?27)
ON CONFLICT DO NOTHING

-- name: execution_change
UPDATE executions
SET status = ?2, outcome = ?3, error = ?4, completed_at = ?5, tokens = ?6, cost = ?7,
    workflow_hash = ifnull(?8, workflow_hash), workflow_version = iif(?8 IS NULL, workflow_version, ?9),
    plan_hash = ifnull(?10, plan_hash)
WHERE execution = ?1

-- name: executions
SELECT * FROM executions
WHERE execution < ?1
    AND status = {status}
    AND workflow = {workflow}
    AND organization = {organization}
    AND workflow_id = {workflow_id}
    AND initiator_user_id = {initiator}
    AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL) = {excludes_quarantined}
ORDER BY execution DESC LIMIT ?2

-- name: executions_count
SELECT count(*) FROM (
    SELECT 1 FROM executions
    WHERE organization = ?1 AND status = ?2
        AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL)
    LIMIT ?3
)

-- name: executions_of_other_definitions_count
SELECT count(*) FROM (
    SELECT 1 FROM executions INDEXED BY executions_unfinished
    WHERE organization = ?1 AND workflow_id = ?2 AND completed_at IS NULL
        AND workflow_hash > {above}
        AND workflow_hash < {below}
        AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL)
    LIMIT ?3
)

-- name: rollout_executions
SELECT execution, parent, parent_id, error, status, started_at, completed_at, tokens, cost
FROM executions INDEXED BY executions_by_rollout
WHERE rollout = ?1
ORDER BY execution DESC LIMIT ?2

-- name: pending_organizations
-- Skips from one organization to the next in the index of pending rows: one step for each organization, for any number
-- of rows. Otherwise the planner would use the index of statuses, and read all pending rows at each step.
WITH RECURSIVE found (organization) AS (
    SELECT min(organization) FROM executions INDEXED BY executions_pending
    WHERE status = 'pending' AND organization IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(organization) FROM executions INDEXED BY executions_pending
        WHERE status = 'pending' AND organization > found.organization
    )
    FROM found WHERE found.organization IS NOT NULL
)
SELECT organization FROM found
WHERE organization IS NOT NULL AND EXISTS (
    SELECT 1 FROM executions INDEXED BY executions_pending JOIN heads ON heads.execution = executions.execution
    WHERE executions.status = 'pending' AND executions.organization = found.organization AND heads.quarantined IS NULL
)

-- name: pending_approvals
SELECT execution, step, gate, organization, opened_at, expires_at, on_timeout FROM pending_approvals
WHERE execution <= ?1 AND (execution < ?1 OR (step, gate) > (?2, ?3))
    AND organization = {organization}
ORDER BY execution DESC, step, gate LIMIT ?4

-- name: gate_open
INSERT INTO pending_approvals (execution, step, gate, organization, opened_at, expires_at, on_timeout)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING

-- name: gate_close
DELETE FROM pending_approvals WHERE execution = ?1 AND step = ?2 AND gate = ?3

-- name: gates_remove
DELETE FROM pending_approvals WHERE execution = ?1

-- name: quarantine
UPDATE heads SET quarantined = ?2 WHERE execution = ?1

-- name: quarantined
SELECT heads.execution, executions.id, executions.organization, heads.quarantined FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.quarantined IS NOT NULL AND heads.ended = 0 AND heads.execution > ?1
    AND executions.organization = {organization}
ORDER BY heads.execution LIMIT ?2

-- name: release_quarantine
UPDATE heads SET quarantined = NULL WHERE execution = ?1 AND ended = 0 AND quarantined IS NOT NULL

-- name: head_force_end
UPDATE heads SET ended = 1, wake_at = NULL WHERE execution = ?1 AND ended = 0 AND quarantined IS NOT NULL
