//! Programs in containers that speak on their standard streams and belong to no attempt, such as tool servers.
//!
//! A container is that of a script: the same protections, the same bounds. It ends with its handle and with this process,
//! so no record is needed to find it again.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mainspring_kernel::failure::Failure;
use rustix::process::getpid;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::{Receiver, Sender},
    process::Child,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    contain::{self, Container, Place, launcher::Launcher, order::Order, quota::Quota},
    environment,
    error::ShellError,
    limits::{CONTAINER_START_MAX, KILLED_WAIT_MAX},
    output::Streams,
    process::{Stat, Watch},
    process_group::Members,
    process_record::Mark,
    script,
    start::{Contained, PreparedContainer, pid_of_child},
};

/// Starts programs in containers.
#[derive(Debug)]
pub struct Programs {
    container: Arc<Container>,
    /// Started with the first program. Containers end with it.
    launcher: OnceLock<Option<Launcher>>,
    started: AtomicU64,
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// A path, or a name in the `PATH` of contained scripts.
    pub program: String,
    /// One text for each, after the program's name.
    pub arguments: Vec<String>,
    /// Variables in addition to those of every contained script.
    pub variables: Vec<(String, String)>,
    /// The only folder of the host that it may write to.
    pub workspace: PathBuf,
    /// Its working directory, in the workspace. `None` for an empty folder of its own.
    pub folder: Option<PathBuf>,
    /// The organization whose bounds it counts towards.
    pub organization: Option<String>,
}

/// A program that was started.
#[derive(Debug)]
pub struct StartedProgram {
    /// Its standard input.
    pub input: Sender,
    /// Its standard output.
    pub output: Receiver,
    /// Its standard error.
    pub errors: Receiver,
    /// Ends the program when it is dropped.
    pub running: RunningProgram,
}

/// A running program with its container.
#[derive(Debug)]
pub struct RunningProgram {
    ends: Option<oneshot::Sender<Duration>>,
    excess: watch::Receiver<Option<String>>,
    kept: Option<JoinHandle<()>>,
}

impl Programs {
    /// Makes a starter of programs.
    pub fn new(container: Arc<Container>) -> Self {
        Self { container, launcher: OnceLock::new(), started: AtomicU64::new(0) }
    }

    /// Starts a program. The error is a sentence.
    pub async fn start(&self, program: Program) -> Result<StartedProgram, String> {
        self.run(program).await.map_err(|refusal| Failure::from(refusal).message)
    }

    async fn run(&self, program: Program) -> Result<StartedProgram, ShellError> {
        let Program { program, arguments, variables: own, workspace, folder, organization } = program;
        let place = match folder {
            None => Place { folder: contain::HOME.into(), ..self.container.place(&workspace, &workspace)? },
            // The folder is in a workspace that scripts may have written, so its error says nothing about the host.
            Some(folder) => match (workspace.canonicalize(), folder.canonicalize()) {
                (Ok(_), Err(_)) => return Err(ShellError::CwdOutside(folder)),
                _ => self.container.place(&workspace, &folder)?,
            },
        };
        let shows = |folder: &std::path::Path| self.container.shows(folder);
        let mut variables = environment::contained(std::env::vars_os(), contain::HOME, shows);
        variables.extend(own);
        let order = script::encoded(&Order { program, arguments, variables, keeps_input: true })?;
        let launcher = self.launcher.get_or_init(|| Launcher::new().ok()).as_ref();
        let launcher = launcher.ok_or_else(|| ShellError::NotContained("no thread can be started".into()))?;
        let started_ticks = Stat::of(getpid()).map_or(0, |stat| stat.started_ticks);
        let mark = Mark::of_program((getpid(), started_ticks), self.started.fetch_add(1, Ordering::Relaxed));
        let spawned = Contained::spawn((&self.container, &place), launcher, &mark, true).await?;
        let bounds = (organization, mark.text().to_owned());
        start(&self.container, spawned, (bounds, &place), order).await
    }
}

/// Sets up the container, then sends it the program to run. A container that is not set up ends without having run
/// anything.
async fn start(
    container: &Arc<Container>,
    spawned: Contained,
    (bounds, place): ((Option<String>, String), &Place),
    order: Vec<u8>,
) -> Result<StartedProgram, ShellError> {
    let Contained { mut child, opener, stdout, stderr } = spawned;
    let leader = pid_of_child(&child)?;
    let quota = Quota::new(container.clone(), bounds, leader, place.workspace.clone());
    let made = async { PreparedContainer::of(container, Streams::new(stdout, stderr)?, leader).await };
    let prepared = match tokio::join!(made, quota) {
        (Ok(prepared), Ok(mut quota)) => quota.begin(prepared.init, prepared.helper).await.map(|()| (prepared, quota)),
        (Err(refusal), _) | (_, Err(refusal)) => Err(refusal),
    };
    let told = async {
        let (prepared, quota) = prepared?;
        let leader_watch = Watch::open(leader)?;
        let mut input = Sender::from_owned_fd(opener.into())?;
        let sent = timeout(CONTAINER_START_MAX, input.write_all(&order)).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok((prepared, quota, leader_watch, input))
    };
    match told.await {
        Ok((PreparedContainer { init, streams, .. }, quota, leader_watch, input)) => {
            let (output, errors) = streams.into_pipes();
            let ((ends, asked), (exceeds, excess)) = (oneshot::channel(), watch::channel(None));
            let group = Members::Container { outer: leader, init };
            let kept = tokio::spawn(keep((child, group, leader_watch), quota, asked, exceeds));
            let running = RunningProgram { ends: Some(ends), excess, kept: Some(kept) };
            Ok(StartedProgram { input, output, errors, running })
        }
        Err(refusal) => {
            Members::OfGroup(leader).end(Duration::ZERO).await;
            let _ = timeout(KILLED_WAIT_MAX, child.wait()).await;
            Err(refusal)
        }
    }
}

/// Watches a program until it ends, exceeds a bound or is to be ended, and ends what is left of it.
async fn keep(
    (mut child, group, leader): (Child, Members, Watch),
    quota: Quota,
    asked: oneshot::Receiver<Duration>,
    exceeds: watch::Sender<Option<String>>,
) {
    let grace = tokio::select! {
        biased;
        () = leader.ended() => Duration::ZERO,
        grace = asked => grace.unwrap_or(Duration::ZERO),
        why = quota.exceeded() => {
            exceeds.send_replace(Some(why));
            Duration::ZERO
        }
    };
    group.end(grace).await;
    let _ = timeout(KILLED_WAIT_MAX, child.wait()).await;
    // The workspace must fit its quota after every kind of end.
    if let Some(why) = quota.settle().await {
        exceeds.send_replace(Some(why));
    }
}

impl RunningProgram {
    /// Returns the bound that the program has exceeded, as a sentence.
    pub fn excess(&self) -> Option<String> {
        self.excess.borrow().clone()
    }

    /// Ends the program: SIGTERM, the grace period, SIGKILL.
    pub async fn end(self, grace: Duration) {
        self.finish(grace).await;
    }

    /// Like [`end`](Self::end). Returns the bound that the program has exceeded, files that it has left included.
    pub async fn finish(mut self, grace: Duration) -> Option<String> {
        if let Some(ends) = self.ends.take() {
            // It may have ended by itself.
            let _ = ends.send(grace);
        }
        if let Some(kept) = self.kept.take() {
            let _ = kept.await;
        }
        self.excess()
    }
}
