-- Format 2: several nodes, and partitions whose number can be changed.

CREATE TABLE nodes (
    name           TEXT NOT NULL PRIMARY KEY,
    place          TEXT NOT NULL,
    release        TEXT NOT NULL,
    decide_version INTEGER NOT NULL,
    alive_until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The holder is NULL for a partition without an owner.
CREATE TABLE partitions_2 (
    partition INTEGER PRIMARY KEY,
    epoch     INTEGER NOT NULL,
    holder    TEXT
) STRICT;

INSERT INTO partitions_2 SELECT * FROM partitions;

DROP TABLE partitions;

ALTER TABLE partitions_2 RENAME TO partitions;

-- Metadata of the store.
CREATE TABLE pinned (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The number of partitions, and the time from which nodes may acquire them: one row.
CREATE TABLE spread (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    partitions INTEGER NOT NULL,
    taken_from INTEGER NOT NULL
) STRICT;

INSERT INTO spread VALUES (1, 1, 0);
