//! What `/proc` and pidfds tell of single processes.

use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{Interest, unix::AsyncFd};

use super::limits::{LOAD_LOOK_AGAIN, LOAD_LOOKS_MAX};

/// What we need of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// When it started, in clock ticks since boot: with the process id, the identity of a process within one boot.
    pub(super) started_ticks: u64,
    /// The number of its parent; 0 for one outside our container.
    pub(super) parent: i32,
    /// The number of its session, which is 0 as that of a group is.
    pub(super) session: i32,
    /// The number of its group; 0 for threads of the kernel and groups from outside our container.
    pub(super) group: i32,
    /// How many threads it has.
    pub(super) threads: u64,
    /// How long it has computed, with its children that were waited for, in clock ticks.
    pub(super) computed_ticks: u64,
    /// Whether it has ended and only waits for its parent to notice.
    pub(super) is_dead: bool,
}

impl Stat {
    /// The stat of a process, or nothing if there is none.
    pub(super) fn of(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
    }

    /// The name of a process stands in parentheses, unquoted, and may contain spaces and parentheses: the fields begin
    /// behind the last one. A leader whose other threads still run is shown as a zombie too, but it is not dead.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
        let [state, parent, group, session] = [fields.first()?, fields.get(1)?, fields.get(2)?, fields.get(3)?];
        let [threads, started] = [fields.get(17)?, fields.get(19)?];
        let threads = threads.parse().ok()?;
        let computed = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>());
        Some(Self {
            started_ticks: started.parse().ok()?,
            parent: parent.parse().ok()?,
            session: session.parse().ok()?,
            group: group.parse().ok()?,
            threads,
            computed_ticks: computed.sum::<Result<_, _>>().ok()?,
            is_dead: matches!(*state, "X" | "x") || (*state == "Z" && threads <= 1),
        })
    }
}

/// A process number from text that may be anything, where the library takes a negative one for a mistake of ours.
pub(super) fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|number| *number > 0)?)
}

/// All processes that we may see.
pub(super) fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| pid_of(entry.file_name().to_str()?))
}

/// A process and all that it and its children have started, as far as they live, and little more than a number of them. The
/// kernel lists the children of each thread where it is built so (`CONFIG_PROC_CHILDREN`, as those of distributions are),
/// else all processes are looked at.
pub(super) fn descendants(first: Pid, most: u64) -> Vec<Pid> {
    let mut found = vec![first];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied().filter(|_| (found.len() as u64) < most) {
        found.extend(children(parent));
        next += 1;
    }
    found.retain(|pid| Stat::of(*pid).is_some_and(|stat| !stat.is_dead));
    found
}

/// The children of a process.
pub(super) fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())) else { return Vec::new() };
    let lists: Result<Vec<String>, _> =
        threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children"))).collect();
    match lists {
        Ok(lists) => lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(pid_of).collect(),
        Err(_) => {
            let is_child = |pid: &Pid| Stat::of(*pid).is_some_and(|stat| stat.parent == parent.as_raw_pid());
            all().filter(is_child).collect()
        }
    }
}

/// The number of a process's group; 0 for threads of the kernel and groups from outside our container. All processes of
/// the machine are asked for each script that ends: this is one call to the kernel, a [`Stat`] is three and a text.
pub(super) fn group_of(pid: Pid) -> Option<i32> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_pid());
    nix::unistd::getpgid(Some(pid)).ok().map(nix::unistd::Pid::as_raw)
}

/// Whether the environment that a process was started with has this `NAME=value`. False for the dead, which have none.
///
/// The kernel shows no environment while a process loads its program (execve(2)). Such a process is asked again until it
/// shows one, at most [`LOAD_LOOKS_MAX`] times.
pub(super) fn has_variable(pid: Pid, assignment: &str) -> bool {
    let file = format!("/proc/{}/environ", pid.as_raw_pid());
    for _ in 0..LOAD_LOOKS_MAX {
        match fs::read(&file) {
            Ok(environ) if environ.is_empty() && !has_no_variables(pid) => std::thread::sleep(LOAD_LOOK_AGAIN),
            Ok(environ) => return environ.split(|byte| *byte == 0).any(|entry| entry == assignment.as_bytes()),
            Err(_) => return false,
        }
    }
    false
}

