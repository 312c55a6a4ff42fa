-- Of a node that is dead for a day, nobody asks any more.
DELETE FROM nodes WHERE alive_until < CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - 86400000
