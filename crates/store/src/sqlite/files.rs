//! The identity of the files that SQLite has open, and checks that the disk still has them under their names.
//!
//! SQLite keeps writing to a log that another program has removed: every call succeeds, even COMMIT, and the data is
//! lost when the process ends. So the files are checked before a commit is acknowledged.
//!
//! There is a rule in the other direction: POSIX drops all locks of a process on a file when the process closes any
//! descriptor of that file (fcntl(2)). Without the lock on the database, another program that closes its connection
//! believes to be the last user and removes the log. So no code of this crate opens the database, its log or its index
//! outside of SQLite while a connection exists.

use std::{
    collections::BTreeSet,
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::connection;
use crate::StoreError;

/// The descriptors of this process. Calling stat on an entry neither opens nor closes its file.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Identifies a file independently of its path, while some process has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    device: u64,
    inode: u64,
}

/// The open database, its log and its index.
#[derive(Debug)]
pub(super) struct Files {
    database: Named,
    log: Named,
    index: Named,
}

#[derive(Debug)]
struct Named {
    path: PathBuf,
    identity: Identity,
}

/// A file that the disk does not have any more.
#[derive(Debug)]
pub(super) struct Lost {
    path: PathBuf,
    how: How,
    /// True if only the log was removed and not replaced: the open log then contains all data that is not in the
    /// database.
    pub(super) is_only_log: bool,
}

#[derive(Debug)]
enum How {
    Removed,
    Replaced,
    Unreadable(io::Error),
}

impl Files {
    /// Records the files of a database that this process has open for writing, including log and index.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let named = |path: PathBuf| match Identity::of(&path) {
            Ok(identity) => Ok(Named { path, identity }),
            Err(error) => Err(StoreError::Unavailable(format!("{}: {error}", path.display()))),
        };
        // SQLite resolves symbolic links, and keeps log and index beside the real file.
        let real = path.canonicalize();
        let real = real.map_err(|error| StoreError::Unavailable(format!("{}: {error}", path.display())))?;
        let files = Self {
            database: named(path.to_owned())?,
            log: named(connection::log_of(&real))?,
            index: named(connection::index_of(&real))?,
        };
        let Some(open) = open_files() else { return Ok(files) };
        if let Some(file) = files.all().into_iter().find(|file| !open.contains(&file.identity)) {
            return Err(StoreError::Unavailable(format!(
                "{} was replaced while it was being opened: keep other programs away from the files of a store, and try again",
                file.path.display()
            )));
        }
        Ok(files)
    }

    fn all(&self) -> [&Named; 3] {
        [&self.database, &self.log, &self.index]
    }

    /// Takes three calls of stat(2), some microseconds.
    pub(super) fn check(&self) -> Result<(), Lost> {
        match self.all().into_iter().find_map(|file| Some((file, file.how_lost()?))) {
            None => Ok(()),
            Some((file, how)) => Err(Lost { path: file.path.clone(), how, is_only_log: self.is_only_log_gone() }),
        }
    }

    fn is_only_log_gone(&self) -> bool {
        let is_nobodys = match self.log.path.metadata() {
            Ok(other) => other.len() == 0,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.database.how_lost().is_none() && is_nobodys
    }
}

impl Named {
    fn how_lost(&self) -> Option<How> {
        match Identity::of(&self.path) {
            Ok(identity) if identity == self.identity => None,
            Ok(_) => Some(How::Replaced),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(How::Removed),
            Err(error) => Some(How::Unreadable(error)),
        }
    }
}

impl Identity {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.how {
            How::Removed => write!(out, "{path} was removed by another program while it was in use"),
            How::Replaced => write!(out, "{path} was replaced by another program while it was in use"),
            How::Unreadable(error) => write!(out, "{path} cannot be found any more: {error}"),
        }
    }
}

