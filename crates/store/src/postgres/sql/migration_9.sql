-- Format 9: whether a node takes partitions. One of an older release does not say so, and does.

ALTER TABLE nodes ADD COLUMN takes BOOLEAN NOT NULL DEFAULT true;
