-- Resources of a server.

-- name: resource
SELECT id, version, body FROM resources WHERE kind = ?1 AND organization = ?2 AND id = ?3

-- name: resource_by_key
SELECT resources.id, version, body FROM resource_keys AS named JOIN resources USING (kind, organization, id)
WHERE kind = ?1 AND organization = ?2 AND named.field = ?3 AND named.value = ?4 AND named.is_unique = 1

-- name: resources_ascending
SELECT id, version, body FROM resources
WHERE kind = ?1 AND organization = ?2 AND id >= ?3 ORDER BY id LIMIT ?4

-- name: resources_descending
SELECT id, version, body FROM resources
WHERE kind = ?1 AND organization = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4

-- name: resources_by_key_ascending
SELECT resources.id, version, body FROM resource_keys AS named JOIN resources USING (kind, organization, id)
WHERE kind = ?1 AND organization = ?2 AND named.field = ?5 AND named.value = ?6 AND named.id >= ?3
ORDER BY named.id LIMIT ?4

-- name: resources_by_key_descending
SELECT resources.id, version, body FROM resource_keys AS named JOIN resources USING (kind, organization, id)
WHERE kind = ?1 AND organization = ?2 AND named.field = ?5 AND named.value = ?6 AND named.id < ?3
ORDER BY named.id DESC LIMIT ?4

-- name: all_resources
SELECT kind, organization, id, version, body FROM resources
WHERE (kind, organization, id) > (?1, ?2, ?3) ORDER BY kind, organization, id LIMIT ?4

-- name: resource_insert
INSERT INTO resources (kind, organization, id, version, body) VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO NOTHING

-- name: resource_update
UPDATE resources SET version = version + 1, body = ?4 WHERE kind = ?1 AND organization = ?2 AND id = ?3 AND version = ?5

-- name: resource_remove
DELETE FROM resources WHERE kind = ?1 AND organization = ?2 AND id = ?3 AND version = ifnull(?4, version)

-- name: resource_keys
-- Names the index, since SQLite has no statistics and would otherwise scan all keys of the kind.
SELECT field, value, is_unique FROM resource_keys INDEXED BY resource_keys_of_resource
WHERE kind = ?1 AND organization = ?2 AND id = ?3 ORDER BY field, value

-- name: resource_key_insert
INSERT INTO resource_keys (kind, organization, field, value, id, is_unique) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING

-- name: resource_keys_remove
DELETE FROM resource_keys WHERE kind = ?1 AND organization = ?2 AND id = ?3
