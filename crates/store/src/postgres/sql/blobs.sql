-- Blobs with the frames that name them first; without their bytes where those of the frames before are $3 already.
SELECT hash, CASE WHEN before < $3 THEN bytes END FROM (
    SELECT hash, bytes,
        sum(octet_length(bytes)) OVER (ORDER BY frame) - sum(octet_length(bytes)) OVER (PARTITION BY frame) AS before
    FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS wanted (hash, frame) JOIN blobs USING (hash)
) AS counted
