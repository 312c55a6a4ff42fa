DELETE FROM blobs WHERE hash = $1 AND refs <= 0
