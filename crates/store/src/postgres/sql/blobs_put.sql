INSERT INTO blobs (hash, refs, bytes)
SELECT * FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[]), CAST($3 AS BYTEA[]))
ON CONFLICT (hash) DO UPDATE SET refs = blobs.refs + excluded.refs
