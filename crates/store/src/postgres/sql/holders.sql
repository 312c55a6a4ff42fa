-- Whoever asks sees also what it held before it fell silent; of others, what they hold alive.
SELECT partition, epoch, holder, COALESCE(alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT), false)
FROM partitions LEFT JOIN nodes ON name = holder
WHERE holder IS NOT NULL ORDER BY partition
