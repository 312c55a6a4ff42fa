-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY found.id ORDER BY names.field, names.value) = 1 THEN body END,
    names.field, names.value, names.is_unique
FROM (
    SELECT * FROM (
        SELECT items.*, sum(octet_length(body)) OVER (ORDER BY named.id) AS bytes
        FROM item_names AS named JOIN items USING (noun, organization, id)
        WHERE named.noun = $1 AND named.organization = $2 AND named.name_key = $6 AND named.id >= $3
        ORDER BY named.id LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
JOIN item_names AS names USING (noun, organization, id)
ORDER BY found.id, names.field, names.value
