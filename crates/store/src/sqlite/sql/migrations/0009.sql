-- Format 9: tables and columns are named like the types of the code.

ALTER TABLE late RENAME TO late_receipts;
DROP INDEX late_by_execution;
CREATE INDEX late_receipts_by_execution ON late_receipts (execution);

ALTER TABLE inbox RENAME COLUMN posted_at TO enqueued_at;
ALTER TABLE notes RENAME COLUMN place TO position;

ALTER TABLE nodes RENAME COLUMN place TO address;
ALTER TABLE remote_attempts RENAME COLUMN to_stop TO stop_requested;
ALTER TABLE pinned RENAME TO metadata;
ALTER TABLE spread RENAME TO partitioning;
ALTER TABLE partitioning RENAME COLUMN taken_from TO acquirable_from;

ALTER TABLE items RENAME TO resources;
ALTER TABLE resources RENAME COLUMN noun TO kind;
ALTER TABLE item_names RENAME TO resource_keys;
ALTER TABLE resource_keys RENAME COLUMN noun TO kind;
DROP INDEX item_names_unique;
CREATE UNIQUE INDEX resource_keys_unique ON resource_keys (kind, organization, field, value) WHERE is_unique = 1;
DROP INDEX item_names_of_item;
CREATE INDEX resource_keys_of_resource ON resource_keys (kind, organization, id);
