INSERT INTO late (execution, at, body) VALUES (?1, ?2, ?3)
