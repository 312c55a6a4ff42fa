-- Format 2: attempts that keep running at a node which has released their execution.

CREATE TABLE remote_attempts (
    execution BYTEA NOT NULL,
    step_key  BYTEA NOT NULL,
    step      BYTEA NOT NULL,
    number    BIGINT NOT NULL,
    node      BYTEA NOT NULL,
    to_stop   BOOLEAN NOT NULL,
    PRIMARY KEY (execution, step_key, number)
);

CREATE INDEX remote_attempts_by_node ON remote_attempts (node);
