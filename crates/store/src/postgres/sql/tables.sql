-- Includes tables that this role may not read.
SELECT CAST(tablename AS TEXT) FROM pg_catalog.pg_tables WHERE schemaname = $1
