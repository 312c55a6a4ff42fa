-- Nodes that live now believe until the last of their words is over that they hold what they held.
UPDATE spread SET partitions = $1, taken_from = greatest(taken_from, (SELECT coalesce(max(alive_until), 0) FROM nodes))
