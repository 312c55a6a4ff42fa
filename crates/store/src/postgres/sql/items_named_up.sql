SELECT found.id, version, body, names.field, names.value, names.is_unique
FROM (
    SELECT items.* FROM item_names AS named JOIN items USING (noun, organization, id)
    WHERE named.noun = $1 AND named.organization = $2 AND named.name_key = $5 AND named.id >= $3
    ORDER BY named.id LIMIT $4
) AS found
JOIN item_names AS names USING (noun, organization, id)
ORDER BY found.id, names.field, names.value
