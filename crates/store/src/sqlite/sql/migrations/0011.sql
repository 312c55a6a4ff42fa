-- Format 11: an index of unfinished executions by definition; the queue of events for subscriptions.

CREATE INDEX executions_unfinished ON executions (organization, workflow_id, workflow_hash)
    WHERE completed_at IS NULL AND organization IS NOT NULL AND workflow_id IS NOT NULL;

-- The position of a subscription in the journal of an execution that has frames behind it.
CREATE TABLE event_cursors (
    subscription  TEXT NOT NULL,
    execution     BLOB NOT NULL,
    organization  TEXT NOT NULL,
    sequence      INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    newest        INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    attempts      INTEGER NOT NULL,
    failing_since INTEGER,
    PRIMARY KEY (subscription, execution)
) STRICT, WITHOUT ROWID;

CREATE INDEX event_cursors_due ON event_cursors (subscription, due_at, execution);
