//! Control groups, where this process may make them: limits that the kernel enforces, behind those that are watched.
//!
//! All of them are made below the group that this process is in, so that the limits of its service hold for scripts too,
//! and in one group, which bounds their sum. Version 1 has a tree for each controller, version 2 one for all (cgroups(7)).
//! An ordinary user can make them only where a service manager has handed its group over (`Delegate=yes`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

use super::mounts::{self, Mount};
use crate::shell::limits::{
    ALL_MEMORY_SHARE, ALL_PROCESSES_MAX, CONFINE_TRIES, MEMORY_BYTES_HARD_MAX, PROCESSES_HARD_MAX,
};

/// The group that those of all scripts are in, below that of this process.
const OURS: &str = "mainspring-steps";

/// The group that this process moves to: in version 2 a group that hands controllers on has no processes of its own.
const SERVER: &str = "mainspring-server";

/// A file of a group, and what is written to it.
type Setting = (&'static str, String);

/// Where the control groups of scripts are made. Without a tree there are none.
#[derive(Debug, Clone, Default)]
pub(super) struct Cgroups(Vec<Tree>);

#[derive(Debug, Clone)]
struct Tree {
    /// The group that those of all scripts are in.
    folder: PathBuf,
    /// Of each script. The first one must be set; limits of swap are missing in many kernels.
    limits: Vec<Setting>,
    counts_memory: bool,
}

/// The groups of one script. Dropping it removes them, once the script's processes are gone.
#[derive(Debug, Default)]
pub(crate) struct Cgroup(Vec<PathBuf>);

impl Cgroups {
    /// The trees in which groups can be made and limited. `may_arrange` is whether this process may change its own group.
    pub(super) fn find(may_arrange: bool) -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = mounts::all().unwrap_or_default();
        let memory = total_memory().unwrap_or(u64::MAX) / ALL_MEMORY_SHARE.1 * ALL_MEMORY_SHARE.0;
        let (memory, pids) = (memory.to_string(), ALL_PROCESSES_MAX.to_string());
        let (own_memory, own_pids) = (MEMORY_BYTES_HARD_MAX.to_string(), PROCESSES_HARD_MAX.to_string());
        let mut trees = Vec::new();
        if let Some(own) = own_group(&groups, &mounts, "").filter(|own| hands_on(own, may_arrange)) {
            let all = [("memory.max", memory.clone()), ("pids.max", pids.clone())];
            let limits = vec![
                ("memory.max", own_memory.clone()),
                ("memory.swap.max", "0".into()),
                ("pids.max", own_pids.clone()),
            ];
            trees.extend(Tree { folder: own.join(OURS), limits, counts_memory: true }.made(&all));
        }
        if trees.is_empty() {
            let of_memory =
                vec![("memory.limit_in_bytes", own_memory.clone()), ("memory.memsw.limit_in_bytes", own_memory)];
            let all = [
                ("memory", true, of_memory, ("memory.limit_in_bytes", memory)),
                ("pids", false, vec![("pids.max", own_pids)], ("pids.max", pids)),
            ];
            for (controller, counts_memory, limits, all) in all {
                let Some(own) = own_group(&groups, &mounts, controller) else { continue };
                trees.extend(Tree { folder: own.join(OURS), limits, counts_memory }.made(&[all]));
            }
        }
        if may_arrange {
            trees.iter().for_each(Tree::sweep);
        }
        Self(trees)
    }

    /// Whether the kernel counts, and limits, the memory of scripts.
    pub(super) fn count_memory(&self) -> bool {
        self.0.iter().any(|tree| tree.counts_memory)
    }

    /// Makes the groups of a script, and moves a process into them, and with it all that it starts.
    pub(super) fn confine(&self, name: &str, member: Pid) -> io::Result<Cgroup> {
        let mut made = Cgroup::default();
        for tree in &self.0 {
            // Another process that starts may take an empty group for one that was left.
            let make = || tree.make(name, Some(member));
            let group = (1..CONFINE_TRIES).fold(make(), |group, _| group.or_else(|_| make()));
            made.0.push(group?);
        }
        Ok(made)
    }
}

