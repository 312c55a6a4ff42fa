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
