-- Format 4: the things of a server, and its audit log.

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
