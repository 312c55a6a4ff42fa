SELECT * FROM executions WHERE ifnull(workflow, x'') = ifnull(?1, x'') AND idempotency_key = ?2
