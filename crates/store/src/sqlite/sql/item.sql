SELECT id, version, body, field, value, is_unique
FROM items LEFT JOIN item_names USING (noun, organization, id)
WHERE noun = ?1 AND organization = ?2 AND id = ?3
ORDER BY field, value
