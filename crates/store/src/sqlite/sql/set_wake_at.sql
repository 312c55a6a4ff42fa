UPDATE heads SET wake_at = ?4 WHERE execution = ?1 AND sequence = ?2 AND hash = ?3 AND NOT ended
