INSERT INTO audit (organization_key, organization, number, at, actor, action, target, detail, hash)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BYTEA[]), CAST($8 AS BYTEA[]), CAST($9 AS BYTEA[])
)
