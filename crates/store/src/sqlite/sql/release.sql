UPDATE heads SET quarantined = NULL WHERE execution = ?1 AND ended = 0 AND quarantined IS NOT NULL
