UPDATE remote_attempts SET to_stop = 1 WHERE execution = ?1 AND step = ?2 AND number = ?3
