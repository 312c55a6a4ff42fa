DELETE FROM inbox WHERE execution = ?1
