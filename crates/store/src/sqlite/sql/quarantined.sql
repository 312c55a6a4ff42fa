SELECT heads.execution, executions.id, executions.organization, heads.quarantined FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.quarantined IS NOT NULL AND heads.ended = 0 AND heads.execution > ?1
    AND executions.organization = {organization}
ORDER BY heads.execution LIMIT ?2
