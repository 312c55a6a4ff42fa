SELECT found.id, version, body, field, value, is_unique
FROM (
    SELECT * FROM items WHERE noun = ?1 AND organization = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4
) AS found
LEFT JOIN item_names USING (noun, organization, id)
ORDER BY found.id DESC, field, value
