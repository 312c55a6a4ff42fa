-- The queue of events.

-- name: events_record
-- Sorted, so that transactions lock rows in the same order.
INSERT INTO event_cursors (
    subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
)
SELECT named.id, new.execution, executions.organization, new.first, 0, new.last, 0, 0, NULL
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BIGINT[])) AS new (execution, first, last)
JOIN executions ON executions.execution = new.execution
JOIN resource_keys AS named
    ON named.kind = $4 AND named.organization = executions.organization AND named.key_hash = $5
ORDER BY named.id, new.execution
ON CONFLICT (subscription, execution) DO UPDATE SET newest = excluded.newest

-- name: due_subscriptions
-- Steps from one subscription to the next in the index.
WITH RECURSIVE found (subscription) AS (
    (SELECT subscription FROM event_cursors ORDER BY subscription LIMIT 1)
    UNION ALL
    SELECT (
        SELECT event_cursors.subscription FROM event_cursors
        WHERE event_cursors.subscription > found.subscription ORDER BY event_cursors.subscription LIMIT 1
    )
    FROM found WHERE found.subscription IS NOT NULL
)
SELECT found.subscription, (
    SELECT organization FROM event_cursors WHERE event_cursors.subscription = found.subscription LIMIT 1
) AS organization
FROM found
WHERE found.subscription IS NOT NULL AND (
    EXISTS (SELECT 1 FROM event_cursors WHERE event_cursors.subscription = found.subscription AND due_at <= $1)
    OR EXISTS (SELECT 1 FROM event_cursors WHERE event_cursors.subscription = found.subscription AND due_at > $2)
)
ORDER BY found.subscription

-- name: due_events
-- Two ranges of the index, so that executions that wait are not read.
SELECT * FROM (
    SELECT subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
    FROM event_cursors WHERE subscription = $1 AND due_at <= $2 ORDER BY due_at, execution LIMIT $4
) AS due
UNION ALL
SELECT * FROM (
    SELECT subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
    FROM event_cursors WHERE subscription = $1 AND due_at > $3 ORDER BY due_at, execution LIMIT $4
) AS beyond
ORDER BY due_at, execution LIMIT $4

-- name: events_count
SELECT count(*) FROM (SELECT 1 FROM event_cursors WHERE subscription = $1 LIMIT $2) AS found

-- name: events_finish
DELETE FROM event_cursors
WHERE subscription = $1 AND execution = $2 AND sequence = $3 AND position = $4 AND attempts = $5 AND newest < $6
RETURNING 1

-- name: events_move
UPDATE event_cursors SET sequence = $6, position = $7, due_at = $8, attempts = $9, failing_since = $10
WHERE subscription = $1 AND execution = $2 AND sequence = $3 AND position = $4 AND attempts = $5
RETURNING 1

-- name: events_retry
UPDATE event_cursors SET due_at = 0, attempts = 0, failing_since = NULL WHERE subscription = $1

-- name: events_remove
DELETE FROM event_cursors
WHERE subscription = $1 AND NOT EXISTS (
    SELECT 1 FROM resource_keys AS named
    WHERE named.kind = $2 AND named.organization = event_cursors.organization AND named.id = $1
        AND named.key_hash = $3
)
