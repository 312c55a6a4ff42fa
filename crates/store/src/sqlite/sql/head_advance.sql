-- The common case: the wake-up time does not change, so that heads_due is not written.
UPDATE heads SET sequence = ?1, hash = ?2, seal = ?3
WHERE execution = ?4 AND partition = ?5 AND sequence = ?6 AND hash = ?7 AND ended = 0 AND wake_at IS ?8
