INSERT INTO heads (execution, partition, sequence, hash, seal, wake_at, ended)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (execution) DO NOTHING
