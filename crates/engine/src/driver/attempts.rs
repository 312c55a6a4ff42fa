//! Attempts of this process: performs them with the executors, under permits that organizations share, and recovers
//! those of an earlier process.

use std::time::Instant;

use mainspring_effects::{Adopted, CancelHandle};
use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};
use tracing::{debug, info};

use super::{
    failures::OutcomeGuard,
    metrics::Effect,
    state::{Driver, attempts::RunningAttempt},
};
use crate::{
    fair::QueueFull,
    shard::{AttemptRecovery, Event},
};

impl Driver {
    pub(super) fn perform_attempt(&mut self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        let (cancel_handle, mut stop) = CancelHandle::pair();
        let number = attempt.number;
        let effect = Effect::of(&attempt.effect);
        self.telemetry.metrics.attempts.begin(effect);
        debug!(%execution, step = attempt.step, attempt = number, effect = attempt.effect, "an attempt has started");
        let underway = RunningAttempt { cancel_handle, effect, step: step_for_logs(&attempt), began: Instant::now() };
        self.attempts.running.insert((execution, instance.clone(), number), underway);
        let (executors, commands) = (self.attempts.executors.clone(), self.commands.clone());
        let tenant = self.node.shard().tenant(execution).to_owned();
        let at_once = self.attempts.permits.try_acquire(tenant.clone());
        if at_once.is_none() {
            self.node.shard_mut().wait_for_permit(execution, &instance, number);
        }
        let request = at_once.is_none().then(|| self.attempts.permits.acquire(tenant));
        self.runtime.spawn(async move {
            let mut guard =
                OutcomeGuard { commands, attempt: Some((execution, instance, number)), step: attempt.step.clone() };
            // An attempt that is asked to stop while it waits needs no permit: its executor returns at once.
            let _permit = match request {
                Some(Ok(request)) => tokio::select! {
                    biased;
                    () = stop.requested() => None,
                    permit = request => {
                        guard.report_start();
                        Some(permit)
                    }
                },
                Some(Err(QueueFull)) | None => at_once,
            };
            let outcome = executors.perform(&attempt, stop).await;
            guard.notify(outcome);
        });
    }

    pub(super) fn reconcile(&self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        let (executors, commands) = (self.attempts.executors.clone(), self.commands.clone());
        let metrics = self.telemetry.metrics.attempts.clone();
        self.runtime.spawn(async move {
            let asked = attempt.clone();
            // If the executor panics, it is unknown if the attempt ever started.
            let adopted = tokio::spawn(async move { executors.adopt(&asked).await }).await;
            let adopted = match adopted {
                Ok(adopted) => adopted,
                Err(error) if error.is_panic() => Adopted::Interrupted,
                // The runtime is shutting down.
                Err(_) => return,
            };
            metrics.recovered(adopted);
            let recovery = match adopted {
                Adopted::NeverStarted => AttemptRecovery::NeverStarted,
                Adopted::Interrupted => {
                    info!(%execution, step = attempt.step, attempt = attempt.number, "an attempt was interrupted");
                    AttemptRecovery::Interrupted
                }
            };
            let attempt = attempt.number;
            let _ = commands.send(Event::AttemptRecovered { execution, instance, attempt, recovery }.into());
        });
    }
}

/// Returns the name of the step, or an empty string if no log line will contain it.
fn step_for_logs(attempt: &Attempt) -> String {
    if tracing::enabled!(tracing::Level::DEBUG) { attempt.step.clone() } else { String::new() }
}
