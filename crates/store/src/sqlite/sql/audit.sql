-- Audit logs.

-- name: audit
SELECT number, at, actor, action, target, detail, hash FROM audit
WHERE organization = ?1 AND number > ?2 ORDER BY number LIMIT ?3

-- name: audit_insert
INSERT INTO audit (organization, number, at, actor, action, target, detail, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)

-- name: audit_head
SELECT number, hash, seal FROM audit_heads WHERE organization = ?1

-- name: audit_head_put
INSERT INTO audit_heads (organization, number, hash, seal) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (organization) DO UPDATE SET number = ?2, hash = ?3, seal = ?4