/// Lists the files that this process has open; `None` if the system does not report it.
fn open_files() -> Option<BTreeSet<Identity>> {
    let entries = fs::read_dir(DESCRIPTORS).ok()?;
    // A descriptor may be closed after it was listed.
    Some(entries.flatten().filter_map(|entry| Identity::of(&entry.path()).ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::{process::Command, sync::mpsc, thread, time::Duration};

    use rusqlite::{Connection, backup::Backup};

    use super::*;
    use crate::prelude::*;
    use crate::{
        Batch, CommitError, Fence, PartOutcome,
        contract_tests::op::{key, opens},
        sqlite::SqliteStore,
    };

    /// The variable that passes the store's path to the test that acts as another program.
    const OTHER_PROGRAM: &str = "MAINSPRING_TEST_OTHER_PROGRAM_READS";

    /// Time limit of the other program.
    const OTHER_PROGRAM_TIME: Duration = Duration::from_secs(60);

    /// Another program on the same machine: a separate process, since locks of one process do not exclude each other.
    #[test]
    fn run_as_another_program() {
        let Some(path) = std::env::var_os(OTHER_PROGRAM).map(PathBuf::from) else { return };
        for _ in 0..3 {
            let connection = Connection::open(&path).unwrap();
            connection.query_row("SELECT count(*) FROM heads", [], |_| Ok(())).unwrap();
            let mut copy = Connection::open_in_memory().unwrap();
            Backup::new(&connection, &mut copy).unwrap().step(-1).unwrap();
            connection.close().unwrap();
        }
    }

    /// Reads and copies with this build's SQLite and with installed ones, which differ in how they determine the last
    /// user.
    fn read_by_other_programs(path: &Path) {
        const PYTHON: &str = "import sqlite3, sys
for _ in range(3):
    store = sqlite3.connect(sys.argv[1])
    store.execute('SELECT count(*) FROM heads').fetchall()
    store.backup(sqlite3.connect(':memory:'))
    store.close()";
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "sqlite::files::tests::run_as_another_program"]).env(OTHER_PROGRAM, path);
        let mut shell = Command::new("sqlite3");
        shell.arg(path).arg("SELECT count(*) FROM heads");
        let mut python = Command::new("python3");
        python.args(["-c", PYTHON]).arg(path);
        for mut command in [own, shell, python] {
            let name = command.get_program().to_owned();
            let (sender, ended) = mpsc::channel();
            thread::spawn(move || sender.send(command.output()));
            let output = match ended.recv_timeout(OTHER_PROGRAM_TIME).expect("it ends in time") {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                output => output.unwrap(),
            };
            assert!(output.status.success(), "{name:?}: {output:?}");
        }
    }

    fn claimed(path: &Path) -> SqliteStore {
        let store = SqliteStore::open(path).unwrap();
        assert_eq!(store.claim(0, "node"), Ok(1));
        store
    }

    fn begin(store: &SqliteStore, execution: u8) -> Result<Vec<PartOutcome>, CommitError> {
        let fences = vec![Fence { partition: 0, epoch: 1 }];
        store.commit(&Batch { fences, parts: vec![opens(execution).part()], sealing: [0; 32] })
    }

    /// Counts the locks of this process on a file, from /proc/locks.
    fn locks_on(path: &Path) -> usize {
        let inode = fs::metadata(path).unwrap().ino();
        let (pid, ending) = (std::process::id().to_string(), format!(":{inode}"));
        let is_ours = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(4) == Some(&pid.as_str()) && fields.get(5).is_some_and(|file| file.ends_with(&ending))
        };
        fs::read_to_string("/proc/locks").unwrap().lines().filter(is_ours).count()
    }

    #[test]
    fn the_lock_on_the_database_outlives_every_further_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = claimed(&path);
        assert!(locks_on(&path) > 0, "after the writer was opened");
        let readers: Vec<_> = (0..4).map(|_| SqliteStore::open_read_only(&path).unwrap()).collect();
        assert_eq!(store.partitions(), Ok(1));
        assert!(locks_on(&path) > 0, "after readers were opened");
        drop(readers);
        drop(SqliteStore::open(&path).unwrap());
        let inspection = SqliteStore::inspect(&path, false).unwrap();
        assert_eq!(inspection.has_log(), Ok(Some(true)));
        drop(inspection);
        assert!(SqliteStore::open_read_only(&folder.path().join("none.db")).is_err());
        assert!(locks_on(&path) > 0, "after everything else was closed");
        assert_eq!(begin(&store, 1), Ok(vec![PartOutcome::Durable]));
        assert!(locks_on(&path) > 0);
    }

    #[test]
    fn another_reading_program_keeps_the_wal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = claimed(&path);
        assert_eq!(store.partitions(), Ok(1), "a reader is open as well");
        assert_eq!(begin(&store, 1), Ok(vec![PartOutcome::Durable]));
        let before = Identity::of(&connection::log_of(&path)).unwrap();
        read_by_other_programs(&path);
        assert_eq!(Identity::of(&connection::log_of(&path)).unwrap(), before);
        assert_eq!(begin(&store, 2), Ok(vec![PartOutcome::Durable]));
        // A killed process leaves the files without any cleanup.
        let crashed = folder.path().join("crashed.db");
        fs::copy(&path, &crashed).unwrap();
        fs::copy(connection::log_of(&path), connection::log_of(&crashed)).unwrap();
        let after = SqliteStore::open(&crashed).unwrap();
        assert!([1, 2].iter().all(|execution| after.head(key(*execution)).unwrap().is_some()));
    }

    /// A damage to the files, and whether acknowledged data is in the database afterwards.
    type Damage = (&'static str, fn(&Path), bool);

    const DAMAGES: [Damage; 7] = [
        ("the log is removed", |path| fs::remove_file(connection::log_of(path)).unwrap(), true),
        ("the log is moved away", |path| fs::rename(connection::log_of(path), path.with_extension("x")).unwrap(), true),
        ("the log is removed and begun anew", |path| replace(&connection::log_of(path), b""), true),
        ("the log is another's", |path| replace(&connection::log_of(path), b"of another"), false),
        ("the index is removed", |path| fs::remove_file(connection::index_of(path)).unwrap(), false),
        ("the database is removed", |path| fs::remove_file(path).unwrap(), false),
        ("the database is replaced", |path| replace(path, b"another"), false),
    ];

    fn replace(path: &Path, bytes: &[u8]) {
        let other = path.with_extension("other");
        fs::write(&other, bytes).unwrap();
        fs::rename(other, path).unwrap();
    }

    #[test]
    fn nothing_is_acknowledged_after_a_lost_file() {
        for (name, damage, is_saved) in DAMAGES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            let store = claimed(&path);
            assert_eq!(begin(&store, 1), Ok(vec![PartOutcome::Durable]), "{name}");
            assert_eq!(store.check_files(), Ok(()), "{name}");
            damage(&path);
            let refused = begin(&store, 2);
            let Err(CommitError::Fatal(why)) = refused else { panic!("{name}: {refused:?}") };
            assert!(why.contains("store.db") && why.contains("mainspring backup"), "{name}: {why}");
            // Every write is refused until the store is closed, even if the name leads to a file again.
            let refused = [
                store.claim(0, "node").map(drop),
                store.put_metadata_if_absent("a", "b").map(drop),
                store.check_files(),
            ];
            assert!(refused.iter().all(|refused| matches!(refused, Err(StoreError::Unavailable(_)))), "{name}");
            assert!(matches!(begin(&store, 3), Err(CommitError::Fatal(_))), "{name}");
            assert_eq!(why.contains("is in the database"), is_saved, "{name}: {why}");
            if is_saved {
                // As after a kill: the open store writes nothing more.
                let after = Connection::open(&path).unwrap();
                let count = |sql: &str| after.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
                assert!(count("SELECT count(*) FROM heads") >= 1, "{name}");
            }
            drop(store);
        }
    }

    #[test]
    fn a_lost_file_is_found_without_a_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let store = claimed(&path);
        fs::remove_file(connection::log_of(&path)).unwrap();
        assert!(matches!(store.check_files(), Err(StoreError::Unavailable(_))));
        assert!(matches!(begin(&store, 1), Err(CommitError::Fatal(_))));
    }

    /// Another program has started its own log: closing the store neither removes it nor writes into the database.
    #[test]
    fn closing_a_store_with_lost_files_changes_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        for is_noticed in [true, false] {
            let store = with_new_commit(&path);
            replace(&connection::log_of(&path), b"of another");
            let before = fs::read(&path).unwrap();
            assert!(!is_noticed || store.check_files().is_err());
            drop(store);
            assert_eq!(fs::read(connection::log_of(&path)).unwrap(), b"of another", "noticed: {is_noticed}");
            assert!(fs::read(&path).unwrap() == before, "noticed: {is_noticed}");
            for file in [path.clone(), connection::log_of(&path), connection::index_of(&path)] {
                let _ = fs::remove_file(file);
            }
        }
    }

    fn with_new_commit(path: &Path) -> SqliteStore {
        let store = claimed(path);
        assert_eq!(begin(&store, 1), Ok(vec![PartOutcome::Durable]));
        store
    }

    #[test]
    fn a_symbolic_link_is_followed_as_sqlite_follows_it() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.db"), folder.path().join("link.db"));
        drop(SqliteStore::open(&real).unwrap());
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let store = claimed(&link);
        assert_eq!(begin(&store, 1), Ok(vec![PartOutcome::Durable]));
        fs::remove_file(connection::log_of(&real)).unwrap();
        assert!(matches!(begin(&store, 2), Err(CommitError::Fatal(_))));
    }
}
