//! Opening of the file: permissions, format, connections.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use rusqlite::{Connection, Error, ErrorCode, OpenFlags, config::DbConfig};

use super::{
    error::{self, RESTORE},
    lock,
};
use crate::{StoreError, sql::natural};

/// The format that this build writes, the newest that it reads.
pub(super) const FORMAT: u32 = MIGRATIONS.len() as u32;

/// The first format whose inbox messages have seals.
pub(super) const FORMAT_WITH_SEALS: u32 = 6;

/// The first format whose resources have seals.
pub(super) const FORMAT_WITH_SEALED_RESOURCES: u32 = 13;

/// `MNSP`, at byte 68 of the file, which identifies a store for `file` and for this program.
const APPLICATION_ID: i32 = 0x4d4e_5350;

/// Each upgrades from format n to n + 1. Entries are only ever appended.
const MIGRATIONS: [&str; 13] = [
    include_str!("sql/migrations/0001.sql"),
    include_str!("sql/migrations/0002.sql"),
    include_str!("sql/migrations/0003.sql"),
    include_str!("sql/migrations/0004.sql"),
    include_str!("sql/migrations/0005.sql"),
    include_str!("sql/migrations/0006.sql"),
    include_str!("sql/migrations/0007.sql"),
    include_str!("sql/migrations/0008.sql"),
    include_str!("sql/migrations/0009.sql"),
    include_str!("sql/migrations/0010.sql"),
    include_str!("sql/migrations/0011.sql"),
    include_str!("sql/migrations/0012.sql"),
    include_str!("sql/migrations/0013.sql"),
];

/// A leaf page holds some twenty small frames. This size was faster overall than 4 and 16 KiB when measured.
const PAGE_BYTES: u32 = 8192;

/// Time that an operation waits while another process writes. A commit takes milliseconds, so a longer wait means that
/// the writer hangs.
const BUSY_MS: u64 = 10_000;

/// More than the number of statements, so that each is compiled once per connection.
const STATEMENTS_MAX: usize = 128;

/// Opens the file for writing, and makes it if it does not exist. Also returns the format that it had; an older one is
/// an error unless it may be upgraded.
pub(super) fn open_writer(path: &Path, upgrades: bool) -> Result<(Connection, u32), StoreError> {
    create(path).map_err(|error| StoreError::Unavailable(format!("{}: {error}", path.display())))?;
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, Beside::Anybody)?;
    let found = version(&connection).map_err(|error| error::of_store(path, &error))?;
    if !upgrades && (1..FORMAT).contains(&found) {
        return Err(is_older(path, found));
    }
    let prepare = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.execute_batch(sql!("connection.sql", "writer"))?;
        migrate(&connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        Ok(())
    };
    prepare().map_err(|error| error::of_store(path, &error))?;
    Ok((connection, found))
}

fn is_older(path: &Path, found: u32) -> StoreError {
    StoreError::Unavailable(format!(
        "{} has format {found}, of an older release: stop its processes, then run `mainspring upgrade` to migrate it to format \
         {FORMAT}",
        path.display()
    ))
}

/// The other users of a file that is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// Any writer, of this or another process. If there is none, SQLite makes a log and an index beside the file, and a
    /// reader leaves them there.
    Anybody,
    /// None, as the caller guarantees. No files are made and no locks are taken, and reads beside a writer are wrong.
    Nobody,
}

/// Opens for reading.
pub(super) fn open_reader(path: &Path, beside: Beside) -> Result<Connection, StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, beside)?;
    let found = version(&connection).map_err(|error| error::of_store(path, &error))?;
    if found < FORMAT {
        return Err(is_older(path, found));
    }
    connection.execute_batch(sql!("connection.sql", "reader")).map_err(|error| error::of_store(path, &error))?;
    Ok(connection)
}

/// Opens a file of any format for inspection, and returns the format.
pub(super) fn open_inspector(path: &Path, beside: Beside) -> Result<(Connection, u32), StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, beside)?;
    let prepare = || {
        connection.execute_batch(sql!("connection.sql", "reader"))?;
        version(&connection)
    };
    let found = prepare().map_err(|error| error::of_store(path, &error))?;
    Ok((connection, found))
}

