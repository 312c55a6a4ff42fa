SELECT name, place, release, decide_version FROM nodes WHERE alive_until > ?1 ORDER BY name
