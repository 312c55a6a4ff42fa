INSERT INTO audit_heads (organization, number, hash, seal) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (organization) DO UPDATE SET number = ?2, hash = ?3, seal = ?4
