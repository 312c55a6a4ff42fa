DELETE FROM item_names
WHERE (noun, organization, id) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)
