//! The executor of `bash` steps: scripts in process groups that are recorded before they start.
//!
//! A script starts behind a start barrier, in its own process group. The group is recorded in a file, then the barrier
//! is opened, so that a later process finds and ends everything that this one leaves behind. An attempt is over when
//! bash itself has ended. Its background processes are ended before the outcome is returned, so that no group outlives
//! its receipt. Processes that make their own group (`setsid`, `set -m`) are daemons by choice of their author and are
//! not tracked; those with their own session are reaped when they end.
//!
//! Requires Linux 5.3 or later, with `/proc`: process handles (pidfds) report the end of processes without reaping
//! them.

pub mod contain;
mod environment;
mod error;
mod limits;
mod outcome;
mod output;
mod process;
mod process_group;
mod process_record;
pub mod program;
mod recover;
mod script;
mod start;
mod subreaper;
mod tap;

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Once, OnceLock},
    time::{Duration, Instant},
};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::Failure,
};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use contain::{Scripts, launcher::Launcher, quota::Quota};
use error::ShellError;
use outcome::Report;
use process_group::{Ended, Members, blocking};
use process_record::{Mark, ProcessRecord};
use script::Script;
use start::Running;
use subreaper::Orphans;

pub use limits::{GRACE_DEFAULT, STREAM_BYTES_MAX};
pub use recover::end_leftovers;
pub(crate) use tap::Tap;

/// The settings of a [`Shell`].
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// The folder of the process records, made when it is first needed. It belongs to one node and survives restarts of
    /// the process.
    pub records: PathBuf,
    /// True if the previous process ran in the same boot of the machine. Otherwise a missing record proves nothing,
    /// since records are not synced to the disk.
    pub same_boot: bool,
    /// A missing record proves nothing for attempts dispatched before this time, in milliseconds since 1970.
    pub untrusted_before_ms: u64,
    /// Variables of this process's environment that scripts do not inherit.
    pub hidden_env: Vec<String>,
    /// The time between SIGTERM and SIGKILL; usually [`GRACE_DEFAULT`].
    pub grace: Duration,
    /// True if scripts get the trace context (`TRACEPARENT`).
    pub traces: bool,
    /// The containment of scripts.
    pub scripts: Scripts,
    /// True if only executions with a workspace may run scripts. A server assigns a workspace to executions whose
    /// starter has the permission.
    pub needs_workspace: bool,
}

/// Performs the attempts of `bash` steps.
#[derive(Debug)]
pub struct Shell {
    options: ShellOptions,
    /// The `PATH` in which bash is searched.
    search_path: OsString,
    /// Started with the first script; `None` where the system does not deliver SIGCHLD.
    orphans: OnceLock<Option<Orphans>>,
    /// Started with the first contained script. Containers end with it.
    launcher: OnceLock<Option<Launcher>>,
}

/// Returns the path of the bash that runs scripts, if there is one.
pub fn bash() -> Option<PathBuf> {
    script::find_program("bash", &search_path())
}

/// Returns the path of the git that makes checkouts, if there is one.
pub fn git() -> Option<PathBuf> {
    script::find_program("git", &search_path())
}

fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

impl Shell {
    /// Makes an executor. Orphans of its scripts become children of this process.
    pub fn new(options: ShellOptions) -> Self {
        become_subreaper();
        Self { options, search_path: search_path(), orphans: OnceLock::new(), launcher: OnceLock::new() }
    }

    /// Performs an attempt as [`Executor::perform`] does. `tap` sees its output.
    pub(crate) async fn perform_with(&self, attempt: &Attempt, stop: CancelSignal, tap: Option<Arc<Tap>>) -> Outcome {
        match self.run(attempt, stop, tap).await {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Failed(refusal.into()),
        }
    }

    /// Records an attempt that another process performs. `leader` leads the process group that ends with it.
    pub(crate) fn record(&self, attempt: AttemptName<'_>, leader: Pid) -> std::io::Result<()> {
        ProcessRecord::of(Mark::of(attempt), leader)?.write(&self.options.records)
    }

    /// Removes the record of an attempt.
    pub(crate) fn forget_record(&self, attempt: AttemptName<'_>) {
        ProcessRecord::forget(&self.options.records, &Mark::of(attempt));
    }

    /// Ends a process group of a child that is not reaped yet.
    pub(crate) async fn end_group(leader: Pid, grace: Duration) {
        Members::OfGroup(leader).end(grace).await;
    }

