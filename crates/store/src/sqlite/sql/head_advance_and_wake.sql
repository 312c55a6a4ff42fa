UPDATE heads SET sequence = ?1, hash = ?2, seal = ?3, wake_at = ?8, ended = ?9
WHERE execution = ?4 AND partition = ?5 AND sequence = ?6 AND hash = ?7 AND ended = 0
