SELECT execution, step, number FROM remote_attempts WHERE node = ?1 AND to_stop = 1 ORDER BY execution, step, number
