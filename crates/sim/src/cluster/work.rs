//! Who performs the calls of a node: the product's own table of executors, with one in it or with none.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use mainspring_effects::{Adopted, AttemptName, Executor, Executors, Stop, Stopper, Work};
use mainspring_engine::shard::Fate;
use mainspring_kernel::effect::{Attempt, Outcome};

/// Makes calls of which the cluster says when they end and how. As with the executors of a node that shares its store, no
/// attempt of another process is known never to have begun.
struct Caller;

impl Executor for Caller {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: Stop) -> Work<'a, Outcome> {
        Box::pin(std::future::pending())
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> Work<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// The executors of a node. One that was built or configured in another way than its neighbours has none.
pub(super) fn executors(has_caller: bool) -> Executors {
    Executors::new(if has_caller { vec![Arc::new(Caller)] } else { Vec::new() })
}

/// What an attempt brings at once; `None` if it is on its way.
pub(super) fn perform(executors: &Executors, attempt: &Attempt) -> Option<Outcome> {
    at_once(executors.perform(attempt, Stopper::pair().1))
}

/// What became of an attempt that the process did not begin, in the words of the shard.
pub(super) fn adopt(executors: &Executors, attempt: &Attempt) -> Fate {
    match at_once(executors.adopt(attempt)) {
        Some(Adopted::NeverStarted) => Fate::NeverStarted,
        Some(Adopted::Interrupted) | None => Fate::Interrupted,
    }
}

fn at_once<T>(work: impl Future<Output = T>) -> Option<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
