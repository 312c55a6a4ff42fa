-- Of a node that is dead for a day, nobody asks any more.
DELETE FROM nodes WHERE alive_until < ?1 - 86400000
