-- ?1 is a JSON array of partitions. Numbers are sorted first; bodies are read one by one until the bound is reached.
SELECT inbox.number, execution, id, partition, body, posted_at
FROM (
    SELECT number FROM inbox WHERE partition IN (SELECT value FROM json_each(?1)) AND number > ?2
    ORDER BY number LIMIT ?3
) AS found
CROSS JOIN inbox ON inbox.number = found.number
ORDER BY found.number
