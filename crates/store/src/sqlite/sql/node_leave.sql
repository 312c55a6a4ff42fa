UPDATE nodes SET alive_until = min(alive_until, ?2) WHERE name = ?1
