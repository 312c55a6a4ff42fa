-- Format 13: the queue of events for subscriptions; the side of a rollout that chose a definition, and the usage of ended
-- executions; budgets of a day or a month.

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

ALTER TABLE executions ADD COLUMN rollout BYTEA;
ALTER TABLE executions ADD COLUMN tokens BIGINT;
ALTER TABLE executions ADD COLUMN cost BIGINT;

-- Executions of workflows without a rollout have no entry. The text is bounded, so it needs no hash.
CREATE INDEX executions_by_rollout ON executions (rollout, execution) WHERE rollout IS NOT NULL;

-- Budgets of a day or a month: their accounts, the blocks that executions lease of them, and the usage by day. An empty
-- workflow stands for the whole organization in accounts and leases. Amounts of a lease are NULL without a limit. Amounts of
-- an account are those beside the usage of its period, and may be negative. Usage has rows of days, and of months.
CREATE TABLE budget_accounts (
    organization      BYTEA NOT NULL,
    workflow          BYTEA NOT NULL,
    period            TEXT COLLATE "C" NOT NULL,
    tokens            BIGINT NOT NULL,
    cost              BIGINT NOT NULL,
    model_calls       BIGINT NOT NULL,
    tool_calls        BIGINT NOT NULL,
    time_ms           BIGINT NOT NULL,
    raised_tokens     BIGINT NOT NULL DEFAULT 0,
    raised_cost       BIGINT NOT NULL DEFAULT 0,
    raised_model_calls BIGINT NOT NULL DEFAULT 0,
    raised_tool_calls BIGINT NOT NULL DEFAULT 0,
    raised_time_ms    BIGINT NOT NULL DEFAULT 0,
    is_warned         BOOLEAN NOT NULL DEFAULT FALSE,
    edition           BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (organization, workflow, period)
);

CREATE TABLE budget_leases (
    execution    BYTEA NOT NULL,
    number       BIGINT NOT NULL,
    workflow     BYTEA NOT NULL,
    period       TEXT COLLATE "C" NOT NULL,
    organization BYTEA NOT NULL,
    tokens       BIGINT,
    cost         BIGINT,
    model_calls  BIGINT,
    tool_calls   BIGINT,
    time_ms      BIGINT,
    warns        BOOLEAN NOT NULL,
    is_returned  BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (execution, number, workflow, period)
);

CREATE TABLE usage_days (
    organization BYTEA NOT NULL,
    day          TEXT COLLATE "C" NOT NULL,
    workflow     BYTEA NOT NULL,
    shard        BIGINT NOT NULL,
    tokens       BIGINT NOT NULL,
    cost         BIGINT NOT NULL,
    model_calls  BIGINT NOT NULL,
    tool_calls   BIGINT NOT NULL,
    time_ms      BIGINT NOT NULL,
    PRIMARY KEY (organization, day, workflow, shard)
);
