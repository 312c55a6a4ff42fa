SELECT id, version, body FROM items WHERE noun = ?1 AND organization = ?2 AND id = ?3
