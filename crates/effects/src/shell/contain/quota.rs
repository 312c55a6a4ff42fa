//! Polls the sums of what all processes of a contained script use: memory, processes, disk.
//!
//! Limits of single processes bound none of these sums, and control groups are not available everywhere. A script that
//! exceeds a quota is ended.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use rustix::{
    fs::{Timespec, statvfs},
    param::clock_ticks_per_second,
    process::Pid,
};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::{
    Cgroup, Container,
    disk::{self, Usage},
    usage,
};
use crate::shell::{
    error::ShellError,
    limits::{
        ALL_COMPUTING_SECONDS_MAX, DESCRIPTORS_LOOKED_AT_MAX, DISK_LOOK_BYTES, DISK_LOOK_MAX, DISK_LOOK_MIN,
        DISK_LOOK_SHARE, DISK_RUNNING_SHARE, DISK_START_SHARE, DISK_WALKS_AT_A_TIME, INODE_BYTES, LOOKS_AT_A_TIME,
        MEMORY_BYTES_MAX, PROCESSES_MAX, QUOTA_LOOK, QUOTA_LOOK_SHARE, THREAD_BYTES, THREADS_MAX,
    },
    process::{self, Stat},
};

/// Usage of a script at one poll, without its files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Used {
    processes: u64,
    threads: u64,
    memory: u64,
    /// Processor time.
    computed: Duration,
}

/// Polls the usage of one script.
#[derive(Debug)]
pub(crate) struct Quota {
    /// The first process of the container.
    init: Option<Pid>,
    cgroup: Arc<Cgroup>,
    workspace: PathBuf,
    /// The organization of the execution, or an empty text if it has none.
    organization: String,
    /// The start of the script, by the clock of the file system.
    since: Option<Timespec>,
    /// Free bytes of the disk at the last poll.
    free: Arc<AtomicU64>,
    most: Usage,
}

/// Bounds the workspaces that are scanned at the same time for all scripts of this process, since a scan uses file
/// descriptors and processors.
static WALKS: Semaphore = Semaphore::const_new(DISK_WALKS_AT_A_TIME);

/// Bounds the scripts whose processes are read at the same time.
static LOOKS: Semaphore = Semaphore::const_new(LOOKS_AT_A_TIME);

/// The state of the disk at the last scan of a workspace.
struct Seen {
    at: Instant,
    took: Duration,
    free: u64,
}

impl Seen {
    /// Returns whether the next scan is due: after a bounded multiple of the last scan's duration, or as soon as much
    /// was written since.
    fn is_due(&self, free: u64) -> bool {
        let elapsed = self.at.elapsed();
        let usual = (self.took * DISK_LOOK_SHARE).clamp(DISK_LOOK_MIN, DISK_LOOK_MAX);
        let is_written = self.free.saturating_sub(free) >= DISK_LOOK_BYTES;
        elapsed >= usual || (is_written && elapsed >= self.took)
    }
}

impl Quota {
    /// Sets up the quota of a script before it starts: moves the process that makes its container to control groups.
    /// The work takes some milliseconds and runs while the container is built.
    pub(crate) async fn new(
        container: Arc<Container>,
        (organization, name): (Option<String>, String),
        outer: Pid,
        workspace: PathBuf,
    ) -> Result<Self, ShellError> {
        let prepare = move || {
            let named = organization.clone().unwrap_or_default();
            let full = crowded(&workspace, &named, DISK_START_SHARE);
            full.map_or(Ok(()), |why| Err(ShellError::DiskFull(why)))?;
            let cgroup = Arc::new(container.confine(organization.as_deref(), &name, outer)?);
            let free = Arc::new(AtomicU64::new(free_bytes(&workspace)));
            let (since, most) = (disk::stamp(&workspace), disk::most(&workspace));
            Ok(Self { init: None, cgroup, workspace, organization: named, since, free, most })
        };
        let prepared = spawn_blocking(prepare).await;
        prepared.unwrap_or_else(|error| Err(ShellError::NotContained(error.to_string())))
    }

