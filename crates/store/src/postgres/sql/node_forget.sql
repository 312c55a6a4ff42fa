-- Deletes nodes whose leases expired a day ago.
DELETE FROM nodes WHERE alive_until < CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - 86400000
