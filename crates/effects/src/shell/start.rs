//! Starting a script behind a start barrier, and the script while it runs.

use std::{
    io::{self, PipeWriter, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use mainspring_kernel::effect::SESSION_VARIABLES;
use rustix::process::Pid;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::Sender,
    process::{Child, Command},
};

use super::{
    contain::{self, Container, Place, launcher::Launcher, priority, quota::Quota},
    error::ShellError,
    limits::{CONTAINER_START_MAX, KILLED_WAIT_MAX, READY_BYTES},
    output::Streams,
    process::{self, Watch},
    process_group::Members,
    process_record::{CONTAINER_VARIABLE, Mark, ProcessRecord},
    script::Script,
};

/// Waits for a line before it becomes bash. If this process dies first, `read` reaches the end of the pipe and nothing
/// runs. Program and script are arguments and never part of this text; `--` allows a script that starts with a hyphen.
const START_BARRIER: &str = r#"read -r go && exec "$1" -lc -- "$2" </dev/null"#;

/// The shell of the start barrier: POSIX requires it at this path, and a small one starts in a fraction of bash's time.
const START_BARRIER_SHELL: &str = "/bin/sh";

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
    /// Starts a script in a container, after its group was recorded in `records`. The container waits for its message: if
    /// this process dies before all of it was sent, nothing runs.
    pub(super) async fn start_contained(
        script: Script,
        (container, place): (&Arc<Container>, &Place),
        launcher: &Launcher,
        (mark, organization): (Mark, Option<&str>),
        records: &Path,
    ) -> Result<Self, ShellError> {
        let Contained { mut child, opener, stdout, stderr } =
            Contained::spawn((container, place), launcher, &mark, false).await?;
        let leader = pid_of_child(&child)?;
        let bounds = (organization.map(ToOwned::to_owned), mark.text().to_owned());
        // The kernel needs some time to move a process to other control groups; the container is built in parallel.
        let quota = Quota::new(container.clone(), bounds, leader, place.workspace.clone());
        let made = async {
            ProcessRecord::of(mark, leader)?.write(records)?;
            PreparedContainer::of(container, Streams::new(stdout, stderr)?, leader).await
        };
        let prepared = match tokio::join!(made, quota) {
            (Ok(prepared), Ok(mut quota)) => {
                quota.begin(prepared.init, prepared.helper).await.map(|()| (prepared, quota))
            }
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal),
        };
        let begun = prepared.and_then(|(prepared, quota)| {
            let watch = Watch::open(leader)?;
            send(opener, script.into_order()?)?;
            Ok((prepared, quota, watch))
        });
        match begun {
            Ok((PreparedContainer { init, streams, .. }, quota, watch)) => {
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

    /// Starts a script, after its group was recorded in `records`.
    pub(super) fn start(script: &Script, hidden_env: &[String], mark: Mark, records: &Path) -> io::Result<Self> {
        let barrier = StartBarrier::spawn(script, hidden_env)?;
        let leader = barrier.leader()?;
        // From here until the barrier opens, an error drops it, and it ends without having run anything.
        ProcessRecord::of(mark, leader)?.write(records)?;
        let running = Self {
            group: Members::OfGroup(leader),
            leader: Watch::open(leader)?,
            streams: Streams::new(barrier.stdout, barrier.stderr)?,
            child: barrier.child,
            quota: None,
        };
        let mut opener = barrier.opener;
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
struct StartBarrier {
    child: Child,
    opener: PipeWriter,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl StartBarrier {
    /// Starts the process. Dropping the command closes this process's copies of the child's pipe ends, so that the
    /// pipes can reach their end.
    fn spawn(script: &Script, hidden_env: &[String]) -> io::Result<Self> {
        let ((stdin, opener), (stdout, stdout_end), (stderr, stderr_end)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let mut command = Command::new(START_BARRIER_SHELL);
        command.args(["-c", START_BARRIER, "sh"]).arg(&script.bash).arg(&script.command);
        // Inside a step of another execution, this process has the variables of that session.
        for name in hidden_env.iter().map(String::as_str).chain(SESSION_VARIABLES) {
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

pub(super) fn pid_of_child(child: &Child) -> io::Result<Pid> {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    pid.ok_or_else(|| io::Error::other("a new child has no process id"))
}

/// A container that is set up and has not got its script yet.
pub(super) struct PreparedContainer {
    /// The first process of the container.
    pub(super) init: Pid,
    /// The process that becomes the script.
    pub(super) helper: Pid,
    pub(super) streams: Streams,
}

impl PreparedContainer {
    /// Waits for the helper's report, and compares the protections in force with those of the trial.
    pub(super) async fn of(container: &Container, mut streams: Streams, leader: Pid) -> Result<Self, ShellError> {
        // Later children inherit it; those that exist already are set below.
        let _ = priority::end_first(leader);
        let ready = tokio::time::timeout(CONTAINER_START_MAX, streams.beginning::<READY_BYTES>()).await;
        let first_child = |parent: Pid| process::children(parent).into_iter().next();
        let (Ok(Ok(told)), Some(init)) = (ready, first_child(leader)) else {
            Members::OfGroup(leader).end(Duration::ZERO).await;
            return Err(ShellError::NotContained(streams.last_error()));
        };
        if contain::protections(&told) != Some(container.protections()) {
            let why = "its protections are not those that this node found at its start: start the node again";
            return Err(ShellError::NotContained(why.into()));
        }
        let helper = first_child(init).ok_or_else(|| ShellError::NotContained("its helper is gone".into()))?;
        for process in [leader, init, helper] {
            let why =
                |error| ShellError::NotContained(format!("it cannot be made the first to end without memory: {error}"));
            priority::end_first(process).map_err(why)?;
        }
        priority::run_session_last(init);
        Ok(Self { init, helper, streams })
    }
}

/// A container process that waits for its message.
pub(super) struct Contained {
    pub(super) child: Child,
    pub(super) opener: PipeWriter,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Contained {
    /// Starts the container. `ends_with_handle` ends it once nothing waits for it.
    pub(super) async fn spawn(
        (container, place): (&Container, &Place),
        launcher: &Launcher,
        mark: &Mark,
        ends_with_handle: bool,
    ) -> io::Result<Self> {
        let ((stdin, opener), (stdout, stdout_end), (stderr, stderr_end)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let mut command = Command::from(container.command(Some(place)));
        command.process_group(0).kill_on_drop(ends_with_handle);
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
        let mut barrier = StartBarrier::spawn(&script, &[]).unwrap();
        if is_opened {
            barrier.opener.write_all(b"go\n").unwrap();
        }
        drop(barrier.opener);
        let status = barrier.child.wait().await.unwrap();
        assert_eq!(status.success(), is_opened);
        folder.path().join("ran").exists()
    }

    #[tokio::test]
    async fn a_closed_start_barrier_runs_nothing() {
        assert!(passes(true).await);
        assert!(!passes(false).await);
    }
}
