//! What an executor is, and the wrapper that every crossing goes through.

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
};
use tokio::sync::Notify;

/// A future without a name.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Performs attempts of the effects it knows.
pub trait Executor: Send + Sync {
    /// Whether this attempt is for this executor.
    fn performs(&self, attempt: &Attempt) -> bool;

    /// Does the work and says what became of it. Answers soon after `stop` is asked for, whatever the work does.
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: Stop) -> Work<'a, Outcome>;

    /// Says what became of an attempt that an earlier process was to perform, after ending whatever it left running.
    fn adopt<'a>(&'a self, attempt: &'a Attempt) -> Work<'a, Adopted>;

    /// The attempt's receipt is durable: what was written down to find it again may go.
    fn forget(&self, attempt: AttemptName<'_>);
}

/// What an executor knows of an attempt that it does not perform itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// It was certainly never begun: it may be performed as if nothing had happened.
    NeverStarted,
    /// It was begun, or may have been, and does not run any more. Its outcome is unknown.
    Interrupted,
}

/// Which attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptName<'a> {
    /// The execution.
    pub execution: ExecutionKey,
    /// The step instance.
    pub step: &'a str,
    /// Which try.
    pub number: u32,
}

impl<'a> From<&'a Attempt> for AttemptName<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        Self { execution: attempt.execution, step: &attempt.step, number: attempt.number }
    }
}

/// Tells running work to stop; the other end of [`Stop`]. Dropping it does not ask for anything.
#[derive(Debug)]
pub struct Stopper(Arc<Wish>);

/// Asked by running work whether it is to stop.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Wish>);

/// What both ends share. There is one for every attempt, so it is small.
#[derive(Debug, Default)]
struct Wish {
    is_uttered: AtomicBool,
    uttered: Notify,
    is_killed: AtomicBool,
    killed: Notify,
}

impl Stopper {
    /// Both ends.
    pub fn pair() -> (Self, Stop) {
        let wish = Arc::new(Wish::default());
        (Self(wish.clone()), Stop(wish))
    }

    /// Asks the work to stop. Asking twice is asking once.
    pub fn stop(&self) {
        self.0.is_uttered.store(true, Ordering::SeqCst);
        self.0.uttered.notify_waiters();
    }

    /// Ends the work without a time of grace: somebody else is about to do it again.
    pub fn kill(&self) {
        self.0.is_killed.store(true, Ordering::SeqCst);
        self.0.killed.notify_waiters();
        self.stop();
    }
}

impl Stop {
    /// Whether stopping was asked for already.
    pub fn is_requested(&self) -> bool {
        self.0.is_uttered.load(Ordering::SeqCst)
    }

    /// Returns once the work is to end without a time of grace.
    pub async fn killed(&self) {
        let killed = self.0.killed.notified();
        if !self.0.is_killed.load(Ordering::SeqCst) {
            killed.await;
        }
    }

    /// Returns once stopping was asked for; never if it cannot be asked for any more.
    pub async fn requested(&mut self) {
        // A waiter counts from here on, also before it is polled: a wish between the question and the wait is heard.
        let uttered = self.0.uttered.notified();
        if !self.is_requested() {
            uttered.await;
        }
    }
}

/// All executors of a node. Nothing succeeds by default: an attempt that nobody performs fails.
#[derive(Clone, Default)]
pub struct Executors(Vec<Arc<dyn Executor>>);

impl Executors {
    /// The first that performs an attempt is asked.
    pub fn new(executors: Vec<Arc<dyn Executor>>) -> Self {
        Self(executors)
    }

    /// Does the work of an attempt.
    pub async fn perform(&self, attempt: &Attempt, stop: Stop) -> Outcome {
        match self.executor_of(attempt) {
            Some(executor) => executor.perform(attempt, stop).await,
            None => Outcome::Failed(no_executor(attempt)),
        }
    }

    /// See [`Executor::adopt`]. Of an attempt that nobody performs here nothing is known: a process with other executors may
    /// have begun it.
    pub async fn adopt(&self, attempt: &Attempt) -> Adopted {
        match self.executor_of(attempt) {
            Some(executor) => executor.adopt(attempt).await,
            None => Adopted::Interrupted,
        }
    }

    /// See [`Executor::forget`].
    pub fn forget(&self, attempt: AttemptName<'_>) {
        for executor in &self.0 {
            executor.forget(attempt);
        }
    }

    fn executor_of(&self, attempt: &Attempt) -> Option<&Arc<dyn Executor>> {
        self.0.iter().find(|executor| executor.performs(attempt))
    }
}

/// The failure of an attempt that nobody performs: not retried, because nobody will come by waiting.
fn no_executor(attempt: &Attempt) -> Failure {
    let what = match attempt.params.get("tool").and_then(|tool| tool.as_text()) {
        Some(tool) => format!("the tool `{tool}`"),
        None => format!("`{}` steps", attempt.effect),
    };
    Failure::new(Class::Invalid, "no_executor", format!("step `{}`: no executor here performs {what}", attempt.step))
}
