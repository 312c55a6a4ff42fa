//! Processes that belong together, and how they are ended: SIGTERM, a time of grace, SIGKILL.

use std::time::Duration;

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process_group, pidfd_send_signal, test_kill_process, waitpid},
};

use super::{
    limits::LOOK_AGAIN,
    process::{self, Stat, Watch},
};

/// Processes that are ended together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    /// Those of a process group. Whoever makes this value knows that the group is ours, and that its number stays so:
    /// the kernel gives it to nobody else while the leader is not reaped or a member lives.
    OfGroup(Pid),
    /// Those that were started with this `NAME=value` in their environment, whatever their group.
    With(String),
}

impl Members {
    /// Ends the members and returns once none is left. What ignores both signals because it hangs inside the kernel is
    /// waited for: a receipt that says it had ended would be a lie.
    pub(super) async fn end(&self, grace: Duration) {
        if self.sweep().is_empty() {
            return;
        }
        self.signal(Signal::TERM);
        // A stopped process takes SIGTERM only when it goes on.
        self.signal(Signal::CONT);
        if tokio::time::timeout(grace, self.gone()).await.is_ok() {
            return;
        }
        while !self.sweep().is_empty() {
            // Again in every round: what was forked while single processes were signalled is met in the next one.
            self.signal(Signal::KILL);
            self.changed().await;
        }
    }

    /// Reaps those of the dead that came to us as orphans, and lists the living. The leader is not ours to reap.
    pub(super) fn sweep(&self) -> Vec<Pid> {
        let (dead, living): (Vec<Pid>, Vec<Pid>) =
            process::all().filter(|pid| self.contains(*pid)).partition(|pid| Stat::of(*pid).is_none_or(|s| s.is_dead));
        for orphan in dead.into_iter().filter(|pid| *self != Self::OfGroup(*pid)) {
            // Fails for those that have a living parent elsewhere, whose business they are.
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
        living
    }

    /// Whether a process is a member that we can end: one that belongs to another user is out of our reach.
    fn contains(&self, pid: Pid) -> bool {
        let is_member = match self {
            Self::OfGroup(group) => process::group_of(pid) == Some(group.as_raw_pid()),
            Self::With(assignment) => pid != getpid() && process::has_variable(pid, assignment),
        };
        is_member && test_kill_process(pid) != Err(Errno::PERM)
    }

    /// A group is signalled as a whole, so that none of its members can fork away meanwhile.
    fn signal(&self, signal: Signal) {
        match self {
            Self::OfGroup(group) => {
                let _ = kill_process_group(*group, signal); // Fails if all have ended, which is what is wanted.
            }
            Self::With(_) => {
                process::all().filter(|pid| self.contains(*pid)).for_each(|pid| self.signal_one(pid, signal))
            }
        }
    }

    /// By a handle and not by number, looked at once more: between two calls a number may pass to a stranger.
    fn signal_one(&self, pid: Pid, signal: Signal) {
        if let Ok(watch) = Watch::open(pid)
            && self.contains(pid)
        {
            let _ = pidfd_send_signal(watch, signal); // Fails if it has ended, which is what is wanted.
        }
    }

    async fn gone(&self) {
        while !self.sweep().is_empty() {
            self.changed().await;
        }
    }

    /// Returns when one of the members that live now has ended.
    async fn changed(&self) {
        let Some(member) = self.sweep().into_iter().next() else { return };
        match Watch::open(member) {
            Ok(watch) if self.contains(member) => watch.ended().await,
            Ok(_) => {}
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::CommandExt, process::Command};

    #[tokio::test]
    async fn a_zombie_is_not_alive_and_a_stopped_process_can_be_ended() {
        let mut child =
            Command::new("sh").args(["-c", "kill -STOP $$; exec sleep 300"]).process_group(0).spawn().unwrap();
        let leader = Pid::from_child(&child);
        let group = Members::OfGroup(leader);
        assert_eq!(group.sweep(), [leader]);
        // A grace that no test survives: SIGTERM alone has to do.
        group.end(Duration::from_secs(3600)).await;
        assert!(Stat::of(leader).unwrap().is_dead, "it is left to its parent to reap");
        assert!(group.sweep().is_empty());
        assert!(!child.wait().unwrap().success());
    }

    #[tokio::test]
    async fn a_mark_is_followed_across_groups_and_strangers_live() {
        let spawn =
            |mark: &str| Command::new("sleep").arg("300").env("GROUP_TEST", mark).process_group(0).spawn().unwrap();
        let (mut a, mut b, mut stranger) = (spawn("x1"), spawn("x1"), spawn("x11"));
        let marked = Members::With("GROUP_TEST=x1".into());
        // Spawning returns when the program is being executed, which is a moment before its environment can be read.
        while marked.sweep().len() < 2 {
            std::thread::yield_now();
        }
        marked.end(Duration::from_secs(3600)).await;
        assert!(!a.wait().unwrap().success() && !b.wait().unwrap().success());
        assert!(stranger.try_wait().unwrap().is_none(), "another mark is another attempt");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
