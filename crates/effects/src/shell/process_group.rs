//! Sets of related processes, and how they are ended: SIGTERM, a grace period, SIGKILL.

use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, pidfd_send_signal, waitpid};
use tokio::{task::JoinError, time::timeout};

use super::{
    limits::{KILLED_WAIT_MAX, LOOK_AGAIN},
    process::{self, Stat, Watch},
};

/// Processes that are ended together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    /// The members of a process group. The code that makes this value knows that the group belongs to a script, and
    /// that its number stays valid: the kernel does not reuse it before the leader is reaped and the last member has
    /// ended.
    OfGroup(Pid),
    /// The processes that were started with this `NAME=value` in their environment, in any group.
    With(String),
    /// A container: bubblewrap outside, and the first process inside, at whose end the kernel ends all others in there.
    Container {
        /// A child of this process; its number is not reused before it is reaped.
        outer: Pid,
        /// The leader of the session and of the group inside.
        init: Pid,
    },
}

/// The result of ending processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// None is left.
    All,
    /// Some hang inside the kernel, or belong to another user. A receipt must not claim that they have ended.
    StillRunning,
}

/// The operations that [`end`] needs.
trait Ending {
    /// Lists the living members.
    async fn living(&self) -> Vec<Pid>;
    async fn signal(&self, signal: Signal);
    /// Returns when one of the living members has ended.
    async fn changed(&self);
}

/// Ends members. Returns once none is left, or when the remaining ones have ignored SIGKILL for [`KILLED_WAIT_MAX`].
async fn end(members: &impl Ending, grace: Duration) -> Ended {
    if members.living().await.is_empty() {
        return Ended::All;
    }
    let gone = async |signal: Option<Signal>| {
        while !members.living().await.is_empty() {
            // Repeated in every round, to reach children forked while single processes were signaled.
            if let Some(signal) = signal {
                members.signal(signal).await;
            }
            members.changed().await;
        }
    };
    members.signal(Signal::TERM).await;
    // A stopped process handles SIGTERM only after it was continued.
    members.signal(Signal::CONT).await;
    if timeout(grace, gone(None)).await.is_ok() {
        return Ended::All;
    }
    match timeout(KILLED_WAIT_MAX, gone(Some(Signal::KILL))).await {
        Ok(()) => Ended::All,
        Err(_) => Ended::StillRunning,
    }
}

impl Members {
    /// Ends the members: SIGTERM, the grace period, SIGKILL.
    pub(super) async fn end(&self, grace: Duration) -> Ended {
        end(self, grace).await
    }

    /// Reaps dead members that became children of this process as orphans, and lists the living ones. The leader is
    /// left to its own parent.
    pub(super) fn sweep(&self) -> Vec<Pid> {
        let candidates: Box<dyn Iterator<Item = Pid>> = match self {
            Self::Container { outer, init } => Box::new([*outer, *init].into_iter()),
            _ => Box::new(process::all()),
        };
        let (dead, living): (Vec<Pid>, Vec<Pid>) =
            candidates.filter(|pid| self.contains(*pid)).partition(|pid| Stat::of(*pid).is_none_or(|s| s.is_dead));
        let is_leader = |pid: &Pid| match self {
            Self::OfGroup(leader) | Self::Container { outer: leader, .. } => pid == leader,
            Self::With(_) => false,
        };
        for orphan in dead.into_iter().filter(|pid| !is_leader(pid)) {
            // Fails for members with a living parent elsewhere, which reaps them.
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
        living
    }

    /// Returns whether a process is a member, including one that runs as another user (set-uid programs) and cannot be
    /// signaled.
    fn contains(&self, pid: Pid) -> bool {
        match self {
            Self::OfGroup(group) => process::group_of(pid) == Some(group.as_raw_pid()),
            Self::Container { outer, init } => {
                pid == *outer || (pid == *init && process::group_of(pid) == Some(init.as_raw_pid()))
            }
            Self::With(assignment) => pid != getpid() && process::has_variable(pid, assignment),
        }
    }

    /// Runs work on members. The search for an environment waits for each process that loads its program, and runs on a
    /// blocking thread.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> T {
        match self {
            Self::OfGroup(_) | Self::Container { .. } => work(self),
            Self::With(_) => {
                let own = self.clone();
                blocking(move || work(&own)).await
            }
        }
    }

    /// Signals a group as a whole, so that no member can escape by forking in between.
    fn signal_now(&self, signal: Signal) {
        match self {
            Self::OfGroup(group) => {
                let _ = kill_process_group(*group, signal); // Fails if all have ended, which is the goal.
            }
            Self::Container { outer, init } => self.signal_container(*outer, *init, signal),
            Self::With(_) => {
                process::all().filter(|pid| self.contains(*pid)).for_each(|pid| self.signal_one(pid, signal))
            }
        }
    }

