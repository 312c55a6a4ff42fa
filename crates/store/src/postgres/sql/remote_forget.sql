DELETE FROM remote_attempts WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE name = node)
