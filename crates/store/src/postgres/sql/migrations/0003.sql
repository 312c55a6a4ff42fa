-- Format 3: the resources of a server, and its audit log; organizations of executions; open gates.

-- Kinds, organizations and ids are short enough for an index.
CREATE TABLE items (
    noun         BYTEA NOT NULL,
    organization BYTEA NOT NULL,
    id           BYTEA NOT NULL,
    version      BIGINT NOT NULL,
    body         BYTEA NOT NULL,
    PRIMARY KEY (noun, organization, id)
);

-- `name_key` is the hash of field and value.
CREATE TABLE item_names (
    noun         BYTEA NOT NULL,
    organization BYTEA NOT NULL,
    name_key     BYTEA NOT NULL,
    id           BYTEA NOT NULL,
    field        BYTEA NOT NULL,
    value        BYTEA NOT NULL,
    is_unique    BOOLEAN NOT NULL,
    PRIMARY KEY (noun, organization, name_key, id)
);

CREATE UNIQUE INDEX item_names_unique ON item_names (noun, organization, name_key) WHERE is_unique;

CREATE INDEX item_names_of_item ON item_names (noun, organization, id);

CREATE TABLE audit (
    organization_key BYTEA NOT NULL,
    organization     BYTEA NOT NULL,
    number           BIGINT NOT NULL,
    at               BIGINT NOT NULL,
    actor            BYTEA NOT NULL,
    action           BYTEA NOT NULL,
    target           BYTEA NOT NULL,
    detail           BYTEA NOT NULL,
    hash             BYTEA NOT NULL,
    PRIMARY KEY (organization_key, number)
);

CREATE TABLE audit_heads (
    organization_key BYTEA NOT NULL PRIMARY KEY,
    organization     BYTEA NOT NULL,
    number           BIGINT NOT NULL,
    hash             BYTEA NOT NULL,
    seal             BYTEA NOT NULL
);

-- `start_key` of an execution with an organization or a workflow's id is the hash of those and of the idempotency key.
ALTER TABLE executions ADD COLUMN organization_key BYTEA;
ALTER TABLE executions ADD COLUMN organization BYTEA;
ALTER TABLE executions ADD COLUMN workflow_id_key BYTEA;
ALTER TABLE executions ADD COLUMN workflow_id BYTEA;
ALTER TABLE executions ADD COLUMN trigger_id BYTEA;

CREATE INDEX executions_by_organization ON executions (organization_key, execution)
    WHERE organization_key IS NOT NULL;

CREATE INDEX executions_by_organization_and_status ON executions (organization_key, status, execution)
    WHERE organization_key IS NOT NULL;

CREATE INDEX executions_by_organization_and_workflow ON executions (organization_key, workflow_id_key, execution)
    WHERE organization_key IS NOT NULL AND workflow_id_key IS NOT NULL;

-- The question of a gate is only in the journal.
CREATE TABLE pending_approvals (
    execution        BYTEA NOT NULL,
    step_key         BYTEA NOT NULL,
    step             BYTEA NOT NULL,
    gate             BIGINT NOT NULL,
    organization_key BYTEA,
    organization     BYTEA,
    opened_at        BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    on_timeout       BYTEA NOT NULL,
    PRIMARY KEY (execution, step_key, gate)
);

CREATE INDEX pending_approvals_by_organization ON pending_approvals (organization_key, execution)
    WHERE organization_key IS NOT NULL;
