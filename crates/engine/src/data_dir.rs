//! The data folder of an engine: its lock, its files, and the detection of a reboot. The engine opens the store.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use mainspring_store::sqlite::{SqliteStore, log_of};
use tracing::warn;

use crate::{
    error::EngineError,
    generation::{BeginError, Generation},
    keys,
};

/// A data folder, locked or not.
#[derive(Debug, Clone)]
pub struct DataDir {
    folder: PathBuf,
}

/// A file with an exclusive lock, which is released when this is dropped. Closing the file is not enough: a child process
/// that another thread has just forked shares the lock until it executes its program.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// The lock on a data folder: no other process runs an engine on it. It is released when it is dropped or when the
/// process ends.
#[derive(Debug)]
pub struct DirLock {
    _lock: Locked,
    /// True if the machine was not rebooted since the last engine. An attempt without a process record then certainly
    /// never started.
    pub same_boot: bool,
    /// Attempts that were started before this time, in Unix milliseconds, may have run without a process record, since
    /// the store was restored in the meantime.
    pub untrusted_before_ms: u64,
    generation: Generation,
}

impl DirLock {
    /// Checks that the store is the last one used in the folder, and records its use. In a restored copy, no attempt
    /// counts as never started.
    pub fn begin(&mut self, data_dir: &DataDir, store: &SqliteStore, now_ms: u64) -> Result<(), EngineError> {
        let begun = self.generation.begin(store, &data_dir.journal(), now_ms);
        let (doubt, untrusted_before_ms) = begun.map_err(|error| match error {
            BeginError::Store(error) => error.into(),
            BeginError::Note(error) => data_dir.failed(&error),
        })?;
        self.untrusted_before_ms = untrusted_before_ms;
        if let Some(doubt) = doubt {
            self.same_boot = false;
            let folder = data_dir.folder().display();
            warn!(%folder, "{doubt}: open attempts in the store are treated as interrupted");
        }
        Ok(())
    }

    /// Records the newest frame of the store. It must precede the removal of any process record.
    pub fn raise(&mut self, frame: u64) -> std::io::Result<()> {
        self.generation.raise(frame)
    }
}

impl DataDir {
    /// A folder by its path. Nothing is created.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The path, as given to [`new`](Self::new).
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the store.
    pub fn journal(&self) -> PathBuf {
        self.folder.join("journal.db")
    }

    /// The folder of process records.
    pub fn processes(&self) -> PathBuf {
        self.folder.join("processes")
    }

    /// The file that names the store last used in the folder.
    fn generation(&self) -> PathBuf {
        self.folder.join("generation")
    }

    fn failed(&self, error: &std::io::Error) -> EngineError {
        EngineError::Folder { path: self.folder.clone(), why: error.to_string() }
    }

    /// The file that identifies the key with which the folder was created.
    fn key_check(&self) -> PathBuf {
        self.folder.join("key-check")
    }

    /// The text that identifies the folder's key, for [`keys::is_key_of`]. `None` before the first use.
    pub fn key_check_text(&self) -> Option<String> {
        fs::read_to_string(self.key_check()).ok()
    }

    /// The wake-up socket of the engine.
    pub fn wakeup_socket(&self) -> PathBuf {
        self.folder.join("wakeup.sock")
    }

    /// Creates the folder, readable by its owner only.
    pub fn create(&self) -> Result<(), EngineError> {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(self.processes());
        made.map_err(|error| EngineError::Folder { path: self.folder.clone(), why: error.to_string() })
    }

    /// Locks the folder for an engine with this key, or returns the process that has locked it.
    pub fn hold(&self, key: &[u8; 32]) -> Result<DirLock, EngineError> {
        self.create()?;
        let failed = |error: std::io::Error| EngineError::Folder { path: self.folder.clone(), why: error.to_string() };
        let mut options = OpenOptions::new();
        let path = self.folder.join("lock");
        let mut lock =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
        if !lock_past_lookers(&lock).map_err(failed)? {
            let mut pid = String::new();
            lock.read_to_string(&mut pid).map_err(failed)?;
            return Err(EngineError::DirInUse { path: self.folder.clone(), pid: pid.trim().parse().ok() });
        }
        let mut lock = Locked(lock);
        let mut generation = Generation::read(&self.generation(), &lock.0).map_err(failed)?;
        lock.0.set_len(0).and_then(|()| lock.0.rewind()).map_err(failed)?;
        writeln!(lock.0, "{}", std::process::id()).map_err(failed)?;
        generation.lock_is_written(&lock.0).map_err(failed)?;
        self.check_log(&generation)?;
        self.note_key(key)?;
        let same_boot = self.note_boot().map_err(failed)?;
        Ok(DirLock { _lock: lock, same_boot, untrusted_before_ms: 0, generation })
    }

