INSERT INTO inbox (execution, id, partition, body, posted_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (execution, id) DO NOTHING
