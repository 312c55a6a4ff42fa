//! Control groups, where this process may make them: limits that the kernel enforces, in addition to the polled quotas.
//!
//! All groups are made below the group of this process, so that the limits of its service include scripts, and in one
//! common group, which bounds their sum. Version 1 has one hierarchy for each controller, version 2 a single one
//! (cgroups(7)). An ordinary user can make groups only if the service manager delegates its group (`Delegate=yes`).

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mainspring_kernel::hash::Hash;
use rustix::process::Pid;

use super::mounts::{self, Mount};
use crate::shell::limits::{
    ALL_MEMORY_SHARE, ALL_PROCESSES_MAX, ALL_SHARES, ALL_WEIGHT, CONFINE_TRIES, MEMORY_BYTES_HARD_MAX,
    PROCESSES_HARD_MAX,
};

/// The common group of all scripts, below the group of this process.
const OURS: &str = "mainspring-steps";

/// The group that this process moves to: in version 2, a group that delegates controllers may not have processes.
const SERVER: &str = "mainspring-server";

/// A file of a group, and the value to write to it.
type Setting = (&'static str, String);

/// The hierarchies in which groups for scripts are made. Without one there are no groups.
#[derive(Debug, Clone, Default)]
pub(super) struct Cgroups {
    trees: Vec<Tree>,
    /// Groups that were busy when they should have been removed.
    left: Arc<Mutex<Vec<PathBuf>>>,
}

/// The groups of one hierarchy: one for all scripts, in it one for each organization, in those one for each script. The
/// first setting of each list is required; the others may fail, since many kernels lack limits of swap, for example.
#[derive(Debug, Clone, Default)]
struct Tree {
    /// The group of all scripts.
    folder: PathBuf,
    all: Vec<Setting>,
    of_organization: Vec<Setting>,
    of_script: Vec<Setting>,
    counts_memory: bool,
}

/// The groups of one script. Dropping it removes them after the script's processes have ended.
#[derive(Debug, Default)]
pub(crate) struct Cgroup {
    /// The path below the group of all scripts.
    within: PathBuf,
    groups: Vec<PathBuf>,
    left: Arc<Mutex<Vec<PathBuf>>>,
}

impl Cgroups {
    /// Finds the hierarchies in which groups can be made and limited. `may_arrange` allows this process to change its
    /// own group.
    pub(super) fn find(may_arrange: bool) -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = mounts::all().unwrap_or_default();
        let total = total_memory().unwrap_or(u64::MAX);
        let mut trees = Vec::new();
        if let Some((own, root)) = own_group(&groups, &mounts, "").filter(|(own, _)| hands_on(own, may_arrange)) {
            trees.extend(Tree::of_version_2(&own, total.min(memory_max(&own, &root))).made());
        }
        if trees.is_empty() {
            for controller in ["memory", "pids", "cpu", "cpuacct"] {
                let Some((own, _)) = own_group(&groups, &mounts, controller) else { continue };
                // Several controllers may share one hierarchy.
                if trees.iter().all(|tree: &Tree| tree.folder != own.join(OURS)) {
                    trees.extend(Tree::of_version_1(controller, &own, total).made());
                }
            }
        }
        if may_arrange {
            trees.iter().for_each(|tree| sweep(&tree.folder));
        }
        Self { trees, left: Arc::default() }
    }

    /// Returns whether the kernel accounts for, and limits, the memory of scripts.
    pub(super) fn count_memory(&self) -> bool {
        self.trees.iter().any(|tree| tree.counts_memory)
    }

    /// Makes the groups of a script and moves a process into them; its later children follow.
    pub(super) fn confine(&self, organization: Option<&str>, name: &str, member: Pid) -> io::Result<Cgroup> {
        // An organization's name need not be a valid name of a folder.
        let organization = organization.map_or("none".into(), |name| Hash::of_parts(&[name.as_bytes()]).hex());
        let within = Path::new(&organization).join(name);
        let mut made = Cgroup { within: within.clone(), groups: Vec::new(), left: self.left.clone() };
        for tree in &self.trees {
            // Another process that starts may remove the empty group as a leftover.
            let make = || tree.make(&within, Some(member));
            let group = (1..CONFINE_TRIES).fold(make(), |group, _| group.or_else(|_| make()));
            made.groups.push(group?);
        }
        Ok(made)
    }
}

