SELECT subject, sequence, place, at, by, reason, seal FROM notes
WHERE execution = ?1 ORDER BY subject, sequence, place
