UPDATE blobs SET refs = refs - 1 WHERE hash = $1
