-- Every writing connection. What makes a commit durable: the log is synchronised with every commit, and on macOS with
-- the call that reaches the medium. secure_delete clears what is freed; see erase.rs for what it does not clear.
-- After so many pages the log is moved into the file, by the commit that reaches them (8 MiB, some 10 ms). An error of that is
-- not reported and need not be: the log still has the pages, and the next attempt writes and synchronises them again.
-- No mmap: a failing disk is then an answer to a call, and not a signal that ends the process.
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
