//! Turns that are processed outside the driver: turns that wait for functions, and long turns.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use mainspring_kernel::{key::ExecutionKey, limits::TURN_EVALUATION_MS_MAX, state::State};

use super::{command::Command, state::Driver};
use crate::{
    evaluator::{Begun, ForTenant, Rest, Suspended, tenant_of},
    fair::QueueFull,
    shard::{Event, panics},
};

impl Driver {
    /// Evaluates untrusted code on a thread of its own, while the shard continues with other executions.
    pub(super) fn evaluate(&mut self, execution: ExecutionKey, evaluation: u64, suspended: Suspended) {
        if matches!(suspended.rest, Rest::Undecided(_)) {
            return self.decide_elsewhere(execution, evaluation, suspended);
        }
        let (evaluator, commands) = (self.evaluations.evaluator.clone(), self.commands.clone());
        let (time, evaluations) = (self.telemetry.metrics.evaluation_time.clone(), self.evaluations.permits.clone());
        let tenant = tenant_of(&suspended.state).to_owned();
        let request = evaluations.acquire(tenant.clone());
        self.runtime.spawn(async move {
            let permit = match request {
                Ok(request) => Some(request.await),
                Err(QueueFull) => None,
            };
            tokio::task::spawn_blocking(move || {
                let began = std::time::Instant::now();
                let plan = suspended.state.plan.clone();
                let evaluator = ForTenant { evaluator: &*evaluator, tenant: &tenant };
                let mut is_over = || began.elapsed() >= Duration::from_millis(TURN_EVALUATION_MS_MAX);
                // A panic loses the state, which is not needed: the execution is quarantined.
                let finished = catch_unwind(AssertUnwindSafe(|| suspended.finish(&evaluator, &mut is_over)));
                let finished =
                    finished.unwrap_or_else(|panic| (State::new(execution, plan), Err(panics::why(&*panic))));
                let finished = Box::new(finished);
                time.record(began.elapsed());
                drop(permit);
                let _ = commands.send(Event::Evaluated { execution, evaluation, finished }.into());
            });
        });
    }

    fn decide_elsewhere(&mut self, execution: ExecutionKey, evaluation: u64, suspended: Suspended) {
        let (commands, tenant) = (self.commands.clone(), self.node.shard().tenant_key(execution));
        let decide = move || {
            let plan = suspended.state.plan.clone();
            let begun = catch_unwind(AssertUnwindSafe(|| suspended.begin()));
            let begun = begun.unwrap_or_else(|panic| {
                Begun::Finished(Box::new((State::new(execution, plan), Err(panics::why(&*panic)))))
            });
            let _ = commands.send(match begun {
                Begun::Finished(finished) => Event::Evaluated { execution, evaluation, finished }.into(),
                Begun::Paused(suspended) => Command::Evaluate(execution, evaluation, suspended),
            });
        };
        self.evaluations.deciders.push(tenant, Box::new(decide));
    }
}
