UPDATE inbox SET partition = ?2 WHERE execution = ?1
