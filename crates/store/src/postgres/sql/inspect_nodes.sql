-- Also those that have fallen silent, until the next one that speaks forgets them.
SELECT name, place, release, alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) FROM nodes
ORDER BY name
