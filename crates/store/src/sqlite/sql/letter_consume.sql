DELETE FROM inbox WHERE execution = ?1 AND id = ?2