impl Cgroup {
    /// Returns whether a process is in the groups. It is if its parent was moved before starting it.
    pub(crate) fn holds(&self, member: Pid) -> bool {
        let of_member = fs::read_to_string(format!("/proc/{}/cgroup", member.as_raw_pid())).unwrap_or_default();
        of_member.lines().filter(|line| Path::new(line).ends_with(&self.within)).count() >= self.groups.len()
    }

    pub(crate) fn hold(&self, member: Pid) -> io::Result<()> {
        self.groups.iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), member.as_raw_pid().to_string()))
    }

    /// Returns the bytes of memory that the kernel charges to the script, without reclaimable caches, or `None` if it
    /// does not account for memory. Cached files are subtracted only if the total exceeds `bound`.
    pub(crate) fn memory(&self, bound: u64) -> Option<u64> {
        let whole = self.number(&["memory.current", "memory.usage_in_bytes"])?;
        if whole <= bound {
            return Some(whole);
        }
        let stat = self.text("memory.stat")?;
        let own = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            ["anon", "rss", "shmem", "kernel"].contains(&name).then(|| bytes.parse::<u64>().ok())?
        };
        Some(stat.lines().filter_map(own).sum())
    }

    /// Returns the number of processes and threads of the script.
    pub(crate) fn tasks(&self) -> Option<u64> {
        self.number(&["pids.current"])
    }

    /// Returns the processor time of all processes of the script, including those that have ended.
    pub(crate) fn computed(&self) -> Option<Duration> {
        if let Some(nanoseconds) = self.number(&["cpuacct.usage"]) {
            return Some(Duration::from_nanos(nanoseconds));
        }
        let stat = self.text("cpu.stat")?;
        let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(Duration::from_micros(microseconds.parse().ok()?))
    }

    fn text(&self, file: &str) -> Option<String> {
        self.groups.iter().find_map(|group| fs::read_to_string(group.join(file)).ok())
    }

    fn number(&self, files: &[&str]) -> Option<u64> {
        files.iter().find_map(|file| self.text(file)?.trim().parse().ok())
    }
}

impl Tree {
    fn of_version_2(own: &Path, memory: u64) -> Self {
        let memory = Sums::of(memory);
        Self {
            folder: own.join(OURS),
            all: vec![
                ("memory.max", memory.all),
                ("pids.max", ALL_PROCESSES_MAX.to_string()),
                ("cpu.weight", ALL_WEIGHT.to_string()),
            ],
            of_organization: vec![
                ("memory.max", memory.of_organization),
                ("pids.max", (ALL_PROCESSES_MAX / 2).to_string()),
            ],
            of_script: vec![
                ("memory.max", MEMORY_BYTES_HARD_MAX.to_string()),
                ("memory.swap.max", "0".into()),
                // A script that has lost one of its processes behaves unpredictably, so all are killed.
                ("memory.oom.group", "1".into()),
                ("pids.max", PROCESSES_HARD_MAX.to_string()),
            ],
            counts_memory: true,
        }
    }

    fn of_version_1(controller: &str, own: &Path, total_memory: u64) -> Self {
        let none = Self { folder: own.join(OURS), ..Self::default() };
        match controller {
            "memory" => {
                let stat = fs::read_to_string(own.join("memory.stat")).unwrap_or_default();
                let most = stat.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit "));
                let most = most.and_then(|bytes| bytes.parse().ok()).unwrap_or(u64::MAX);
                let memory = Sums::of(total_memory.min(most));
                let hard = MEMORY_BYTES_HARD_MAX.to_string();
                Self {
                    all: vec![("memory.limit_in_bytes", memory.all)],
                    of_organization: vec![("memory.limit_in_bytes", memory.of_organization)],
                    of_script: vec![("memory.limit_in_bytes", hard.clone()), ("memory.memsw.limit_in_bytes", hard)],
                    counts_memory: true,
                    ..none
                }
            }
            "pids" => Self {
                all: vec![("pids.max", ALL_PROCESSES_MAX.to_string())],
                of_organization: vec![("pids.max", (ALL_PROCESSES_MAX / 2).to_string())],
                of_script: vec![("pids.max", PROCESSES_HARD_MAX.to_string())],
                ..none
            },
            "cpu" => Self { all: vec![("cpu.shares", ALL_SHARES.to_string())], ..none },
            _ => none,
        }
    }

    /// Makes the group of all scripts with its limits, and makes and removes a group for a script as a trial.
    fn made(self) -> Option<Self> {
        create(&self.folder).ok()?;
        hand_on_all(&self.folder);
        set(&self.folder, &self.all).ok()?;
        let organization = PathBuf::from(format!("trial-{}", std::process::id()));
        let trial = self.make(&organization.join("trial"), None).ok()?;
        fs::remove_dir(trial).and_then(|()| fs::remove_dir(self.folder.join(organization))).ok()?;
        Some(self)
    }

