-- Format 10: tables and columns are named like the types of the code. Each statement locks its table for a moment, for
-- any number of rows.

ALTER TABLE late RENAME TO late_receipts;
ALTER INDEX late_by_execution RENAME TO late_receipts_by_execution;

ALTER TABLE inbox RENAME COLUMN posted_at TO enqueued_at;
ALTER TABLE notes RENAME COLUMN place TO position;

ALTER TABLE nodes RENAME COLUMN place TO address;
ALTER TABLE nodes RENAME COLUMN takes TO accepts_partitions;
ALTER TABLE remote_attempts RENAME COLUMN to_stop TO stop_requested;
ALTER TABLE pinned RENAME TO metadata;
ALTER TABLE spread RENAME TO partitioning;
ALTER TABLE partitioning RENAME COLUMN taken_from TO acquirable_from;

ALTER TABLE items RENAME TO resources;
ALTER TABLE resources RENAME COLUMN noun TO kind;
ALTER TABLE item_names RENAME TO resource_keys;
ALTER TABLE resource_keys RENAME COLUMN noun TO kind;
ALTER TABLE resource_keys RENAME COLUMN name_key TO key_hash;
ALTER INDEX item_names_unique RENAME TO resource_keys_unique;
ALTER INDEX item_names_of_item RENAME TO resource_keys_of_resource;
