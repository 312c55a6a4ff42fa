-- For the target of a copy: no journal and no sync, because a failed copy is discarded.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
