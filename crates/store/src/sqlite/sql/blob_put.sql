INSERT INTO blobs (hash, refs, bytes) VALUES (?1, 1, ?2) ON CONFLICT (hash) DO UPDATE SET refs = refs + 1
