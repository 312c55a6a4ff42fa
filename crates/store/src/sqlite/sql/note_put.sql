INSERT INTO notes (execution, subject, sequence, place, at, by, reason, seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING
