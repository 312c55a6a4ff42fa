//! The default store: one SQLite file in WAL mode. An acknowledged commit is on disk.
//!
//! One connection writes, behind a lock; several others read concurrently, each from the state at its start. Other
//! processes may do both at the same time. No option weakens the durability of a commit.
//!
//! Times and numbers above 2^63-1 are stored as that, the largest of SQLite: the year 292 million.

mod approvals;
mod audit;
mod budgets;
mod catalogue;
mod commit;
mod connection;
mod copy;
mod erase;
mod error;
mod event_queue;
mod executions;
#[cfg(test)]
mod fault_tests;
mod files;
mod inspect;
mod journal;
mod membership;
mod notes;
mod pool;
mod traits;

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::Histogram;
use rusqlite::{Connection, config::DbConfig};

use self::{connection::Beside, files::Files, pool::Readers};
pub use self::{
    connection::{index_of, is_store_header, log_of},
    inspect::{Checked, SqliteInspection, Stamp},
};
use crate::{Catalogue, EventQueue, Store, StoreError, metrics::sync_time};

/// The metadata entry for the engine that worked on the store last.
const HOLD: &str = "hold";

/// A store in a file.
pub struct SqliteStore {
    path: PathBuf,
    // Before the writer: fields are dropped in order, and the last connection to close cleans up the log.
    readers: Readers,
    writer: Option<Mutex<Connection>>,
    /// The files that the writer has open.
    files: Option<Files>,
    /// The reason why nothing is acknowledged any more, once one of them was lost.
    lost: OnceLock<String>,
    /// The format before it was opened, which may have upgraded it; 0 for a new one.
    format_before: u32,
    /// The number of the newest frame that this process knows to be durable.
    newest_frame: AtomicU64,
    /// The duration of COMMIT, which waits for the disk.
    sync_time: Histogram,
}

