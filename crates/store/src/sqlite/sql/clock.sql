-- The store's clock: the machine's time, in milliseconds since 1970.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)
