//! Programs of the installation that speak on their standard streams: tool servers and external agents.

mod contained;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest, unix::AsyncFd},
    process::{Child, Command},
    sync::watch,
};

use crate::BoxFuture;

pub use contained::InContainers;

/// The time between SIGTERM and SIGKILL for such a process.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of standard error that are kept, for error messages.
const STDERR_BYTES_MAX: usize = 4 * 1024;

/// The time to wait for the last lines of a process that broke its connection.
const ERROR_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program, as a path or a name in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition to the few that every server gets.
    pub env: BTreeMap<String, String>,
    /// The workspace of the execution.
    pub workspace: Option<PathBuf>,
    /// Its working directory.
    pub directory: Option<PathBuf>,
    /// True if the settings name the working directory.
    pub names_directory: bool,
    /// True if values of `env` are secrets.
    pub has_secrets: bool,
    /// The organization of the execution. `None` for the command line.
    pub organization: Option<String>,
}

/// The standard output of a process.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// The standard input of a process.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// The ends of a started process.
pub struct Started {
    /// Its standard output.
    pub output: Output,
    /// Its standard input.
    pub input: Input,
    /// Ends the process when it is dropped.
    pub process: Box<dyn RunningProcess>,
}

/// Starts processes of servers: as the user of this process, or in containers.
pub trait StartProcess: Send + Sync {
    /// Starts a process. The error is a sentence with the remedy.
    fn start<'a>(&'a self, spec: &'a ProcessSpec) -> BoxFuture<'a, Result<Started, String>>;
}

/// A running process of a server. Dropping it kills the process group at once.
pub trait RunningProcess: Send + Sync {
    /// Returns the end of the process's standard error, once it is closed or a moment has passed.
    fn error_output(&self) -> BoxFuture<'_, String>;

    /// Ends the process group: closed input, then SIGTERM, then SIGKILL.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Variables that a server inherits. Any other may be a secret of this process.
const INHERITED: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR"];

/// Starts servers as the user of this process, each in a process group of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncontained;

impl StartProcess for Uncontained {
    fn start<'a>(&'a self, spec: &'a ProcessSpec) -> BoxFuture<'a, Result<Started, String>> {
        Box::pin(std::future::ready(start(spec)))
    }
}

fn start(spec: &ProcessSpec) -> Result<Started, String> {
    let mut command = Command::new(&spec.command);
    command.args(&spec.args).env_clear();
    command
        .envs(std::env::vars_os().filter(|(name, _)| {
            name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"))
        }));
    command.envs(&spec.env);
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| not_started(spec, &error))?;
    let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("its standard streams are missing".into());
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let process = Box::new(Group { child, group, errors: ErrorOutput::keep(errors) });
    Ok(Started { output: Box::new(output), input: Box::new(input), process })
}

fn not_started(spec: &ProcessSpec, error: &io::Error) -> String {
    let directory = spec.directory.as_deref().filter(|directory| !directory.is_dir());
    match (error.kind(), directory) {
        (io::ErrorKind::NotFound, Some(directory)) => {
            format!("its working directory {} does not exist: correct `cwd`", directory.display())
        }
        (io::ErrorKind::NotFound, None) => {
            format!("the program `{}` is not in PATH: install it, or give its path as `command`", spec.command)
        }
        (io::ErrorKind::PermissionDenied, _) => format!("the program `{}` may not be executed: {error}", spec.command),
        _ => format!("`{}`: {error}", spec.command),
    }
}

/// The end of a process's standard error.
#[derive(Debug)]
struct ErrorOutput {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: watch::Receiver<bool>,
}

impl ErrorOutput {
    /// Reads standard error to its end and keeps the last bytes, so that a server that logs a lot neither blocks nor fills
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
                let excess = kept.len().saturating_sub(STDERR_BYTES_MAX);
                kept.drain(..excess);
            }
            ends.send_replace(true);
        });
        Self { kept, ended }
    }

    /// Returns the text, once standard error is closed or a moment has passed.
    async fn text(&self) -> String {
        let mut ended = self.ended.clone();
        let _ = tokio::time::timeout(ERROR_OUTPUT_TIMEOUT, ended.wait_for(|ended| *ended)).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

/// A process group of a server.
struct Group {
    child: Child,
    /// `None` once the leader was reaped, since another process may have its number then.
    group: Option<Pid>,
    errors: ErrorOutput,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails if all processes have ended, which is the goal.
            let _ = killpg(group, signal);
        }
    }

    /// Returns once the first process of the group has ended, without reaping it.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor may change; an OwnedFd's cannot"
    )]
    async fn leader_ended(&self) {
        let Some(leader) =
            self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        else {
            return;
        };
        let Ok(handle) = rustix::process::pidfd_open(leader, rustix::process::PidfdFlags::NONBLOCK) else { return };
        if let Ok(handle) = AsyncFd::with_interest(handle, Interest::READABLE) {
            let _ = handle.readable().await;
        }
    }
}

impl RunningProcess for Group {
    fn error_output(&self) -> BoxFuture<'_, String> {
        Box::pin(self.errors.text())
    }

    fn stop(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.signal(Signal::SIGTERM);
            let _ = tokio::time::timeout(STOP_TIMEOUT, self.leader_ended()).await;
            // The leader is not reaped before, so that its number still is that of the group.
            self.signal(Signal::SIGKILL);
            let _ = tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await;
            self.group = None;
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// Returns the working directory of a server: `cwd` inside of the workspace. The error is a sentence.
pub fn directory(workspace: Option<&Path>, cwd: Option<&str>) -> Result<Option<PathBuf>, String> {
    match (workspace, cwd) {
        (None, None) => Ok(None),
        (Some(workspace), None) => Ok(Some(workspace.to_owned())),
        (None, Some(cwd)) => Ok(Some(PathBuf::from(cwd))),
        (Some(workspace), Some(cwd)) => {
            let leaves = Path::new(cwd).components().any(|part| matches!(part, std::path::Component::ParentDir));
            match leaves {
                true => Err(format!("its `cwd` {cwd} leaves the workspace: remove `..`")),
                false => Ok(Some(workspace.join(cwd))),
            }
        }
    }
}