    /// Takes over a container that is ready: its first process, and the one that becomes the script. Returns after the
    /// latter is in all control groups.
    pub(crate) async fn begin(&mut self, init: Pid, helper: Pid) -> Result<(), ShellError> {
        self.init = Some(init);
        if self.cgroup.holds(helper) {
            return Ok(());
        }
        let cgroup = self.cgroup.clone();
        let held = spawn_blocking(move || cgroup.hold(helper)).await.map_err(|error| error.to_string());
        held.and_then(|held| held.map_err(|error| error.to_string()))
            .map_err(|why| ShellError::NotContained(format!("it cannot be moved to its control groups: {why}")))
    }

    /// Returns when the script has exceeded a quota, with a sentence about it.
    pub(crate) async fn exceeded(&self) -> String {
        // Separate polls, so that a long scan of files does not delay the others.
        tokio::select! {
            why = self.taken() => why,
            why = self.written() => why,
        }
    }

    /// Polls processes, memory and the disk as a whole, on blocking threads that nothing else waits for.
    async fn taken(&self) -> String {
        let mut pause = QUOTA_LOOK;
        loop {
            sleep(pause).await;
            let (init, cgroup, workspace) = (self.init, self.cgroup.clone(), self.workspace.clone());
            let (free, organization) = (self.free.clone(), self.organization.clone());
            let look = move || {
                free.store(free_bytes(&workspace), Relaxed);
                crowded(&workspace, &organization, DISK_RUNNING_SHARE).or_else(|| judge(&used(init?, &cgroup)))
            };
            let one = LOOKS.acquire().await;
            let began = Instant::now();
            let seen = spawn_blocking(look).await;
            drop(one);
            if let Some(why) = seen.unwrap_or_else(|error| Some(format!("it cannot be looked at: {error}"))) {
                return why;
            }
            pause = QUOTA_LOOK.max(began.elapsed() * QUOTA_LOOK_SHARE);
        }
    }

    /// Scans the workspace at intervals.
    async fn written(&self) -> String {
        let mut seen = Seen { at: Instant::now(), took: Duration::ZERO, free: self.free.load(Relaxed) };
        loop {
            sleep(QUOTA_LOOK).await;
            let free = self.free.load(Relaxed);
            if !seen.is_due(free) {
                continue;
            }
            let began = Instant::now();
            let (init, workspace, most) = (self.init, self.workspace.clone(), self.most);
            let organization = self.organization.clone();
            let look = move || {
                let unnamed = init.map_or(0, |init| nameless(&process::descendants(init, PROCESSES_MAX)));
                let (taken, excess) = disk::counted(&workspace, most.without(unnamed));
                usage::set(&workspace, &organization, taken.and(Usage { bytes: unnamed, entries: 0 }));
                excess
            };
            if let Some(why) = self.walk(look).await {
                return why;
            }
            seen = Seen { at: Instant::now(), took: began.elapsed(), free };
        }
    }

    /// Scans once more after the script has ended, and removes files beyond the quota. Returns a sentence about the
    /// excess.
    pub(crate) async fn settle(&self) -> Option<String> {
        let (workspace, since, most) = (self.workspace.clone(), self.since, self.most);
        let organization = self.organization.clone();
        self.walk(move || {
            let (taken, excess) = disk::counted(&workspace, most);
            usage::set(&workspace, &organization, taken);
            let why = excess?;
            Some(match disk::reduce(&workspace, since, most) {
                Ok(()) => format!("{why}; files that it wrote were removed until the others fit"),
                Err(error) => format!("{why}; what is too much cannot be removed ({error})"),
            })
        })
        .await
    }

    async fn walk(&self, look: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
        // First a permit of the organization, so that an organization that waits for its own scans blocks no other one.
        let turns = usage::turns_of(&self.organization);
        let _turn = turns.acquire().await;
        let _one = WALKS.acquire().await;
        spawn_blocking(look).await.unwrap_or_else(|error| Some(format!("its workspace cannot be looked at: {error}")))
    }
}

