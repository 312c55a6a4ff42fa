-- Inbox messages.

-- name: inbox
-- ?1 is a JSON array of partitions. Numbers are sorted first; bodies are read one by one until the bound is reached.
SELECT inbox.number, execution, id, partition, body, enqueued_at
FROM (
    SELECT number FROM inbox WHERE partition IN (SELECT value FROM json_each(?1)) AND number > ?2
    ORDER BY number LIMIT ?3
) AS found
CROSS JOIN inbox ON inbox.number = found.number
ORDER BY found.number

-- name: message_insert
INSERT INTO inbox (execution, id, partition, body, enqueued_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (execution, id) DO NOTHING

-- name: message_remove
DELETE FROM inbox WHERE execution = ?1 AND id = ?2

-- name: messages_remove
DELETE FROM inbox WHERE execution = ?1

-- name: inbox_rewrite
-- Messages come and go, and rows that SQLite has moved have left copies. Deleting all rows of the table clears its
-- pages.
CREATE TEMP TABLE waiting AS SELECT * FROM inbox;
DELETE FROM inbox;
INSERT INTO inbox SELECT * FROM waiting ORDER BY number;
DROP TABLE waiting;
