-- Run on every reading connection. There are several, each with its own cache; the operating system caches the pages
-- anyway.
PRAGMA query_only = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -4096;
