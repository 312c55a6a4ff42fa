SELECT name, place, release, decide_version, takes FROM nodes
WHERE alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name
