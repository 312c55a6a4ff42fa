-- Makes the rows of partitions that were never owned, without an owner, since the next statement locks existing rows
-- only. Not for an expired node.
INSERT INTO partitions (partition, epoch, holder)
SELECT asked.partition, 0, NULL
FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
WHERE EXISTS (
    SELECT 1 FROM nodes
    WHERE name = $2 AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
)
ORDER BY asked.partition
ON CONFLICT (partition) DO NOTHING