fn free_bytes(workspace: &Path) -> u64 {
    disk::free(workspace).map_or(u64::MAX, |free| free.bytes)
}

/// Returns a sentence if the disk is full, or if it is nearly full and mostly used by the workspaces of this
/// organization.
fn crowded(workspace: &Path, organization: &str, share: u64) -> Option<String> {
    let nearly = disk::full(workspace, share)?;
    disk::full(workspace, 1).or_else(|| {
        let free = disk::free(workspace)?;
        usage::has_most(organization, free)
            .then(|| format!("{nearly}, and the workspaces of its organization hold more than half of the rest"))
    })
}

/// Returns a sentence about the first exceeded limit.
fn judge(used: &Used) -> Option<String> {
    let mib = |bytes: u64| bytes >> 20;
    if used.processes > PROCESSES_MAX {
        return Some(format!("it had {} processes, and {PROCESSES_MAX} are allowed", used.processes));
    }
    if used.threads > THREADS_MAX {
        return Some(format!("it had {} threads, and {THREADS_MAX} are allowed", used.threads));
    }
    if used.memory > MEMORY_BYTES_MAX {
        let (used, most) = (mib(used.memory), mib(MEMORY_BYTES_MAX));
        return Some(format!("it used {used} MiB of memory, and {most} are allowed"));
    }
    if used.computed.as_secs() > ALL_COMPUTING_SECONDS_MAX {
        let hours = ALL_COMPUTING_SECONDS_MAX / 3600;
        return Some(format!(
            "its processes have computed for more than {hours} hours of one processor, and that is allowed"
        ));
    }
    None
}

/// Returns the usage of a script, from its control groups as far as they account for it.
fn used(init: Pid, cgroup: &Cgroup) -> Used {
    let (tasks, memory, computed) = (cgroup.tasks(), cgroup.memory(MEMORY_BYTES_MAX), cgroup.computed());
    match (tasks, memory, computed) {
        // The pids controller counts threads as tasks, as it does processes.
        (Some(tasks), Some(memory), Some(computed)) if tasks <= PROCESSES_MAX => {
            Used { processes: tasks, threads: tasks, memory, computed }
        }
        _ => {
            let seen = used_by_processes(init);
            let memory = memory.unwrap_or_else(|| seen.memory + memory_of_files(init));
            Used { memory, computed: computed.unwrap_or(seen.computed), ..seen }
        }
    }
}

/// Sums the usage of the processes of a container, and stops at the first exceeded limit.
fn used_by_processes(init: Pid) -> Used {
    let (mut used, mut found, mut next) = (Used::default(), vec![init], 0);
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let Some(stat) = Stat::of(pid) else { continue };
        used.computed += Duration::from_secs(stat.computed_ticks / clock_ticks_per_second().max(1));
        if !stat.is_dead {
            used.processes += 1;
            used.threads += stat.threads;
            used.memory += memory_of(pid) + stat.threads * THREAD_BYTES;
        }
        if judge(&used).is_some() {
            break;
        }
        found.extend(process::children(pid));
    }
    used
}

/// Returns the bytes of memory that only this process and others of its container use, resident or swapped out, with
/// those of its page tables.
fn memory_of(member: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", member.as_raw_pid())).unwrap_or_default();
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let names = ["RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:"];
    1024 * names.iter().filter_map(|name| kib(name)).sum::<u64>()
}

/// Returns the bytes of memory that the files in a container's tmpfs folders use.
fn memory_of_files(init: Pid) -> u64 {
    let of = |folder: &str| {
        let disk = statvfs(format!("/proc/{}/root{folder}", init.as_raw_pid())).ok()?;
        let bytes = disk.f_blocks.saturating_sub(disk.f_bfree).saturating_mul(disk.f_frsize);
        Some(bytes + disk.f_files.saturating_sub(disk.f_ffree) * INODE_BYTES)
    };
    ["/tmp", "/dev/shm"].iter().filter_map(|folder| of(folder)).sum()
}

