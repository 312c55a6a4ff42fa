//! Checks the data folder of this machine: existence, owner, mode, lock.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::{
    fs::{Access, access},
    process::{Pid, getuid, test_kill_process},
};

use super::{
    Installation,
    check::{Check, Report},
    disk,
    settings::OTHERS,
};
use crate::store_location::StoreLocation;

/// Write permissions of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Checks the folder and its disk.
pub(super) fn check(installation: &Installation, report: &mut Report) {
    let folder = installation.home.folder();
    let is_there = folder.is_dir();
    report.add(data_folder(folder));
    disk::check(folder, is_there, report);
    report.add(lock(installation));
}

fn data_folder(folder: &Path) -> Check {
    let shown = folder.display();
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let help = "`mainspring up` and `mainspring run` create it; if one should exist, give it with --dir";
            return Check::warning("folder", format!("{shown} is not there yet"), help);
        }
        Err(error) => {
            let help = "give this user access to it, or use another with --dir";
            return Check::broken("folder", format!("{shown}: {error}"), help);
        }
    };
    let name_another = "move it away, or name a folder with --dir";
    if !metadata.is_dir() {
        return Check::broken("folder", format!("{shown} is not a folder"), name_another);
    }
    if access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let message = format!("this user may not read and write {shown}, which belongs to the user {}", metadata.uid());
        return Check::broken("folder", message, "run this as that user, or give the folder to this one with chown");
    }
    let mode = metadata.mode() & 0o777;
    let help = format!("`chmod 700 {shown}`");
    let check = match () {
        () if mode & OTHERS_WRITE != 0 => {
            let message = format!("other users can write to {shown} (mode {mode:o}), and could approve");
            Check::broken("folder", message, help)
        }
        () if mode & OTHERS != 0 => {
            let message = format!("others may read {shown} (mode {mode:o}), where inputs and outputs are as they were");
            Check::warning("folder", message, help)
        }
        () if metadata.uid() != getuid().as_raw() => {
            let message = format!("{shown} belongs to the user {}, and not to this one", metadata.uid());
            Check::warning("folder", message, "run this and the processes of the folder as that user")
        }
        () => Check::ok("folder", format!("{shown} is yours alone")),
    };
    check.with("path", shown.to_string()).with("mode", format!("{mode:o}"))
}

/// Checks the lock. The operating system releases it when its process ends, so a pid that is left in the file means
/// nothing.
fn lock(installation: &Installation) -> Check {
    let whose = match installation.location {
        StoreLocation::Folder(_) => "the folder",
        StoreLocation::Shared(_) => "the folder of this machine's node",
    };
    let Some(holder) = installation.holder else {
        return Check::ok("lock", format!("no process runs {whose}"));
    };
    let Some(pid) = holder else {
        let help = "`lsof` on the file `lock` shows its process";
        return Check::warning("lock", format!("a process uses {whose}, and has not recorded its pid"), help);
    };
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Any error but `ESRCH`, such as a denied permission, proves that the process exists.
    let is_alive = number.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    let check = if is_alive {
        Check::ok("lock", format!("the process {pid} works on {whose}"))
    } else {
        let message = format!("{whose} is locked by the process {pid}, which does not run here");
        let help =
            "search for it in another container that has this folder; `lsof` on the file `lock` shows the process";
        Check::warning("lock", message, help)
    };
    check.with("pid", u64::from(pid)).with("isAlive", is_alive)
}
