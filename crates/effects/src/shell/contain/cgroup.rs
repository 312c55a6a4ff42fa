//! Control groups, where this process may make them: hard limits behind those that are watched.
//!
//! Version 1 has a tree for each controller, version 2 one for all (cgroups(7)). An ordinary user can make neither in most
//! places; the limits of processes and the watch hold without.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

use crate::shell::limits::{MEMORY_BYTES_HARD_MAX, PROCESSES_HARD_MAX};

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The group that all of ours are in.
const OURS: &str = "mainspring-steps";

/// The groups of one script. Dropping it removes them, once the script's processes are gone.
#[derive(Debug, Default)]
pub(crate) struct Cgroup(Vec<PathBuf>);

impl Cgroup {
    /// Makes the groups that can be made and moves a process into them, and with it all that it starts.
    pub(crate) fn with(name: &str, member: Pid) -> Self {
        let root = Path::new(ROOT);
        let limits = |memory: &str, swap: &str| {
            let bytes = MEMORY_BYTES_HARD_MAX.to_string();
            vec![(memory.to_owned(), bytes.clone()), (swap.to_owned(), bytes)]
        };
        let pids = vec![("pids.max".to_owned(), PROCESSES_HARD_MAX.to_string())];
        let trees = if root.join("cgroup.controllers").exists() {
            let wanted = root.join(OURS);
            // Where the controllers cannot be handed on, their files are missing and setting them fails below.
            let _ = fs::create_dir(&wanted);
            let _ = fs::write(wanted.join("cgroup.subtree_control"), "+memory +pids");
            let mut all = limits("memory.max", "memory.swap.max");
            all.extend(pids);
            vec![(wanted, all)]
        } else {
            let memory = limits("memory.limit_in_bytes", "memory.memsw.limit_in_bytes");
            vec![(root.join("memory").join(OURS), memory), (root.join("pids").join(OURS), pids)]
        };
        let made = trees.into_iter().filter_map(|(tree, limits)| make(&tree.join(name), &limits, member).ok());
        Self(made.collect())
    }
}

fn make(group: &Path, limits: &[(String, String)], member: Pid) -> io::Result<PathBuf> {
    if let Some(parent) = group.parent().filter(|parent| !parent.exists()) {
        fs::create_dir(parent)?;
    }
    fs::create_dir(group)?;
    // A limit of the swap is missing in many kernels.
    let set = limits.iter().map(|(file, value)| fs::write(group.join(file), value)).filter(Result::is_ok).count();
    let joined = match set {
        0 => Err(io::Error::other("no limit can be set")),
        _ => fs::write(group.join("cgroup.procs"), member.as_raw_pid().to_string()),
    };
    joined.map(|()| group.to_owned()).inspect_err(|_| drop(fs::remove_dir(group)))
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.0.iter().for_each(|group| drop(fs::remove_dir(group)));
    }
}
