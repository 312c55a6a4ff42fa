-- Skips from one organization to the next in the index of pending rows: one step for each organization, for any number
-- of rows.
WITH RECURSIVE found AS (
    (
        SELECT organization_key, organization FROM executions
        WHERE status = CAST('pending' AS BYTEA) AND organization_key IS NOT NULL
        ORDER BY organization_key LIMIT 1
    )
    UNION ALL
    SELECT next.organization_key, next.organization
    FROM found
    CROSS JOIN LATERAL (
        SELECT executions.organization_key, executions.organization FROM executions
        WHERE status = CAST('pending' AS BYTEA) AND executions.organization_key > found.organization_key
        ORDER BY executions.organization_key LIMIT 1
    ) AS next
)
-- Without the limit the planner would join all pending rows.
SELECT found.organization FROM found
CROSS JOIN LATERAL (
    SELECT 1 FROM executions JOIN heads ON heads.execution = executions.execution
    WHERE executions.status = CAST('pending' AS BYTEA) AND executions.organization_key = found.organization_key
        AND heads.quarantined IS NULL
    LIMIT 1
) AS going_on
