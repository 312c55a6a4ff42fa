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
SELECT found.subscription, (
    SELECT organization FROM event_cursors WHERE event_cursors.subscription = found.subscription LIMIT 1
) AS organization
FROM found
WHERE found.subscription IS NOT NULL AND (
    EXISTS (SELECT 1 FROM event_cursors WHERE event_cursors.subscription = found.subscription AND due_at <= ?1)
    OR EXISTS (SELECT 1 FROM event_cursors WHERE event_cursors.subscription = found.subscription AND due_at > ?2)
)
ORDER BY found.subscription

-- name: due_events
-- Two ranges of the index, so that executions that wait are not read.
SELECT * FROM (
    SELECT subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
    FROM event_cursors WHERE subscription = ?1 AND due_at <= ?2 ORDER BY due_at, execution LIMIT ?4
) AS due
UNION ALL
SELECT * FROM (
    SELECT subscription, execution, organization, sequence, position, newest, due_at, attempts, failing_since
    FROM event_cursors WHERE subscription = ?1 AND due_at > ?3 ORDER BY due_at, execution LIMIT ?4
) AS beyond
ORDER BY due_at, execution LIMIT ?4

-- name: events_count
SELECT count(*) FROM (SELECT 1 FROM event_cursors WHERE subscription = ?1 LIMIT ?2)

-- name: events_finish
DELETE FROM event_cursors
WHERE subscription = ?1 AND execution = ?2 AND sequence = ?3 AND position = ?4 AND attempts = ?5 AND newest < ?6

-- name: events_move
UPDATE event_cursors SET sequence = ?6, position = ?7, due_at = ?8, attempts = ?9, failing_since = ?10
WHERE subscription = ?1 AND execution = ?2 AND sequence = ?3 AND position = ?4 AND attempts = ?5

-- name: events_retry
UPDATE event_cursors SET due_at = 0, attempts = 0, failing_since = NULL WHERE subscription = ?1

-- name: events_remove
DELETE FROM event_cursors
WHERE subscription = ?1 AND NOT EXISTS (
    SELECT 1 FROM resource_keys AS named
    WHERE named.kind = ?2 AND named.organization = event_cursors.organization AND named.id = ?1
        AND named.field = ?3 AND named.value = ?4
)
