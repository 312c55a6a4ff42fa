-- The living nodes, by columns that the table has in every format.
SELECT name, place, release FROM nodes
WHERE alive_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) ORDER BY name
