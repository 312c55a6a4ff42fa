//! Scripts of an organization in sandboxes: processes `workflow serve` that a command of the settings file starts.
//!
//! The node decides and writes the journal, and a sandbox only performs attempts. An attempt is in the journal before it
//! is sent, and its result counts only as the receipt that the node writes. So a sandbox holds nothing that can be lost,
//! and a hostile one can lie about the scripts that it was given and about nothing else.
//!
//! ```text
//!  node                                 sandbox of one execution
//!   hello            ─────────────────▶
//!                    ◀─────────────────  hello: protocol, containment
//!   workflow.execute ─────────────────▶
//!                    ◀─────────────────  workflow.progress
//!   workflow.cancel  ─────────────────▶
//!                    ◀─────────────────  workflow.result
//!   end of input     ─────────────────▶  kills its scripts and ends
//! ```

mod fields;
mod limits;
mod lines;
mod options;
mod process;
mod profile;
mod protocol;
mod result;
mod running;
mod sandboxes;
mod serve;

use std::sync::Arc;

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    key::ExecutionKey,
    value::Value,
};

use crate::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, shell::Shell};
use process::StartError;
use running::{Ended, Pending};
use sandboxes::Sandboxes;

pub use limits::Timing;
pub use options::{Log, SandboxOptions};
pub use profile::{Profile, Profiles, WorkspaceMode};
pub use running::{Probed, probe};
pub use serve::{Serve, serve};

/// Performs the `bash` steps of the organizations that have a sandbox profile.
pub struct SandboxRunner {
    profiles: Profiles,
    sandboxes: Arc<Sandboxes>,
    /// Keeps the records of attempts, by which a later process finds the commands of their sandboxes.
    shell: Arc<Shell>,
    timing: Timing,
}

/// The result of one try to dispatch an attempt.
enum Dispatched {
    /// The attempt was sent, and has this outcome.
    Outcome(Outcome),
    /// It was certainly not sent, and another try would fail for the same reason.
    Refused(String),
    /// It was certainly not sent. Another try may succeed.
    NotSent(String),
}

impl SandboxRunner {
    /// Makes an executor. `shell` is that of the node.
    pub fn new(profiles: Profiles, shell: Arc<Shell>, options: SandboxOptions) -> Self {
        let timing = options.timing;
        Self { profiles, sandboxes: Sandboxes::new(options), shell, timing }
    }

    async fn run(&self, attempt: &Attempt, mut stop: CancelSignal) -> Outcome {
        let Some(profile) = self.profiles.of(attempt.organization.as_deref()) else {
            return Outcome::Failed(not_started(attempt, "the organization has no sandbox profile"));
        };
        if attempt.workspace.is_none() {
            return Outcome::Failed(Shell::not_permitted());
        }
        let mut why = String::new();
        for number in 1..=limits::START_TRIES {
            if stop.is_requested() {
                return Outcome::Stopped(Value::Null);
            }
            match self.dispatch(profile, attempt, &mut stop).await {
                Dispatched::Outcome(outcome) => return outcome,
                Dispatched::Refused(reason) => return Outcome::Failed(not_started(attempt, &reason)),
                Dispatched::NotSent(reason) => why = reason,
            }
            if number < limits::START_TRIES {
                tokio::select! {
                    biased;
                    () = stop.requested() => return Outcome::Stopped(Value::Null),
                    () = tokio::time::sleep(self.timing.start_pause * number) => {}
                }
            }
        }
        Outcome::Failed(not_started(attempt, &why))
    }

    /// Sends the attempt to the sandbox of its execution, which is started if there is none, and waits for its end.
    async fn dispatch(&self, profile: &Arc<Profile>, attempt: &Attempt, stop: &mut CancelSignal) -> Dispatched {
        let obtained = tokio::select! {
            biased;
            () = stop.requested() => return Dispatched::Outcome(Outcome::Stopped(Value::Null)),
            obtained = self.sandboxes.obtain(profile, attempt) => obtained,
        };
        let sandbox = match obtained {
            Ok(sandbox) => sandbox,
            Err(StartError::Refused(why)) => return Dispatched::Refused(why),
            Err(StartError::Failed(why)) => return Dispatched::NotSent(why),
        };
        // Recorded before it is sent: without a record, an attempt of this boot was certainly never sent.
        if let Err(error) = self.shell.record(attempt.into(), sandbox.leader()) {
            return Dispatched::NotSent(format!("its record cannot be written: {error}"));
        }
        let pending = match sandbox.execute(attempt).await {
            Ok(pending) => pending,
            Err(why) => return Dispatched::NotSent(why),
        };
        Dispatched::Outcome(self.wait(pending, stop).await)
    }

    /// Waits for the end of an attempt that was sent. A sandbox that does not end a canceled attempt in time is ended
    /// itself: SIGTERM, the grace period, SIGKILL.
    async fn wait(&self, mut pending: Pending, stop: &mut CancelSignal) -> Outcome {
        tokio::select! {
            biased;
            ended = pending.ended() => return outcome(ended, false),
            () = stop.requested() => {}
        }
        pending.cancel(false);
        let in_time = async {
            let killed = stop.clone();
            let deadline = tokio::time::sleep(self.timing.grace + self.timing.answer);
            tokio::pin!(deadline);
            let mut is_forced = false;
            loop {
                tokio::select! {
                    biased;
                    ended = pending.ended() => return Some(ended),
                    () = killed.killed(), if !is_forced => {
                        is_forced = true;
                        pending.cancel(true);
                        deadline.as_mut().reset(tokio::time::Instant::now() + self.timing.answer);
                    }
                    () = &mut deadline => return None,
                }
            }
        };
        match in_time.await {
            Some(ended) => outcome(ended, true),
            None => {
                pending.end_sandbox();
                outcome(pending.ended().await, true)
            }
        }
    }
}

/// The outcome of an attempt that was sent. With its sandbox ended, nothing of a canceled attempt is left; of another one it
/// is unknown how far it came.
fn outcome(ended: Ended, is_stopped: bool) -> Outcome {
    match ended {
        Ended::Result(outcome) => outcome,
        Ended::Lost if is_stopped => Outcome::Stopped(Value::Null),
        Ended::Lost => Outcome::Interrupted,
    }
}

fn not_started(attempt: &Attempt, why: &str) -> Failure {
    let message = format!(
        "step `{}`: nothing was run, because no sandbox could be started: {why}; an operator can try it with `mainspring \
         doctor`",
        attempt.step
    );
    Failure::new(Class::Unavailable, "sandbox_not_started", message)
}

impl Executor for SandboxRunner {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "bash" && self.profiles.of(attempt.organization.as_deref()).is_some()
    }

    /// The result and the failures are those of [`Shell`]. In addition: `sandbox_not_started` (`unavailable`). A sandbox that
    /// ends or breaks the protocol while the script runs interrupts the attempt.
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(self.run(attempt, stop))
    }

    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(async move {
            let adopted = self.shell.adopt(attempt).await;
            if adopted == Adopted::Interrupted {
                // Scripts of a plain child have process groups of their own.
                Shell::end_marked(attempt.into()).await;
            }
            adopted
        })
    }

    fn forget(&self, attempt: AttemptName<'_>) {
        self.shell.forget(attempt);
    }

    fn execution_ended(&self, execution: ExecutionKey) {
        self.sandboxes.retire(execution);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.sandboxes.close())
    }
}
