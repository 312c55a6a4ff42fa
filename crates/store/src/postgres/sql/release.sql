UPDATE heads SET quarantined = NULL WHERE execution = $1 AND NOT ended AND quarantined IS NOT NULL
RETURNING 1