    /// Refuses a replaced database beside the write-ahead log of the former one: SQLite would write its pages into it.
    fn check_log(&self, generation: &Generation) -> Result<(), EngineError> {
        let (database, log) = (self.journal(), log_of(&self.journal()));
        if !generation.has_foreign_log(&database, &log) {
            return Ok(());
        }
        let (database, log) = (database.display(), log.display());
        let why = format!(
            "{database} was replaced since it was last used, and {log} belongs to the one before: it would damage the new one. If a backup was restored, move the files with the endings -wal and -shm away and start again; if the log was restored with the database, remove the file `generation` of the folder"
        );
        Err(EngineError::Folder { path: self.folder.clone(), why })
    }

    /// The process that has locked the folder. The inner value is its id, if it is known.
    pub fn holder(&self) -> Option<Option<u32>> {
        let mut lock = File::open(self.folder.join("lock")).ok()?;
        match lock.try_lock_shared() {
            Ok(()) => None,
            Err(_) => {
                let mut pid = String::new();
                lock.read_to_string(&mut pid).ok();
                Some(pid.trim().parse().ok())
            }
        }
    }

    /// Loads the key of a file. A missing key is created only for a new folder.
    pub fn key(&self, path: &Path) -> Result<[u8; 32], EngineError> {
        if self.key_check().exists() { keys::load(path) } else { keys::load_or_create(path) }
    }

    /// Refuses a key that is not the folder's: with another key, every journal would appear forged.
    pub fn check_key(&self, key: &[u8; 32]) -> Result<(), EngineError> {
        let path = self.key_check();
        match fs::read_to_string(&path) {
            Ok(known) if keys::is_key_of(&known, key) => Ok(()),
            Ok(_) => Err(EngineError::OtherKey { place: self.folder.display().to_string() }),
            Err(_) => Ok(()),
        }
    }

    /// Records the key of a new folder.
    fn note_key(&self, key: &[u8; 32]) -> Result<(), EngineError> {
        self.check_key(key)?;
        let path = self.key_check();
        if path.exists() {
            return Ok(());
        }
        let failed = |error: std::io::Error| EngineError::Folder { path: self.folder.clone(), why: error.to_string() };
        fs::write(&path, keys::fingerprint(key) + "\n").map_err(failed)
    }

    fn note_boot(&self) -> std::io::Result<bool> {
        let now = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let path = self.folder.join("boot");
        let before = fs::read_to_string(&path).ok();
        if before.as_ref() == Some(&now) && !now.is_empty() {
            return Ok(true);
        }
        fs::write(&path, &now)?;
        // A folder without a database has no attempts.
        Ok(before.is_none() && !self.journal().exists())
    }
}

/// Tries to lock the folder while only inspecting processes hold the lock, and the pause between two tries.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// Takes an exclusive lock. False if another engine has it. An inspecting process takes a shared lock briefly,
/// which does not prevent engines from starting.
fn lock_past_lookers(lock: &File) -> std::io::Result<bool> {
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        match lock.try_lock_shared() {
            Ok(()) => lock.unlock()?,
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => return Ok(false),
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_read_takes_no_exclusive_lock() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = DataDir::new(folder.path());
        drop(data_dir.hold(&[1; 32]).unwrap());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    data_dir.holder();
                }
            });
            let held: Vec<_> = (0..500).map(|_| data_dir.hold(&[1; 32]).map(drop)).filter_map(Result::err).collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(held.is_empty(), "{} of 500 were refused", held.len());
        });
    }

    #[test]
    fn one_process_locks_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = DataDir::new(folder.path().join("a/b"));
        assert!(data_dir.holder().is_none());
        let held = data_dir.hold(&[1; 32]).unwrap();
        assert!(held.same_boot);
        assert_eq!(data_dir.holder(), Some(Some(std::process::id())));
        let Err(EngineError::DirInUse { pid, .. }) = data_dir.hold(&[1; 32]) else { panic!("held twice") };
        assert_eq!(pid, Some(std::process::id()));
        drop(held);
        assert!(data_dir.holder().is_none());
        assert!(data_dir.hold(&[1; 32]).unwrap().same_boot);
        fs::write(data_dir.folder().join("boot"), "another boot").unwrap();
        assert!(!data_dir.hold(&[1; 32]).unwrap().same_boot);
        assert!(data_dir.hold(&[2; 32]).unwrap_err().to_string().contains("MAINSPRING_KEY_FILE"));
        assert!(data_dir.check_key(&[1; 32]).is_ok());
    }
}