    /// Makes the group of a script and that of its organization.
    fn make(&self, within: &Path, member: Option<Pid>) -> io::Result<PathBuf> {
        let group = self.folder.join(within);
        if let Some(organization) = group.parent() {
            create(organization)?;
            hand_on_all(organization);
            set(organization, &self.of_organization)?;
        }
        // A server that was killed leaves groups behind.
        create(&group)?;
        let joined = set(&group, &self.of_script).and_then(|()| match member {
            Some(member) => fs::write(group.join("cgroup.procs"), member.as_raw_pid().to_string()),
            None => Ok(()),
        });
        match joined {
            Ok(()) => Ok(group),
            Err(error) => {
                let _ = fs::remove_dir(&group);
                Err(error)
            }
        }
    }
}

/// Memory limits, formatted.
struct Sums {
    all: String,
    of_organization: String,
}

impl Sums {
    /// Divides the memory of the server: all scripts share a part, and one organization gets half of it, but never less
    /// than one script needs.
    fn of(total: u64) -> Self {
        let all = total / ALL_MEMORY_SHARE.1 * ALL_MEMORY_SHARE.0;
        Self { all: all.to_string(), of_organization: (all / 2).max(MEMORY_BYTES_HARD_MAX.min(all)).to_string() }
    }
}

/// Removes groups that earlier processes have left in a group. A group with a process in it cannot be removed and
/// stays.
fn sweep(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Cgroup {
    /// A group may stay busy for a moment after its last process has ended. It is then removed when a later one is
    /// dropped.
    fn drop(&mut self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.append(&mut self.groups);
        let is_busy = |group: &mut PathBuf| {
            fs::remove_dir(&*group).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
        };
        left.retain_mut(is_busy);
    }
}

fn create(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Sets limits, of which the first one is required.
fn set(group: &Path, limits: &[Setting]) -> io::Result<()> {
    let mut set = limits.iter().map(|(file, value)| fs::write(group.join(file), value));
    let first = set.next().unwrap_or(Ok(()));
    set.for_each(drop);
    first
}

/// Delegates controllers to the groups below. Only version 2 needs it, and only there the file exists.
fn hand_on_all(group: &Path) {
    let file = group.join("cgroup.subtree_control");
    let _ = fs::write(&file, "+memory +pids");
    // The processor controller is not delegated to every group.
    let _ = fs::write(file, "+cpu");
}

/// Returns the lowest memory limit of a group of version 2 and of its visible ancestors.
fn memory_max(own: &Path, root: &Path) -> u64 {
    let groups = own.ancestors().take_while(|group| group.starts_with(root));
    let most = groups.filter_map(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse::<u64>().ok());
    most.min().unwrap_or(u64::MAX)
}

/// Returns the folder of this process's group and the mount point of its hierarchy, for a controller of version 1 or,
/// if `controller` is empty, for version 2.
fn own_group(groups: &str, mounts: &[Mount], controller: &str) -> Option<(PathBuf, PathBuf)> {
    let path = groups.lines().find_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    })?;
    let is_wanted = |mount: &&Mount| match controller {
        "" => mount.kind == "cgroup2",
        _ => mount.kind == "cgroup" && mount.options.split(',').any(|one| one == controller),
    };
    let mount = mounts.iter().find(is_wanted)?;
    // A group outside of the namespace of this process starts with `/..`, and no folder shows it.
    let within = Path::new(path).strip_prefix(&mount.root).ok()?;
    (!path.contains("/..")).then(|| (mount.point.join(within), mount.point.clone()))
}

/// Returns whether a group of version 2 delegates memory and processes to its children, or can be made to.
fn hands_on(own: &Path, may_arrange: bool) -> bool {
    let has = |file: &str| {
        let words = fs::read_to_string(own.join(file)).unwrap_or_default();
        ["memory", "pids"].iter().all(|wanted| words.split_ascii_whitespace().any(|word| word == *wanted))
    };
    let control = own.join("cgroup.subtree_control");
    if has("cgroup.subtree_control") || !has("cgroup.controllers") {
        let _ = may_arrange && fs::write(control, "+cpu").is_ok();
        return has("cgroup.subtree_control");
    }
    let hand_on = || {
        let is_done = fs::write(&control, "+memory +pids").is_ok();
        let _ = fs::write(&control, "+cpu");
        is_done
    };
    if !may_arrange || hand_on() {
        return may_arrange;
    }
    let me = std::process::id().to_string();
    let is_alone = fs::read_to_string(own.join("cgroup.procs")).is_ok_and(|all| all.trim() == me);
    is_alone
        && create(&own.join(SERVER)).is_ok()
        && fs::write(own.join(SERVER).join("cgroup.procs"), me).is_ok()
        && hand_on()
}

