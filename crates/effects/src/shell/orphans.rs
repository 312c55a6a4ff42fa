//! Orphans that left their script's group: nobody waits for them but us, to whom they come.
//!
//! | child of ours that has ended | whose it is |
//! |---|---|
//! | in our session | of whoever started it: the leader of a script, a program that some other part of this process runs |
//! | in another session | an orphan |
//!
//! What this process starts itself stays in its session: only the child could leave it, and the leader of a group (as
//! every script's is) is refused that. An orphan that made a group of its own and no session (`set -m`) cannot be told from
//! a child that somebody waits for, and stays a zombie until this process ends.

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

/// Reaps orphans as long as it is there.
#[derive(Debug)]
pub(super) struct Orphans(JoinHandle<()>);

impl Orphans {
    /// From now on, in this runtime. All processes of the machine have to be looked at, so that those that end one after
    /// the other are reaped together.
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
        // Ours to reap and of nobody else, so that its number has not passed to another process since it was looked at.
        let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
    }
}
