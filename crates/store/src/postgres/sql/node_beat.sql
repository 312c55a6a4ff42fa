INSERT INTO nodes (name, place, release, decide_version, alive_until, format)
VALUES ($1, $2, $3, $4, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + $5, 8)
ON CONFLICT (name) DO UPDATE
SET place = excluded.place, release = excluded.release, decide_version = excluded.decide_version,
    alive_until = excluded.alive_until
WHERE nodes.alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
RETURNING 1
