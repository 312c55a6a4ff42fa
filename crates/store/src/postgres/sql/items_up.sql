-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY found.id ORDER BY field, value) = 1 THEN body END,
    field, value, is_unique
FROM (
    SELECT * FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY id) AS bytes FROM items
        WHERE noun = $1 AND organization = $2 AND id >= $3
        ORDER BY id LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
LEFT JOIN item_names USING (noun, organization, id)
ORDER BY found.id, field, value
