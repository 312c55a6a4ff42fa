-- Detects an empty file: a new store, or a file that belongs to no program.
SELECT count(*) FROM sqlite_schema;
