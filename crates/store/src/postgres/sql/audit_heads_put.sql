INSERT INTO audit_heads (organization_key, organization, number, hash, seal)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[])
)
ON CONFLICT (organization_key) DO UPDATE SET number = excluded.number, hash = excluded.hash, seal = excluded.seal
