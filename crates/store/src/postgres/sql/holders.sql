-- Includes owners with expired leases, so that a node sees its own partitions after its lease has expired; the last
-- column is true for living ones.
SELECT partition, epoch, holder, COALESCE(alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT), false)
FROM partitions LEFT JOIN nodes ON name = holder
WHERE holder IS NOT NULL ORDER BY partition
