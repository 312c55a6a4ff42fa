-- Journals: heads, frames, payloads, plans, late receipts, notes.

-- name: head
SELECT sequence, hash, seal, partition, wake_at, ended, quarantined FROM heads WHERE execution = ?1

-- name: head_insert
INSERT INTO heads (execution, partition, sequence, hash, seal, wake_at, ended)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (execution) DO NOTHING

-- name: head_advance
-- The common case: the wake-up time does not change, so that heads_due is not written.
UPDATE heads SET sequence = ?1, hash = ?2, seal = ?3
WHERE execution = ?4 AND partition = ?5 AND sequence = ?6 AND hash = ?7 AND ended = 0 AND wake_at IS ?8

-- name: head_advance_and_wake
UPDATE heads SET sequence = ?1, hash = ?2, seal = ?3, wake_at = ?8, ended = ?9
WHERE execution = ?4 AND partition = ?5 AND sequence = ?6 AND hash = ?7 AND ended = 0

-- name: head_remove
DELETE FROM heads WHERE execution = ?1

-- name: set_wake_at
UPDATE heads SET wake_at = ?4 WHERE execution = ?1 AND sequence = ?2 AND hash = ?3 AND NOT ended

-- name: due
SELECT execution, wake_at FROM heads
WHERE partition = ?1 AND wake_at <= ?2 AND (wake_at, execution) > (?3, ?4)
    AND wake_at IS NOT NULL AND quarantined IS NULL
ORDER BY wake_at, execution LIMIT ?5

-- name: newest_frame
SELECT ifnull(max(number), 0) FROM frames

-- name: frames
SELECT sequence, frame, "values" FROM frames WHERE execution = ?1 AND sequence >= ?2 ORDER BY sequence LIMIT ?3

-- name: frame_insert
INSERT INTO frames (execution, sequence, frame, "values", receipt_proof) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: values
SELECT "values" FROM frames WHERE execution = ?1 AND sequence = ?2

-- name: values_overwrite
UPDATE frames SET "values" = ?3 WHERE execution = ?1 AND sequence = ?2

-- name: blob
SELECT bytes FROM blobs WHERE hash = ?1

-- name: blob_put
INSERT INTO blobs (hash, refs, bytes) VALUES (?1, 1, ?2) ON CONFLICT (hash) DO UPDATE SET refs = refs + 1

-- name: blob_release
UPDATE blobs SET refs = refs - 1 WHERE hash = ?1

-- name: blob_clear
-- In place, at the same length: after a deletion SQLite could move neighboring rows.
UPDATE blobs SET hash = NULL, bytes = zeroblob(length(bytes)) WHERE hash = ?1 AND refs = 0

-- name: plan
SELECT bytes FROM plans WHERE hash = ?1

-- name: plan_put
INSERT INTO plans (hash, bytes) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING

-- name: late_receipts
SELECT at, body, receipt_proof FROM late_receipts WHERE execution = ?1 ORDER BY number

-- name: late_receipt_insert
INSERT INTO late_receipts (execution, at, body, receipt_proof) VALUES (?1, ?2, ?3, ?4)

-- name: late_receipts_erase
UPDATE late_receipts SET body = zeroblob(length(body)), receipt_proof = zeroblob(length(receipt_proof))
WHERE execution = ?1 AND body <> zeroblob(length(body))

-- name: receipt_proofs
SELECT sequence, receipt_proof FROM frames
WHERE execution = ?1 AND sequence >= ?2 AND receipt_proof IS NOT NULL ORDER BY sequence LIMIT ?3

-- name: executor_key
SELECT id, certificate FROM executor_keys WHERE id = ?1

-- name: executor_keys
SELECT id, certificate FROM executor_keys WHERE id > ?1 ORDER BY id LIMIT ?2

-- name: executor_key_put
INSERT INTO executor_keys (id, certificate) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING

-- name: notes
SELECT subject, sequence, position, at, by, reason, seal FROM notes
WHERE execution = ?1 ORDER BY subject, sequence, position

-- name: note_put
INSERT INTO notes (execution, subject, sequence, position, at, by, reason, seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING
