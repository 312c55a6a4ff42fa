SELECT noun, organization, name_key, id FROM item_names
WHERE is_unique AND (noun, organization, name_key) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)
