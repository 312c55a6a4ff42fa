-- inspect_nodes
-- Also those that have fallen silent, until the next one that speaks forgets them.
SELECT name, place, release, alive_until > ?1 FROM nodes ORDER BY name
