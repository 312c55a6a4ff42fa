-- Nodes, partitions, and attempts that keep running at a node which released their execution.

-- name: claim
INSERT INTO partitions (partition, epoch, holder) VALUES ($1, 1, $2)
ON CONFLICT (partition) DO UPDATE SET epoch = partitions.epoch + 1, holder = excluded.holder
RETURNING epoch

-- name: holders
-- Includes owners with expired leases, so that a node sees its own partitions after its lease has expired; the last
-- column is true for living ones.
SELECT partition, epoch, holder, COALESCE(alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT), false)
FROM partitions LEFT JOIN nodes ON name = holder
WHERE holder IS NOT NULL ORDER BY partition

-- name: nodes
SELECT name, address, release, decide_version, accepts_partitions FROM nodes
WHERE alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name

-- name: heartbeat
INSERT INTO nodes (name, address, release, decide_version, alive_until, format, accepts_partitions)
VALUES ($1, $2, $3, $4, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + $5, 9, $6)
ON CONFLICT (name) DO UPDATE
SET address = excluded.address, release = excluded.release, decide_version = excluded.decide_version,
    alive_until = excluded.alive_until, accepts_partitions = excluded.accepts_partitions
WHERE nodes.alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
RETURNING 1

-- name: nodes_remove_expired
-- Deletes nodes whose leases expired a day ago.
DELETE FROM nodes WHERE alive_until < CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - 86400000

-- name: node_leave
UPDATE nodes
SET alive_until = LEAST(alive_until, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))
WHERE name = $1

-- name: acquire
-- The rows are locked by an earlier statement, so this one sees the committed results of all transactions that it
-- waited for.
UPDATE partitions SET epoch = epoch + 1, holder = $1
WHERE partition = ANY (CAST(string_to_array(current_setting('mainspring.locked'), ',') AS BIGINT[]))
    AND EXISTS (
        SELECT 1 FROM nodes
        WHERE name = $1 AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
    )
    AND NOT EXISTS (
        SELECT 1 FROM partitioning
        WHERE acquirable_from > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
    )
    AND NOT EXISTS (
        SELECT 1 FROM nodes
        WHERE name = holder AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
    )
RETURNING partition, epoch

-- name: acquire_seed
-- Makes the rows of partitions that were never owned, without an owner, since the next statement locks existing rows
-- only. Not for an expired node. Existing rows are left out, since an insertion would wait for their locks.
INSERT INTO partitions (partition, epoch, holder)
SELECT asked.partition, 0, NULL
FROM unnest(CAST($1 AS BIGINT[])) AS asked (partition)
WHERE EXISTS (
    SELECT 1 FROM nodes
    WHERE name = $2 AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
) AND NOT EXISTS (SELECT 1 FROM partitions WHERE partitions.partition = asked.partition)
ORDER BY asked.partition
ON CONFLICT (partition) DO NOTHING

-- name: release
UPDATE partitions SET holder = NULL
FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[])) AS given (partition, epoch)
WHERE partitions.partition = given.partition AND partitions.epoch = given.epoch AND holder = $3

-- name: lock_limit
-- A heartbeat waits for this statement's transaction, and a lease is a multiple of it.
SET LOCAL lock_timeout = 1000

-- name: partitions_lock_free
-- Locks the rows that no other transaction has locked, and names them for the next statement.
SELECT set_config('mainspring.locked', coalesce(string_agg(CAST(partition AS TEXT), ','), ''), true)
FROM (SELECT partition FROM partitions WHERE partition = ANY ($1) ORDER BY partition FOR UPDATE SKIP LOCKED) AS locked

-- name: partitions_lock
SELECT partition FROM partitions WHERE partition = ANY ($1) ORDER BY partition FOR UPDATE

-- name: partitions_lock_all
SELECT partition FROM partitions ORDER BY partition FOR UPDATE

-- name: partitions_release_all
UPDATE partitions SET epoch = epoch + 1, holder = NULL

-- name: remote_attempts
SELECT execution, step, number, node FROM remote_attempts
WHERE execution = $1 AND EXISTS (
    SELECT 1 FROM nodes
    WHERE name = node AND alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
)

-- name: remote_attempts_put
-- An earlier request to stop the attempt stays in force.
INSERT INTO remote_attempts (execution, step_key, step, number, node, stop_requested)
SELECT given.execution, given.step_key, given.step, given.number, CAST($5 AS BYTEA), false
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BYTEA[]), CAST($4 AS BIGINT[]))
    AS given (execution, step_key, step, number)
ORDER BY given.execution, given.step_key, given.number
ON CONFLICT (execution, step_key, number) DO UPDATE SET node = excluded.node

-- name: remote_attempt_stop
UPDATE remote_attempts SET stop_requested = true WHERE execution = $1 AND step_key = $2 AND number = $3

-- name: remote_attempts_to_stop
SELECT execution, step, number FROM remote_attempts WHERE node = $1 AND stop_requested ORDER BY execution, step, number

-- name: remote_attempts_remove
DELETE FROM remote_attempts
USING unnest(CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[])) AS given (execution, step_key, number)
WHERE remote_attempts.execution = given.execution AND remote_attempts.step_key = given.step_key
    AND remote_attempts.number = given.number AND node = $4

-- name: remote_attempts_remove_orphaned
DELETE FROM remote_attempts WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE name = node)

-- name: partitioning
SELECT partitions, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) FROM partitioning

-- name: partitioning_lock
SELECT partitions FROM partitioning FOR UPDATE

-- name: partitioning_insert
INSERT INTO partitioning (one, partitions, acquirable_from) VALUES (1, $1, 0)

-- name: partitioning_set
-- Living nodes assume until the last of their leases has expired that they still own their partitions.
UPDATE partitioning SET partitions = $1, acquirable_from = greatest(acquirable_from, (SELECT coalesce(max(alive_until), 0) FROM nodes))

-- name: partitioning_share
-- Locks the number of partitions against changes until the transaction ends.
SELECT partitions FROM partitioning FOR SHARE

-- name: move_page
(SELECT execution FROM heads WHERE execution > $1 ORDER BY execution LIMIT $2)
UNION
(SELECT execution FROM inbox WHERE execution > $1 ORDER BY execution LIMIT $2)
ORDER BY execution LIMIT $2

-- name: move_heads
UPDATE heads SET partition = new.partition
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS new (execution, partition)
WHERE heads.execution = new.execution AND heads.partition <> new.partition

-- name: move_executions
UPDATE executions SET partition = new.partition
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS new (execution, partition)
WHERE executions.execution = new.execution AND executions.partition <> new.partition

-- name: move_inbox
UPDATE inbox SET partition = new.partition
FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS new (execution, partition)
WHERE inbox.execution = new.execution AND inbox.partition <> new.partition
