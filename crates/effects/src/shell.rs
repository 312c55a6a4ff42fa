//! The executor of `bash` steps: scripts in process groups that are written down before they start.
//!
//! A script is started behind a gate, in a group of its own. The group is noted in a file, then the gate is opened, so
//! that a later process finds and ends whatever we leave behind. An attempt is over when bash itself has ended; what it
//! left in the background is ended before the outcome is told, so that no group outlives its receipt. Processes that
//! make a group of their own (`setsid`, `set -m`) are daemons by their author's will and are not followed; those that made
//! a session of their own are reaped when they end.
//!
//! Linux 5.3 or later, with `/proc`: process handles (pidfds) tell of the end of processes without reaping them.

mod adopt;
pub mod contain;
mod environment;
mod group;
mod limits;
mod note;
mod orphans;
mod output;
mod process;
mod refusal;
mod report;
mod running;
mod script;

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    sync::{Once, OnceLock},
    time::{Duration, Instant},
};

use mainspring_kernel::effect::{Attempt, Outcome};

use crate::{Adopted, AttemptName, Executor, Stop, Work};
use contain::{Scripts, launcher::Launcher, quota::Quota};
use group::Ended;
use note::{Mark, Note};
use orphans::Orphans;
use refusal::Refusal;
use report::Report;
use running::Running;
use script::Script;

pub use adopt::end_leftovers;
pub use limits::{GRACE_DEFAULT, STREAM_BYTES_MAX};

/// How a [`Shell`] works.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// The folder in which running groups are written down; made when it is first needed. Of one node only, and kept over
    /// restarts of the process.
    pub notes: PathBuf,
    /// Whether this process runs in the same boot of the machine as the one before it. Without that, a missing note says
    /// nothing: notes are not synced to the disk.
    pub same_boot: bool,
    /// Of attempts that were handed out before this time, in milliseconds since 1970, a missing note says nothing either.
    pub untrusted_before_ms: u64,
    /// Variables of our environment that scripts do not get.
    pub hidden_env: Vec<String>,
    /// The time between SIGTERM and SIGKILL; usually [`GRACE_DEFAULT`].
    pub grace: Duration,
    /// Whether scripts are told which trace they belong to (`TRACEPARENT`).
    pub traces: bool,
    /// Whether scripts run in containers, or at all.
    pub scripts: Scripts,
    /// Whether only scripts run whose execution has a workspace. A server gives one to those who may run scripts.
    pub needs_workspace: bool,
}

/// Performs the attempts of `bash` steps.
#[derive(Debug)]
pub struct Shell {
    options: ShellOptions,
    /// Where bash is looked for.
    search_path: OsString,
    /// Begins with the first script; nothing where the system does not let us hear of the end of children.
    orphans: OnceLock<Option<Orphans>>,
    /// Begins with the first contained script. Containers end with it.
    launcher: OnceLock<Option<Launcher>>,
}

/// The bash that scripts of this process are given to, if there is one.
pub fn bash() -> Option<PathBuf> {
    script::find_program("bash", &search_path())
}

/// Where programs are looked for.
fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

impl Shell {
    /// An executor. It makes this process the one that orphans of its scripts come to.
    pub fn new(options: ShellOptions) -> Self {
        become_subreaper();
        Self { options, search_path: search_path(), orphans: OnceLock::new(), launcher: OnceLock::new() }
    }

    async fn run(&self, attempt: &Attempt, mut stop: Stop) -> Result<Outcome, Refusal> {
        if stop.is_requested() {
            return Ok(Report::default().stopped());
        }
        self.orphans.get_or_init(|| Orphans::reap().ok());
        let mark = Mark::of(attempt.into());
        self.check(attempt)?;
        let is_contained = matches!(self.options.scripts, Scripts::Contained(_));
        let script = Script::of(attempt, &mark, &self.search_path, (self.options.traces, is_contained))?;
        let begun = Instant::now();
        let mut running = self.start(script, attempt, mark).await?;
        // In this order: a script that has ended before it was asked to stop has ended by itself.
        let end = tokio::select! {
            biased;
            () = running.leader.ended() => End::Itself,
            () = stop.requested() => End::Stopped,
            why = exceeded(running.quota.as_ref()) => End::Exceeded(why),
            never = running.streams.read() => match never {},
        };
        let grace = if matches!(end, End::Exceeded(_)) { Duration::ZERO } else { self.options.grace };
        let mut ended = Ended::All;
        if end != End::Itself {
            // What a script says while it is being ended is part of its output.
            ended = end_group(&mut running, grace, &stop).await;
        }
        running.streams.drain();
        let duration = begun.elapsed();
        if end == End::Itself {
            ended = end_group(&mut running, grace, &stop).await;
        }
        let status = running.reap().await?;
        // However it ended, its workspace is to fit now.
        let excess = match &running.quota {
            Some(quota) => quota.settle().await,
            None => None,
        };
        let end = match (end, excess) {
            (End::Itself, Some(why)) => End::Exceeded(why),
            (end, _) => end,
        };
        let (stdout, stderr) = running.streams.into_kept();
        let report = Report { stdout, stderr, duration, still_running: ended == Ended::StillRunning };
        Ok(match (end, status) {
            (End::Stopped, _) => report.stopped(),
            (End::Exceeded(why), _) => report.exceeded(&why),
            (End::Itself, Some(status)) => report.ended(status),
            (End::Itself, None) => report.stopped(),
        })
    }

