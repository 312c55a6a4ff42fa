INSERT INTO item_names (noun, organization, field, value, id, is_unique) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING
