SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name
FROM executions
WHERE execution < $1
    AND workflow_key = {workflow}
    AND organization_key = {organization}
    AND workflow_id_key = {workflow_id}
    AND initiator_user_id = {initiator}
    AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL) = {excludes_quarantined}
ORDER BY execution DESC LIMIT $2
