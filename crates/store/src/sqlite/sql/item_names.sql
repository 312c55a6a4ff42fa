-- Without a word about the index all names of the noun are walked: nothing tells SQLite how many there are.
SELECT field, value, is_unique FROM item_names INDEXED BY item_names_of_item
WHERE noun = ?1 AND organization = ?2 AND id = ?3 ORDER BY field, value
