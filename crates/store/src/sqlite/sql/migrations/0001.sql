-- Format 1.

-- Rows are only appended, and overwritten at the same length, so that SQLite never moves one. A moved row leaves a copy
-- behind, which could contain an erased value (see erase.rs). Appending is also the fastest way to insert.
CREATE TABLE frames (
    number    INTEGER PRIMARY KEY,
    execution BLOB NOT NULL,
    sequence  INTEGER NOT NULL,
    frame     BLOB NOT NULL,
    "values"  BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX frames_by_execution ON frames (execution, sequence);

-- Narrow, because it changes with every commit.
CREATE TABLE heads (
    execution   BLOB NOT NULL PRIMARY KEY,
    partition   INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    hash        BLOB NOT NULL,
    seal        BLOB NOT NULL,
    wake_at     INTEGER,
    ended       INTEGER NOT NULL,
    quarantined TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX heads_due ON heads (partition, wake_at) WHERE wake_at IS NOT NULL AND quarantined IS NULL;

CREATE TABLE partitions (
    partition INTEGER PRIMARY KEY,
    epoch     INTEGER NOT NULL,
    holder    TEXT NOT NULL
) STRICT;

-- AUTOINCREMENT: a number is never reused, even after the newest message was removed.
CREATE TABLE inbox (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    execution BLOB NOT NULL,
    id        TEXT NOT NULL,
    partition INTEGER NOT NULL,
    body      BLOB NOT NULL,
    posted_at INTEGER NOT NULL,
    UNIQUE (execution, id)
) STRICT;

CREATE INDEX inbox_by_partition ON inbox (partition);

CREATE TABLE plans (
    hash  BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL
) STRICT;

-- Appended and overwritten in place, like frames. An erased blob has no hash and no references, and is all zeros.
CREATE TABLE blobs (
    number INTEGER PRIMARY KEY,
    hash   BLOB UNIQUE,
    refs   INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE late (
    number    INTEGER PRIMARY KEY,
    execution BLOB NOT NULL,
    at        INTEGER NOT NULL,
    body      BLOB NOT NULL
) STRICT;

CREATE INDEX late_by_execution ON late (execution);

CREATE TABLE executions (
    execution         BLOB NOT NULL PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    workflow          TEXT,
    workflow_version  TEXT,
    workflow_hash     TEXT NOT NULL,
    plan_hash         BLOB NOT NULL,
    status            TEXT NOT NULL,
    outcome           TEXT,
    error             TEXT,
    trigger_type      TEXT NOT NULL,
    initiator_type    TEXT NOT NULL,
    initiator_user_id TEXT,
    idempotency_key   TEXT,
    session_id        TEXT,
    partition         INTEGER NOT NULL,
    attempt_count     INTEGER NOT NULL,
    started_at        INTEGER NOT NULL,
    completed_at      INTEGER
) STRICT, WITHOUT ROWID;

-- No text equals the empty blob, so unnamed workflows share one scope that no named workflow uses.
CREATE UNIQUE INDEX executions_by_idempotency_key ON executions (ifnull(workflow, x''), idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE INDEX executions_by_status ON executions (status);

CREATE INDEX executions_by_workflow ON executions (workflow) WHERE workflow IS NOT NULL;
