SELECT found.id, version, body, names.field, names.value, names.is_unique
FROM (
    SELECT items.* FROM item_names AS named JOIN items USING (noun, organization, id)
    WHERE noun = ?1 AND organization = ?2 AND named.field = ?5 AND named.value = ?6 AND named.id >= ?3
    ORDER BY named.id LIMIT ?4
) AS found
JOIN item_names AS names USING (noun, organization, id)
ORDER BY found.id, names.field, names.value
