-- Read-only access for diagnosis.

-- name: newest_frame
-- Keys start with the time of their creation; frames are only ordered within their execution.
SELECT heads.execution, heads.sequence
FROM (SELECT execution FROM executions ORDER BY execution DESC LIMIT $1) AS newest
JOIN heads ON heads.execution = newest.execution

-- name: nodes
-- Includes nodes with expired leases, until the heartbeat of another node deletes them.
SELECT name, address, release, alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) FROM nodes
ORDER BY name

-- name: nodes_before_format_10
SELECT name, place, release, alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) FROM nodes
ORDER BY name

-- name: metadata_before_format_10
SELECT value FROM pinned WHERE name = $1

-- name: overdue
SELECT heads.execution, executions.id, heads.wake_at, CAST(NULL AS BYTEA), count(*) OVER () FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.wake_at IS NOT NULL AND heads.quarantined IS NULL AND heads.wake_at < $2
ORDER BY heads.wake_at, heads.execution LIMIT $1

-- name: quarantined
-- Formats without the index heads_quarantined need a scan of all heads.
SELECT heads.execution, executions.id, CAST(NULL AS BIGINT), heads.quarantined, count(*) OVER () FROM heads
LEFT JOIN executions ON executions.execution = heads.execution
WHERE heads.quarantined IS NOT NULL ORDER BY heads.execution LIMIT $1

-- name: waiting
SELECT pending_approvals.execution, executions.id, opened_at, step, count(*) OVER () FROM pending_approvals
LEFT JOIN executions ON executions.execution = pending_approvals.execution
WHERE opened_at < $2 ORDER BY opened_at, pending_approvals.execution, step, gate LIMIT $1

-- name: permissions
-- Tables of the store that this role may not read or write.
SELECT CAST(relname AS TEXT) FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = $1 AND relkind = 'r' AND NOT (
    has_schema_privilege(pg_namespace.oid, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT')
    AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
    AND has_table_privilege(pg_class.oid, 'DELETE')
) ORDER BY relname

-- name: snapshot
SELECT 1

-- name: server
-- The settings of the server, the permissions of this role in the database, and the server's time in milliseconds.
SELECT
    current_setting('server_version'),
    CAST(current_setting('server_version_num') AS BIGINT),
    current_setting('fsync') = 'on',
    current_setting('full_page_writes') = 'on',
    current_setting('default_transaction_read_only') = 'on' OR pg_catalog.pg_is_in_recovery(),
    (SELECT version FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid() AND ssl),
    CAST(current_setting('max_connections') AS BIGINT) - CAST(current_setting('superuser_reserved_connections') AS BIGINT),
    (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'),
    (SELECT CAST(rolconnlimit AS BIGINT) FROM pg_catalog.pg_roles WHERE rolname = current_user),
    pg_catalog.has_database_privilege(current_database(), 'CREATE'),
    CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
