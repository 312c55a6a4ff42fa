//! Checks the store of a data folder: a SQLite file.

use std::{fs, time::Duration};

use mainspring_store::{
    Format, Inspection, StoreError,
    sqlite::{Checked, SqliteInspection, SqliteStore},
};

use super::{Installation, Opened, check::Check, refused};

/// Timeout of the quick check. A longer read would delay checkpoints of a busy server.
const QUICK_CHECK: Duration = Duration::from_secs(10);

/// A checkpoint moves the WAL into the file every 8 MiB. A WAL of this size means that a reader blocks the
/// checkpoints.
const LOG_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The checks that need an open store.
const BEHIND: [&str; 3] = ["format", "integrity", "log"];

/// Checks the file.
pub(super) fn check(installation: &Installation, is_alone: bool, checks: &mut Vec<Check>) -> Option<Opened> {
    let path = installation.home.journal();
    let shown = path.display();
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => {
            let help = "move it away, and restore the latest backup (a file of `mainspring backup`; `mainspring backup --help` explains how)";
            return stop(
                checks,
                Check::broken("store", format!("{shown} is a folder where the store should be"), help),
            );
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if installation.home.key_check_text().is_some() {
                let message = format!("the folder was in use before, and {shown} is missing");
                let help = "restore the latest backup (a file of `mainspring backup`; `mainspring backup --help` explains how); if nothing was ever run here, remove the file `key-check` beside it";
                return stop(checks, Check::broken("store", message, help));
            }
            checks.push(Check::skipped("store", "there is none yet; the first start creates it"));
            checks.extend(BEHIND.map(|name| Check::skipped(name, "there is no store yet")));
            return None;
        }
        _ => {}
    }
    let inspection = match SqliteStore::inspect(&path, is_alone) {
        Ok(inspection) => inspection,
        Err(error @ StoreError::Newer { .. }) => {
            checks.push(Check::ok("store", format!("{shown} is SQLite")));
            return stop(checks, refused("format", &error));
        }
        Err(error) => return stop(checks, refused("store", &error)),
    };
    checks.push(Check::ok("store", format!("{shown} is SQLite, and can be read")));
    checks.push(format(
        inspection.format(),
        "make a backup before you start it (`mainspring backup`): older releases cannot read it afterwards",
    ));
    checks.push(integrity(&inspection, installation.is_deep));
    checks.push(log(&inspection));
    Some(Box::new(inspection))
}

/// Adds the last check of a store that cannot be opened, and skips the following ones.
fn stop(checks: &mut Vec<Check>, last: Check) -> Option<Opened> {
    let why = if last.name == "store" { "the store cannot be opened" } else { "see format" };
    let behind: Vec<&str> = BEHIND.into_iter().filter(|name| *name != last.name).collect();
    checks.push(last);
    checks.extend(behind.into_iter().map(|name| Check::skipped(name, why)));
    None
}

/// Checks the format of a store that this build can read.
pub(super) fn format(Format { found, readable }: Format, before_migration: &str) -> Check {
    let check = match found {
        0 => Check::ok("format", format!("it is empty; the first start creates format {readable}")),
        found if found < readable => {
            let message = format!("it has format {found}, and the next start brings it to {readable}");
            Check::warning("format", message, before_migration)
        }
        found => Check::ok("format", format!("it has format {found}, which this build writes")),
    };
    check.with("found", found).with("readable", readable)
}

fn integrity(inspection: &SqliteInspection, is_deep: bool) -> Check {
    let bound = (!is_deep).then_some(QUICK_CHECK);
    match inspection.check(is_deep, bound) {
        Ok(Checked::Sound) if is_deep => Check::ok("integrity", "every page and every index is sound"),
        Ok(Checked::Sound) => {
            Check::ok("integrity", "every page is sound; --deep checks indexes, journals and audit logs")
        }
        Ok(Checked::Unfinished) => {
            let seconds = QUICK_CHECK.as_secs();
            Check::skipped("integrity", format!("the file is too large to read in {seconds} s; --deep takes its time"))
        }
        Ok(Checked::Damaged(damages)) => {
            let message = format!("the file is damaged: {}", damages.join("; "));
            let help = "stop what works on it, keep the files for study (also -wal and -shm), and restore the latest backup (a file of `mainspring backup`; `mainspring backup --help` explains how)";
            Check::broken("integrity", message, help)
        }
        Err(error) => refused("integrity", &error),
    }
}

fn log(inspection: &SqliteInspection) -> Check {
    let bytes = inspection.log_bytes();
    match inspection.has_log() {
        Ok(Some(true)) if bytes > LOG_BYTES_MAX => {
            let message =
                format!("the log has grown to {} MiB: a reader prevents the checkpoint", bytes / (1024 * 1024));
            Check::warning("log", message, "search for a process that has had the file open for long: `lsof`")
        }
        Ok(Some(true)) => Check::ok("log", "commits go to a log (WAL), which every writer syncs with every commit"),
        Ok(Some(false)) => {
            let message = "the file has no log (WAL): another program has changed how it is written";
            Check::warning("log", message, "the next start repairs it; keep other programs away from the file")
        }
        Ok(None) => Check::ok("log", "nothing was written yet"),
        Err(error) => refused("log", &error),
    }
}
