-- Every connection. What names no table of ours finds none of anybody else's: the schema is the only one looked into.
SET search_path = {schema};
SET statement_timeout = {statement_ms};
-- 0 is no limit.
SET lock_timeout = {lock_ms};
-- A client that hangs between two statements holds locks that others wait for.
SET idle_in_transaction_session_timeout = {idle_ms};
SET default_transaction_isolation = 'read committed';
-- What is acknowledged is on disk. Where the server promises more than that, it keeps its word.
SELECT set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
    false
);
-- Every statement of ours finds its rows by a key. A plan is made once for each connection, often while the tables are
-- still small: one that reads them whole would be kept when they have grown (measured: six times slower within a minute).
-- Only what this server knows is set.
SELECT set_config(name, 'off', false) FROM pg_catalog.pg_settings
WHERE name IN ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit');
