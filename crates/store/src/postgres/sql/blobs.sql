-- Blobs with the first frame that refers to them; without their bytes if those of earlier frames have reached $3.
SELECT hash, CASE WHEN before < $3 THEN bytes END FROM (
    SELECT hash, bytes,
        sum(octet_length(bytes)) OVER (ORDER BY frame) - sum(octet_length(bytes)) OVER (PARTITION BY frame) AS before
    FROM unnest(CAST($1 AS BYTEA[]), CAST($2 AS BIGINT[])) AS wanted (hash, frame) JOIN blobs USING (hash)
) AS counted
