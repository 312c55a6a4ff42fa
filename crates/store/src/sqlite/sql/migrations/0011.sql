-- Format 11: an index of unfinished executions by definition, and budgets of a day or a month.

CREATE INDEX executions_unfinished ON executions (organization, workflow_id, workflow_hash)
    WHERE completed_at IS NULL AND organization IS NOT NULL AND workflow_id IS NOT NULL;

-- Budgets of a day or a month: their accounts, the blocks that executions lease of them, and the usage by day. An empty
-- workflow stands for the whole organization in accounts and leases. Amounts of a lease are NULL without a limit.
CREATE TABLE budget_accounts (
    organization      TEXT NOT NULL,
    workflow          TEXT NOT NULL,
    period            TEXT NOT NULL,
    tokens            INTEGER NOT NULL,
    cost              INTEGER NOT NULL,
    model_calls       INTEGER NOT NULL,
    tool_calls        INTEGER NOT NULL,
    raised_tokens     INTEGER NOT NULL DEFAULT 0,
    raised_cost       INTEGER NOT NULL DEFAULT 0,
    raised_model_calls INTEGER NOT NULL DEFAULT 0,
    raised_tool_calls INTEGER NOT NULL DEFAULT 0,
    is_warned         INTEGER NOT NULL DEFAULT 0,
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
