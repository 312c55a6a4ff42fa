-- Read-only access for diagnosis.

-- name: newest_frame
SELECT execution, sequence FROM frames ORDER BY number DESC LIMIT 1

-- name: nodes
-- Includes nodes with expired leases, until the heartbeat of another node deletes them.
SELECT name, address, release, alive_until > ?1 FROM nodes ORDER BY name

-- name: nodes_before_format_9
SELECT name, place, release, alive_until > ?1 FROM nodes ORDER BY name

-- name: metadata_before_format_9
SELECT value FROM pinned WHERE name = ?1

-- name: overdue
SELECT heads.execution, executions.id, heads.wake_at, NULL, count(*) OVER () FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.wake_at IS NOT NULL AND heads.quarantined IS NULL AND heads.wake_at < ?2
ORDER BY heads.wake_at, heads.execution LIMIT ?1

-- name: quarantined
-- Formats without the index heads_quarantined need a scan of all heads.
SELECT heads.execution, executions.id, NULL, heads.quarantined, count(*) OVER () FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.quarantined IS NOT NULL ORDER BY heads.execution LIMIT ?1

-- name: waiting
SELECT pending_approvals.execution, executions.id, opened_at, step, count(*) OVER () FROM pending_approvals
LEFT JOIN executions ON executions.execution = pending_approvals.execution
WHERE opened_at < ?2 ORDER BY opened_at, pending_approvals.execution, step, gate LIMIT ?1
