SELECT execution, id, workflow, workflow_version, workflow_hash, plan_hash, status, outcome, error, trigger_type,
    initiator_type, initiator_user_id, idempotency_key, session_id, partition, attempt_count, started_at, completed_at
FROM executions WHERE workflow_key = $3 AND execution < $1 ORDER BY execution DESC LIMIT $2
