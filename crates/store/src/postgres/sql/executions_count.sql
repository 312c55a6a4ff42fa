SELECT count(*) FROM (
    SELECT 1 FROM executions
    WHERE organization_key = $1 AND status = ANY ($2)
        AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL)
    LIMIT $3
) AS counted
