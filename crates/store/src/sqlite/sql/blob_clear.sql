-- In place, at the same length: a deleted row would let SQLite move its neighbours.
UPDATE blobs SET hash = NULL, bytes = zeroblob(length(bytes)) WHERE hash = ?1 AND refs = 0
