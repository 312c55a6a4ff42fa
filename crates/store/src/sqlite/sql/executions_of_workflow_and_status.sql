SELECT * FROM executions WHERE workflow = ?4 AND status = ?3 AND execution < ?1 ORDER BY execution DESC LIMIT ?2
