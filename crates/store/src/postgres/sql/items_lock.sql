-- Locked in key order against deadlocks.
SELECT noun, organization, id, version FROM items
WHERE (noun, organization, id) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)
ORDER BY noun, organization, id FOR UPDATE
