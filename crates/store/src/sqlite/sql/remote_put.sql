-- An earlier request to stop the attempt stays in force.
INSERT INTO remote_attempts (execution, step, number, node, to_stop) VALUES (?1, ?2, ?3, ?4, 0)
ON CONFLICT (execution, step, number) DO UPDATE SET node = ?4