impl SqliteStore {
    /// Opens a store for reading and writing, and makes it with mode 0600 if it does not exist; the folder must exist.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::writer_of(path, true)
    }

    /// The same, but an older format is an error, since a process of an older release may use the store.
    pub fn open_current(path: &Path) -> Result<Self, StoreError> {
        Self::writer_of(path, false)
    }

    fn writer_of(path: &Path, upgrades: bool) -> Result<Self, StoreError> {
        let (writer, found) = connection::open_writer(path, upgrades)?;
        let writer = Some(Mutex::new(writer));
        let files = Some(Files::of(path)?);
        let readers = Readers::of(path.to_owned(), Beside::Anybody);
        let store = Self {
            path: path.to_owned(),
            readers,
            writer,
            files,
            lost: OnceLock::new(),
            format_before: found,
            newest_frame: AtomicU64::new(0),
            sync_time: sync_time("sqlite"),
        };
        store.newest_frame.store(store.read(journal::newest_frame)?, Ordering::Release);
        Ok(store)
    }

    /// Opens an existing store for reading, concurrently with any writer. Operations that write return
    /// [`StoreError::Unavailable`].
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        Self::reader(path, Beside::Anybody)
    }

    /// Opens an existing store of any format for inspection. No files are made beside it: without a log and an index it
    /// has no other users, and if the caller guarantees that (`is_alone`), neither of them is touched. A [`Stamp`] from
    /// before verifies the guarantee.
    pub fn inspect(path: &Path, is_alone: bool) -> Result<SqliteInspection, StoreError> {
        let is_worked_on = !is_alone && connection::log_of(path).exists() && connection::index_of(path).exists();
        SqliteInspection::open(path, if is_worked_on { Beside::Anybody } else { Beside::Nobody })
    }

    fn reader(path: &Path, beside: Beside) -> Result<Self, StoreError> {
        let readers = Readers::of(path.to_owned(), beside);
        readers.open_first()?;
        Ok(Self {
            path: path.to_owned(),
            readers,
            writer: None,
            files: None,
            lost: OnceLock::new(),
            format_before: connection::FORMAT,
            newest_frame: AtomicU64::new(0),
            sync_time: Histogram::noop(),
        })
    }

    /// Returns the number of the newest frame that this process knows to be durable; 0 before the first.
    pub fn newest_frame_number(&self) -> u64 {
        self.newest_frame.load(Ordering::Acquire)
    }

    /// Returns the last argument of [`note_hold`](Self::note_hold).
    pub fn last_hold(&self) -> Result<Option<String>, StoreError> {
        self.metadata(HOLD)
    }

    /// Stores the name of the engine that starts to work on the store. Durable.
    pub fn note_hold(&self, name: &str) -> Result<(), StoreError> {
        self.write(|connection| membership::note(connection, HOLD, name))
    }

    /// Reads with a pooled connection, in a snapshot of the current state.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.readers.with_connection(work)
    }

    /// Runs one transaction of the writer. When this returns `Ok`, it is on disk.
    fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.writer()?;
        self.check(&connection).map_err(StoreError::Unavailable)?;
        let transaction = || -> rusqlite::Result<T> {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let done = work(&connection)?;
            connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(done)
        };
        let done = transaction().map_err(|error| {
            connection::roll_back(&connection);
            error::of_store(&self.path, &error)
        })?;
        self.check(&connection).map_err(StoreError::Unavailable)?;
        Ok(done)
    }

    /// Checks that the writer's open files are those on the disk. Called before a write and again before its
    /// acknowledgement: SQLite could otherwise checkpoint the log into a database that another program has replaced.
    fn check(&self, writer: &Connection) -> Result<(), String> {
        if let Some(why) = self.lost.get() {
            return Err(why.clone());
        }
        let Some(Err(lost)) = self.files.as_ref().map(Files::check) else { return Ok(()) };
        let is_saved = lost.is_only_log && matches!(erase::clear_log(writer), Ok(true));
        // The files under these names belong to another program: closing the last connection would change them.
        let _ = writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        let saved = if is_saved {
            "All that was acknowledged is in the database"
        } else {
            "Copy all files of the folder before the next start: what was acknowledged last may be in the lost one alone"
        };
        let why = format!(
            "{lost}. Nothing is written and nothing acknowledged since. {saved}. Keep other programs from removing or \
             replacing the files of a store (`mainspring backup` copies it while it is in use), and start again"
        );
        Err(self.lost.get_or_init(|| why).clone())
    }

    fn writer(&self) -> Result<MutexGuard<'_, Connection>, StoreError> {
        let read_only = || StoreError::Unavailable(format!("{} was opened for reading only", self.path.display()));
        let connection = lock(self.writer.as_ref().ok_or_else(read_only)?);
        // An earlier panic may have left a transaction open.
        connection::roll_back(&connection);
        Ok(connection)
    }
}

impl Store for SqliteStore {
    fn catalogue(&self) -> &dyn Catalogue {
        self
    }

    fn event_queue(&self) -> &dyn EventQueue {
        self
    }

    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| membership::metadata(connection, name))
    }

    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.write(|connection| membership::put_metadata_if_absent(connection, name, value))
    }

    fn can_read_inline(&self) -> bool {
        self.readers.is_one_free()
    }

    fn check_files(&self) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let connection = match writer.try_lock() {
            Ok(connection) => connection,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A write in progress makes the check itself.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        self.check(&connection).map_err(StoreError::Unavailable)
    }

    fn is_of_unsealed_format(&self) -> bool {
        (1..connection::FORMAT_WITH_SEALS).contains(&self.format_before)
    }

    fn has_unsealed_resources(&self) -> bool {
        (1..connection::FORMAT_WITH_SEALED_RESOURCES).contains(&self.format_before)
    }
}

impl Drop for SqliteStore {
    /// A last check: closing a connection after its files were lost would change those of another program.
    fn drop(&mut self) {
        let _ = self.check_files();
    }
}

/// Ignores poisoning, since a rollback repairs every state behind the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
