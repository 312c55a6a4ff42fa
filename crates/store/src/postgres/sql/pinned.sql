SELECT value FROM pinned WHERE name = $1
