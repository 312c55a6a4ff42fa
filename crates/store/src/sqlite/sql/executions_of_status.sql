SELECT * FROM executions WHERE status = ?3 AND execution < ?1 ORDER BY execution DESC LIMIT ?2
