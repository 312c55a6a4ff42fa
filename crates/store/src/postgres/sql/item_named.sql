SELECT items.id, version, body, names.field, names.value, names.is_unique
FROM item_names AS named
JOIN items USING (noun, organization, id)
JOIN item_names AS names USING (noun, organization, id)
WHERE noun = $1 AND organization = $2 AND named.name_key = $3 AND named.is_unique
ORDER BY names.field, names.value
