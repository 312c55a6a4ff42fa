-- The store's clock: the machine's, in milliseconds since 1970.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)
