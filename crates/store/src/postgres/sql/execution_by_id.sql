SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at,
    organization, workflow_id, trigger_id, parent, parent_id, workflow_name
FROM executions WHERE id_key = $1
