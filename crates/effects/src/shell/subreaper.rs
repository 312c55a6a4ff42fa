//! Reaps orphans that left the process group of their script and became children of this process.
//!
//! | child that has ended | owner |
//! |---|---|
//! | in the session of this process | the code that started it: a script's leader, or another program of this process |
//! | in another session | none: an orphan |
//!
//! Children that this process starts stay in its session: only the child itself could leave it, and the kernel forbids
//! that to the leader of a group, which every script's first process is. An orphan with its own group but no session
//! (`set -m`) cannot be distinguished from a child that other code waits for, and stays a zombie until this process
//! ends.

use std::io;

use rustix::process::{WaitOptions, getpid, waitpid};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
};

use super::{
    limits::ORPHANS_WAIT,
    process::{self, Stat},
};

/// Reaps orphans until it is dropped.
#[derive(Debug)]
pub(super) struct Orphans(JoinHandle<()>);

impl Orphans {
    /// Starts reaping in this runtime. A sweep reads all processes of the machine, so orphans that end in short
    /// succession are reaped together.
    pub(super) fn reap() -> io::Result<Self> {
        let mut ended = signal(SignalKind::child())?;
        Ok(Self(tokio::spawn(async move {
            while ended.recv().await.is_some() {
                tokio::time::sleep(ORPHANS_WAIT).await;
                sweep();
            }
        })))
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn sweep() {
    let us = getpid();
    let Some(ours) = Stat::of(us) else { return };
    let is_orphan = |stat: &Stat| stat.is_dead && stat.parent == us.as_raw_pid() && stat.session != ours.session;
    for orphan in process::all().filter(|pid| Stat::of(*pid).is_some_and(|stat| is_orphan(&stat))) {
        // An orphan can only be reaped here, so its number has not been reused since it was read.
        let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
    }
}
