SELECT * FROM executions WHERE id = ?1
