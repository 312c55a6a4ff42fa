-- Journals: heads, frames, payloads, plans, late receipts, notes.

-- name: head
SELECT sequence, hash, seal, partition, wake_at, ended, quarantined FROM heads WHERE execution = $1

-- name: heads_insert
INSERT INTO heads (execution, partition, sequence, hash, seal, wake_at, ended)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BIGINT[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BIGINT[]), CAST($7 AS BOOLEAN[])
)

-- name: heads_advance
-- The rows are locked, and the conditions were checked before.
UPDATE heads SET sequence = new.sequence, hash = new.hash, seal = new.seal, wake_at = new.wake_at, ended = new.ended
FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BOOLEAN[])
) AS new (execution, sequence, hash, seal, wake_at, ended)
WHERE heads.execution = new.execution

-- name: heads_lock
SELECT execution, partition, sequence, hash, ended FROM heads
WHERE execution = ANY ($1) ORDER BY execution FOR UPDATE

-- name: set_wake_at
UPDATE heads SET wake_at = $4 WHERE execution = $1 AND sequence = $2 AND hash = $3 AND NOT ended RETURNING 1

-- name: due
-- Reads a separate index range for each partition, in the requested order.
SELECT found.execution, found.wake_at
FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
CROSS JOIN LATERAL (
    SELECT execution, wake_at FROM heads
    WHERE heads.partition = asked.partition AND wake_at <= $2 AND (wake_at, execution) > ($3, $4)
        AND wake_at IS NOT NULL AND quarantined IS NULL
    ORDER BY wake_at, execution LIMIT $5
) AS found
ORDER BY found.wake_at, found.execution LIMIT $5

-- name: frames
-- Stops at the row that reaches $4 bytes.
SELECT sequence, frame, "values" FROM (
    SELECT sequence, frame, "values", octet_length(frame) + octet_length("values") AS own,
        sum(octet_length(frame) + octet_length("values")) OVER (ORDER BY sequence) AS bytes
    FROM frames WHERE execution = $1 AND sequence >= $2
    ORDER BY sequence LIMIT $3
) AS counted
WHERE bytes - own < $4 ORDER BY sequence

-- name: frames_insert
INSERT INTO frames (execution, sequence, frame, "values", receipt_proof)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[])
)

-- name: values_lock
SELECT "values" FROM frames WHERE execution = $1 AND sequence = $2 FOR UPDATE

-- name: values_overwrite
UPDATE frames SET "values" = $3 WHERE execution = $1 AND sequence = $2

-- name: blobs
-- Blobs with the first frame that refers to them; without their bytes if those of earlier frames have reached $3.
SELECT hash, CASE WHEN before < $3 THEN bytes END FROM (
    SELECT hash, bytes,
        sum(octet_length(bytes)) OVER (ORDER BY frame) - sum(octet_length(bytes)) OVER (PARTITION BY frame) AS before
    FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS wanted (hash, frame) JOIN blobs USING (hash)
) AS counted

-- name: blobs_put
INSERT INTO blobs (hash, refs, bytes)
SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]))
ON CONFLICT (hash) DO UPDATE SET refs = blobs.refs + excluded.refs

-- name: blob_release
UPDATE blobs SET refs = refs - 1 WHERE hash = $1

-- name: blob_remove
DELETE FROM blobs WHERE hash = $1 AND refs <= 0

-- name: plan
SELECT bytes FROM plans WHERE hash = $1

-- name: plans_put
INSERT INTO plans (hash, bytes)
SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]))
ON CONFLICT (hash) DO NOTHING

-- name: late_receipts
SELECT at, body, receipt_proof FROM late_receipts WHERE execution = $1 ORDER BY number

-- name: late_receipts_insert
INSERT INTO late_receipts (execution, at, body, receipt_proof)
SELECT execution, at, body, receipt_proof
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]), CAST($4 AS BYTEA[]))
    WITH ORDINALITY AS new (execution, at, body, receipt_proof, position)
ORDER BY position

-- name: late_receipts_erase
UPDATE late_receipts SET body = decode(repeat('00', length(body)), 'hex'), receipt_proof = NULL
WHERE execution = $1 AND body <> decode(repeat('00', length(body)), 'hex')
RETURNING 1

-- name: receipt_proofs
SELECT sequence, receipt_proof FROM frames
WHERE execution = $1 AND sequence >= $2 AND receipt_proof IS NOT NULL ORDER BY sequence LIMIT $3

-- name: executor_key
SELECT id, certificate FROM executor_keys WHERE id = $1

-- name: executor_keys
SELECT id, certificate FROM executor_keys WHERE id > $1 ORDER BY id LIMIT $2

-- name: executor_keys_put
INSERT INTO executor_keys (id, certificate)
SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]))
ON CONFLICT (id) DO NOTHING

-- name: notes
SELECT subject, sequence, position, at, by, reason, seal FROM notes
WHERE execution = $1 ORDER BY subject, sequence, position

-- name: notes_put
INSERT INTO notes (execution, subject, sequence, position, at, by, reason, seal)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]), CAST($5 AS BIGINT[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BYTEA[]), CAST($8 AS BYTEA[])
)
ON CONFLICT DO NOTHING

-- name: fences
-- Locked in key order against deadlocks. Nodes that acquire one of these partitions wait until the transaction ends.
-- Also tells if a subscription takes part in commits, so that commits without one execute no statement for events.
SELECT partition, epoch, EXISTS (SELECT 1 FROM resource_keys WHERE kind = $2)
FROM partitions WHERE partition = ANY ($1) ORDER BY partition FOR SHARE

-- name: names
SELECT execution, id_key, start_key FROM executions WHERE id_key = ANY ($1)
UNION ALL
SELECT execution, id_key, start_key FROM executions WHERE start_key = ANY ($2)
