-- The rows are locked by an earlier statement, so this one sees the committed results of all transactions that it
-- waited for.
UPDATE partitions SET epoch = epoch + 1, holder = $2
WHERE partition = ANY ($1)
    AND EXISTS (
        SELECT 1 FROM nodes
        WHERE name = $2 AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
    )
    AND NOT EXISTS (
        SELECT 1 FROM spread
        WHERE taken_from > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
    )
    AND NOT EXISTS (
        SELECT 1 FROM nodes
        WHERE name = holder AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
    )
RETURNING partition, epoch
