SELECT execution, step, number FROM remote_attempts WHERE node = $1 AND to_stop ORDER BY execution, step, number
