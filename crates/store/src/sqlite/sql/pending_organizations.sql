-- From one organisation to the next by the index of what is pending: a step for each, however much of it is. Left to itself
-- the planner takes the index of statuses, and reads all that is pending at each step.
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
