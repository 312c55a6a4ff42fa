//! `mainspring backup`: copies the store of a data folder while it is in use, and verifies the copy before it gets
//! its name.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueHint};
use mainspring_engine::{EngineError, data_dir::DataDir, journal_loader::Loader, keys};
use mainspring_kernel::{hash::hex, json::compact, value::Value};
use mainspring_store::{
    Filter, Inspection, Store,
    sqlite::{Checked, SqliteStore, is_store_header},
};
use rustix::fs::{RenameFlags, renameat_with};

use crate::{
    backend::read_store::no_executions,
    context::Context,
    error::{CliError, Exit},
    output::terminal::{bold, print_out, status},
    output::text::{counted, paragraph, shown},
    paths,
    store_location::StoreLocation,
};

/// Back up the store of the data folder, even while it is in use.
///
/// The key is not part of it: without the key, no journal can be read. Copy it once, and keep it apart from the backups
/// (`mainspring config` shows its path).
///
/// To restore: stop the process that works on the folder. Move journal.db, journal.db-wal and journal.db-shm away, all
/// that exist. Copy the backup to journal.db (`install -m 600 BACKUP FOLDER/journal.db`), and leave the other files as
/// they are. Run `mainspring doctor --deep`, then start. Attempts that are open in the backup count as interrupted.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, readable by its owner only
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Replace FILE if it is an earlier backup
    #[arg(long)]
    force: bool,
}

/// Executions read at a time.
const PAGE: usize = 1000;

/// Broken heads that are named in a message.
const NAMED_MAX: usize = 3;

/// The result of verifying a copy.
struct Proof {
    bytes: u64,
    format: u32,
    executions: u64,
    /// Executions whose journal does not end in a sealed head; `None` if the seals were not checked.
    unsealed: Option<Vec<String>>,
    /// The reason why the seals were not checked.
    remark: Option<String>,
}

/// Copies the store into a file.
pub(crate) fn backup(backup: &Backup, context: &Context) -> Result<Exit, CliError> {
    let location = StoreLocation::of(&context.global)?;
    let StoreLocation::Folder(home) = &location else {
        let message = "`backup` copies the store of a folder. This store is in PostgreSQL: use `pg_dump`, or `pg_basebackup` with an archive of the log, and stop all nodes before one is restored";
        return Err(CliError::bad_input("shared_store", message));
    };
    if !home.journal().exists() {
        return Err(no_executions(&location));
    }
    let target = Target::of(&backup.file, home, backup.force)?;
    let partial = Partial(target.partial()?);
    SqliteStore::copy(&home.journal(), &partial.0).map_err(EngineError::from)?;
    let proof = prove(&partial.0, home)?;
    let is_whole = proof.unsealed.as_ref().is_none_or(Vec::is_empty);
    if !is_whole && target.is_there {
        return Err(CliError::internal("backup_unproved", format!("{}; the earlier backup stays", wrong(&proof))));
    }
    target.take(&partial)?;
    answer(&target.path, &proof, is_whole, context);
    Ok(if is_whole { Exit::Fine } else { Exit::NotSo })
}

/// The destination of the backup.
struct Target {
    folder: PathBuf,
    path: PathBuf,
    /// True if an earlier backup exists, which may be replaced.
    is_there: bool,
}

impl Target {
    /// Accepts an unused name, or with `--force` an earlier backup. The store itself is never a target.
    fn of(file: &Path, home: &DataDir, is_forced: bool) -> Result<Self, CliError> {
        let refused = |why: &str| CliError::bad_input("bad_backup_file", format!("{}: {why}", file.display()));
        let name = file.file_name().ok_or_else(|| refused("it names no file"))?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().map_err(|error| refused(&format!("its folder cannot be used: {error}")))?;
        let path = folder.join(name);
        let is_of_store = name.to_string_lossy().starts_with("journal.db");
        if is_of_store && home.folder().canonicalize().is_ok_and(|state| state == folder) {
            return Err(refused("this is the store itself; name a file elsewhere, best on another disk"));
        }
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { folder, path, is_there: false }),
            Err(error) => return Err(refused(&error.to_string())),
            Ok(metadata) => metadata,
        };
        if !is_forced {
            return Err(refused("it is there already; name another file, or replace an earlier backup with --force"));
        }
        let store = fs::metadata(home.journal()).map_err(|error| refused(&error.to_string()))?;
        let is_store = (metadata.dev(), metadata.ino()) == (store.dev(), store.ino());
        if is_store || !metadata.is_file() || !(metadata.len() == 0 || is_backup(&path)) {
            return Err(refused("it is not a backup, and --force replaces only backups; use another file"));
        }
        Ok(Self { folder, path, is_there: true })
    }

    /// The temporary name of the copy until it is verified.
    fn partial(&self) -> Result<PathBuf, CliError> {
        let mut nonce = [0; 8];
        let failed = |error: getrandom::Error| CliError::internal("no_random", error.to_string());
        getrandom::fill(&mut nonce).map_err(failed)?;
        Ok(self.folder.join(format!(".mainspring-backup-{}.partial", hex(&nonce))))
    }

    /// Renames the verified copy to its name, atomically and durably.
    fn take(&self, partial: &Partial) -> Result<(), CliError> {
        let failed = |error: io::Error| {
            CliError::internal("backup_failed", format!("{} cannot be written: {error}", self.path.display()))
        };
        if self.is_there {
            fs::rename(&partial.0, &self.path).map_err(failed)?;
        } else {
            let here = rustix::fs::CWD;
            match renameat_with(here, &partial.0, here, &self.path, RenameFlags::NOREPLACE) {
                // Not every file system supports `NOREPLACE`. A hard link fails too if the name exists by now.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    fs::hard_link(&partial.0, &self.path).map_err(failed)?;
                }
                moved => moved.map_err(|error| failed(error.into()))?,
            }
        }
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// A copy that is removed on drop unless it was renamed.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn is_backup(path: &Path) -> bool {
    let mut header = [0; 100];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok() && is_store_header(&header)
}

