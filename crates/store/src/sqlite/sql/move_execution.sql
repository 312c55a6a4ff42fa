UPDATE executions SET partition = ?2 WHERE execution = ?1
