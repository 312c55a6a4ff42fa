-- Inbox messages.

-- name: inbox
-- Reads a separate index range for each partition, in the requested order, and stops at the row that reaches $4 bytes.
-- The server knows the sizes without reading the bodies.
SELECT number, execution, id, partition, body, enqueued_at FROM (
    SELECT nearest.*, octet_length(body) + octet_length(id) AS own,
        sum(octet_length(body) + octet_length(id)) OVER (ORDER BY number) AS bytes
    FROM (
        SELECT found.number, found.execution, found.id, found.partition, found.body, found.enqueued_at
        FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
        CROSS JOIN LATERAL (
            SELECT number, execution, id, inbox.partition, body, enqueued_at FROM inbox
            WHERE inbox.partition = asked.partition AND number > $2
            ORDER BY number LIMIT $3
        ) AS found
        ORDER BY found.number LIMIT $3
    ) AS nearest
) AS counted
WHERE bytes - own < $4 ORDER BY number

-- name: messages_insert
-- Numbers are assigned in the order of `position`.
INSERT INTO inbox (execution, id_key, id, partition, body, enqueued_at, format)
SELECT execution, id_key, id, partition, body, enqueued_at, 8 FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BIGINT[])
) WITH ORDINALITY AS new (execution, id_key, id, partition, body, enqueued_at, position)
ORDER BY position
ON CONFLICT (execution, id_key) DO NOTHING

-- name: messages_consume
DELETE FROM inbox
WHERE (execution, id_key) IN (SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[])))

-- name: messages_remove
DELETE FROM inbox WHERE execution = $1

-- name: enqueue
INSERT INTO inbox (execution, id_key, id, partition, body, enqueued_at, format)
SELECT CAST($1 AS BYTEA), CAST($2 AS BYTEA), CAST($3 AS BYTEA), CAST($4 AS BIGINT), CAST($5 AS BYTEA), CAST($6 AS BIGINT), 8
WHERE EXISTS (SELECT 1 FROM partitioning WHERE partitions = $7)
ON CONFLICT (execution, id_key) DO NOTHING
RETURNING 1

-- name: enqueue_plans
INSERT INTO plans (hash, bytes)
SELECT new.hash, new.bytes
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[])) AS new (hash, bytes)
WHERE EXISTS (SELECT 1 FROM partitioning WHERE partitions = $3)
ON CONFLICT (hash) DO NOTHING
