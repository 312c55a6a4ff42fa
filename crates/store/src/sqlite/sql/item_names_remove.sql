DELETE FROM item_names WHERE noun = ?1 AND organization = ?2 AND id = ?3
