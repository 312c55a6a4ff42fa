//! Information on single processes from `/proc` and pidfds.

use std::{
    fs,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::{Interest, unix::AsyncFd};

use super::limits::{ENVIRONMENT_READ_BYTES, LOAD_LOOK_AGAIN, LOAD_LOOKS_MAX};

/// The fields of `/proc/PID/stat` that are used here (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Start time in clock ticks since boot; together with the process id it identifies a process within one boot.
    pub(super) started_ticks: u64,
    /// The parent's process id; 0 for one outside of this container.
    pub(super) parent: i32,
    /// The session id; 0 as for the group.
    pub(super) session: i32,
    /// The process group id; 0 for kernel threads and groups from outside of this container.
    pub(super) group: i32,
    /// The number of threads.
    pub(super) threads: u64,
    /// Processor time in clock ticks, including that of reaped children.
    pub(super) computed_ticks: u64,
    /// True if it has ended and its parent has not reaped it yet.
    pub(super) is_dead: bool,
}

impl Stat {
    /// Reads the fields of a process, or `None` if it does not exist.
    pub(super) fn of(pid: Pid) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
    }

    /// Parses the file. The name of the process is in parentheses, unquoted, and may contain spaces and parentheses, so
    /// the fields start after the last one. A leader whose other threads still run is shown as a zombie too, but is not
    /// dead.
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

/// Parses a process id from any text. `Pid::from_raw` treats a negative number as a bug of its caller.
pub(super) fn pid_of(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|number| *number > 0)?)
}

/// Lists all visible processes.
pub(super) fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| pid_of(entry.file_name().to_str()?))
}

/// Lists a process and its living descendants, and stops soon after `most` of them. The kernel lists the children of
/// each thread if it was built with `CONFIG_PROC_CHILDREN`, as those of distributions are; otherwise all processes are
/// read.
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

/// Lists the children of a process.
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

/// Returns the process group id; 0 for kernel threads and groups from outside of this container. It is called for all
/// processes of the machine whenever a script ends: it takes one system call, while a [`Stat`] takes three and parsing.
pub(super) fn group_of(pid: Pid) -> Option<i32> {
    let pid = nix::unistd::Pid::from_raw(pid.as_raw_pid());
    nix::unistd::getpgid(Some(pid)).ok().map(nix::unistd::Pid::as_raw)
}

/// Returns whether the environment with which a process was started has this `NAME=value`. Dead processes have none.
///
/// The kernel shows an empty environment while a process loads its program (execve(2)). Such a process is read again
/// until it shows one, at most [`LOAD_LOOKS_MAX`] times.
pub(super) fn has_variable(pid: Pid, assignment: &str) -> bool {
    let file = format!("/proc/{}/environ", pid.as_raw_pid());
    for _ in 0..LOAD_LOOKS_MAX {
        match environment(&file) {
            Ok(environ) if environ.is_empty() && !has_no_variables(pid) => std::thread::sleep(LOAD_LOOK_AGAIN),
            Ok(environ) => return environ.split(|byte| *byte == 0).any(|entry| entry == assignment.as_bytes()),
            Err(_) => return false,
        }
    }
    false
}

/// Reads the environment of a process by one call where it fits. A process that loads another program releases the
/// memory that the file was opened for: a second call would find its end there, and a part would be taken for the
/// whole.
fn environment(file: &str) -> io::Result<Vec<u8>> {
    let (mut file, mut environ, mut length) = (fs::File::open(file)?, vec![0; ENVIRONMENT_READ_BYTES], 0);
    loop {
        let room = environ.len() - length;
        let count = file.read(&mut environ[length..])?;
        length += count;
        if count < room {
            environ.truncate(length);
            return Ok(environ);
        }
        environ.resize(2 * length, 0);
    }
}

/// Returns whether a process has no variables and will not get any. It has no program, as kernel threads and dead
/// processes, or its program was started with an empty environment. While a program is loaded, the end of its
/// environment is 0.
fn has_no_variables(pid: Pid) -> bool {
    let number = pid.as_raw_pid();
    let has_program = fs::read_link(format!("/proc/{number}/exe")).is_ok();
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split_ascii_whitespace();
    let [start, end] = [fields.nth(47), fields.next()];
    !has_program || (start == end && end != Some("0"))
}

/// Returns the id of this boot of the machine.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// Returns the time of this boot in milliseconds since 1970 (proc(5), `btime`).
pub(super) fn booted_at_ms() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse::<u64>().ok()?.checked_mul(1000)
}

/// A handle of one process that stays valid when its number is reused.
#[derive(Debug)]
pub(super) struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Opens a handle of the process that has this number now.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor may change; an OwnedFd's cannot"
    )]
    pub(super) fn open(pid: Pid) -> io::Result<Self> {
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self(AsyncFd::with_interest(pidfd, Interest::READABLE)?))
    }

    /// Returns once the process has ended, without taking its exit status from its parent.
    pub(super) async fn ended(&self) {
        if self.0.readable().await.is_err() {
            std::future::pending::<()>().await; // The runtime is shutting down and drops this future.
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
    fn stat_is_parsed_with_any_process_name() {
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
    fn the_current_process_is_found() {
        let me = rustix::process::getpid();
        assert!(all().any(|pid| pid == me));
        assert!(Stat::of(me).is_some_and(|stat| !stat.is_dead && stat.started_ticks > 0));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(has_variable(me, &path) && !has_variable(me, &path[..path.len() - 1]));
        assert_eq!(boot_id().unwrap().len(), 36);
    }

    /// Bash reports a child before the child has loaded its program. The low priority, which scripts have, delays it.
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
