-- Every connection. What names no table of ours finds none of anybody else's: the schema is the only one looked into.
SET search_path = {schema};
SET statement_timeout = {statement_ms};
-- A client that hangs between two statements holds locks that others wait for.
SET idle_in_transaction_session_timeout = {idle_ms};
SET default_transaction_isolation = 'read committed';
-- What is acknowledged is on disk. Where the server promises more than that, it keeps its word.
SELECT set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
    false
);