/// Whether a process has no variables and will show none: it has no program, as threads of the kernel and the dead, or its
/// program was started with an empty environment. While a program is loaded, the end of its environment is 0.
fn has_no_variables(pid: Pid) -> bool {
    let number = pid.as_raw_pid();
    let has_program = fs::read_link(format!("/proc/{number}/exe")).is_ok();
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split_ascii_whitespace();
    let [start, end] = [fields.nth(47), fields.next()];
    !has_program || (start == end && end != Some("0"))
}

/// Which boot of the machine this is.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// When this boot of the machine began, in milliseconds since 1970 (proc(5), `btime`).
pub(super) fn booted_at_ms() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse::<u64>().ok()?.checked_mul(1000)
}

/// A handle on one process that outlives its number.
#[derive(Debug)]
pub(super) struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Opens a handle on the process that has this number now.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor may change; an OwnedFd's cannot"
    )]
    pub(super) fn open(pid: Pid) -> io::Result<Self> {
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self(AsyncFd::with_interest(pidfd, Interest::READABLE)?))
    }

    /// Returns once the process has ended, without taking its exit status away from whoever waits for it.
    pub(super) async fn ended(&self) {
        if self.0.readable().await.is_err() {
            std::future::pending::<()>().await; // The runtime is shutting down and will drop us.
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, kill_process_group};
    use std::{
        io::{BufRead, BufReader},
        os::unix::process::CommandExt,
        process::{Command, Stdio},
    };

    #[test]
    fn stat_is_read_behind_any_name() {
        let rest = "1 77 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 THREADS 0 4242 9 9";
        let of = Stat {
            started_ticks: 4242,
            parent: 1,
            session: 7,
            group: 77,
            threads: 0,
            computed_ticks: 26,
            is_dead: false,
        };
        let check = |name: &str, state: &str, threads: &str, dead: bool| {
            let text = format!("12 ({name}) {state} {}", rest.replace("THREADS", threads));
            let expected = Stat { threads: threads.parse().unwrap(), is_dead: dead, ..of };
            assert_eq!(Stat::parse(&text), Some(expected), "{text}");
        };
        check("bash", "S", "1", false);
        check("a) R (b c", "S", "1", false);
        check("bash", "Z", "1", true);
        check("bash", "Z", "2", false);
        check("bash", "X", "0", true);
        for damaged in ["", "12 (bash", "12 (bash) S", "12 (bash) S 1 2 3"] {
            assert_eq!(Stat::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn we_see_ourselves() {
        let me = rustix::process::getpid();
        assert!(all().any(|pid| pid == me));
        assert!(Stat::of(me).is_some_and(|stat| !stat.is_dead && stat.started_ticks > 0));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(has_variable(me, &path) && !has_variable(me, &path[..path.len() - 1]));
        assert_eq!(boot_id().unwrap().len(), 36);
    }

    /// Bash tells of a child before the child has loaded its program. The low priority, which scripts have, makes it late.
    #[test]
    fn a_process_that_loads_its_program_is_waited_for() {
        let script = "for i in {1..30}; do sleep 300 & echo $!; done; wait";
        let mut bash = Command::new("nice");
        bash.args(["-n", "19", "bash", "-c", script]).env("MARK", "here").stdout(Stdio::piped()).process_group(0);
        let mut bash = bash.spawn().unwrap();
        let lines = BufReader::new(bash.stdout.take().unwrap()).lines().take(30);
        let pids = lines.map(|line| pid_of(&line.unwrap()).unwrap());
        let is_always_found = |pid| (0..100).all(|_| has_variable(pid, "MARK=here") && !has_variable(pid, "MARK=no"));
        let found: Vec<bool> = pids.map(is_always_found).collect();
        kill_process_group(Pid::from_child(&bash), Signal::KILL).unwrap();
        bash.wait().unwrap();
        assert_eq!(found, [true; 30]);
    }

    #[test]
    fn a_process_without_an_environment_has_no_variable() {
        let mut child = Command::new("sleep").arg("300").env_clear().spawn().unwrap();
        let found = has_variable(Pid::from_child(&child), "MARK=here");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!found);
        if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
            assert!(has_no_variables(Pid::from_raw(2).unwrap()), "a thread of the kernel");
        }
    }
}