/// Opens an existing file and checks that it is a store, before anything is changed.
pub(super) fn open(path: &Path, access: OpenFlags, beside: Beside) -> Result<Connection, StoreError> {
    can_be_read(path).map_err(|error| StoreError::Unavailable(format!("{}: {error}", path.display())))?;
    // Waits while this process creates a file, which is then open outside of SQLite.
    drop(lock(&CREATING));
    let fail = |error: Error| error::of_store(path, &error);
    let connection = connect(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX, beside).map_err(fail)?;
    connection.busy_timeout(Duration::from_millis(BUSY_MS)).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise a plan that depends on bound values is compiled for each of them, which takes longer than most reads.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(fail)?;
    // Closing the last connection would checkpoint the log, which must not change a file that is rejected.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
    if beside == Beside::Nobody {
        // Set before the first read: the index of the log is then in memory and not in a shared file.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(fail)?;
    }
    // SQLite reads the schema here, and reports a file without its last pages only as malformed.
    let application = application_of(&connection);
    let tables = connection.query_row(sql!("connection.sql", "tables"), [], |row| row.get::<_, u32>(0));
    if [application.as_ref().err(), tables.as_ref().err()].into_iter().flatten().any(is_corrupt)
        && lacks_pages(path, &connection, application.is_err())
    {
        return Err(cut_off(path));
    }
    let (application, tables) = (application.map_err(fail)?, tables.map_err(fail)?);
    if application != APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(StoreError::Damaged(format!(
            "{} is the database of another program: give the path of a store, or of a file that does not exist yet",
            path.display()
        )));
    }
    if is_cut_off(path, &connection).map_err(fail)? {
        return Err(cut_off(path));
    }
    match version(&connection).map_err(fail)? {
        found if found > FORMAT => Err(StoreError::Newer { found, readable: FORMAT }),
        _ => Ok(connection),
    }
}

fn cut_off(path: &Path) -> StoreError {
    let message = format!("{} is shorter than its header says, so a part of it is lost: {RESTORE}", path.display());
    StoreError::Damaged(message)
}

