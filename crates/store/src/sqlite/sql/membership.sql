-- Nodes, partitions, and attempts that keep running at a node which released their execution.

-- name: claim
INSERT INTO partitions (partition, epoch, holder) VALUES (?1, 1, ?2)
ON CONFLICT (partition) DO UPDATE SET epoch = epoch + 1, holder = ?2
RETURNING epoch

-- name: partitions
SELECT partitions FROM partitioning

-- name: holders
SELECT partition, holder FROM partitions JOIN nodes ON name = holder WHERE alive_until > ?1 ORDER BY partition

-- name: held
SELECT partition, epoch FROM partitions WHERE holder = ?1 ORDER BY partition

-- name: nodes
SELECT name, address, release, decide_version FROM nodes WHERE alive_until > ?1 ORDER BY name

-- name: heartbeat
-- ?5 is the store's clock, ?6 the end of the node's lease.
INSERT INTO nodes (name, address, release, decide_version, alive_until) VALUES (?1, ?2, ?3, ?4, ?6)
ON CONFLICT (name) DO UPDATE SET address = ?2, release = ?3, decide_version = ?4, alive_until = ?6
WHERE alive_until > ?5

-- name: nodes_remove_expired
-- Deletes nodes whose leases expired a day ago.
DELETE FROM nodes WHERE alive_until < ?1 - 86400000

-- name: node_leave
UPDATE nodes SET alive_until = min(alive_until, ?2) WHERE name = ?1

-- name: node_may_acquire
-- Returns a row if a node may acquire partitions at ?2, the store's clock.
SELECT 1 FROM nodes, partitioning WHERE name = ?1 AND alive_until > ?2 AND acquirable_from <= ?2

-- name: acquire
-- ?3 is the store's clock. A partition is free if its holder is not a living node.
INSERT INTO partitions (partition, epoch, holder) VALUES (?1, 1, ?2)
ON CONFLICT (partition) DO UPDATE SET epoch = epoch + 1, holder = ?2
WHERE holder IS NULL OR NOT EXISTS (SELECT 1 FROM nodes WHERE name = holder AND alive_until > ?3)
RETURNING epoch

-- name: release
UPDATE partitions SET holder = NULL WHERE holder = ?1 AND partition = ?2 AND epoch = ?3

-- name: remote_attempts
SELECT execution, step, number, node FROM remote_attempts
WHERE execution = ?1 AND EXISTS (SELECT 1 FROM nodes WHERE name = node AND alive_until > ?2)
ORDER BY step, number

-- name: remote_attempt_put
-- An earlier request to stop the attempt stays in force.
INSERT INTO remote_attempts (execution, step, number, node, stop_requested) VALUES (?1, ?2, ?3, ?4, 0)
ON CONFLICT (execution, step, number) DO UPDATE SET node = ?4

-- name: remote_attempt_stop
UPDATE remote_attempts SET stop_requested = 1 WHERE execution = ?1 AND step = ?2 AND number = ?3

-- name: remote_attempts_to_stop
SELECT execution, step, number FROM remote_attempts WHERE node = ?1 AND stop_requested = 1 ORDER BY execution, step, number

-- name: remote_attempt_remove
DELETE FROM remote_attempts WHERE execution = ?1 AND step = ?2 AND number = ?3 AND node = ?4

-- name: remote_attempts_remove_orphaned
DELETE FROM remote_attempts WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE name = node)

-- name: partitioning_set
-- Living nodes assume until the last of their leases has expired that they still own their partitions.
UPDATE partitioning SET partitions = ?1, acquirable_from = max(acquirable_from, (SELECT ifnull(max(alive_until), 0) FROM nodes))

-- name: partitions_release_all
UPDATE partitions SET epoch = epoch + 1, holder = NULL

-- name: partitioned_executions
SELECT execution FROM heads UNION SELECT execution FROM inbox

-- name: move_head
UPDATE heads SET partition = ?2 WHERE execution = ?1

-- name: move_execution
UPDATE executions SET partition = ?2 WHERE execution = ?1

-- name: move_messages
UPDATE inbox SET partition = ?2 WHERE execution = ?1

-- name: fence
-- Also tells if a subscription takes part in commits, so that commits without one execute no statement for events.
SELECT EXISTS (SELECT 1 FROM resource_keys WHERE kind = ?3) FROM partitions WHERE partition = ?1 AND epoch = ?2
