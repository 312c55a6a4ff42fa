-- Format 12: the queue of events for subscriptions; the side of a rollout that chose a definition, and the usage of ended
-- executions; budgets of a day or a month.

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

ALTER TABLE executions ADD COLUMN rollout TEXT;
ALTER TABLE executions ADD COLUMN tokens INTEGER;
ALTER TABLE executions ADD COLUMN cost INTEGER;

-- Executions of workflows without a rollout have no entry.
CREATE INDEX executions_by_rollout ON executions (rollout, execution) WHERE rollout IS NOT NULL;

-- Budgets of a day or a month: their accounts, the blocks that executions lease of them, and the usage by day. An empty
-- workflow stands for the whole organization in accounts and leases. Amounts of a lease are NULL without a limit. Amounts of
-- an account are those beside the usage of its period, and may be negative. Usage has rows of days, and of months.
CREATE TABLE budget_accounts (
    organization      TEXT NOT NULL,
    workflow          TEXT NOT NULL,
    period            TEXT NOT NULL,
    tokens            INTEGER NOT NULL,
    cost              INTEGER NOT NULL,
    model_calls       INTEGER NOT NULL,
    tool_calls        INTEGER NOT NULL,
    time_ms           INTEGER NOT NULL,
    raised_tokens     INTEGER NOT NULL DEFAULT 0,
    raised_cost       INTEGER NOT NULL DEFAULT 0,
    raised_model_calls INTEGER NOT NULL DEFAULT 0,
    raised_tool_calls INTEGER NOT NULL DEFAULT 0,
    raised_time_ms    INTEGER NOT NULL DEFAULT 0,
    is_warned         INTEGER NOT NULL DEFAULT 0,
    edition           INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (organization, workflow, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget_leases (
    execution    BLOB NOT NULL,
    number       INTEGER NOT NULL,
    workflow     TEXT NOT NULL,
    period       TEXT NOT NULL,
    organization TEXT NOT NULL,
    tokens       INTEGER,
    cost         INTEGER,
    model_calls  INTEGER,
    tool_calls   INTEGER,
    time_ms      INTEGER,
    warns        INTEGER NOT NULL,
    is_returned  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (execution, number, workflow, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_days (
    organization TEXT NOT NULL,
    day          TEXT NOT NULL,
    workflow     TEXT NOT NULL,
    shard        INTEGER NOT NULL,
    tokens       INTEGER NOT NULL,
    cost         INTEGER NOT NULL,
    model_calls  INTEGER NOT NULL,
    tool_calls   INTEGER NOT NULL,
    time_ms      INTEGER NOT NULL,
    PRIMARY KEY (organization, day, workflow, shard)
) STRICT, WITHOUT ROWID;
