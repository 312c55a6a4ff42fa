-- Deletes nodes whose leases expired a day ago.
DELETE FROM nodes WHERE alive_until < ?1 - 86400000
