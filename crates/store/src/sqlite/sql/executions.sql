SELECT * FROM executions
WHERE execution < ?1
    AND status = {status}
    AND workflow = {workflow}
    AND organization = {organization}
    AND workflow_id = {workflow_id}
    AND initiator_user_id = {initiator}
    AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.execution = executions.execution AND quarantined IS NOT NULL) = {excludes_quarantined}
ORDER BY execution DESC LIMIT ?2
