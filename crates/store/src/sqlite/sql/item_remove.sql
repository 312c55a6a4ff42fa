DELETE FROM items WHERE noun = ?1 AND organization = ?2 AND id = ?3 AND version = ifnull(?4, version)
