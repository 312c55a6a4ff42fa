-- Format 3: attempts that keep running at a node which has released their execution.

CREATE TABLE remote_attempts (
    execution BLOB NOT NULL,
    step      TEXT NOT NULL,
    number    INTEGER NOT NULL,
    node      TEXT NOT NULL,
    to_stop   INTEGER NOT NULL,
    PRIMARY KEY (execution, step, number)
) STRICT, WITHOUT ROWID;
