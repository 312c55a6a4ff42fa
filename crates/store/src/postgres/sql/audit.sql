-- Audit logs.

-- name: audit
-- Stops at the row that reaches $4 bytes.
SELECT number, organization, at, actor, action, target, detail, hash FROM (
    SELECT *, octet_length(target) + octet_length(detail) AS own,
        sum(octet_length(target) + octet_length(detail)) OVER (ORDER BY number) AS bytes
    FROM audit WHERE organization_key = $1 AND number > $2
    ORDER BY number LIMIT $3
) AS counted
WHERE bytes - own < $4 ORDER BY number

-- name: audit_insert
INSERT INTO audit (organization_key, organization, number, at, actor, action, target, detail, hash)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]), CAST($5 AS BYTEA[]),
    CAST($6 AS BYTEA[]), CAST($7 AS BYTEA[]), CAST($8 AS BYTEA[]), CAST($9 AS BYTEA[])
)

-- name: audit_head
SELECT organization, number, hash, seal FROM audit_heads WHERE organization_key = $1

-- name: audit_heads_lock
-- Locked in key order against deadlocks. Other writers of these logs wait until the transaction ends.
SELECT organization, number, hash, seal FROM audit_heads
WHERE organization_key = ANY ($1) ORDER BY organization_key FOR UPDATE

-- name: audit_heads_put
INSERT INTO audit_heads (organization_key, organization, number, hash, seal)
SELECT * FROM unnest(
    CAST($1 AS BYTEA[]), CAST($2 AS BYTEA[]), CAST($3 AS BIGINT[]), CAST($4 AS BYTEA[]), CAST($5 AS BYTEA[])
)
ON CONFLICT (organization_key) DO UPDATE SET number = excluded.number, hash = excluded.hash, seal = excluded.seal