    /// Checks the leader once more before it signals the group, since its number may have been reused by a foreign
    /// group.
    fn signal_container(&self, outer: Pid, init: Pid, signal: Signal) {
        if signal == Signal::KILL {
            self.signal_one(init, signal);
            self.signal_one(outer, signal);
        } else if Stat::of(init).is_some_and(|stat| stat.parent == outer.as_raw_pid()) {
            // The first process of a container ignores signals for which it has no handler.
            let _ = kill_process_group(init, signal);
        }
    }

    /// Signals through a handle after another check of membership, since the number may be reused between two calls.
    fn signal_one(&self, pid: Pid, signal: Signal) {
        if let Ok(watch) = Watch::open(pid)
            && self.contains(pid)
        {
            let _ = pidfd_send_signal(watch, signal); // Fails if it has ended, which is the goal.
        }
    }
}

impl Ending for Members {
    async fn living(&self) -> Vec<Pid> {
        self.aside(Self::sweep).await
    }

    async fn signal(&self, signal: Signal) {
        self.aside(move |members| members.signal_now(signal)).await;
    }

    async fn changed(&self) {
        let Some(member) = self.living().await.into_iter().next() else { return };
        match Watch::open(member) {
            Ok(watch) if self.aside(move |members| members.contains(member)).await => watch.ended().await,
            Ok(_) => {}
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// Runs blocking work on a thread for it.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is shutting down and drops this future.
        Err(Err(_)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, os::unix::process::CommandExt, process::Command};

    /// A process that ignores every signal until a given time.
    struct Stuck {
        until: tokio::time::Instant,
        signals: Cell<Option<Signal>>,
    }

    impl Ending for Stuck {
        async fn living(&self) -> Vec<Pid> {
            if tokio::time::Instant::now() < self.until { vec![getpid()] } else { Vec::new() }
        }

        async fn signal(&self, signal: Signal) {
            self.signals.set(Some(signal));
        }

        async fn changed(&self) {
            tokio::time::interval_at(self.until, KILLED_WAIT_MAX).tick().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn members_that_ignore_sigkill_are_waited_for_with_a_bound() {
        let grace = Duration::from_secs(10);
        let stuck = |seconds| {
            let until = tokio::time::Instant::now() + grace + KILLED_WAIT_MAX + Duration::from_secs(seconds);
            Stuck { until, signals: Cell::default() }
        };
        let (forever, just) = (stuck(3600), stuck(0));
        let began = tokio::time::Instant::now();
        assert_eq!(end(&forever, grace).await, Ended::StillRunning);
        assert_eq!(began.elapsed(), grace + KILLED_WAIT_MAX);
        assert_eq!(forever.signals.get(), Some(Signal::KILL));
        assert_eq!(end(&just, grace).await, Ended::All);
    }

    /// A member that runs as another user is awaited, and does not count as ended.
    #[test]
    fn set_uid_members_are_members() {
        if !rustix::process::getuid().is_root() {
            return; // An ordinary user cannot make such a process without a set-uid program.
        }
        let mut child = Command::new("sleep").arg("300").process_group(0).uid(65_534).spawn().unwrap();
        let group = Members::OfGroup(Pid::from_child(&child));
        assert_eq!(group.sweep().len(), 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_zombie_is_not_alive_and_a_stopped_process_can_be_ended() {
        let mut child =
            Command::new("sh").args(["-c", "kill -STOP $$; exec sleep 300"]).process_group(0).spawn().unwrap();
        let leader = Pid::from_child(&child);
        let group = Members::OfGroup(leader);
        assert_eq!(group.sweep(), [leader]);
        // With this grace period, only SIGTERM can end it before the test times out.
        group.end(Duration::from_secs(3600)).await;
        assert!(Stat::of(leader).unwrap().is_dead, "it is left to its parent to reap");
        assert!(group.sweep().is_empty());
        assert!(!child.wait().unwrap().success());
    }

    #[tokio::test]
    async fn marked_processes_of_other_groups_are_killed_and_no_others() {
        let spawn =
            |mark: &str| Command::new("sleep").arg("300").env("GROUP_TEST", mark).process_group(0).spawn().unwrap();
        let (mut a, mut b, mut unrelated) = (spawn("x1"), spawn("x1"), spawn("x11"));
        let marked = Members::With("GROUP_TEST=x1".into());
        // Spawning returns when the program is being executed, a moment before its environment can be read.
        while marked.sweep().len() < 2 {
            std::thread::yield_now();
        }
        marked.end(Duration::from_secs(3600)).await;
        assert!(!a.wait().unwrap().success() && !b.wait().unwrap().success());
        assert!(unrelated.try_wait().unwrap().is_none(), "another mark is another attempt");
        unrelated.kill().unwrap();
        unrelated.wait().unwrap();
    }

    #[tokio::test]
    async fn the_search_for_a_mark_yields_to_other_tasks() {
        let order = std::cell::RefCell::new(Vec::new());
        let marked = Members::With("GROUP_TEST=nobody".into());
        let search = async {
            assert!(marked.living().await.is_empty());
            order.borrow_mut().push("search");
        };
        tokio::join!(search, async { order.borrow_mut().push("other") });
        assert_eq!(order.into_inner(), ["other", "search"]);
    }
}
