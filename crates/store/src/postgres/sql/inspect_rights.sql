-- Tables of the store that this role may not read or write.
SELECT CAST(relname AS TEXT) FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = $1 AND relkind = 'r' AND NOT (
    has_schema_privilege(pg_namespace.oid, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT')
    AND has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
    AND has_table_privilege(pg_class.oid, 'DELETE')
) ORDER BY relname
