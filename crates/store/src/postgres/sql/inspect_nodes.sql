-- Includes nodes with expired leases, until the heartbeat of another node deletes them.
SELECT name, place, release, alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) FROM nodes
ORDER BY name
