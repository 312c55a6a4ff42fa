SELECT heads.execution, executions.id, heads.wake_at, CAST(NULL AS BYTEA), count(*) OVER () FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.wake_at IS NOT NULL AND heads.quarantined IS NULL AND heads.wake_at < $2
ORDER BY heads.wake_at, heads.execution LIMIT $1
