-- Format 9: whether a node takes partitions. Nodes of older releases do not write it, and do.

ALTER TABLE nodes ADD COLUMN takes BOOLEAN NOT NULL DEFAULT true;
