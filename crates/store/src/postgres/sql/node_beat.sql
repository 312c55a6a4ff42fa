INSERT INTO nodes (name, place, release, decide_version, alive_until, format, takes)
VALUES ($1, $2, $3, $4, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + $5, 9, $6)
ON CONFLICT (name) DO UPDATE
SET place = excluded.place, release = excluded.release, decide_version = excluded.decide_version,
    alive_until = excluded.alive_until, takes = excluded.takes
WHERE nodes.alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
RETURNING 1
