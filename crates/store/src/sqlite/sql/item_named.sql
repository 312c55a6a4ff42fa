SELECT items.id, version, body FROM item_names AS named JOIN items USING (noun, organization, id)
WHERE noun = ?1 AND organization = ?2 AND named.field = ?3 AND named.value = ?4 AND named.is_unique = 1
