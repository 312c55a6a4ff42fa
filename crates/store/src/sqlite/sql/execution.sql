SELECT * FROM executions WHERE execution = ?1
