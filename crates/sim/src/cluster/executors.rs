//! The executors of a node: the product's own list of executors, with one simulated executor or none.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelHandle, CancelSignal, Executor, Executors};
use mainspring_engine::shard::AttemptRecovery;
use mainspring_kernel::effect::{Attempt, Outcome};

/// Performs calls whose end and outcome the cluster determines. The adoption of an attempt never returns
/// `NeverStarted`, like that of the executors of a node that shares its store.
struct Caller;

impl Executor for Caller {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(std::future::pending())
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// Builds the executors of a node. A node with another build or configuration than its neighbors has none.
pub(super) fn executors(has_caller: bool) -> Executors {
    Executors::new(if has_caller { vec![Arc::new(Caller)] } else { Vec::new() })
}

/// Returns the outcome if the executor responds at once; `None` while the call runs.
pub(super) fn perform(executors: &Executors, attempt: &Attempt) -> Option<Outcome> {
    at_once(executors.perform(attempt, CancelHandle::pair().1))
}

/// Recovers an attempt that this process did not start, and converts the result for the shard.
pub(super) fn adopt(executors: &Executors, attempt: &Attempt) -> AttemptRecovery {
    match at_once(executors.adopt(attempt)) {
        Some(Adopted::NeverStarted) => AttemptRecovery::NeverStarted,
        Some(Adopted::Interrupted) | None => AttemptRecovery::Interrupted,
    }
}

fn at_once<T>(work: impl Future<Output = T>) -> Option<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
