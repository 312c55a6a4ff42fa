-- Settings of connections, and statements about the database itself.

-- name: tables
-- Detects an empty file: a new store, or a file that belongs to no program.
SELECT count(*) FROM sqlite_schema;

-- name: writer
-- Run on every writing connection. Durability: each commit syncs the log, on macOS with the call that reaches the
-- medium. secure_delete clears freed space; see erase.rs for the copies that it does not clear. The commit that reaches
-- wal_autocheckpoint pages (8 MiB) checkpoints the log, which accepts_partitions some 10 ms. Its errors are not reported and need
-- not be: the log still has the pages, and the next attempt writes and syncs them again. Without mmap, a failing disk
-- gives an error of a call and not a signal that kills the process.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -65536;
PRAGMA wal_autocheckpoint = 1024;
PRAGMA journal_size_limit = 67108864;

-- name: reader
-- Run on every reading connection. There are several, each with its own cache; the operating system caches the pages
-- anyway.
PRAGMA query_only = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA cache_size = -4096;

-- name: copy
-- For the target of a copy: no journal and no sync, because a failed copy is discarded.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;

-- name: clock
-- The store's clock: the machine's time, in milliseconds since 1970.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)
