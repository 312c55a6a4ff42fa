-- Format 1.
--
-- External texts may contain U+0000, which TEXT rejects, and must sort by bytes on every server. So they are BYTEA in
-- UTF-8 (`convert_from(id, 'UTF8')` shows one). A text that is searched or unique has its SHA-256 beside it (`…_key`),
-- since an index entry is limited to a third of a page and a name may be longer. Numbers are BIGINT, since a partition
-- does not fit INT.

CREATE TABLE frames (
    execution BYTEA NOT NULL,
    sequence  BIGINT NOT NULL,
    frame     BYTEA NOT NULL,
    "values"  BYTEA NOT NULL,
    PRIMARY KEY (execution, sequence)
);

-- Narrow, because it changes with every commit; with free space in each page, so that a change without a new wake-up
-- time writes neither of the indexes (HOT).
CREATE TABLE heads (
    execution   BYTEA NOT NULL PRIMARY KEY,
    partition   BIGINT NOT NULL,
    sequence    BIGINT NOT NULL,
    hash        BYTEA NOT NULL,
    seal        BYTEA NOT NULL,
    wake_at     BIGINT,
    ended       BOOLEAN NOT NULL,
    quarantined BYTEA
) WITH (fillfactor = 70);

CREATE INDEX heads_due ON heads (partition, wake_at, execution) WHERE wake_at IS NOT NULL AND quarantined IS NULL;

-- The holder is NULL for a partition without an owner.
CREATE TABLE partitions (
    partition BIGINT NOT NULL PRIMARY KEY,
    epoch     BIGINT NOT NULL,
    holder    BYTEA
);

-- Apart from partitions: a heartbeat writes it every few seconds, concurrently with commits that lock partitions.
CREATE TABLE nodes (
    name           BYTEA NOT NULL PRIMARY KEY,
    place          BYTEA NOT NULL,
    release        BYTEA NOT NULL,
    decide_version BIGINT NOT NULL,
    alive_until    BIGINT NOT NULL
);

CREATE TABLE inbox (
    number    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution BYTEA NOT NULL,
    id_key    BYTEA NOT NULL,
    id        BYTEA NOT NULL,
    partition BIGINT NOT NULL,
    body      BYTEA NOT NULL,
    posted_at BIGINT NOT NULL,
    UNIQUE (execution, id_key)
);

CREATE INDEX inbox_by_partition ON inbox (partition, number);

CREATE TABLE plans (
    hash  BYTEA NOT NULL PRIMARY KEY,
    bytes BYTEA NOT NULL
);

CREATE TABLE blobs (
    hash  BYTEA NOT NULL PRIMARY KEY,
    refs  BIGINT NOT NULL,
    bytes BYTEA NOT NULL
);

CREATE TABLE late (
    number    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution BYTEA NOT NULL,
    at        BIGINT NOT NULL,
    body      BYTEA NOT NULL
);

CREATE INDEX late_by_execution ON late (execution, number);

-- `start_key` is the hash of the workflow's name, or of its absence, and of the idempotency key; NULL without one.
CREATE TABLE executions (
    execution         BYTEA NOT NULL PRIMARY KEY,
    id_key            BYTEA NOT NULL UNIQUE,
    id                BYTEA NOT NULL,
    workflow_key      BYTEA,
    workflow          BYTEA,
    workflow_version  BYTEA,
    workflow_hash     BYTEA NOT NULL,
    plan_hash         BYTEA NOT NULL,
    status            BYTEA NOT NULL,
    outcome           BYTEA,
    error             BYTEA,
    trigger_type      BYTEA NOT NULL,
    initiator_type    BYTEA NOT NULL,
    initiator_user_id BYTEA,
    start_key         BYTEA UNIQUE,
    idempotency_key   BYTEA,
    session_id        BYTEA,
    partition         BIGINT NOT NULL,
    attempt_count     BIGINT NOT NULL,
    started_at        BIGINT NOT NULL,
    completed_at      BIGINT
);

CREATE INDEX executions_by_status ON executions (status, execution);

CREATE INDEX executions_by_workflow ON executions (workflow_key, execution);

-- Metadata of the store.
CREATE TABLE pinned (
    name  BYTEA NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL
);

-- The number of partitions, and the time from which nodes may acquire them: one row.
CREATE TABLE spread (
    one        BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    partitions BIGINT NOT NULL,
    taken_from BIGINT NOT NULL
);
