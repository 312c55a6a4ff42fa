-- Returns a row if a node may acquire partitions at ?2, the store's clock.
SELECT 1 FROM nodes, spread WHERE name = ?1 AND alive_until > ?2 AND taken_from <= ?2
