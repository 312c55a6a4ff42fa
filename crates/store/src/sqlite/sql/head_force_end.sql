UPDATE heads SET ended = 1, wake_at = NULL WHERE execution = ?1 AND ended = 0 AND quarantined IS NOT NULL
