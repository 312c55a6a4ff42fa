-- Format 4: the resources of a server, and its audit log; organizations of executions; open gates.

CREATE TABLE items (
    noun         TEXT NOT NULL,
    organization TEXT NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER NOT NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (noun, organization, id)
) STRICT;

CREATE TABLE item_names (
    noun         TEXT NOT NULL,
    organization TEXT NOT NULL,
    field        TEXT NOT NULL,
    value        TEXT NOT NULL,
    id           TEXT NOT NULL,
    is_unique    INTEGER NOT NULL,
    PRIMARY KEY (noun, organization, field, value, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX item_names_unique ON item_names (noun, organization, field, value) WHERE is_unique = 1;

CREATE INDEX item_names_of_item ON item_names (noun, organization, id);

CREATE TABLE audit (
    organization TEXT NOT NULL,
    number       INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    action       TEXT NOT NULL,
    target       TEXT NOT NULL,
    detail       BLOB NOT NULL,
    hash         BLOB NOT NULL,
    PRIMARY KEY (organization, number)
) STRICT;

CREATE TABLE audit_heads (
    organization TEXT NOT NULL PRIMARY KEY,
    number       INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    seal         BLOB NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE executions ADD COLUMN organization TEXT;
ALTER TABLE executions ADD COLUMN workflow_id TEXT;
ALTER TABLE executions ADD COLUMN trigger_id TEXT;

CREATE INDEX executions_by_organization ON executions (organization) WHERE organization IS NOT NULL;

CREATE INDEX executions_by_organization_and_status ON executions (organization, status) WHERE organization IS NOT NULL;

CREATE INDEX executions_by_organization_and_workflow ON executions (organization, workflow_id)
    WHERE organization IS NOT NULL AND workflow_id IS NOT NULL;

-- No text equals the empty blob, so rows without an organization, id or name share a scope that other rows do not use.
DROP INDEX executions_by_idempotency_key;

CREATE UNIQUE INDEX executions_by_idempotency_key ON executions (
    ifnull(organization, x''), ifnull(workflow_id, x''), iif(workflow_id IS NULL, ifnull(workflow, x''), x''),
    idempotency_key
) WHERE idempotency_key IS NOT NULL;

-- The question of a gate is only in the journal.
CREATE TABLE pending_approvals (
    execution    BLOB NOT NULL,
    step         TEXT NOT NULL,
    gate         INTEGER NOT NULL,
    organization TEXT,
    opened_at    INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    on_timeout   TEXT NOT NULL,
    PRIMARY KEY (execution, step, gate)
) STRICT, WITHOUT ROWID;

CREATE INDEX pending_approvals_by_organization ON pending_approvals (organization, execution)
    WHERE organization IS NOT NULL;
