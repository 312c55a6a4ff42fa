-- Format 7: sealed notes beside journals; the execution that waits for another one.

-- Like frames, rows are only appended.
CREATE TABLE notes (
    execution BLOB NOT NULL,
    subject   INTEGER NOT NULL,
    sequence  INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    by        TEXT NOT NULL,
    reason    TEXT NOT NULL,
    seal      BLOB NOT NULL,
    PRIMARY KEY (execution, subject, sequence, place)
) STRICT;

ALTER TABLE executions ADD COLUMN parent BLOB;

CREATE INDEX heads_quarantined ON heads (execution) WHERE quarantined IS NOT NULL;
