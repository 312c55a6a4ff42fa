SELECT * FROM executions WHERE execution < ?1 ORDER BY execution DESC LIMIT ?2