/// Checks every page of a copy, and the seal of every head in it.
fn prove(copy: &Path, home: &DataDir) -> Result<Proof, CliError> {
    let inspection = SqliteStore::inspect(copy, true).map_err(EngineError::from)?;
    match inspection.check(true, None).map_err(EngineError::from)? {
        Checked::Sound => {}
        damaged => {
            let damages = if let Checked::Damaged(damages) = damaged { damages.join("; ") } else { String::new() };
            let message = format!(
                "the store is damaged, and so is every copy of it: {damages}. Nothing was written; `mainspring doctor --deep` checks the store, and `mainspring backup --help` explains how to restore an earlier backup"
            );
            return Err(CliError::internal("store_damaged", message));
        }
    }
    let (bytes, format) = (fs::metadata(copy).map_or(0, |metadata| metadata.len()), inspection.format());
    let mut proof = Proof { bytes, format: format.found, executions: 0, unsealed: None, remark: None };
    let Some(store) = Box::new(inspection).store() else {
        proof.remark =
            Some(format!("the seals were not checked: the store has format {}, of an older release", format.found));
        return Ok(proof);
    };
    let key = keys::load(&paths::key_file(&[home.folder()])).and_then(|key| home.check_key(&key).map(|()| key));
    match key {
        Ok(key) => {
            let (executions, unsealed) = heads(&store, Some(key))?;
            (proof.executions, proof.unsealed) = (executions, Some(unsealed));
        }
        Err(error) => {
            proof.executions = heads(&store, None)?.0;
            proof.remark = Some(format!("the seals were not checked: {error}"));
        }
    }
    Ok(proof)
}

/// Counts the executions, and finds those whose journal does not end in a sealed head.
fn heads(store: &Arc<dyn Store>, key: Option<[u8; 32]>) -> Result<(u64, Vec<String>), CliError> {
    let loader = key.map(|key| Loader::new(store.clone(), key));
    let (mut count, mut unsealed, mut before) = (0, Vec::new(), None);
    loop {
        let rows = store.executions(&Filter::default(), before, PAGE).map_err(EngineError::from)?;
        let Some(last) = rows.last() else { return Ok((count, unsealed)) };
        before = Some(last.key);
        for row in &rows {
            count += 1;
            let sealed = loader.as_ref().map(|loader| loader.check_head(row.key));
            unsealed.extend(sealed.and_then(Result::err).map(|error| format!("{}: {error}", row.id)));
        }
    }
}

fn wrong(proof: &Proof) -> String {
    let unsealed = proof.unsealed.as_deref().unwrap_or_default();
    let named = unsealed.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = if unsealed.len() > NAMED_MAX { "; …" } else { "" };
    format!(
        "{} of {} {} not verify: {named}{more}. `mainspring verify ID` checks one in the store",
        unsealed.len(),
        counted(proof.executions, "journal", "journals"),
        if unsealed.len() == 1 { "does" } else { "do" }
    )
}

fn answer(path: &Path, proof: &Proof, is_whole: bool, context: &Context) {
    let Proof { bytes, format, executions, unsealed, remark } = proof;
    let file = path.to_string_lossy();
    if context.global.json {
        let unsealed = unsealed.as_ref().map(|unsealed| unsealed.len() as u64);
        print_out!(
            "{}",
            compact(&Value::map([
                ("ok", is_whole.into()),
                ("file", Value::from(&*file)),
                ("bytes", (*bytes).into()),
                ("format", u64::from(*format).into()),
                ("executions", (*executions).into()),
                ("unsealed", unsealed.map_or(Value::Null, Value::from)),
            ]))
        );
    } else {
        let word = status(if is_whole { "ok" } else { "failed" });
        let seals = if unsealed.is_some() && is_whole { ", every head sealed" } else { "" };
        let size = format!("{bytes} bytes, {}", counted(*executions, "execution", "executions"));
        print_out!("{} {word}  {size}, every page sound{seals}", bold(&shown(&file)));
        if !is_whole {
            print_out!("  {}", paragraph(&wrong(proof)));
        }
    }
    if let Some(remark) = remark {
        context.terminal.note(remark);
    }
}
