-- Format 8: columns that a process of an older release does not write. One that had the store open before the upgrade can
-- send no heartbeat and post no inbox message any more, which newer nodes would take for forgeries.

DELETE FROM nodes;
ALTER TABLE nodes ADD COLUMN format BIGINT NOT NULL;

ALTER TABLE inbox ADD COLUMN format BIGINT NOT NULL DEFAULT 8;
ALTER TABLE inbox ALTER COLUMN format DROP DEFAULT;
