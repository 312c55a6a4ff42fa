//! What all processes of a contained script use together, watched: memory, processes, disk.
//!
//! Limits of single processes bound none of these, and control groups are not to be had everywhere. A script that takes
//! more than it may is ended.

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use rustix::{fs::Timespec, process::Pid};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::disk::{self, Taken};
use crate::shell::{
    limits::{
        DISK_LOOK_BYTES, DISK_LOOK_MAX, DISK_LOOK_MIN, DISK_LOOK_SHARE, DISK_WALKS_AT_A_TIME, MEMORY_BYTES_MAX,
        PROCESSES_MAX, QUOTA_LOOK,
    },
    process,
};

/// What a script used when it was looked at, beside its files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Used {
    processes: u64,
    memory: u64,
}

/// Watches one script.
#[derive(Debug)]
pub(crate) struct Quota {
    /// The first process of the container.
    init: Pid,
    workspace: PathBuf,
    /// When it began, by the clock of the file system.
    since: Option<Timespec>,
    most: Taken,
}

/// Workspaces that are looked through at a time, by all scripts of this process: looking takes files and processors.
static WALKS: Semaphore = Semaphore::const_new(DISK_WALKS_AT_A_TIME);

/// The disk as it was when a workspace was last looked through.
struct Seen {
    at: Instant,
    took: Duration,
    free: u64,
}

impl Seen {
    /// Whether it is time to look again: at once where much was written since, else after a time that is bounded whatever
    /// the last look took.
    fn is_due(&self, free: u64) -> bool {
        let elapsed = self.at.elapsed();
        let usual = (self.took * DISK_LOOK_SHARE).clamp(DISK_LOOK_MIN, DISK_LOOK_MAX);
        let is_written = self.free.saturating_sub(free) >= DISK_LOOK_BYTES;
        elapsed >= usual || (is_written && elapsed >= self.took)
    }
}

impl Quota {
    /// Watches a script that begins now. The error is a sentence on why it cannot.
    pub(crate) async fn new(init: Pid, workspace: PathBuf) -> Result<Self, String> {
        let at = workspace.clone();
        let look = move || disk::full(&at).map_or_else(|| Ok(disk::stamp(&at)), Err);
        let since = spawn_blocking(look).await.map_err(|error| error.to_string())??;
        Ok(Self { init, workspace, since, most: disk::MOST })
    }

    /// Returns when the script has taken more than it may, with a sentence on what.
    pub(crate) async fn exceeded(&self) -> String {
        let free = || disk::free(&self.workspace).unwrap_or(u64::MAX);
        let mut seen = Seen { at: Instant::now(), took: Duration::ZERO, free: free() };
        loop {
            sleep(QUOTA_LOOK).await;
            if let Some(why) = disk::full(&self.workspace) {
                return why;
            }
            let members = process::descendants(self.init);
            let memory = members.iter().map(|member| memory_of(*member)).sum::<u64>() + nameless(&members);
            if let Some(why) = judge(&Used { processes: members.len() as u64, memory }) {
                return why;
            }
            let now = free();
            if seen.is_due(now) {
                let began = Instant::now();
                let (workspace, most) = (self.workspace.clone(), self.most);
                if let Some(why) = self.walk(move || disk::excess(&workspace, most)).await {
                    return why;
                }
                seen = Seen { at: Instant::now(), took: began.elapsed(), free: now };
            }
        }
    }

    /// Looks once more when the script has ended, and removes what is too much. The sentence says what that was.
    pub(crate) async fn settle(&self) -> Option<String> {
        let (workspace, since, most) = (self.workspace.clone(), self.since, self.most);
        self.walk(move || {
            let why = disk::excess(&workspace, most)?;
            Some(match disk::reduce(&workspace, since, most) {
                Ok(()) => format!("{why}; files that it wrote were removed until the others fit"),
                Err(error) => format!("{why}; what is too much cannot be removed ({error})"),
            })
        })
        .await
    }

    async fn walk(&self, look: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
        let _one = WALKS.acquire().await;
        spawn_blocking(look).await.unwrap_or_else(|error| Some(format!("its workspace cannot be looked at: {error}")))
    }
}

/// A sentence on the first limit that is passed.
fn judge(used: &Used) -> Option<String> {
    let mib = |bytes: u64| bytes >> 20;
    if used.processes > PROCESSES_MAX {
        return Some(format!("it had {} processes, and {PROCESSES_MAX} are allowed", used.processes));
    }
    if used.memory > MEMORY_BYTES_MAX {
        let (used, most) = (mib(used.memory), mib(MEMORY_BYTES_MAX));
        return Some(format!("it used {used} MiB of memory, and {most} are allowed"));
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

/// Bytes of open files that have no name any more, or never had one: of memory files, and of the workspace's disk.
fn nameless(members: &[Pid]) -> u64 {
    let (mut bytes, mut seen) = (0, BTreeSet::new());
    for member in members {
        let open = fs::read_dir(format!("/proc/{}/fd", member.as_raw_pid()));
        for descriptor in open.into_iter().flatten().flatten() {
            let Ok(metadata) = fs::metadata(descriptor.path()) else { continue };
            if metadata.is_file() && metadata.nlink() == 0 && seen.insert((metadata.dev(), metadata.ino())) {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_met_at_its_bound() {
        let most = Used { processes: PROCESSES_MAX, memory: MEMORY_BYTES_MAX };
        assert_eq!(judge(&most), None);
        let over = [
            (Used { processes: PROCESSES_MAX + 1, ..most }, "processes"),
            (Used { memory: MEMORY_BYTES_MAX + 1, ..most }, "memory"),
        ];
        for (used, word) in over {
            assert!(judge(&used).is_some_and(|why| why.contains(word)), "{used:?}");
        }
    }

    #[test]
    fn files_without_a_name_count() {
        let me = rustix::process::getpid();
        let mut open = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut open, &vec![1; 1 << 20]).unwrap();
        assert!(nameless(&[me]) >= 1 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_look_delays_the_next_one_by_a_bounded_time() {
        let seen = Seen { at: Instant::now(), took: Duration::from_secs(60), free: 1 << 40 };
        assert!(!seen.is_due(seen.free));
        tokio::time::advance(DISK_LOOK_MAX).await;
        assert!(seen.is_due(seen.free));
        let seen = Seen { at: Instant::now(), took: Duration::from_millis(2), free: 1 << 40 };
        tokio::time::advance(QUOTA_LOOK).await;
        assert!(!seen.is_due(seen.free) && seen.is_due(seen.free - DISK_LOOK_BYTES), "much was written");
    }

    #[tokio::test]
    async fn a_workspace_is_looked_at_when_its_script_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut quota = Quota::new(rustix::process::getpid(), folder.path().into()).await.unwrap();
        assert_eq!(quota.settle().await, None);
        quota.most = Taken { bytes: 1 << 20, entries: 8 };
        fs::write(folder.path().join("large"), vec![1; 3 << 20]).unwrap();
        assert!(quota.settle().await.is_some_and(|why| why.contains("3 MiB") && why.contains("removed")));
        assert_eq!(quota.settle().await, None);
        (0..9).for_each(|number| fs::write(folder.path().join(number.to_string()), "").unwrap());
        assert!(quota.settle().await.is_some_and(|why| why.contains("more than 8 files")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7);
    }
}
