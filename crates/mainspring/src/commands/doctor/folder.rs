//! Checks the data folder of this machine: existence, owner, mode, lock.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::{
    fs::{Access, access},
    process::{Pid, getuid, test_kill_process},
};

use super::{
    Patient,
    check::{Check, Report},
    disk,
    settings::OTHERS,
};
use crate::ground::Ground;

/// Write permissions of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Checks the folder and its disk.
pub(super) fn look(patient: &Patient, report: &mut Report) {
    let folder = patient.home.folder();
    let check = check(folder);
    let is_there = folder.is_dir();
    report.add(check);
    disk::look(folder, is_there, report);
    report.add(lock(patient));
}

fn check(folder: &Path) -> Check {
    let shown = folder.display();
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let help = "`mainspring up` and `mainspring run` make it; if there should be one, name it with --dir";
            return Check::warning("folder", format!("{shown} is not there yet"), help);
        }
        Err(error) => {
            let help = "let this user enter it, or name another with --dir";
            return Check::broken("folder", format!("{shown}: {error}"), help);
        }
    };
    let name_another = "move it away, or name a folder with --dir";
    if !metadata.is_dir() {
        return Check::broken("folder", format!("{shown} is no folder"), name_another);
    }
    if access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let says = format!("this user may not read and write {shown}, which belongs to the user {}", metadata.uid());
        return Check::broken("folder", says, "run this as that user, or give the folder to this one with chown");
    }
    let mode = metadata.mode() & 0o777;
    let help = format!("`chmod 700 {shown}`");
    let check = match () {
        () if mode & OTHERS_WRITE != 0 => {
            let says = format!("other users can write to {shown} (mode {mode:o}), and could approve");
            Check::broken("folder", says, help)
        }
        () if mode & OTHERS != 0 => {
            let says = format!("others may read {shown} (mode {mode:o}), where inputs and outputs are as they were");
            Check::warning("folder", says, help)
        }
        () if metadata.uid() != getuid().as_raw() => {
            let says = format!("{shown} belongs to the user {}, and not to this one", metadata.uid());
            Check::warning("folder", says, "run this, and what works on it, as that user")
        }
        () => Check::ok("folder", format!("{shown} is yours alone")),
    };
    check.with("path", shown.to_string()).with("mode", format!("{mode:o}"))
}

/// Checks the lock. The operating system releases it when its process ends, so a pid that is left in the file means
/// nothing.
fn lock(patient: &Patient) -> Check {
    let whose = match patient.ground {
        Ground::Folder(_) => "the folder",
        Ground::Shared(_) => "the folder of this machine's node",
    };
    let Some(holder) = patient.holder else {
        return Check::ok("lock", format!("no process runs {whose}"));
    };
    let Some(pid) = holder else {
        let help = "`lsof` on the file `lock` tells which process has it";
        return Check::warning("lock", format!("a process works on {whose}, and has not said which one it is"), help);
    };
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Any error but `ESRCH`, such as a denied permission, proves that the process exists.
    let is_alive = number.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    let check = if is_alive {
        Check::ok("lock", format!("the process {pid} works on {whose}"))
    } else {
        let says = format!("{whose} is held, as it says by the process {pid}, which is not there");
        let help = "look for it in another container that has this folder; `lsof` on the file `lock` shows the process";
        Check::warning("lock", says, help)
    };
    check.with("pid", u64::from(pid)).with("isAlive", is_alive)
}
