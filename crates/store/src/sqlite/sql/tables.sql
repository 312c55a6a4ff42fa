-- Whether a file is still empty: a new store, or a file of nobody.
SELECT count(*) FROM sqlite_schema;
