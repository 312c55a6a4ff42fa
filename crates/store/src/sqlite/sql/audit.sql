SELECT number, at, actor, action, target, detail, hash FROM audit
WHERE organization = ?1 AND number > ?2 ORDER BY number LIMIT ?3
