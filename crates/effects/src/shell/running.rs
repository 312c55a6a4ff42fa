//! Starting a script behind a gate, and the script while it runs.

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

/// Waits for a line before it becomes bash. If we die before we send it, `read` meets the end of the pipe and nothing
/// runs. Program and script are arguments and never part of this text; `--` lets a script begin with a hyphen.
const GATE: &str = r#"read -r go && exec "$1" -lc -- "$2" </dev/null"#;

/// The shell of the gate: POSIX has it here, and a small one starts in a fraction of bash's time.
const GATE_SHELL: &str = "/bin/sh";

/// A script that runs.
#[derive(Debug)]
pub(super) struct Running {
    /// All of its processes that have not left its group. Ours alone until [`reap`](Self::reap): the number of a group
    /// is not given out again while its leader is not reaped.
    pub(super) group: Members,
    /// Tells when bash itself has ended, and leaves it unreaped.
    pub(super) leader: Watch,
    /// What it prints.
    pub(super) streams: Streams,
    /// What watches a contained script.
    pub(super) quota: Option<Quota>,
    child: Child,
}

impl Running {
    /// Starts a script in a container, after its group was written down in `notes`. The container waits for its order: if
    /// we die before we have sent all of it, nothing runs.
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
        // The kernel takes its time for moving a process: meanwhile the container is made.
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

    /// Starts a script, after its group was written down in `notes`.
    pub(super) fn start(script: &Script, hidden_env: &[String], mark: Mark, notes: &Path) -> io::Result<Self> {
        let gate = Gate::spawn(script, hidden_env)?;
        let leader = gate.leader()?;
        // From here to the opening an error drops the gate, which then ends without having run anything.
        Note::of(mark, leader)?.write(notes)?;
        let running = Self {
            group: Members::OfGroup(leader),
            leader: Watch::open(leader)?,
            streams: Streams::new(gate.stdout, gate.stderr)?,
            child: gate.child,
            quota: None,
        };
        let mut opener = gate.opener;
        // Fails if the gate was killed from elsewhere, of which its exit status will tell.
        let _ = opener.write_all(b"go\n");
        Ok(running)
    }

    /// Takes the exit status of a leader that has ended; nothing of one that hangs inside the kernel. The group's number is
    /// free after that.
    pub(super) async fn reap(&mut self) -> io::Result<Option<ExitStatus>> {
        match tokio::time::timeout(KILLED_WAIT_MAX, self.child.wait()).await {
            Ok(status) => status.map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// A script that waits to be let through.
struct Gate {
    child: Child,
    opener: PipeWriter,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Gate {
    /// Our copies of the ends that the child uses are dropped with the command, without which no pipe would ever end.
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

/// A container that stands, before its script is let in.
struct Walled {
    /// The first process of the container.
    init: Pid,
    /// The one that becomes the script.
    helper: Pid,
    streams: Streams,
}

impl Walled {
    /// Waits for the helper's word, and compares the walls with those of the trial.
    async fn of(container: &Container, mut streams: Streams, leader: Pid) -> Result<Self, Refusal> {
        // What it starts later takes that over; what it has started already is told below.
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

/// A container that waits for its order.
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

/// Sends an order, which may be larger than a pipe holds, while the script's streams are read already.
fn send(opener: PipeWriter, order: Vec<u8>) -> io::Result<()> {
    let mut pipe = Sender::from_owned_fd(OwnedFd::from(opener))?;
    tokio::spawn(async move {
        // Fails if the container was killed from elsewhere, of which its exit status will tell.
        let _ = pipe.write_all(&order).await;
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for the end of a gate, so that what it should not have run would have run by then.
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
