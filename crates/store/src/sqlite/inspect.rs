//! Read-only inspection of a file, with or without a concurrent writer.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use mainspring_kernel::{frame::Frame, key::ExecutionKey};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use super::{
    SqliteStore,
    connection::{self, Beside, FORMAT},
    error, journal, membership,
};
use crate::{
    Format, InspectedExecution, InspectedExecutions, InspectedNode, Inspection, ReadLimit, Store, StoreError,
    sql::{integer, natural},
};

/// The first formats with metadata and nodes, and with open gates.
const FORMAT_WITH_NODES: u32 = 2;
const FORMAT_WITH_GATES: u32 = 4;
/// The first format with the names of today; see `migrations/0009.sql`.
const FORMAT_WITH_NAMES: u32 = 9;

/// The header's fields for the journal mode, and their values for a file with a write-ahead log.
const HEADER_MODES: std::ops::Range<usize> = 18..20;
const MODES_WITH_LOG: [u8; 2] = [2, 2];

/// Damages that are listed.
const DAMAGES_NAMED_MAX: usize = 10;

/// A file under inspection.
pub struct SqliteInspection {
    path: PathBuf,
    beside: Beside,
    connection: Connection,
    found: u32,
}

/// The state of a file and its log. Data that was read without locks is valid only if the state did not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    path: PathBuf,
    /// Length and modification time; `None` for a file that is missing or empty.
    files: [Option<(u64, SystemTime)>; 2],
}

impl Stamp {
    /// Reads the state.
    pub fn of(path: &Path) -> Self {
        let files = [path.to_owned(), connection::log_of(path)].map(|path| {
            let metadata = path.metadata().ok().filter(|metadata| metadata.len() > 0)?;
            Some((metadata.len(), metadata.modified().ok()?))
        });
        Self { path: path.to_owned(), files }
    }

    /// Returns whether the state is unchanged.
    pub fn is_unchanged(&self) -> bool {
        *self == Self::of(&self.path)
    }
}

/// The result of a check of the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// No damage.
    Sound,
    /// Descriptions of the damages.
    Damaged(Vec<String>),
    /// The time limit was reached.
    Unfinished,
}

impl SqliteInspection {
    pub(super) fn open(path: &Path, beside: Beside) -> Result<Self, StoreError> {
        let (connection, found) = connection::open_inspector(path, beside)?;
        Ok(Self { path: path.to_owned(), beside, connection, found })
    }

    /// Returns the bytes of the log that were not checkpointed.
    pub fn log_bytes(&self) -> u64 {
        connection::log_of(&self.path).metadata().map_or(0, |metadata| metadata.len())
    }

    /// Returns whether the file uses a write-ahead log, as every store does; `None` for an empty file.
    pub fn has_log(&self) -> Result<Option<bool>, StoreError> {
        if self.beside == Beside::Anybody {
            // Asked through SQLite: opening and closing the file would drop the locks of all connections of this
            // process.
            let mode = self.connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
            let mode = mode.map_err(|error| error::of_store(&self.path, &error))?;
            return Ok((self.found > 0).then_some(mode == "wal"));
        }
        let mut header = [0; HEADER_MODES.end];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut header));
        match read {
            Ok(()) => Ok(Some(header[HEADER_MODES] == MODES_WITH_LOG)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(StoreError::Unavailable(format!("{}: {error}", self.path.display()))),
        }
    }

    /// Checks the pages of the whole file, and with `is_deep` also that indexes and tables agree, within the time
    /// limit.
    pub fn check(&self, is_deep: bool, bound: Option<Duration>) -> Result<Checked, StoreError> {
        let (done, is_done) = mpsc::channel::<()>();
        let handle = self.connection.get_interrupt_handle();
        let watch = bound.map(|bound| {
            thread::spawn(move || {
                if is_done.recv_timeout(bound) == Err(mpsc::RecvTimeoutError::Timeout) {
                    handle.interrupt();
                }
            })
        });
        let name = if is_deep { "integrity_check" } else { "quick_check" };
        let mut said: Vec<String> = Vec::new();
        let checked = self.connection.pragma(None, name, DAMAGES_NAMED_MAX as i64, |row| {
            said.push(row.get(0)?);
            Ok(())
        });
        drop(done);
        watch.into_iter().for_each(|watch| drop(watch.join()));
        match checked {
            Ok(()) if said == ["ok"] => Ok(Checked::Sound),
            Ok(()) => Ok(Checked::Damaged(said)),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(Checked::Unfinished),
            Err(error) => match error::of_store(&self.path, &error) {
                StoreError::Damaged(what) => Ok(Checked::Damaged(vec![what])),
                other => Err(other),
            },
        }
    }

    fn by_format(&self, before: &'static str, since: &'static str) -> &'static str {
        if self.found < FORMAT_WITH_NAMES { before } else { since }
    }

    /// Queries the file if its format has the data.
    fn since<T>(
        &self,
        format: u32,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        if self.found < format {
            return Ok(None);
        }
        ask(&self.connection).map(Some).map_err(|error| error::of_store(&self.path, &error))
    }
}

impl Inspection for SqliteInspection {
    fn format(&self) -> Format {
        Format { found: self.found, readable: FORMAT }
    }

    fn metadata(&self, name: &str) -> Result<Option<Option<String>>, StoreError> {
        let sql = self.by_format(sql!("inspect.sql", "metadata_before_format_9"), sql!("metadata.sql", "metadata"));
        self.since(FORMAT_WITH_NODES, |connection| {
            connection.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()
        })
    }

