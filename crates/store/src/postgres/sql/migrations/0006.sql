-- Format 6: sealed notes beside journals; the execution that waits for another one.

CREATE TABLE notes (
    execution BYTEA NOT NULL,
    subject   BIGINT NOT NULL,
    sequence  BIGINT NOT NULL,
    place     BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    by        BYTEA NOT NULL,
    reason    BYTEA NOT NULL,
    seal      BYTEA NOT NULL,
    PRIMARY KEY (execution, subject, sequence, place)
);

ALTER TABLE executions ADD COLUMN parent BYTEA;

CREATE INDEX heads_quarantined ON heads (execution) WHERE quarantined IS NOT NULL;
