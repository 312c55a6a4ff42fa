//! Starting a script behind a start barrier, and the script while it runs.

use std::{
    io::{self, PipeWriter, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::Pid;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::Sender,
    process::{Child, Command},
};

use super::{
    contain::{self, Container, Place, launcher::Launcher, priority, quota::Quota},
    group::Members,
    limits::{CONTAINER_START_MAX, KILLED_WAIT_MAX, READY_BYTES},
    note::{CONTAINER_VARIABLE, Mark, Note},
    output::Streams,
    process::{self, Watch},
    refusal::Refusal,
    script::Script,
};

/// Waits for a line before it becomes bash. If this process dies first, `read` reaches the end of the pipe and nothing
/// runs. Program and script are arguments and never part of this text; `--` allows a script that starts with a hyphen.
const GATE: &str = r#"read -r go && exec "$1" -lc -- "$2" </dev/null"#;

/// The shell of the start barrier: POSIX requires it at this path, and a small one starts in a fraction of bash's time.
const GATE_SHELL: &str = "/bin/sh";

/// A running script.
#[derive(Debug)]
pub(super) struct Running {
    /// All of its processes that have not left its group. The kernel does not reuse the number of a group before its
    /// leader is reaped, so it is safe to signal until [`reap`](Self::reap).
    pub(super) group: Members,
    /// Reports the end of bash itself, without reaping it.
    pub(super) leader: Watch,
    /// The output of the script.
    pub(super) streams: Streams,
    /// The quota of a contained script.
    pub(super) quota: Option<Quota>,
    child: Child,
}

impl Running {
    /// Starts a script in a container, after its group was recorded in `notes`. The container waits for its message: if
    /// this process dies before all of it was sent, nothing runs.
    pub(super) async fn start_contained(
        script: Script,
        (container, place): (&Arc<Container>, &Place),
        launcher: &Launcher,
        (mark, organization): (Mark, Option<&str>),
        notes: &Path,
    ) -> Result<Self, Refusal> {
        let Contained { mut child, opener, stdout, stderr } =
            Contained::spawn(container, place, launcher, &mark).await?;
        let leader = pid_of_child(&child)?;
        let bounds = (organization.map(ToOwned::to_owned), mark.text().to_owned());
        // The kernel needs some time to move a process to other control groups; the container is built in parallel.
        let quota = Quota::new(container.clone(), bounds, leader, place.workspace.clone());
        let made = async {
            Note::of(mark, leader)?.write(notes)?;
            Walled::of(container, Streams::new(stdout, stderr)?, leader).await
        };
        let walled = match tokio::join!(made, quota) {
            (Ok(walled), Ok(mut quota)) => quota.begin(walled.init, walled.helper).await.map(|()| (walled, quota)),
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal),
        };
        let begun = walled.and_then(|(walled, quota)| {
            let watch = Watch::open(leader)?;
            send(opener, script.into_order()?)?;
            Ok((walled, quota, watch))
        });
        match begun {
            Ok((Walled { init, streams, .. }, quota, watch)) => {
                let group = Members::Container { outer: leader, init };
                Ok(Self { group, leader: watch, streams, quota: Some(quota), child })
            }
            Err(refusal) => {
                Members::OfGroup(leader).end(Duration::ZERO).await;
                let _ = tokio::time::timeout(KILLED_WAIT_MAX, child.wait()).await;
                Err(refusal)
            }
        }
    }

    /// Starts a script, after its group was recorded in `notes`.
    pub(super) fn start(script: &Script, hidden_env: &[String], mark: Mark, notes: &Path) -> io::Result<Self> {
        let gate = Gate::spawn(script, hidden_env)?;
        let leader = gate.leader()?;
        // From here until the barrier opens, an error drops it, and it ends without having run anything.
        Note::of(mark, leader)?.write(notes)?;
        let running = Self {
            group: Members::OfGroup(leader),
            leader: Watch::open(leader)?,
            streams: Streams::new(gate.stdout, gate.stderr)?,
            child: gate.child,
            quota: None,
        };
        let mut opener = gate.opener;
        // Fails if the process was killed from elsewhere, which its exit status reports.
        let _ = opener.write_all(b"go\n");
        Ok(running)
    }

    /// Takes the exit status of a leader that has ended; `None` for one that hangs inside the kernel. The number of the
    /// group can be reused afterwards.
    pub(super) async fn reap(&mut self) -> io::Result<Option<ExitStatus>> {
        match tokio::time::timeout(KILLED_WAIT_MAX, self.child.wait()).await {
            Ok(status) => status.map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// A script behind its start barrier.
struct Gate {
    child: Child,
    opener: PipeWriter,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Gate {
    /// Starts the process. Dropping the command closes this process's copies of the child's pipe ends, so that the
    /// pipes can reach their end.
    fn spawn(script: &Script, hidden_env: &[String]) -> io::Result<Self> {
        let ((stdin, opener), (stdout, stdout_end), (stderr, stderr_end)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let mut command = Command::new(GATE_SHELL);
        command.args(["-c", GATE, "sh"]).arg(&script.bash).arg(&script.command);
        for name in hidden_env {
            command.env_remove(name);
        }
        command.envs(script.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &script.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout_end)).stderr(Stdio::from(stderr_end));
        let child = command.process_group(0).spawn()?;
        Ok(Self { child, opener, stdout: stdout.into(), stderr: stderr.into() })
    }

    fn leader(&self) -> io::Result<Pid> {
        pid_of_child(&self.child)
    }
}

fn pid_of_child(child: &Child) -> io::Result<Pid> {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    pid.ok_or_else(|| io::Error::other("a new child has no process id"))
}

/// A container that is set up and has not got its script yet.
struct Walled {
    /// The first process of the container.
    init: Pid,
    /// The process that becomes the script.
    helper: Pid,
    streams: Streams,
}

impl Walled {
    /// Waits for the helper's report, and compares the protections in force with those of the trial.
    async fn of(container: &Container, mut streams: Streams, leader: Pid) -> Result<Self, Refusal> {
        // Later children inherit it; those that exist already are set below.
        let _ = priority::end_first(leader);
        let ready = tokio::time::timeout(CONTAINER_START_MAX, streams.beginning::<READY_BYTES>()).await;
        let first_child = |parent: Pid| process::children(parent).into_iter().next();
        let (Ok(Ok(told)), Some(init)) = (ready, first_child(leader)) else {
            Members::OfGroup(leader).end(Duration::ZERO).await;
            return Err(Refusal::NotContained(streams.last_error()));
        };
        if contain::walls(&told) != Some(container.walls()) {
            let why = "its walls are not those that this node found at its start: start the node again";
            return Err(Refusal::NotContained(why.into()));
        }
        let helper = first_child(init).ok_or_else(|| Refusal::NotContained("its helper is gone".into()))?;
        for process in [leader, init, helper] {
            let why =
                |error| Refusal::NotContained(format!("it cannot be made the first to end without memory: {error}"));
            priority::end_first(process).map_err(why)?;
        }
        priority::run_session_last(init);
        Ok(Self { init, helper, streams })
    }
}

/// A container process that waits for its message.
struct Contained {
    child: Child,
    opener: PipeWriter,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Contained {
    async fn spawn(container: &Container, place: &Place, launcher: &Launcher, mark: &Mark) -> io::Result<Self> {
        let ((stdin, opener), (stdout, stdout_end), (stderr, stderr_end)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let mut command = Command::from(container.command(Some(place)));
        command.process_group(0);
        command.env(CONTAINER_VARIABLE, mark.text());
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout_end)).stderr(Stdio::from(stderr_end));
        let child = launcher.start(command).await?;
        Ok(Self { child, opener, stdout: stdout.into(), stderr: stderr.into() })
    }
}

/// Sends the message in the background, since it may be larger than a pipe holds.
fn send(opener: PipeWriter, order: Vec<u8>) -> io::Result<()> {
    let mut pipe = Sender::from_owned_fd(OwnedFd::from(opener))?;
    tokio::spawn(async move {
        // Fails if the container was killed from elsewhere, which its exit status reports.
        let _ = pipe.write_all(&order).await;
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for the end of the barrier's process, so that a script which should not run would have done so.
    async fn passes(is_opened: bool) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let command = "touch ran".to_owned();
        let script =
            Script { bash: "/bin/bash".into(), command, folder: Some(folder.path().into()), variables: Vec::new() };
        let mut gate = Gate::spawn(&script, &[]).unwrap();
        if is_opened {
            gate.opener.write_all(b"go\n").unwrap();
        }
        drop(gate.opener);
        let status = gate.child.wait().await.unwrap();
        assert_eq!(status.success(), is_opened);
        folder.path().join("ran").exists()
    }

    #[tokio::test]
    async fn a_gate_that_is_not_opened_runs_nothing() {
        assert!(passes(true).await);
        assert!(!passes(false).await);
    }
}