/// Returns the bytes of memory of this machine (`MemTotal` of proc_meminfo(5)).
fn total_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, root: &str, point: &str, options: &str) -> Mount {
        let (root, point) = (root.into(), point.into());
        Mount { device: "0:1".into(), root, point, kind: kind.into(), options: options.into() }
    }

    #[test]
    fn groups_are_created_below_the_group_of_this_process() {
        let mounts = [
            mount("cgroup", "/docker/1", "/sys/fs/cgroup/memory", "rw,memory"),
            mount("cgroup", "/", "/sys/fs/cgroup/pids", "rw,pids"),
            mount("cgroup2", "/", "/sys/fs/cgroup/unified", "rw,nsdelegate"),
        ];
        let groups = "4:memory:/docker/1/a\n8:cpu,pids:/system.slice/m.service\n0::/user.slice\n";
        let own = |groups: &str, controller: &str| own_group(groups, &mounts, controller).map(|(own, _)| own);
        assert_eq!(own(groups, "memory").unwrap(), Path::new("/sys/fs/cgroup/memory/a"));
        assert_eq!(own(groups, "pids").unwrap(), Path::new("/sys/fs/cgroup/pids/system.slice/m.service"));
        assert_eq!(own(groups, "").unwrap(), Path::new("/sys/fs/cgroup/unified/user.slice"));
        assert_eq!(own(groups, "cpuset"), None);
        assert_eq!(own("4:memory:/docker/2\n", "memory"), None, "outside of the mount");
        assert_eq!(own("0::/../other\n", ""), None, "outside of the namespace");
    }

    #[test]
    fn leftover_groups_are_reused_and_unlimited_groups_rejected() {
        let root = tempfile::tempdir().unwrap();
        let me = rustix::process::getpid();
        let tree = |of_script| Tree { folder: root.path().into(), of_script, ..Tree::default() };
        let limited = tree(vec![("limit", "1".into()), ("missing/limit", "1".into())]);
        fs::create_dir_all(root.path().join("acme/left")).unwrap();
        let group = limited.make(Path::new("acme/left"), Some(me)).unwrap();
        assert_eq!(fs::read_to_string(group.join("limit")).unwrap(), "1");
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).unwrap(), std::process::id().to_string());
        let trees = vec![tree(vec![("missing/limit", "1".into())])];
        let cgroups = Cgroups { trees, ..Cgroups::default() };
        assert!(cgroups.confine(None, "new", me).is_err());
        assert!(!root.path().join("none/new").exists());
    }

    #[test]
    fn scripts_get_a_share_of_the_service_memory() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("system.slice/m.service");
        fs::create_dir_all(&own).unwrap();
        assert_eq!(memory_max(&own, root.path()), u64::MAX);
        fs::write(own.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("system.slice/memory.max"), "8589934592\n").unwrap();
        assert_eq!(memory_max(&own, root.path()), 8 << 30);
        let sums = Sums::of(8 << 30);
        assert_eq!((sums.all, sums.of_organization), ((6_u64 << 30).to_string(), (4_u64 << 30).to_string()));
        fs::write(own.join("memory.stat"), "cache 1\nhierarchical_memory_limit 2147483648\n").unwrap();
        let tree = Tree::of_version_1("memory", &own, 16 << 30);
        assert_eq!(tree.all[0].1, (3_u64 << 29).to_string(), "and the limit of the service counts, not the machine's");
    }

    #[test]
    fn memory_is_counted_without_cached_files() {
        let root = tempfile::tempdir().unwrap();
        let mut cgroup = Cgroup::default();
        cgroup.groups = vec![root.path().join("none"), root.path().into()];
        assert_eq!((cgroup.memory(10), cgroup.tasks(), cgroup.computed()), (None, None, None));
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        write("memory.current", "100\n");
        write("memory.stat", "anon 20\nfile 60\nkernel 5\nshmem 15\ninactive_anon 9\n");
        assert_eq!((cgroup.memory(100), cgroup.memory(99)), (Some(100), Some(40)));
        write("cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
        write("pids.current", "7\n");
        assert_eq!((cgroup.tasks(), cgroup.computed()), (Some(7), Some(Duration::from_millis(2_500))));
    }
}
