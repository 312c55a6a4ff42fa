INSERT INTO spread (one, partitions) VALUES (1, $1)
