//! Copies of a store that may be in use.

use std::{fs::File, path::Path};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use super::{
    SqliteStore,
    connection::{self, Beside},
    error,
};
use crate::StoreError;

impl SqliteStore {
    /// Copies a store of this or an older format in a consistent state, to a new file with mode 0600. Other processes
    /// may write at the same time. The copy is one file without a log, and on the disk when this returns. After an
    /// error the caller must remove the remains of the copy.
    pub fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
        let source = connection::open(from, OpenFlags::SQLITE_OPEN_READ_ONLY, Beside::Anybody)?;
        let failed = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", to.display()));
        connection::create_new(to).map_err(failed)?;
        let fail = |error: rusqlite::Error| error::of_store(to, &error);
        let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fail)?;
        // A failed copy is discarded, and a complete one is synced below.
        copy.execute_batch(sql!("connection.sql", "copy")).map_err(fail)?;
        // All pages in one step: a copy in several steps would restart after each commit in between.
        let step = Backup::new(&source, &mut copy).and_then(|backup| backup.step(-1)).map_err(fail)?;
        if step != StepResult::Done {
            let busy = "the store is being recovered or brought to a newer format: try again";
            return Err(StoreError::Unavailable(format!("{}: {busy}", from.display())));
        }
        copy.close().map_err(|(_, error)| fail(error))?;
        drop(source);
        // No connection has the copy open any more, so that closing this file drops no locks.
        File::open(to).and_then(|file| file.sync_all()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::PermissionsExt,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::*;
    use crate::prelude::*;
    use crate::{
        Batch, Fence, Inspection, PartOutcome,
        contract_tests::op::{continues, key, look, opens},
        sqlite::Checked,
    };

    fn begun(path: &Path) -> SqliteStore {
        let store = SqliteStore::open(path).unwrap();
        assert_eq!(store.claim(0, "node"), Ok(1));
        commit(&store, vec![opens(0).part()]);
        store
    }

    fn commit(store: &SqliteStore, parts: Vec<crate::Part>) {
        let fences = vec![Fence { partition: 0, epoch: 1 }];
        let answers = store.commit(&Batch { fences, parts, sealing: [0; 32] }).unwrap();
        assert!(answers.iter().all(|answer| *answer == PartOutcome::Durable));
    }

    #[test]
    fn a_copy_is_one_valid_file_with_all_commits() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("store.db"), folder.path().join("copy"));
        let store = begun(&path);
        for is_in_use in [true, false] {
            SqliteStore::copy(&path, &copy).unwrap();
            assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
            let inspection = SqliteStore::inspect(&copy, true).unwrap();
            assert_eq!(inspection.check(true, None), Ok(Checked::Sound));
            let copied = Box::new(inspection).store().unwrap();
            assert_eq!(copied.head(key(0)), store.head(key(0)), "in use: {is_in_use}");
            drop(copied);
            let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("copy-")), "{names:?}");
            // Opening the copy as a store changes it, so it is made again.
            assert_eq!(look(&SqliteStore::open(&copy).unwrap()), look(&store));
            fs::remove_file(&copy).unwrap();
        }
        drop(store);
        SqliteStore::copy(&path, &copy).unwrap();
        assert!(SqliteStore::copy(&path, &copy).unwrap_err().to_string().contains("exists"));
        assert!(SqliteStore::copy(&folder.path().join("none"), &folder.path().join("other")).is_err());
        assert!(!folder.path().join("other").exists());
    }

    /// Two executions advance in one commit: no copy contains one advance without the other.
    #[test]
    fn a_copy_during_writes_is_a_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = begun(&path);
        commit(&store, vec![opens(1).part()]);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for after in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    commit(&store, vec![continues(0, after).part(), continues(1, after).part()]);
                }
            });
            let copies: Vec<_> = (0..20)
                .map(|number| {
                    let copy = folder.path().join(format!("copy {number}"));
                    SqliteStore::copy(&path, &copy).map(|()| copy)
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            let mut last = 0;
            for copy in copies {
                let copy = Box::new(SqliteStore::inspect(&copy.unwrap(), true).unwrap()).store().unwrap();
                let sequence = |execution| copy.head(key(execution)).unwrap().unwrap().head.sequence;
                assert_eq!(sequence(0), sequence(1));
                assert!(sequence(0) >= last);
                last = sequence(0);
            }
        });
    }

    #[test]
    fn a_copy_keeps_the_frame_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("store.db"), folder.path().join("copy"));
        let store = begun(&path);
        assert_eq!(store.newest_frame(), Some(1));
        SqliteStore::copy(&path, &copy).unwrap();
        commit(&store, vec![continues(0, 0).part(), opens(1).part()]);
        assert_eq!(store.newest_frame(), Some(3));
        drop(store);
        assert_eq!(SqliteStore::open(&path).unwrap().newest_frame(), Some(3));
        assert_eq!(SqliteStore::open(&copy).unwrap().newest_frame(), Some(1));
    }
}
