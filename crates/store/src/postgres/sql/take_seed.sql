-- A row that nobody holds, for partitions that nobody ever held: what is locked next must be there. Not for a dead node.
INSERT INTO partitions (partition, epoch, holder)
SELECT asked.partition, 0, NULL
FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
WHERE EXISTS (
    SELECT 1 FROM nodes
    WHERE name = $2 AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
)
ORDER BY asked.partition
ON CONFLICT (partition) DO NOTHING
