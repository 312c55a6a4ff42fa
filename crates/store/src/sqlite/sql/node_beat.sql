-- ?5 is the store's clock, ?6 the end of the node's lease.
INSERT INTO nodes (name, place, release, decide_version, alive_until) VALUES (?1, ?2, ?3, ?4, ?6)
ON CONFLICT (name) DO UPDATE SET place = ?2, release = ?3, decide_version = ?4, alive_until = ?6
WHERE alive_until > ?5
