-- A copy that is being made: no journal and no synchronisation, because one that breaks off is thrown away.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
