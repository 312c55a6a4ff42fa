-- Resources of a server.

-- name: resource
SELECT resources.id, version, body, field, value, is_unique
FROM resources LEFT JOIN resource_keys USING (kind, organization, id)
WHERE kind = $1 AND organization = $2 AND id = $3
ORDER BY field, value

-- name: resource_by_key
SELECT resources.id, version, body, names.field, names.value, names.is_unique
FROM resource_keys AS named
JOIN resources USING (kind, organization, id)
JOIN resource_keys AS names USING (kind, organization, id)
WHERE kind = $1 AND organization = $2 AND named.key_hash = $3 AND named.is_unique
ORDER BY names.field, names.value

-- name: resources_ascending
-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY found.id ORDER BY field, value) = 1 THEN body END,
    field, value, is_unique
FROM (
    SELECT * FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY id) AS bytes FROM resources
        WHERE kind = $1 AND organization = $2 AND id >= $3
        ORDER BY id LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
LEFT JOIN resource_keys USING (kind, organization, id)
ORDER BY found.id, field, value

-- name: resources_descending
-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY found.id ORDER BY field, value) = 1 THEN body END,
    field, value, is_unique
FROM (
    SELECT * FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY id DESC) AS bytes FROM resources
        WHERE kind = $1 AND organization = $2 AND id < $3
        ORDER BY id DESC LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
LEFT JOIN resource_keys USING (kind, organization, id)
ORDER BY found.id DESC, field, value

-- name: resources_by_key_ascending
-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY found.id ORDER BY names.field, names.value) = 1 THEN body END,
    names.field, names.value, names.is_unique
FROM (
    SELECT * FROM (
        SELECT resources.*, sum(octet_length(body)) OVER (ORDER BY named.id) AS bytes
        FROM resource_keys AS named JOIN resources USING (kind, organization, id)
        WHERE named.kind = $1 AND named.organization = $2 AND named.key_hash = $6 AND named.id >= $3
        ORDER BY named.id LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
JOIN resource_keys AS names USING (kind, organization, id)
ORDER BY found.id, names.field, names.value

-- name: resources_by_key_descending
-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY found.id ORDER BY names.field, names.value) = 1 THEN body END,
    names.field, names.value, names.is_unique
FROM (
    SELECT * FROM (
        SELECT resources.*, sum(octet_length(body)) OVER (ORDER BY named.id DESC) AS bytes
        FROM resource_keys AS named JOIN resources USING (kind, organization, id)
        WHERE named.kind = $1 AND named.organization = $2 AND named.key_hash = $6 AND named.id < $3
        ORDER BY named.id DESC LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
JOIN resource_keys AS names USING (kind, organization, id)
ORDER BY found.id DESC, names.field, names.value

-- name: all_resources
-- Stops at the row that reaches $5 bytes. A body is sent once, for any number of names.
SELECT found.id, version,
    CASE WHEN row_number() OVER (PARTITION BY kind, organization, found.id ORDER BY field, value) = 1 THEN body END,
    field, value, is_unique, kind, organization
FROM (
    SELECT * FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY kind, organization, id) AS bytes FROM resources
        WHERE (kind, organization, id) > (CAST($1 AS BYTEA), CAST($2 AS BYTEA), CAST($3 AS BYTEA))
        ORDER BY kind, organization, id LIMIT $4
    ) AS counted
    WHERE bytes - octet_length(body) < $5
) AS found
LEFT JOIN resource_keys USING (kind, organization, id)
ORDER BY kind, organization, id, field, value

-- name: resources_insert
INSERT INTO resources (kind, organization, id, version, body)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[])
)

-- name: resources_update
-- The rows are locked.
UPDATE resources SET version = new.version, body = new.body
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[])
) AS new (kind, organization, id, version, body)
WHERE resources.kind = new.kind AND resources.organization = new.organization AND resources.id = new.id

-- name: resources_remove
DELETE FROM resources
WHERE (kind, organization, id) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)

-- name: resources_lock
-- Locked in key order against deadlocks.
SELECT kind, organization, id, version FROM resources
WHERE (kind, organization, id) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)
ORDER BY kind, organization, id FOR UPDATE

-- name: resource_key_owners
SELECT kind, organization, key_hash, id FROM resource_keys
WHERE is_unique AND (kind, organization, key_hash) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)

-- name: resource_keys_insert
INSERT INTO resource_keys (kind, organization, key_hash, id, field, value, is_unique)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BOOLEAN[])
)

-- name: resource_keys_remove
DELETE FROM resource_keys
WHERE (kind, organization, id) IN (
    SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]))
)
