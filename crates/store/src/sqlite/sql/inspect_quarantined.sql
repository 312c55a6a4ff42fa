-- inspect_quarantined
-- Formats without the index heads_quarantined need a scan of all heads.
SELECT heads.execution, executions.id, NULL, heads.quarantined, count(*) OVER () FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.quarantined IS NOT NULL ORDER BY heads.execution LIMIT ?1
