SELECT at, body FROM late WHERE execution = $1 ORDER BY number