    /// Kills all processes of this machine that carry the mark of an attempt.
    pub(crate) async fn end_marked(attempt: AttemptName<'_>) {
        let mark = Mark::of(attempt);
        for members in [Members::With(mark.assignment()), Members::With(mark.container())] {
            let all = members.clone();
            let found = blocking(move || all.sweep()).await;
            members.end(Duration::ZERO).await;
            for orphan in found {
                // Fails for those that another process reaps.
                let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
            }
        }
    }

    /// The failure of a script in an execution without a workspace.
    pub(crate) fn not_permitted() -> Failure {
        ShellError::NotPermitted.into()
    }

    async fn run(
        &self,
        attempt: &Attempt,
        mut stop: CancelSignal,
        tap: Option<Arc<Tap>>,
    ) -> Result<Outcome, ShellError> {
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
        running.streams.observe(tap);
        // In this order: a script that ends before the cancellation has ended by itself.
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
            // Output during the grace period belongs to the result.
            ended = end_group(&mut running, grace, &stop).await;
        }
        running.streams.drain();
        let duration = begun.elapsed();
        if end == End::Itself {
            ended = end_group(&mut running, grace, &stop).await;
        }
        let status = running.reap().await?;
        // The workspace must fit its quota after every kind of end.
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

    /// Checks that scripts of this attempt may run here.
    fn check(&self, attempt: &Attempt) -> Result<(), ShellError> {
        match &self.options.scripts {
            Scripts::Off(why) => Err(ShellError::ScriptsOff(why.clone())),
            _ if self.options.needs_workspace && attempt.workspace.is_none() => Err(ShellError::NotPermitted),
            _ => Ok(()),
        }
    }

    async fn start(&self, script: Script, attempt: &Attempt, mark: Mark) -> Result<Running, ShellError> {
        let ShellOptions { records, hidden_env, scripts, .. } = &self.options;
        let Scripts::Contained(container) = scripts else {
            return Ok(Running::start(&script, hidden_env, mark, records)?);
        };
        let workspace = PathBuf::from(attempt.workspace.as_ref().ok_or(ShellError::NotPermitted)?);
        let folder = script.folder.clone().unwrap_or_else(|| workspace.clone());
        let place = container.place(&workspace, &folder)?;
        let mut variables = environment::contained(env::vars_os(), contain::HOME, |folder| container.shows(folder));
        variables.extend(script.variables);
        let script = Script { variables, ..script };
        let launcher = self.launcher.get_or_init(|| Launcher::new().ok()).as_ref();
        let launcher = launcher.ok_or_else(|| ShellError::NotContained("no thread can be started".into()))?;
        let marked = (mark, attempt.organization.as_deref());
        Running::start_contained(script, (container, &place), launcher, marked, records).await
    }
}

/// The reason of a script's end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Itself,
    Stopped,
    Exceeded(String),
}

/// Returns when a contained script has exceeded a quota.
async fn exceeded(quota: Option<&Quota>) -> String {
    match quota {
        Some(quota) => quota.exceeded().await,
        None => std::future::pending().await,
    }
}

/// Ends all processes of a script, and keeps reading its output, so that a process that prints during the grace period
/// does not block on a full pipe.
async fn end_group(running: &mut Running, grace: Duration, stop: &CancelSignal) -> Ended {
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
    /// `truncated`.
    ///
    /// Failures: `bash_exit_code:N` (class `failed`, details as the result), `bash_missing_command`,
    /// `bash_command_invalid`, `bash_environment_invalid`, `bash_missing_workspace`, `bash_missing_cwd`,
    /// `bash_too_large` (all `invalid`), `bash_missing`, `bash_not_started`, `disk_full` and `script_not_contained`
    /// (`unavailable`), `scripts_off`, `scripts_not_permitted`, `workspace_not_containable`, `cwd_outside_workspace`
    /// and `script_limit_exceeded` (`policy`).
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(self.perform_with(attempt, stop, None))
    }

    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Adopted> {
        let ShellOptions { records, same_boot, untrusted_before_ms, grace, .. } = &self.options;
        // `same_boot` alone does not suffice: an earlier process of this boot may have updated the stored boot id without
        // recovering this attempt.
        let is_trusted = *same_boot
            && attempt.handed_out_at >= *untrusted_before_ms
            && process::booted_at_ms().is_some_and(|booted| attempt.handed_out_at >= booted);
        Box::pin(async move { recover::adopt(records, &Mark::of(attempt.into()), is_trusted, *grace).await })
    }

    fn forget(&self, attempt: AttemptName<'_>) {
        self.forget_record(attempt);
    }
}

/// Makes orphans of scripts children of this process, where their group is reaped, and not of the machine's first
/// process, which in a container often reaps nothing. Without permission, zombies stay until the system reaps them;
/// they do not count as alive here.
fn become_subreaper() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    });
}
