SELECT pending_approvals.execution, executions.id, opened_at, step, count(*) OVER () FROM pending_approvals
LEFT JOIN executions ON executions.execution = pending_approvals.execution
WHERE opened_at < $2 ORDER BY opened_at, pending_approvals.execution, step, gate LIMIT $1
