DELETE FROM heads WHERE execution = ?1
