UPDATE executions SET status = ?2, outcome = ?3, error = ?4, completed_at = ?5 WHERE execution = ?1
