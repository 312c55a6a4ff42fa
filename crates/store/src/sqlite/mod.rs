//! The default store: one SQLite file in WAL mode. An acknowledged commit is on disk.
//!
//! One connection writes, behind a lock; several others read concurrently, each from the state at its start. Other
//! processes may do both at the same time. No option weakens the durability of a commit.
//!
//! Times and numbers above 2^63-1 are stored as that, the largest of SQLite: the year 292 million.

mod approvals;
mod audit;
mod catalogue;
mod commit;
mod connection;
mod copy;
mod erase;
mod error;
mod executions;
#[cfg(test)]
mod fault_tests;
mod files;
mod inspect;
mod journal;
mod membership;
mod notes;
mod pool;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored_frame::StoredFrame};
use metrics::Histogram;
use rusqlite::{Connection, OptionalExtension, config::DbConfig, params};

use self::{connection::Beside, files::Files, pool::Readers};
pub use self::{
    connection::{index_of, is_store_header, log_of},
    inspect::{Checked, SqliteInspection, Stamp},
};
use crate::{
    AuditedNotes, Batch, Catalogue, ClusterView, CommitError, Due, EnqueueRequest, ExecutionRow, Executions, Expected,
    Fence, Filter, GateRow, HeadRow, Inbox, InboxEntry, Journal, LateReceipt, Membership, Node, Origin, PartOutcome,
    QuarantineRelease, QuarantinedRow, ReadLimit, ReleaseOutcome, RemoteAttempt, Store, StoreError, metrics::sync_time,
    sql::integer,
};

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
    /// True if opening it has upgraded it from a format without seals.
    is_of_unsealed_format: bool,
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
            is_of_unsealed_format: (1..connection::FORMAT_WITH_SEALS).contains(&found),
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
            is_of_unsealed_format: false,
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
        self.readers.lend(work)
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
        self.is_of_unsealed_format
    }
}

impl Journal for SqliteStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        let connection = self.writer().map_err(|error| CommitError::NotWritten(error.to_string()))?;
        self.check(&connection).map_err(CommitError::Fatal)?;
        let work = || -> rusqlite::Result<(Vec<PartOutcome>, u64)> {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            commit::write(&connection, batch)
        };
        let (answers, newest) = work().map_err(|error| {
            connection::roll_back(&connection);
            error::before_commit(&self.path, &error)
        })?;
        let began = Instant::now();
        let ended = connection.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        self.sync_time.record(began.elapsed());
        ended.map_err(|error| {
            connection::roll_back(&connection);
            error::at_commit(&self.path, &error)
        })?;
        self.check(&connection).map_err(CommitError::Fatal)?;
        self.newest_frame.fetch_max(newest, Ordering::AcqRel);
        Ok(answers)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.read(|connection| journal::head(connection, execution))
    }

    fn frames(&self, execution: ExecutionKey, from: u64, bound: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        self.read(|connection| journal::frames(connection, execution, from, bound))
    }

    fn newest_frame(&self) -> Option<u64> {
        Some(self.newest_frame_number())
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.read(|connection| journal::due(connection, partitions, until_ms, after, limit))
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        let sql = sql!("journal.sql", "set_wake_at");
        let values = params![execution.0, integer(head.sequence), head.hash.0, wake_at.map(integer)];
        self.write(|connection| Ok(connection.prepare_cached(sql)?.execute(values)? == 1))
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        let sql = sql!("journal.sql", "plan");
        self.read(|connection| {
            let bytes = |row: &rusqlite::Row<'_>| Ok(Arc::from(row.get_ref(0)?.as_blob()?));
            connection.prepare_cached(sql)?.query_row([hash.0], bytes).optional()
        })
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        self.read(|connection| journal::late_receipts(connection, execution))
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.read(|connection| notes::list(connection, execution))
    }

    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        let found = self.write(|connection| erase::erase(connection, execution, audited))?;
        let cleared = erase::clear_log(&*self.writer()?).map_err(|error| error::of_store(&self.path, &error))?;
        if cleared {
            return Ok(found);
        }
        Err(StoreError::Unavailable(format!(
            "{}: the value is erased, but its bytes are still in the log, because a reader holds it: erase again",
            self.path.display()
        )))
    }
}

impl Inbox for SqliteStore {
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.write(|connection| {
            let is_so = membership::partitions(connection)? == request.partitions;
            if is_so {
                commit::put_plans(connection, request.plans)?;
            }
            if is_so && commit::enqueue(connection, request.message)? {
                audit::append(connection, &request.sealing, &request.audit.iter().collect::<Vec<_>>())?;
            }
            Ok(is_so)
        })
    }

    fn inbox(&self, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        self.read(|connection| journal::inbox(connection, partitions, after, bound))
    }
}

impl Membership for SqliteStore {
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.write(|connection| membership::claim(connection, partition, holder))
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        self.read(membership::partitions)
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        self.write(|connection| membership::repartition(connection, partitions.max(1)))
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        self.read(|connection| membership::cluster_view(connection, ""))
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        self.write(|connection| membership::heartbeat(connection, node, lease_ms))
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        self.write(|connection| membership::acquire(connection, node, partitions))
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.write(|connection| membership::release(connection, node, fences, running))
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.write(|connection| membership::leave(connection, node))
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        self.read(|connection| membership::remote_attempts(connection, execution))
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.write(|connection| membership::stop_remote(connection, attempt))
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.write(|connection| membership::end_remote(connection, node, attempts))
    }
}

impl Executions for SqliteStore {
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|connection| executions::by_key(connection, execution))
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|connection| executions::by_id(connection, id))
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.read(|connection| executions::by_idempotency_key(connection, of, key))
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.read(|connection| executions::list(connection, filter, before, limit))
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        self.read(|connection| executions::count(connection, organization, statuses, most))
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        self.read(executions::pending_organizations)
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        self.read(|connection| approvals::list(connection, organization, after, limit))
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        let sql = sql!("executions.sql", "quarantine");
        self.write(|connection| connection.prepare_cached(sql)?.execute(params![execution.0, reason]).map(drop))
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        self.read(|connection| notes::quarantined(connection, organization, after, limit))
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        self.write(|connection| notes::release(connection, release))
    }

    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        self.write(|connection| notes::force_end(connection, audited))
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
