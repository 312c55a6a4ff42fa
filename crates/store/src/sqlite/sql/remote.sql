SELECT execution, step, number, node FROM remote_attempts
WHERE execution = ?1 AND EXISTS (SELECT 1 FROM nodes WHERE name = node AND alive_until > ?2)
ORDER BY step, number
