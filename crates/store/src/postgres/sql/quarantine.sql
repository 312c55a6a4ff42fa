UPDATE heads SET quarantined = $2 WHERE execution = $1
