-- Format 11: signatures of receipts, and the executor keys that made them. Frames of earlier formats have none.

ALTER TABLE frames ADD COLUMN receipt_proof BYTEA;
ALTER TABLE late_receipts ADD COLUMN receipt_proof BYTEA;

CREATE TABLE executor_keys (
    id          BYTEA NOT NULL PRIMARY KEY,
    certificate BYTEA NOT NULL
);
