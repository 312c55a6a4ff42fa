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
