UPDATE items SET version = version + 1, body = ?4 WHERE noun = ?1 AND organization = ?2 AND id = ?3 AND version = ?5
