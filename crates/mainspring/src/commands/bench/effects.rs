//! The executors of the workloads: one that completes at once, and one that never does.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    value::Value,
};
use tokio::sync::Notify;

/// An executor that completes each attempt at once.
pub(super) fn nothing() -> Executors {
    Executors::new(vec![Arc::new(Nothing)])
}

struct Nothing;

impl Executor for Nothing {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(std::future::ready(Outcome::Done(Value::Null)))
    }

    /// Attempts of an earlier process are interrupted and run again, which is the slower path.
    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// An executor whose attempts never complete. It notifies when the expected number has started.
pub(super) struct Endless {
    begun: AtomicU64,
    expected: u64,
    all_begun: Notify,
}

impl Endless {
    pub(super) fn new(expected: u64) -> Arc<Self> {
        Arc::new(Self { begun: AtomicU64::new(0), expected, all_begun: Notify::new() })
    }

    pub(super) async fn all_begun(&self) {
        self.all_begun.notified().await;
    }
}

impl Executor for Endless {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, mut stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        if self.begun.fetch_add(1, Ordering::Relaxed) + 1 == self.expected {
            self.all_begun.notify_one();
        }
        Box::pin(async move {
            stop.requested().await;
            Outcome::Stopped(Value::Null)
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
