-- Names the index, since SQLite has no statistics and would otherwise scan all names of the kind.
SELECT field, value, is_unique FROM item_names INDEXED BY item_names_of_item
WHERE noun = ?1 AND organization = ?2 AND id = ?3 ORDER BY field, value
