//! What all processes of a contained script use together, watched: memory, processes, disk.
//!
//! Limits of single processes bound none of these, and control groups are not to be had everywhere. A script that takes
//! more than it may is ended.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{fs::statvfs, process::Pid};
use tokio::time::{Instant, sleep};

use crate::shell::{
    limits::{
        DISK_FREE_BYTES_MIN, DISK_LOOK_MIN, DISK_LOOK_SHARE, MEMORY_BYTES_MAX, PROCESSES_MAX, QUOTA_LOOK,
        WORKSPACE_BYTES_MAX, WORKSPACE_ENTRIES_MAX,
    },
    process,
};

/// What a script used when it was looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Used {
    processes: u64,
    memory: u64,
    disk: u64,
    entries: u64,
}

/// Watches one script.
#[derive(Debug)]
pub(crate) struct Quota {
    /// The first process of the container.
    init: Pid,
    workspace: PathBuf,
}

impl Quota {
    pub(crate) fn new(init: Pid, workspace: PathBuf) -> Self {
        Self { init, workspace }
    }

    /// Returns when the script has taken more than it may, with a sentence on what.
    pub(crate) async fn exceeded(&self) -> String {
        let mut disk_at = Instant::now() + DISK_LOOK_MIN;
        loop {
            sleep(QUOTA_LOOK).await;
            let members = process::descendants(self.init);
            let mut used = Used { processes: members.len() as u64, ..Used::default() };
            used.memory = members.iter().map(|member| memory_of(*member)).sum();
            if let Some(why) = judge(&used) {
                return why;
            }
            if Instant::now() >= disk_at {
                let began = Instant::now();
                let workspace = self.workspace.clone();
                let look = move || look_at_disk(&workspace, &members);
                if let Ok((disk, is_full)) = tokio::task::spawn_blocking(look).await {
                    let all = Used { processes: used.processes, memory: used.memory + disk.memory, ..disk };
                    if let Some(why) = judge(&all).or_else(|| is_full.then(|| full(&self.workspace))) {
                        return why;
                    }
                }
                disk_at = Instant::now() + DISK_LOOK_MIN.max(began.elapsed() * DISK_LOOK_SHARE);
            }
        }
    }
}

fn full(workspace: &Path) -> String {
    let mib = DISK_FREE_BYTES_MIN >> 20;
    format!("the disk of {} has less than {mib} MiB left, which the server needs", workspace.display())
}

/// A sentence on the first limit that is passed.
fn judge(used: &Used) -> Option<String> {
    let mib = |bytes: u64| bytes >> 20;
    let (memory, disk) = (MEMORY_BYTES_MAX, WORKSPACE_BYTES_MAX);
    if used.processes > PROCESSES_MAX {
        return Some(format!("it had {} processes, and {PROCESSES_MAX} are allowed", used.processes));
    }
    if used.memory > memory {
        return Some(format!("it used {} MiB of memory, and {} are allowed", mib(used.memory), mib(memory)));
    }
    if used.disk > disk {
        return Some(format!("its workspace holds {} MiB, and {} are allowed", mib(used.disk), mib(disk)));
    }
    if used.entries > WORKSPACE_ENTRIES_MAX {
        return Some(format!("its workspace has more than {WORKSPACE_ENTRIES_MAX} files and folders"));
    }
    None
}

/// Bytes of memory that only this process and others of its container have.
fn memory_of(member: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", member.as_raw_pid())).unwrap_or_default();
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    1024 * (kib("RssAnon:").unwrap_or(0) + kib("RssShmem:").unwrap_or(0))
}

/// The workspace, and what has no name any more but is still open; whether the disk is nearly full.
fn look_at_disk(workspace: &Path, members: &[Pid]) -> (Used, bool) {
    let mut used = Used::default();
    let Ok(root) = fs::symlink_metadata(workspace) else { return (used, false) };
    let mut folders = vec![workspace.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of a link itself, never of its target.
            let Ok(metadata) = entry.metadata() else { continue };
            used.entries += 1;
            used.disk += metadata.blocks() * 512;
            if metadata.is_dir() && metadata.dev() == root.dev() {
                folders.push(entry.path());
            }
        }
        if judge(&used).is_some() {
            break;
        }
    }
    let mut seen = BTreeSet::new();
    for member in members {
        let open = fs::read_dir(format!("/proc/{}/fd", member.as_raw_pid()));
        for descriptor in open.into_iter().flatten().flatten() {
            let Ok(metadata) = fs::metadata(descriptor.path()) else { continue };
            if metadata.is_file() && metadata.nlink() == 0 && seen.insert((metadata.dev(), metadata.ino())) {
                let bytes = metadata.blocks() * 512;
                match metadata.dev() == root.dev() {
                    true => used.disk += bytes,
                    false => used.memory += bytes,
                }
            }
        }
    }
    let is_full =
        statvfs(workspace).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < DISK_FREE_BYTES_MIN);
    (used, is_full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_met_at_its_bound() {
        let most = Used {
            processes: PROCESSES_MAX,
            memory: MEMORY_BYTES_MAX,
            disk: WORKSPACE_BYTES_MAX,
            entries: WORKSPACE_ENTRIES_MAX,
        };
        assert_eq!(judge(&most), None);
        let over = [
            (Used { processes: PROCESSES_MAX + 1, ..most }, "processes"),
            (Used { memory: MEMORY_BYTES_MAX + 1, ..most }, "memory"),
            (Used { disk: WORKSPACE_BYTES_MAX + 1, ..most }, "workspace holds"),
            (Used { entries: WORKSPACE_ENTRIES_MAX + 1, ..most }, "files and folders"),
        ];
        for (used, word) in over {
            assert!(judge(&used).is_some_and(|why| why.contains(word)), "{used:?}");
        }
    }

    #[test]
    fn links_are_not_followed_and_files_without_a_name_count() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("large"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let me = rustix::process::getpid();
        let (before, _) = look_at_disk(folder.path(), &[me]);
        assert_eq!(before.entries, 1);
        let mut open = tempfile::tempfile_in(folder.path()).unwrap();
        std::io::Write::write_all(&mut open, &vec![1; 1 << 20]).unwrap();
        let (after, _) = look_at_disk(folder.path(), &[me]);
        assert!(after.disk >= before.disk + (1 << 20), "{before:?} {after:?}");
    }
}
