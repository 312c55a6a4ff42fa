-- Settings of connections, and statements about the database itself.

-- name: session
-- Run on every connection. Unqualified names can only mean tables of the store, since no other schema is searched.
SET search_path = {schema};
SET statement_timeout = {statement_ms};
-- 0 means no limit.
SET lock_timeout = {lock_ms};
-- Bounds the time for which a client that hangs between two statements holds locks.
SET idle_in_transaction_session_timeout = {idle_ms};
SET default_transaction_isolation = 'read committed';
-- An acknowledged commit must be on disk. A stricter setting of the server stays in force.
SELECT set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
    false
);
-- Statements find their rows by a key. A plan is made once for each connection, often while the tables are small, and a
-- plan with a sequential scan would stay in use when they have grown (measured: six times slower within a minute).
-- Settings that the server does not know are skipped.
SELECT set_config(name, 'off', false) FROM pg_catalog.pg_settings
WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit');

-- name: reads_only
-- For connections of an inspection, after session.sql: the server itself rejects writes.
SET default_transaction_read_only = on;

-- name: no_time_limit
-- Removes the time limits for one transaction.
SET LOCAL statement_timeout = 0

-- name: no_lock_limit
-- Another process may be upgrading the same store.
SET LOCAL lock_timeout = 0

-- name: upgrade_lock_limit
-- A reader of the tables, such as pg_dump, delays an upgrade for this time at most.
SET LOCAL lock_timeout = 60000

-- name: schema_found
SELECT 1 FROM information_schema.schemata WHERE schema_name = $1

-- name: schema_create
CREATE SCHEMA IF NOT EXISTS {schema}

-- name: tables
-- Includes tables that this role may not read.
SELECT CAST(tablename AS TEXT) FROM pg_catalog.pg_tables WHERE schemaname = $1

-- name: listen
LISTEN {channel}

-- name: notify
SELECT pg_notify($1, $2)
