-- Metadata of the store.

-- name: metadata
SELECT value FROM metadata WHERE name = $1

-- name: metadata_insert
INSERT INTO metadata (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING
