//! Starting a script behind a gate, and the script while it runs.

use std::{
    io::{self, PipeWriter, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
};

use rustix::process::Pid;
use tokio::process::{Child, Command};

use super::{
    group::Members,
    note::{Mark, Note},
    output::Streams,
    process::{Stat, Watch, boot_id},
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
    child: Child,
}

impl Running {
    /// Starts a script, after its group was written down in `notes`.
    pub(super) fn start(script: &Script, hidden_env: &[String], mark: Mark, notes: &Path) -> io::Result<Self> {
        let gate = Gate::spawn(script, hidden_env)?;
        let leader = gate.leader()?;
        // From here to the opening an error drops the gate, which then ends without having run anything.
        let started_ticks =
            Stat::of(leader).ok_or_else(|| io::Error::other("/proc does not show a child"))?.started_ticks;
        Note { mark, leader, started_ticks, boot: boot_id()? }.write(notes)?;
        let running = Self {
            group: Members::OfGroup(leader),
            leader: Watch::open(leader)?,
            streams: Streams::new(gate.stdout, gate.stderr)?,
            child: gate.child,
        };
        let mut opener = gate.opener;
        // Fails if the gate was killed from elsewhere, of which its exit status will tell.
        let _ = opener.write_all(b"go\n");
        Ok(running)
    }

    /// Takes the exit status of a leader that has ended. The group's number is free after that.
    pub(super) async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
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
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        pid.ok_or_else(|| io::Error::other("a new child has no process id"))
    }
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
