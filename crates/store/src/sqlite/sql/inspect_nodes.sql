-- inspect_nodes
-- Includes nodes with expired leases, until the heartbeat of another node deletes them.
SELECT name, place, release, alive_until > ?1 FROM nodes ORDER BY name
