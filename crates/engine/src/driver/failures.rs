//! Failures in the driver: quarantines, and panics of the driver and of executors.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};

use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
    key::ExecutionKey,
};
use mainspring_store::{Store, StoreError};

use super::{Command, Commands, Driver, Running};
use crate::shard::{Event, panics};

/// Quarantines an execution in the store. Returns the organization that it counted for, if `counts` is set. Blocks.
pub(super) fn store_quarantine(
    store: &dyn Store,
    execution: ExecutionKey,
    why: &str,
    counts: bool,
) -> Result<Option<String>, StoreError> {
    store.quarantine(execution, why)?;
    // Quarantines are rare, so the organization is read here and not kept in memory.
    let row = if counts { store.execution(execution).ok().flatten() } else { None };
    Ok(row.and_then(|row| row.organization))
}

/// Returns the message of a panic.
pub(super) fn text(panic: &(dyn Any + Send)) -> &str {
    panics::text(panic)
}

impl Driver {
    /// Quarantines an execution without waiting for the store. Until the store has recorded it, the journal is not read
    /// again.
    pub(super) fn quarantine(&mut self, execution: ExecutionKey, why: String) {
        self.watchers.remove(&execution);
        let (store, commands, counts) = (self.store.clone(), self.commands.clone(), self.counts_places());
        self.pending_quarantines.insert(execution, why.clone());
        tokio::task::spawn_blocking(move || {
            let work = || store_quarantine(&*store, execution, &why, counts);
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                Err(StoreError::Unavailable(format!("setting it aside panicked: {}", text(&*panic))))
            });
            let _ = commands.send(Command::QuarantineRecorded(execution, answer));
        });
    }

    /// Handles the store's answer to a quarantine. With a shared store, a failed one is repeated when the execution is
    /// loaded again. The execution's messages were rejected in the meantime, so they are read again.
    pub(super) fn on_quarantine_recorded(
        &mut self,
        execution: ExecutionKey,
        answer: Result<Option<String>, StoreError>,
    ) {
        let why = self.pending_quarantines.remove(&execution).unwrap_or_default();
        match answer {
            Ok(organization) => {
                self.record_quarantine(execution, &why);
                self.count_out(execution, organization);
                self.quarantined(execution);
            }
            Err(error) if self.session.is_none() => {
                self.stop(format!("an execution cannot be quarantined: {error}"));
            }
            Err(_) => self.reset_inbox_cursor(),
        }
    }
}

/// Detects that the driver ends early, by a panic or since its runtime is shut down. It is dropped before the callers'
/// channels, so that callers learn the reason.
pub(super) struct Watchdog {
    why_stopped: Arc<Mutex<Option<String>>>,
    is_at_end: bool,
}

impl Watchdog {
    pub(super) fn of(driver: &Driver) -> Self {
        Self { why_stopped: driver.why_stopped.clone(), is_at_end: false }
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
    pub(super) attempt: Option<Running>,
    pub(super) step: String,
}

impl OutcomeGuard {
    /// Tells the shard that the attempt has its permit and starts.
    pub(super) fn report_start(&self) {
        if let Some((execution, instance, attempt)) = self.attempt.clone() {
            let _ = self.commands.send(Command::Event(Event::Began { execution, instance, attempt }));
        }
    }

    pub(super) fn notify(&mut self, outcome: Outcome) {
        if let Some((execution, instance, number)) = self.attempt.take() {
            let _ = self.commands.send(Command::Ended(execution, instance, number, outcome));
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
