INSERT INTO audit (organization, number, at, actor, action, target, detail, hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