fn application_of(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

fn is_corrupt(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Returns whether a file that SQLite reports as corrupt is shorter than its header says. With a writable schema,
/// SQLite opens a file of which whole pages are missing, and reads on without the part of the schema in a page that is
/// cut. The connection is of no use afterwards.
fn lacks_pages(path: &Path, connection: &Connection, is_refused: bool) -> bool {
    if connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true).is_err() {
        return false;
    }
    let has_opened = is_refused && application_of(connection).is_ok();
    has_opened || is_cut_off(path, connection).unwrap_or(false)
}

/// SQLite reports every error of a path as "unable to open"; the operating system is more precise. The file itself is
/// not opened, since closing it would drop the locks of all connections of this process (see `files`).
fn can_be_read(path: &Path) -> io::Result<()> {
    path.metadata()?;
    Ok(rustix::fs::access(path, rustix::fs::Access::READ_OK)?)
}

/// Without a log the file is opened as immutable; with one, both are read without locks.
fn connect(path: &Path, flags: OpenFlags, beside: Beside) -> rusqlite::Result<Connection> {
    match beside {
        Beside::Anybody => Connection::open_with_flags(path, flags),
        Beside::Nobody if bytes_of(&log_of(path)) == 0 => {
            Connection::open_with_flags(unchanging(path), flags | OpenFlags::SQLITE_OPEN_URI)
        }
        Beside::Nobody => Connection::open_with_flags_and_vfs(path, flags, c"unix-none"),
    }
}

/// Encodes a path as a URI for SQLite that declares the file immutable.
fn unchanging(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let encoded = |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    let path: String = path.as_os_str().as_encoded_bytes().iter().map(encoded).collect();
    format!("file:{path}?immutable=1")
}

/// Returns whether the first 100 bytes of a file are those of a store:
/// <https://www.sqlite.org/fileformat.html#the_database_header>.
pub fn is_store_header(header: &[u8; 100]) -> bool {
    header.starts_with(b"SQLite format 3\0") && header[68..72] == APPLICATION_ID.to_be_bytes()
}

/// Returns SQLite's path of the write-ahead log of a file.
pub fn log_of(path: &Path) -> PathBuf {
    with_ending(path, "-wal")
}

/// Returns SQLite's path of the index of that log.
pub fn index_of(path: &Path) -> PathBuf {
    with_ending(path, "-shm")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn bytes_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Returns whether the file is shorter than its header says. SQLite detects missing pages, but a partial page only when
/// it reads it. A shorter file is valid while there is a log, which contains the rest.
fn is_cut_off(path: &Path, connection: &Connection) -> rusqlite::Result<bool> {
    let of_pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let promised = natural(of_pragma("page_count")? * of_pragma("page_size")?);
    Ok(bytes_of(&log_of(path)) == 0 && bytes_of(path) < promised)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Upgrades the file to [`FORMAT`] in one transaction. Another process may have done so first.
fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    if version(connection)? == FORMAT {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let steps = || -> rusqlite::Result<()> {
        for migration in &MIGRATIONS[version(connection)? as usize..] {
            connection.execute_batch(migration)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", FORMAT)?;
        connection.execute_batch("COMMIT")
    };
    steps().inspect_err(|_| roll_back(connection))
}

/// Resets a connection for the next transaction after any outcome of the last one.
pub(super) fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // If this fails too, the next BEGIN reports it.
        let _ = connection.execute_batch("ROLLBACK");
    }
}

/// Locked while a file is made: no connection is opened before the descriptor that made it is closed.
static CREATING: Mutex<()> = Mutex::new(());

/// Makes an empty file with mode 0600 if it does not exist. SQLite gives its log and its index the same mode.
fn create(path: &Path) -> io::Result<()> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The same, and an existing file is an error.
pub(super) fn create_new(path: &Path) -> io::Result<()> {
    let _creating = lock(&CREATING);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.sync_all()?;
    // The directory entry must survive a power failure like the content.
    #[cfg(unix)]
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all()?,
        _ => File::open(".")?.sync_all()?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::{Origin, sqlite::SqliteStore};

    #[test]
    fn stores_of_every_older_format_are_migrated_without_loss() {
        for format in 1..FORMAT {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            create(&path).unwrap();
            let old = Connection::open(&path).unwrap();
            old.execute_batch(&MIGRATIONS[..format as usize].concat()).unwrap();
            old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
            old.pragma_update(None, "user_version", format).unwrap();
            old.execute("INSERT INTO partitions VALUES (0, 41, 'process 7')", []).unwrap();
            let words = "'id', 'flow', 'sha256:', x'', 'running', 'manual', 'manual', 'k', 0, 1, 0";
            let columns = "execution, id, workflow, workflow_hash, plan_hash, status, trigger_type, initiator_type,
                idempotency_key, partition, attempt_count, started_at";
            let (key, plan) = ([7u8; 16], [8u8; 32]);
            old.execute(
                &format!("INSERT INTO executions ({columns}) VALUES (?1, {})", words.replace("x''", "?2")),
                (key, plan),
            )
            .unwrap();
            drop(old);
            let refused = SqliteStore::open_read_only(&path).err().unwrap().to_string();
            assert!(refused.contains("`mainspring upgrade`"), "{refused}");
            let refused = SqliteStore::open_current(&path).err().unwrap().to_string();
            assert!(refused.contains("`mainspring upgrade`"), "{refused}");
            let store = SqliteStore::open(&path).unwrap();
            assert_eq!(store.is_of_unsealed_format(), format < FORMAT_WITH_SEALS);
            assert_eq!(store.has_unsealed_resources(), format < FORMAT_WITH_SEALED_RESOURCES);
            assert_eq!(store.claim(0, "process 8"), Ok(42));
            assert_eq!(store.partitions(), Ok(1));
            assert_eq!(store.catalogue().audit_head("o"), Ok(None));
            let found = store.execution_by_idempotency_key(&Origin::named(Some("flow")), "k").unwrap().unwrap();
            assert_eq!((found.id.as_str(), found.organization), ("id", None));
            drop(store);
            assert!(SqliteStore::open_read_only(&path).is_ok());
        }
    }

    #[test]
    fn a_truncated_file_is_reported_as_shorter() {
        type Open = fn(&Path) -> Result<(), StoreError>;
        let ways: [Open; 4] = [
            |path| SqliteStore::open(path).map(drop),
            |path| SqliteStore::open_read_only(path).map(drop),
            |path| open_inspector(path, Beside::Nobody).map(drop),
            |path| open_inspector(path, Beside::Anybody).map(drop),
        ];
        let lengths: [fn(u64) -> u64; 4] =
            [|bytes| bytes / 4, |bytes| bytes / 2 + 100, |bytes| bytes - 1, |bytes| bytes - 5_000];
        for length in lengths {
            for open in ways {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("store.db");
                drop(SqliteStore::open(&path).unwrap());
                // The log is empty when the last connection has closed.
                assert_eq!(bytes_of(&log_of(&path)), 0);
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(length(bytes_of(&path))).unwrap();
                let said = open(&path).err().unwrap().to_string();
                assert!(said.contains("is shorter than its header says"), "{}: {said}", bytes_of(&path));
            }
        }
    }

    #[test]
    fn the_documentation_has_the_current_format() {
        let said = format!("| SQLite store | {FORMAT};");
        assert!(include_str!("../../../../docs/reference/journal-format.md").contains(&said), "{said}");
    }
}
