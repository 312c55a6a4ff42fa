-- Format 8: columns that a process of an older release does not write. A process that has opened the store before the
-- upgrade can no longer send heartbeats, or messages that newer nodes would take for forgeries.

DELETE FROM nodes;
ALTER TABLE nodes ADD COLUMN format BIGINT NOT NULL;

ALTER TABLE inbox ADD COLUMN format BIGINT NOT NULL DEFAULT 8;
ALTER TABLE inbox ALTER COLUMN format DROP DEFAULT;
