-- Format 12: an index of unfinished executions by definition; the queue of events for subscriptions.

CREATE INDEX executions_unfinished ON executions (organization_key, workflow_id_key, workflow_hash)
    WHERE completed_at IS NULL AND organization_key IS NOT NULL AND workflow_id_key IS NOT NULL;

-- The position of a subscription in the journal of an execution that has frames behind it.
CREATE TABLE event_cursors (
    subscription  BYTEA NOT NULL,
    execution     BYTEA NOT NULL,
    organization  BYTEA NOT NULL,
    sequence      BIGINT NOT NULL,
    position      BIGINT NOT NULL,
    newest        BIGINT NOT NULL,
    due_at        BIGINT NOT NULL,
    attempts      BIGINT NOT NULL,
    failing_since BIGINT,
    PRIMARY KEY (subscription, execution)
);

CREATE INDEX event_cursors_due ON event_cursors (subscription, due_at, execution);