impl Tree {
    /// Makes the group of all scripts with its limits, and tries one for a script.
    fn made(self, all: &[Setting]) -> Option<Self> {
        create(&self.folder).ok()?;
        // Needed, and there, in version 2 alone.
        let _ = fs::write(self.folder.join("cgroup.subtree_control"), "+memory +pids");
        set(&self.folder, all).ok()?;
        let trial = self.make(&format!("trial-{}", std::process::id()), None).ok()?;
        fs::remove_dir(trial).ok()?;
        Some(self)
    }

    fn make(&self, name: &str, member: Option<Pid>) -> io::Result<PathBuf> {
        let group = self.folder.join(name);
        // A server that was killed leaves groups behind.
        create(&group)?;
        let joined = set(&group, &self.limits).and_then(|()| match member {
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

    /// Removes groups that are left of earlier processes. One that has a process cannot be removed.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.0.iter().for_each(|group| drop(fs::remove_dir(group)));
    }
}

fn create(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Sets limits, of which the first one must be there.
fn set(group: &Path, limits: &[Setting]) -> io::Result<()> {
    let mut set = limits.iter().map(|(file, value)| fs::write(group.join(file), value));
    let first = set.next().unwrap_or(Ok(()));
    set.for_each(drop);
    first
}

/// The folder of the group that this process is in: of a controller of version 1, or without one of version 2.
fn own_group(groups: &str, mounts: &[Mount], controller: &str) -> Option<PathBuf> {
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
    // A group outside of the namespace of this process begins with `/..`, and no folder shows it.
    let within = Path::new(path).strip_prefix(&mount.root).ok()?;
    (!path.contains("/..")).then(|| mount.point.join(within))
}

/// Whether a group of version 2 hands memory and processes on to those below it, or can be made to.
fn hands_on(own: &Path, may_arrange: bool) -> bool {
    let has = |file: &str| {
        let words = fs::read_to_string(own.join(file)).unwrap_or_default();
        ["memory", "pids"].iter().all(|wanted| words.split_ascii_whitespace().any(|word| word == *wanted))
    };
    if has("cgroup.subtree_control") || !has("cgroup.controllers") {
        return has("cgroup.subtree_control");
    }
    let hand_on = || fs::write(own.join("cgroup.subtree_control"), "+memory +pids").is_ok();
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

/// Bytes of memory of this machine (`MemTotal` of proc_meminfo(5)).
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
    fn groups_are_made_below_the_one_of_this_process() {
        let mounts = [
            mount("cgroup", "/docker/1", "/sys/fs/cgroup/memory", "rw,memory"),
            mount("cgroup", "/", "/sys/fs/cgroup/pids", "rw,pids"),
            mount("cgroup2", "/", "/sys/fs/cgroup/unified", "rw,nsdelegate"),
        ];
        let groups = "4:memory:/docker/1/a\n8:cpu,pids:/system.slice/m.service\n0::/user.slice\n";
        let own = |groups: &str, controller: &str| own_group(groups, &mounts, controller);
        assert_eq!(own(groups, "memory").unwrap(), Path::new("/sys/fs/cgroup/memory/a"));
        assert_eq!(own(groups, "pids").unwrap(), Path::new("/sys/fs/cgroup/pids/system.slice/m.service"));
        assert_eq!(own(groups, "").unwrap(), Path::new("/sys/fs/cgroup/unified/user.slice"));
        assert_eq!(own(groups, "cpuset"), None);
        assert_eq!(own("4:memory:/docker/2\n", "memory"), None, "outside of the mount");
        assert_eq!(own("0::/../other\n", ""), None, "outside of the namespace");
    }

    #[test]
    fn a_group_that_was_left_is_used_again_and_one_without_limits_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let tree = |limits| Tree { folder: root.path().into(), limits, counts_memory: true };
        let limited = tree(vec![("limit", "1".into()), ("missing/limit", "1".into())]);
        fs::create_dir(root.path().join("left")).unwrap();
        let group = limited.make("left", Some(rustix::process::getpid())).unwrap();
        assert_eq!(fs::read_to_string(group.join("limit")).unwrap(), "1");
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).unwrap(), std::process::id().to_string());
        let cgroups = Cgroups(vec![tree(vec![("missing/limit", "1".into())])]);
        assert!(cgroups.confine("new", rustix::process::getpid()).is_err());
        assert!(!root.path().join("new").exists());
    }
}
