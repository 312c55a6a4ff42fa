-- Reads a separate index range for each partition, in the requested order, and stops at the row that reaches $4 bytes.
-- The server knows the sizes without reading the bodies.
SELECT number, execution, id, partition, body, posted_at FROM (
    SELECT nearest.*, octet_length(body) + octet_length(id) AS own,
        sum(octet_length(body) + octet_length(id)) OVER (ORDER BY number) AS bytes
    FROM (
        SELECT found.number, found.execution, found.id, found.partition, found.body, found.posted_at
        FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
        CROSS JOIN LATERAL (
            SELECT number, execution, id, inbox.partition, body, posted_at FROM inbox
            WHERE inbox.partition = asked.partition AND number > $2
            ORDER BY number LIMIT $3
        ) AS found
        ORDER BY found.number LIMIT $3
    ) AS nearest
) AS counted
WHERE bytes - own < $4 ORDER BY number