/// Returns the bytes of open files that have no name (unlinked or `O_TMPFILE`), among a bounded number of descriptors.
fn nameless(members: &[Pid]) -> u64 {
    let (mut bytes, mut seen) = (0, BTreeSet::new());
    let open = members.iter().flat_map(|member| fs::read_dir(format!("/proc/{}/fd", member.as_raw_pid())));
    for descriptor in open.flatten().flatten().take(DESCRIPTORS_LOOKED_AT_MAX) {
        let Ok(metadata) = fs::metadata(descriptor.path()) else { continue };
        if metadata.is_file() && metadata.nlink() == 0 && seen.insert((metadata.dev(), metadata.ino())) {
            bytes += metadata.blocks() * 512;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_applies_at_its_bound() {
        let computed = Duration::from_secs(ALL_COMPUTING_SECONDS_MAX);
        let most = Used { processes: PROCESSES_MAX, threads: THREADS_MAX, memory: MEMORY_BYTES_MAX, computed };
        assert_eq!(judge(&most), None);
        let over = [
            (Used { processes: PROCESSES_MAX + 1, ..most }, "processes"),
            (Used { threads: THREADS_MAX + 1, ..most }, "threads"),
            (Used { memory: MEMORY_BYTES_MAX + 1, ..most }, "memory"),
            (Used { computed: computed + Duration::from_secs(1), ..most }, "computed"),
        ];
        for (used, word) in over {
            assert!(judge(&used).is_some_and(|why| why.contains(word)), "{used:?}");
        }
    }

    #[test]
    fn unlinked_files_count() {
        let me = rustix::process::getpid();
        let mut open = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut open, &vec![1; 1 << 20]).unwrap();
        assert!(nameless(&[me]) >= 1 << 20);
    }

    #[test]
    fn processes_and_their_threads_count() {
        let me = rustix::process::getpid();
        let before = used_by_processes(me);
        assert!(before.processes >= 1 && before.threads >= before.processes && before.memory > 0, "{before:?}");
        let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        assert!(used_by_processes(me).processes > before.processes);
        assert!(process::descendants(me, 0).len() == 1 && process::descendants(me, 9).len() >= 2);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_check_delays_the_next_one_by_a_bounded_time() {
        let seen = Seen { at: Instant::now(), took: Duration::from_secs(60), free: 1 << 40 };
        assert!(!seen.is_due(seen.free));
        tokio::time::advance(DISK_LOOK_MAX).await;
        assert!(seen.is_due(seen.free));
        let seen = Seen { at: Instant::now(), took: Duration::from_millis(2), free: 1 << 40 };
        tokio::time::advance(QUOTA_LOOK).await;
        assert!(!seen.is_due(seen.free) && seen.is_due(seen.free - DISK_LOOK_BYTES), "much was written");
    }

    #[tokio::test]
    async fn a_workspace_is_checked_after_its_script() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().to_owned();
        let (cgroup, free, since) = (Arc::default(), Arc::default(), disk::stamp(&workspace));
        let most = disk::most(&workspace);
        let mut quota = Quota { init: None, cgroup, workspace, organization: "acme".into(), since, free, most };
        assert_eq!(quota.settle().await, None);
        quota.most = Usage { bytes: 1 << 20, entries: 8 };
        fs::write(folder.path().join("large"), vec![1; 3 << 20]).unwrap();
        assert!(quota.settle().await.is_some_and(|why| why.contains("3 MiB") && why.contains("removed")));
        assert_eq!(quota.settle().await, None);
        (0..9).for_each(|number| fs::write(folder.path().join(number.to_string()), "").unwrap());
        assert!(quota.settle().await.is_some_and(|why| why.contains("more than 8 files")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7);
    }
}
