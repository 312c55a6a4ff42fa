SELECT number, organization, at, actor, action, target, detail, hash FROM audit
WHERE organization_key = $1 AND number > $2 ORDER BY number LIMIT $3
