//! The interface of executors: [`Executor`], the cancel signal, and [`Executors`], which dispatches attempts to them.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    key::ExecutionKey,
    value::Value,
};
use tokio::sync::Notify;

use crate::{
    attempt_name::AttemptName,
    live_progress::LiveProgress,
    partial::{PartialText, PartialTexts},
    secrets::{Redactor, Resolved, SecretSource, resolve},
};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Performs the attempts of one kind of effect.
pub trait Executor: Send + Sync {
    /// Returns whether this executor performs the attempt.
    fn performs(&self, attempt: &Attempt) -> bool;

    /// Performs the attempt and returns its outcome. Returns soon after `stop` is requested, in every state of the
    /// attempt.
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome>;

    /// Performs the attempt as [`perform`](Self::perform) does, and shows its text to watchers while it grows. The outcome
    /// does not depend on them.
    fn perform_shown<'a>(
        &'a self,
        attempt: &'a Attempt,
        stop: CancelSignal,
        partial: PartialText,
    ) -> BoxFuture<'a, Outcome> {
        drop(partial);
        self.perform(attempt, stop)
    }

    /// Waits while an attempt that asked people to fill in a form is not continued, and returns the outcome of its call if
    /// the call ends before. Ends the call once `stop` is requested. Returns at once for an attempt without an open call.
    fn watch<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Option<Outcome>> {
        let _ = (attempt, stop);
        Box::pin(std::future::ready(None))
    }

    /// Recovers an attempt that an earlier process had started or was about to start: ends its remaining processes, and
    /// returns what is known about it.
    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> BoxFuture<'a, Adopted>;

    /// Removes the recovery data of an attempt whose receipt is durable.
    fn forget(&self, attempt: AttemptName<'_>);

    /// Releases what is kept for an execution. Its end is durable.
    fn execution_ended(&self, execution: ExecutionKey) {
        let _ = execution;
    }

    /// Ends what runs outside of attempts. Called once all attempts have ended, before the end of the process.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The state of an attempt that this process has not performed itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// It was certainly never started, so it may be performed as if for the first time.
    NeverStarted,
    /// It was started, or may have been, and no longer runs. Its outcome is unknown.
    Interrupted,
}

/// The sender of the cancel signal; [`CancelSignal`] receives it. Dropping it does not cancel.
#[derive(Debug)]
pub struct CancelHandle(Arc<CancelState>);

/// The receiver of the cancel signal, polled by a running attempt.
#[derive(Debug, Clone)]
pub struct CancelSignal(Arc<CancelState>);

/// The shared state of both ends. Each attempt has one, so it is small.
#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: AtomicBool,
    cancelled: Notify,
    is_killed: AtomicBool,
    killed: Notify,
    is_leaving: AtomicBool,
}

impl CancelHandle {
    /// Makes both ends.
    pub fn pair() -> (Self, CancelSignal) {
        let state = Arc::new(CancelState::default());
        (Self(state.clone()), CancelSignal(state))
    }

    /// Requests cancellation. Repeated requests have no further effect.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        self.0.cancelled.notify_waiters();
    }

    /// Requests the end because the process ends. Work that continues elsewhere without it is not canceled.
    pub fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::SeqCst);
        self.cancel();
    }

    /// Requests the end without a grace period, because another attempt of the same work is about to start.
    pub fn kill(&self) {
        self.0.is_killed.store(true, Ordering::SeqCst);
        self.0.killed.notify_waiters();
        self.cancel();
    }
}

impl CancelSignal {
    /// Returns whether cancellation was requested.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// Returns whether the reason for the cancellation is the end of the process.
    pub fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::SeqCst)
    }

    /// Returns once the attempt must end without a grace period.
    pub async fn killed(&self) {
        let killed = self.0.killed.notified();
        if !self.0.is_killed.load(Ordering::SeqCst) {
            killed.await;
        }
    }

    /// Returns once cancellation was requested; never if the sender was dropped.
    pub async fn requested(&mut self) {
        // A `Notified` counts from its creation, so a request between the check and the wait is not lost.
        let cancelled = self.0.cancelled.notified();
        if !self.is_requested() {
            cancelled.await;
        }
    }
}

/// All executors of a node. An attempt that none of them performs fails; nothing succeeds by default.
#[derive(Clone, Default)]
pub struct Executors {
    all: Vec<Arc<dyn Executor>>,
    secrets: Option<Arc<dyn SecretSource>>,
    partial: PartialTexts,
    progress: Arc<LiveProgress>,
}

