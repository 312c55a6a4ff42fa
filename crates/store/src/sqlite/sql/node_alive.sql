SELECT 1 FROM nodes WHERE name = ?1 AND alive_until > ?2
