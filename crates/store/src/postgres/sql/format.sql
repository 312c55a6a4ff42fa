-- The format of the tables.

-- name: format
SELECT program, format FROM mainspring_format

-- name: format_create
CREATE TABLE IF NOT EXISTS mainspring_format (
    one     BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    program TEXT NOT NULL,
    format  BIGINT NOT NULL
);
INSERT INTO mainspring_format (one, program, format) VALUES (1, 'mainspring', 0) ON CONFLICT (one) DO NOTHING;

-- name: format_lock
-- The process that locks this row migrates; others wait here and then find the migration done.
SELECT program, format FROM mainspring_format FOR UPDATE

-- name: format_set
UPDATE mainspring_format SET format = $1

-- name: living_nodes_before_format_10
SELECT name, place, release FROM nodes
WHERE alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name

-- name: living_nodes
SELECT name, address, release FROM nodes
WHERE alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name
