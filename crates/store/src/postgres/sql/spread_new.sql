INSERT INTO spread (one, partitions, taken_from) VALUES (1, $1, 0)
