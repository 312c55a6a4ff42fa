-- In place, at the same length: after a deletion SQLite could move neighboring rows.
UPDATE blobs SET hash = NULL, bytes = zeroblob(length(bytes)) WHERE hash = ?1 AND refs = 0
