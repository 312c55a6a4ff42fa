SELECT hash, bytes FROM blobs WHERE hash = ANY ($1)