impl Executors {
    /// Takes the executors. The first one that performs an attempt gets it.
    pub fn new(executors: Vec<Arc<dyn Executor>>) -> Self {
        Self { all: executors, ..Self::default() }
    }

    /// The partial texts of the attempts that these executors perform.
    pub fn partial_texts(&self) -> &PartialTexts {
        &self.partial
    }

    /// Takes the source of the secrets that steps use.
    pub fn with_secrets(self, secrets: Option<Arc<dyn SecretSource>>) -> Self {
        Self { secrets, ..self }
    }

    /// Takes the progress that the executors report to.
    pub fn with_progress(self, progress: Arc<LiveProgress>) -> Self {
        Self { progress, ..self }
    }

    /// The progress of the attempts of these executors.
    pub fn live_progress(&self) -> &LiveProgress {
        &self.progress
    }

    /// Performs an attempt with its executor. Its secrets are read now, and their values removed from the outcome.
    pub async fn perform(&self, attempt: &Attempt, mut stop: CancelSignal) -> Outcome {
        let Some(executor) = self.executor_of(attempt) else { return Outcome::Failed(no_executor(attempt)) };
        if attempt.secrets.references.is_empty() {
            let partial = self.partial.text(attempt, Redactor::default());
            return executor.perform_shown(attempt, stop, partial).await;
        }
        let resolved = tokio::select! {
            biased;
            () = stop.requested() => return Outcome::Stopped(Value::Null),
            resolved = resolve(self.secrets.as_ref(), attempt) => resolved,
        };
        match resolved {
            Ok(Resolved { attempt, redactor }) => {
                let partial = self.partial.text(&attempt, redactor.clone());
                redactor.outcome(executor.perform_shown(&attempt, stop, partial).await)
            }
            Err(failure) => Outcome::Failed(failure),
        }
    }

    /// See [`Executor::watch`]. The values of its secrets are removed from the outcome.
    pub async fn watch(&self, attempt: &Attempt, stop: CancelSignal) -> Option<Outcome> {
        let outcome = self.executor_of(attempt)?.watch(attempt, stop).await?;
        if attempt.secrets.references.is_empty() {
            return Some(outcome);
        }
        Some(match resolve(self.secrets.as_ref(), attempt).await {
            Ok(Resolved { redactor, .. }) => redactor.outcome(outcome),
            Err(failure) => Outcome::Failed(failure),
        })
    }

    /// See [`Executor::adopt`]. Nothing is known about an attempt without an executor here, since a process with other
    /// executors may have started it.
    pub async fn adopt(&self, attempt: &Attempt) -> Adopted {
        match self.executor_of(attempt) {
            Some(executor) => executor.adopt(attempt).await,
            None => Adopted::Interrupted,
        }
    }

    /// See [`Executor::forget`].
    pub fn forget(&self, attempt: AttemptName<'_>) {
        for executor in &self.all {
            executor.forget(attempt);
        }
    }

    /// See [`Executor::execution_ended`].
    pub fn execution_ended(&self, execution: ExecutionKey) {
        for executor in &self.all {
            executor.execution_ended(execution);
        }
        self.progress.execution_ended(execution);
    }

    /// See [`Executor::close`].
    pub async fn close(&self) {
        for executor in &self.all {
            executor.close().await;
        }
    }

    fn executor_of(&self, attempt: &Attempt) -> Option<&Arc<dyn Executor>> {
        self.all.iter().find(|executor| executor.performs(attempt))
    }
}

/// The failure of an attempt without an executor. It is not retried, since waiting does not add an executor.
fn no_executor(attempt: &Attempt) -> Failure {
    if attempt.effect == "agent_message" {
        let message = format!(
            "step `{}`: the workflow has no conversation that gets the message; write `conversation: NAME` at an `agent` step",
            attempt.step
        );
        return Failure::new(Class::Invalid, "conversation_unknown", message);
    }
    let what = match attempt.params.get("tool").and_then(|tool| tool.as_text()) {
        Some(tool) => format!("the tool `{tool}`"),
        None => format!("`{}` steps", attempt.effect),
    };
    Failure::new(Class::Invalid, "no_executor", format!("step `{}`: no executor here performs {what}", attempt.step))
}
