//! Attempts of this process: performs them with the executors, under permits that organizations share, and recovers
//! those of an earlier process.

use std::time::Instant;

use mainspring_effects::{Adopted, CancelHandle};
use mainspring_kernel::{
    effect::{Attempt, Outcome, Report},
    instance::Instance,
    key::ExecutionKey,
};
use tracing::{debug, info};

use super::{
    command::Command,
    failures::OutcomeGuard,
    metrics::Effect,
    state::{Driver, attempts::RunningAttempt},
};
use crate::{
    fair::QueueFull,
    node::{AttemptId, NodeEvent},
    shard::{AttemptRecovery, Event},
};

impl Driver {
    pub(super) fn perform_attempt(&mut self, execution: ExecutionKey, instance: Instance, attempt: Attempt) {
        let (cancel_handle, mut stop) = CancelHandle::pair();
        let number = attempt.number;
        let effect = Effect::of(&attempt.effect);
        self.telemetry.metrics.attempts.begin(effect);
        debug!(%execution, step = attempt.step, attempt = number, effect = attempt.effect, "an attempt has started");
        let began = Instant::now();
        let underway = RunningAttempt { cancel_handle, effect, step: step_for_logs(&attempt), began };
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
            let outcome = executors.perform(&attempt, stop.clone()).await;
            let asks = matches!(&outcome, Outcome::Reported(report) if matches!(**report, Report::Asked { .. }));
            let (name, commands) = (guard.attempt.clone(), guard.commands.clone());
            guard.notify(outcome);
            drop((guard, _permit));
            if let Some(name) = name.filter(|_| asks) {
                let ended = executors.watch(&attempt, stop).await;
                let _ = commands.send(Command::WatchEnded { name, began, ended: ended.map(Box::new) });
            }
        });
    }

    /// Counts the end of an attempt. One that asks people to fill in a form is still watched, so that it can be stopped.
    pub(super) fn see_attempt_end(&mut self, name: &AttemptId, outcome: &Outcome) {
        let asks = matches!(outcome, Outcome::Reported(report) if matches!(**report, Report::Asked { .. }));
        let Some(underway) = self.attempts.ended(name) else { return };
        self.telemetry.record_attempt_end(name.0, &underway, name.2, outcome);
        if asks {
            self.attempts.running.insert(name.clone(), underway);
        }
    }

    /// Handles the end of a watch. An attempt that has continued since is a running one.
    pub(super) fn watch_ended(&mut self, name: AttemptId, began: Instant, ended: Option<Box<Outcome>>) {
        if self.attempts.running.get(&name).is_some_and(|underway| underway.began == began) {
            self.attempts.running.remove(&name);
        }
        if let Some(outcome) = ended {
            let (execution, instance, attempt) = name;
            self.node.receive(NodeEvent::Ended(execution, instance, attempt, *outcome));
        }
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
