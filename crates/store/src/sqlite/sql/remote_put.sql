-- Whoever asked for it to be stopped has not taken that back.
INSERT INTO remote_attempts (execution, step, number, node, to_stop) VALUES (?1, ?2, ?3, ?4, 0)
ON CONFLICT (execution, step, number) DO UPDATE SET node = ?4
