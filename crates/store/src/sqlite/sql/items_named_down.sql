SELECT items.id, version, body FROM item_names AS named JOIN items USING (noun, organization, id)
WHERE noun = ?1 AND organization = ?2 AND named.field = ?5 AND named.value = ?6 AND named.id < ?3
ORDER BY named.id DESC LIMIT ?4