    /// Whether scripts of this attempt may run here.
    fn check(&self, attempt: &Attempt) -> Result<(), Refusal> {
        match &self.options.scripts {
            Scripts::Off(why) => Err(Refusal::ScriptsOff(why.clone())),
            _ if self.options.needs_workspace && attempt.workspace.is_none() => Err(Refusal::NotPermitted),
            _ => Ok(()),
        }
    }

    async fn start(&self, script: Script, attempt: &Attempt, mark: Mark) -> Result<Running, Refusal> {
        let ShellOptions { notes, hidden_env, scripts, .. } = &self.options;
        let Scripts::Contained(container) = scripts else {
            return Ok(Running::start(&script, hidden_env, mark, notes)?);
        };
        let workspace = PathBuf::from(attempt.workspace.as_ref().ok_or(Refusal::NotPermitted)?);
        let folder = script.folder.clone().unwrap_or_else(|| workspace.clone());
        let place = container.place(&workspace, &folder)?;
        let mut variables = environment::contained(env::vars_os(), contain::HOME, |folder| container.shows(folder));
        variables.extend(script.variables);
        let script = Script { variables, ..script };
        let launcher = self.launcher.get_or_init(|| Launcher::new().ok()).as_ref();
        let launcher = launcher.ok_or_else(|| Refusal::NotContained("no thread can be started".into()))?;
        let marked = (mark, attempt.organization.as_deref());
        Running::start_contained(script, (container, &place), launcher, marked, notes).await
    }
}

/// How a script came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Itself,
    Stopped,
    Exceeded(String),
}

/// Returns when a contained script has taken more than it may.
async fn exceeded(quota: Option<&Quota>) -> String {
    match quota {
        Some(quota) => quota.exceeded().await,
        None => std::future::pending().await,
    }
}

/// Ends all of a script's processes, and reads on meanwhile: one that has something to print in its last moments is
/// not to hang on a full pipe.
async fn end_group(running: &mut Running, grace: Duration, stop: &Stop) -> Ended {
    let at_once = async {
        stop.killed().await;
        running.group.end(Duration::ZERO).await
    };
    tokio::select! {
        biased;
        ended = running.group.end(grace) => ended,
        ended = at_once => ended,
        never = running.streams.read() => match never {},
    }
}

impl Executor for Shell {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "bash"
    }

    /// The result is `{exitCode, stdout, stderr, durationMs, truncated}`, with `stdoutBytes` and `stderrBytes` if
    /// `truncated`. Failures: `bash_exit_code:N` (class `failed`, details as the result), `bash_missing_command`,
    /// `bash_command_invalid`, `bash_environment_invalid`, `bash_missing_workspace`, `bash_missing_cwd`,
    /// `bash_too_large` (all `invalid`), `bash_missing`, `bash_not_started`, `disk_full` and `script_not_contained`
    /// (`unavailable`),
    /// `scripts_off`, `scripts_not_permitted`, `workspace_not_containable`, `cwd_outside_workspace` and
    /// `script_limit_exceeded` (`policy`).
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: Stop) -> Work<'a, Outcome> {
        Box::pin(async move {
            match self.run(attempt, stop).await {
                Ok(outcome) => outcome,
                Err(refusal) => Outcome::Failed(refusal.into()),
            }
        })
    }

    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> Work<'a, Adopted> {
        let ShellOptions { notes, same_boot, untrusted_before_ms, grace, .. } = &self.options;
        // All are asked: the mark of the last boot may have been renewed by a process that did not look at this attempt.
        let is_trusted = *same_boot
            && attempt.handed_out_at >= *untrusted_before_ms
            && process::booted_at_ms().is_some_and(|booted| attempt.handed_out_at >= booted);
        Box::pin(async move { adopt::adopt(notes, &Mark::of(attempt.into()), is_trusted, *grace).await })
    }

    fn forget(&self, attempt: AttemptName<'_>) {
        Note::forget(&self.options.notes, &Mark::of(attempt));
    }
}

/// Makes orphans of our scripts come to us, where their group is swept, and not to the first process of the machine,
/// which in a container is often one that reaps nobody. Where the system refuses, zombies stay until it cares for them;
/// they do not count as alive here.
fn become_subreaper() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    });
}