    fn quarantined(&self, limit: usize) -> Result<Option<InspectedExecutions>, StoreError> {
        let sql = sql!("inspect.sql", "quarantined");
        self.since(1, |connection| listed(connection.prepare(sql)?.query(params![integer(limit as u64)])?))
    }

    fn overdue(&self, before_ms: u64, limit: usize) -> Result<Option<InspectedExecutions>, StoreError> {
        let sql = sql!("inspect.sql", "overdue");
        let values = params![integer(limit as u64), integer(before_ms)];
        self.since(1, |connection| listed(connection.prepare(sql)?.query(values)?))
    }

    fn waiting_since(&self, before_ms: u64, limit: usize) -> Result<Option<InspectedExecutions>, StoreError> {
        let sql = sql!("inspect.sql", "waiting");
        let values = params![integer(limit as u64), integer(before_ms)];
        self.since(FORMAT_WITH_GATES, |connection| listed(connection.prepare(sql)?.query(values)?))
    }

    fn nodes(&self) -> Result<Option<Vec<InspectedNode>>, StoreError> {
        let of_row = |row: &Row<'_>| {
            Ok(InspectedNode { name: row.get(0)?, address: row.get(1)?, release: row.get(2)?, is_alive: row.get(3)? })
        };
        let sql = self.by_format(sql!("inspect.sql", "nodes_before_format_9"), sql!("inspect.sql", "nodes"));
        self.since(FORMAT_WITH_NODES, |connection| {
            let now = membership::clock(connection)?;
            connection.prepare(sql)?.query_map([now], of_row)?.collect()
        })
    }

    fn newest_frame_ms(&self) -> Result<Option<u64>, StoreError> {
        let newest = |connection: &Connection| {
            let of_row = |row: &Row<'_>| Ok((ExecutionKey(row.get(0)?), natural(row.get(1)?)));
            let found = connection.query_row(sql!("inspect.sql", "newest_frame"), [], of_row).optional()?;
            let Some((execution, sequence)) = found else { return Ok(0) };
            let frame = journal::frames(connection, execution, sequence, ReadLimit::of(1))?.pop();
            let read = frame.map(|frame| Frame::read(&frame)).transpose();
            let read = read.map_err(|error| journal::damaged(execution, sequence, &error.message))?;
            Ok(read.map_or(0, |(frame, _)| frame.now))
        };
        self.since(1, newest)
    }

    fn store(self: Box<Self>) -> Option<Arc<dyn Store>> {
        let Self { path, beside, found, .. } = *self;
        let store = (found == FORMAT).then(|| SqliteStore::reader(&path, beside).ok())??;
        Some(Arc::new(store))
    }
}

/// Collects rows of key, id, time, reason and total.
fn listed(mut rows: rusqlite::Rows<'_>) -> rusqlite::Result<InspectedExecutions> {
    let mut listed = InspectedExecutions::default();
    while let Some(row) = rows.next()? {
        let (key, id): (_, Option<String>) = (ExecutionKey(row.get(0)?), row.get(1)?);
        let (id, at_ms) = (id.unwrap_or_else(|| key.to_string()), row.get::<_, Option<i64>>(2)?.map(natural));
        listed.first.push(InspectedExecution { id, at_ms, reason: row.get(3)? });
        listed.count = natural(row.get(4)?);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use super::*;

    /// Returns every file of a folder with its bytes.
    fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    }

    /// Makes a store with a log that was never checkpointed, as after a crash.
    fn crashed(folder: &Path) -> PathBuf {
        let (path, copy) = (folder.join("whole.db"), folder.join("a folder? 100%/copy.db"));
        let store = SqliteStore::open(&path).unwrap();
        store.put_metadata_if_absent("word", "in the log").unwrap();
        fs::create_dir(copy.parent().unwrap()).unwrap();
        fs::copy(&path, &copy).unwrap();
        fs::copy(connection::log_of(&path), connection::log_of(&copy)).unwrap();
        copy
    }

    #[test]
    fn inspection_of_an_unused_store_changes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = crashed(folder.path());
        let check = |word: &str| {
            let before = files_below(path.parent().unwrap());
            let inspection = SqliteStore::inspect(&path, true).unwrap();
            assert_eq!(inspection.metadata("word"), Ok(Some(Some(word.to_owned()))));
            assert_eq!(inspection.check(true, None), Ok(Checked::Sound));
            assert_eq!(inspection.has_log(), Ok(Some(true)));
            assert_eq!(inspection.newest_frame_ms(), Ok(Some(0)));
            let store = Box::new(inspection).store().unwrap();
            assert_eq!(store.metadata("word"), Ok(Some(word.to_owned())));
            assert!(store.put_metadata_if_absent("word", "another").is_err());
            drop(store);
            assert_eq!(files_below(path.parent().unwrap()), before);
        };
        check("in the log");
        drop(SqliteStore::open(&path).unwrap());
        assert!(!connection::log_of(&path).exists());
        check("in the log");
    }

    #[test]
    fn a_concurrent_writer_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = crashed(folder.path());
        let stamp = Stamp::of(&path);
        assert_eq!(SqliteStore::inspect(&path, true).unwrap().metadata("word"), Ok(Some(Some("in the log".into()))));
        assert!(stamp.is_unchanged());
        SqliteStore::open(&path).unwrap().put_metadata_if_absent("another", "word").unwrap();
        assert!(!stamp.is_unchanged());
    }
}
