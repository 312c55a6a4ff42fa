SELECT * FROM executions
WHERE ifnull(organization, x'') = ifnull(?1, x'') AND ifnull(workflow_id, x'') = ifnull(?2, x'')
    AND iif(workflow_id IS NULL, ifnull(workflow, x''), x'') = iif(?2 IS NULL, ifnull(?3, x''), x'')
    AND idempotency_key = ?4
