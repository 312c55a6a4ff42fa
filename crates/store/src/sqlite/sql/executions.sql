SELECT * FROM executions
WHERE execution < ?1
    AND status = {status}
    AND workflow = {workflow}
    AND organization = {organization}
    AND workflow_id = {workflow_id}
    AND initiator_user_id = {initiator}
ORDER BY execution DESC LIMIT ?2
