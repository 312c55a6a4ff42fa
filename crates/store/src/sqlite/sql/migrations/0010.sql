-- Format 10: signatures of receipts, and the executor keys that made them. Frames of earlier formats have none.

ALTER TABLE frames ADD COLUMN receipt_proof BLOB;
ALTER TABLE late_receipts ADD COLUMN receipt_proof BLOB;

CREATE TABLE executor_keys (
    id          BLOB NOT NULL PRIMARY KEY,
    certificate BLOB NOT NULL
) STRICT;
