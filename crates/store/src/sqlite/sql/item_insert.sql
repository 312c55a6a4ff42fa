INSERT INTO items (noun, organization, id, version, body) VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO NOTHING
