-- The rows are locked.
UPDATE items SET version = new.version, body = new.body
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[])
) AS new (noun, organization, id, version, body)
WHERE items.noun = new.noun AND items.organization = new.organization AND items.id = new.id
