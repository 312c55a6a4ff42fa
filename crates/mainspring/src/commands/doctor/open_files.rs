//! Checks that the engine process has the current files of the store open, and not deleted or replaced ones.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use mainspring_store::sqlite::{index_of, log_of};

use super::{Installation, check::Check};

const NAME: &str = "files";

/// The identity of a file: device and inode.
type Identity = (u64, u64);

/// Checks the open files of the process that owns the data folder.
pub(super) fn check(installation: &Installation) -> Check {
    let pid = match installation.holder {
        None => return Check::ok(NAME, "no process has the store open for writing"),
        Some(None) => return Check::skipped(NAME, "the process that uses the folder has not recorded its pid"),
        Some(Some(pid)) => pid,
    };
    let open = match open_files(pid) {
        Ok(open) => open,
        Err(error) => {
            return Check::skipped(NAME, format!("the open files of the process {pid} cannot be listed: {error}"));
        }
    };
    let is_open = |path: &Path| identity(path).is_ok_and(|identity| open.contains(&identity));
    if !is_open(&installation.home.folder().join("lock")) {
        return Check::skipped(NAME, format!("the process {pid} that works on the folder is in another container"));
    }
    let database = installation.home.journal();
    let files = [database.clone(), log_of(&database), index_of(&database)];
    let lost: Vec<&PathBuf> = files.iter().filter(|file| !is_open(file)).collect();
    if lost.len() == files.len() {
        return Check::skipped(NAME, format!("the process {pid} has not opened the store, or not these files of it"));
    }
    if let Some(lost) = lost.first() {
        let message = format!(
            "{} is not the file that the process {pid} has open: another program has removed or replaced it",
            lost.display()
        );
        let help = "stop that process, keep copies of all files of the folder, and start again; keep other programs from removing or replacing the files of a store (`mainspring backup` copies it while it is in use)";
        return Check::broken(NAME, message, help);
    }
    match is_locked(pid, &database) {
        Ok(false) => {
            let message = format!(
                "the process {pid} holds no lock on {}: another program that reads it removes the log",
                database.display()
            );
            let help = "restart that process with this release, which keeps its locks";
            Check::broken(NAME, message, help)
        }
        _ => Check::ok(NAME, format!("the files are those that the process {pid} has open")),
    }
    .with("pid", u64::from(pid))
}

fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The files that a process has open. A descriptor that was closed after the listing is ignored.
fn open_files(pid: u32) -> io::Result<BTreeSet<Identity>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    Ok(entries.flatten().filter_map(|entry| identity(&entry.path()).ok()).collect())
}

/// True if a process holds a POSIX lock on a file, by proc_locks(5).
fn is_locked(pid: u32, path: &Path) -> io::Result<bool> {
    let (pid, ending) = (pid.to_string(), format!(":{}", identity(path)?.1));
    Ok(fs::read_to_string("/proc/locks")?.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [_, "POSIX", _, _, whose, file, ..] if whose == pid && file.ends_with(&ending))
    }))
}
