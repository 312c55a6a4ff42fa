-- Format 12: an index of unfinished executions by definition, and budgets of a day or a month.

CREATE INDEX executions_unfinished ON executions (organization_key, workflow_id_key, workflow_hash)
    WHERE completed_at IS NULL AND organization_key IS NOT NULL AND workflow_id_key IS NOT NULL;

-- Budgets of a day or a month: their accounts, the blocks that executions lease of them, and the usage by day. An empty
-- workflow stands for the whole organization in accounts and leases. Amounts of a lease are NULL without a limit.
CREATE TABLE budget_accounts (
    organization      BYTEA NOT NULL,
    workflow          BYTEA NOT NULL,
    period            TEXT COLLATE "C" NOT NULL,
    tokens            BIGINT NOT NULL,
    cost              BIGINT NOT NULL,
    model_calls       BIGINT NOT NULL,
    tool_calls        BIGINT NOT NULL,
    raised_tokens     BIGINT NOT NULL DEFAULT 0,
    raised_cost       BIGINT NOT NULL DEFAULT 0,
    raised_model_calls BIGINT NOT NULL DEFAULT 0,
    raised_tool_calls BIGINT NOT NULL DEFAULT 0,
    is_warned         BOOLEAN NOT NULL DEFAULT FALSE,
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
