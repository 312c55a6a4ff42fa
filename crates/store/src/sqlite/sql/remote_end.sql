DELETE FROM remote_attempts WHERE execution = ?1 AND step = ?2 AND number = ?3 AND node = ?4
