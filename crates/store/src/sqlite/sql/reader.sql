-- Every reading connection. There are several, each with a cache of its own: the operating system has the pages anyway.
PRAGMA query_only = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -4096;
