//! Panics of the driver and of executors.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};

use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
};

use super::{command::Command, queue::Commands};
use crate::{
    node::{AttemptId, NodeEvent},
    shard::{Event, panics},
};

/// Returns the message of a panic.
pub(super) fn text(panic: &(dyn Any + Send)) -> &str {
    panics::text(panic)
}

/// Detects that the driver ends early, by a panic or since its runtime is shut down. It is dropped before the callers'
/// channels, so that callers learn the reason.
pub(super) struct Watchdog {
    why_stopped: Arc<Mutex<Option<String>>>,
    is_at_end: bool,
}

impl Watchdog {
    pub(super) fn of(why_stopped: &Arc<Mutex<Option<String>>>) -> Self {
        Self { why_stopped: why_stopped.clone(), is_at_end: false }
    }

    /// Marks the regular end of the driver.
    pub(super) fn dismiss(mut self) {
        self.is_at_end = true;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.is_at_end {
            return;
        }
        let why = if std::thread::panicking() {
            tracing::error!("the engine's driver panicked: the engine has stopped");
            "the engine's driver panicked; this is a fault of the engine. Nothing that is durable is lost: start it again, \
             and report the panic message in the log"
        } else {
            "the runtime of the engine was shut down"
        };
        self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.into());
    }
}

/// Reports the outcome of an attempt. If the executor panics, the drop reports a failure.
pub(super) struct OutcomeGuard {
    pub(super) commands: Commands,
    pub(super) attempt: Option<AttemptId>,
    pub(super) step: String,
}

impl OutcomeGuard {
    /// Notifies the shard that the attempt has its permit and starts.
    pub(super) fn report_start(&self) {
        if let Some((execution, instance, attempt)) = self.attempt.clone() {
            let _ = self.commands.send(Event::Began { execution, instance, attempt }.into());
        }
    }

    pub(super) fn notify(&mut self, outcome: Outcome) {
        if let Some((execution, instance, number)) = self.attempt.take() {
            let ended = NodeEvent::Ended(execution, instance, number, outcome.decodable());
            let _ = self.commands.send(Command::Node(ended));
        }
    }
}

impl Drop for OutcomeGuard {
    fn drop(&mut self) {
        // A runtime that shuts down drops its tasks too. Without an outcome, the attempt counts as interrupted.
        if std::thread::panicking() {
            let message = format!("step `{}`: the executor failed; this is a fault of ours", self.step);
            self.notify(Outcome::Failed(Failure::new(Class::Internal, "executor_panicked", message)));
        }
    }
}
