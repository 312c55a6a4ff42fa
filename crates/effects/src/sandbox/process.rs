//! The process of the command that makes a sandbox.

use std::{
    io,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

use super::{
    limits::{CLEANUP_MAX, ERROR_OUTPUT_BYTES_MAX, ERROR_OUTPUT_MAX, SHOWN_CHARS_MAX},
    profile::Profile,
};
use crate::shell::Shell;

/// The reason why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartError {
    /// Another try would fail for the same reason.
    Refused(String),
    /// Another try may succeed.
    Failed(String),
}

/// Variables that a command inherits. Any other may be a secret of this process.
const INHERITED: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR"];

/// A running command, in a process group of its own. Dropping it kills the group at once.
pub(super) struct Process {
    child: Child,
    leader: Pid,
    errors: ErrorOutput,
    cleanup: Vec<String>,
    is_ended: bool,
}

/// The end of a command's standard error.
struct ErrorOutput {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: watch::Receiver<bool>,
}

impl Process {
    /// Starts the command of a sandbox profile. Nothing of an attempt is in its arguments or its environment.
    pub(super) fn spawn(
        profile: &Profile,
        sandbox: &str,
        workspace: &str,
    ) -> Result<(Self, ChildStdin, ChildStdout), StartError> {
        let fill = |text: &String| Profile::filled(text, sandbox, workspace);
        let mut command = clean(&profile.command, profile);
        command.args(profile.args.iter().map(fill));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| not_spawned(&profile.command, &error))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let ((Some(input), Some(output), Some(errors)), Some(leader)) = (streams, leader) else {
            return Err(StartError::Failed("the command has no standard streams".into()));
        };
        let cleanup = profile.cleanup.iter().map(fill).collect();
        let process = Self { child, leader, errors: ErrorOutput::keep(errors), cleanup, is_ended: false };
        Ok((process, input, output))
    }

    /// The leader of its process group.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// The last line of its standard error, as a part of a sentence; empty without one. Waits a moment for its end.
    pub(super) async fn last_error(&self) -> String {
        let mut ended = self.errors.ended.clone();
        let _ = timeout(ERROR_OUTPUT_MAX, ended.wait_for(|ended| *ended)).await;
        let kept = self.errors.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        match text.lines().map(shown).rfind(|line| !line.is_empty()) {
            Some(line) => format!("; it wrote `{line}` to its standard error"),
            None => String::new(),
        }
    }

    /// Ends the process group: SIGTERM, the grace period, SIGKILL. Then the cleanup command of the sandbox profile runs.
    pub(super) async fn end(mut self, profile: &Profile, grace: Duration) {
        Shell::end_group(self.leader, grace).await;
        // The number of the group is reused only after its leader is reaped.
        self.is_ended = true;
        let _ = timeout(CLEANUP_MAX, self.child.wait()).await;
        let Some((program, arguments)) = self.cleanup.split_first() else { return };
        let mut command = clean(program, profile);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Ok(mut child) = command.spawn() {
            let _ = timeout(CLEANUP_MAX, child.wait()).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_ended {
            // Fails if all processes have ended, which is the goal.
            let _ = kill_process_group(self.leader, Signal::KILL);
        }
    }
}

/// A command with the environment of a sandbox profile.
fn clean(program: &str, profile: &Profile) -> Command {
    let mut command = Command::new(program);
    let is_inherited = |name: &str| INHERITED.contains(&name) || name.starts_with("LC_");
    let inherited = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited));
    command.env_clear().envs(inherited).envs(&profile.env);
    command.current_dir("/").process_group(0).kill_on_drop(true);
    command
}

fn not_spawned(program: &str, error: &io::Error) -> StartError {
    match error.kind() {
        io::ErrorKind::NotFound => StartError::Refused(format!("the program `{program}` is not in PATH")),
        io::ErrorKind::PermissionDenied => StartError::Refused(format!("the program `{program}` may not be executed")),
        _ => StartError::Failed(format!("`{program}`: {error}")),
    }
}

/// A line of a command in a message: without control characters, shortened.
pub(super) fn shown(line: &str) -> String {
    line.trim().chars().filter(|character| !character.is_control()).take(SHOWN_CHARS_MAX).collect()
}

impl ErrorOutput {
    /// Reads standard error to its end and keeps the last bytes, so that a command that logs a lot neither blocks nor fills
    /// the memory.
    fn keep(mut errors: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (ends, ended) = watch::channel(false);
        let keeps = kept.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut buffer).await {
                let mut kept = keeps.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
                let excess = kept.len().saturating_sub(ERROR_OUTPUT_BYTES_MAX);
                kept.drain(..excess);
            }
            ends.send_replace(true);
        });
        Self { kept, ended }
    }
}
