SELECT number, execution, id, partition, body, posted_at FROM inbox
WHERE partition = ?1 AND number > ?2 ORDER BY number LIMIT ?3
