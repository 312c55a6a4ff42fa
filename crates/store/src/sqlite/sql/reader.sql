-- Every reading connection.
PRAGMA query_only = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -16384;
