UPDATE heads SET partition = ?2 WHERE execution = ?1
