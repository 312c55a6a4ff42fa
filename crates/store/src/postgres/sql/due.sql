-- Reads a separate index range for each partition, in the requested order.
SELECT found.execution, found.wake_at
FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
CROSS JOIN LATERAL (
    SELECT execution, wake_at FROM heads
    WHERE heads.partition = asked.partition AND wake_at <= $2 AND (wake_at, execution) > ($3, $4)
        AND wake_at IS NOT NULL AND quarantined IS NULL
    ORDER BY wake_at, execution LIMIT $5
) AS found
ORDER BY found.wake_at, found.execution LIMIT $5
