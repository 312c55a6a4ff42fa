-- The queue of events.

-- name: events_record
-- The order of the tables: the row of the execution, then the subscriptions of its organization.
INSERT INTO event_cursors (
    subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
)
SELECT named.id, executions.execution, executions.organization, ?2, 0, ?3, 0, 0, NULL
FROM executions CROSS JOIN resource_keys AS named
WHERE executions.execution = ?1
    AND named.kind = ?4 AND named.organization = executions.organization AND named.field = ?5 AND named.value = ?6
ON CONFLICT (subscription, execution) DO UPDATE SET newest = excluded.newest

-- name: due_subscriptions
-- Steps from one subscription to the next in the index.
WITH RECURSIVE found (subscription) AS (
    SELECT min(subscription) FROM event_cursors
    UNION ALL
    SELECT (SELECT min(subscription) FROM event_cursors WHERE subscription > found.subscription)
    FROM found WHERE found.subscription IS NOT NULL
)
SELECT subscription FROM found
WHERE subscription IS NOT NULL
    AND EXISTS (SELECT 1 FROM event_cursors WHERE event_cursors.subscription = found.subscription AND due_at <= ?1)
ORDER BY subscription

-- name: due_events
SELECT subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
FROM event_cursors WHERE subscription = ?1 AND due_at <= ?2 ORDER BY due_at, execution LIMIT ?3

-- name: events_count
SELECT count(*) FROM (SELECT 1 FROM event_cursors WHERE subscription = ?1 LIMIT ?2)

-- name: events_finish
DELETE FROM event_cursors
WHERE subscription = ?1 AND execution = ?2 AND sequence = ?3 AND position = ?4 AND attempts = ?5 AND newest < ?6

-- name: events_move
UPDATE event_cursors SET sequence = ?6, position = ?7, due_at = ?8, attempts = ?9, failing_since = ?10
WHERE subscription = ?1 AND execution = ?2 AND sequence = ?3 AND position = ?4 AND attempts = ?5

-- name: events_remove
DELETE FROM event_cursors WHERE subscription = ?1
