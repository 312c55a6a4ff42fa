//! Quarantined executions: they do not continue here, and none of their receipts is lost.

use mainspring_kernel::{effect::Outcome, input::Input, key::ExecutionKey};

use super::{
    Shard,
    attempts::{AttemptId, AttemptState},
    commit::{HeldEffects, InFlightCommit},
    ownership::brought,
    protocol::{Output, PendingInput, ShardError},
};

impl Shard {
    /// Quarantines an execution, here and in the store. Other executions continue.
    pub(super) fn quarantine(&mut self, execution: ExecutionKey, reason: String) {
        self.notify_parent_of_quarantined(execution, &reason);
        self.drop_quarantined(execution, reason.clone());
        self.outputs.push_back(Output::Quarantine(execution, reason));
    }

    /// Drops a quarantined execution and ends its attempts, since its parent may be notified of a failure and start the
    /// same work again. After a release from quarantine, each attempt is interrupted or has its receipt in the inbox.
    pub(super) fn drop_quarantined(&mut self, execution: ExecutionKey, reason: String) {
        self.end_work(execution);
        let mut queued = self.forget_entry(execution);
        queued.extend(self.loads.deferred_inputs.remove(&execution).unwrap_or_default());
        self.turn_back(execution, queued, &reason);
    }

    fn end_work(&mut self, execution: ExecutionKey) {
        let is_its = |of: &ExecutionKey| *of == execution;
        self.outputs.retain(|output| match output {
            Output::Perform { execution, .. }
            | Output::Reconcile { execution, .. }
            | Output::Evaluate { execution, .. } => !is_its(execution),
            _ => true,
        });
        let still_running = self.attempts.take_still_running(is_its);
        self.attempts.remove_if(|id, state| is_its(&id.execution) && state.is_being_recovered());
        let on_the_way =
            self.commits.in_flight.iter_mut().flat_map(InFlightCommit::held_effects).chain(&mut self.commits.releasing);
        let on_the_way = on_the_way.chain(self.refusals.held_effects());
        on_the_way.filter(|effects| is_its(effects.execution())).for_each(HeldEffects::detach);
        let is_remote = |state: &AttemptState| matches!(state, AttemptState::Remote(_));
        let remote = self.attempts.of(execution).filter(|(_, state)| is_remote(state)).map(|(id, _)| id.clone());
        for id in remote.collect::<Vec<_>>() {
            self.outputs.extend(self.remote_attempt(&id).map(Output::StopRemote));
            self.attempts.end(&id);
        }
        let running = self.attempts.take_running(is_its).into_keys();
        for AttemptId { execution, instance, number } in running.chain(still_running) {
            self.outputs.push_back(Output::Kill { execution, instance, attempt: number });
        }
    }

    /// Rejects inputs for a quarantined execution. Callers receive the reason, and messages stay in the inbox. Receipts
    /// are sent to the inbox for the time after a release, except those of stopped attempts.
    pub(super) fn turn_back(&mut self, execution: ExecutionKey, queued: Vec<PendingInput>, why: &str) {
        for queued in queued {
            if let Some(ticket) = queued.ticket {
                self.reply(ticket, Err(ShardError::Quarantined(why.to_owned())));
            } else if brought(&queued).is_some() && !is_stopped(&queued.input) {
                self.outputs.push_back(Output::PassOn(execution, queued.input, None));
            }
        }
    }
}

fn is_stopped(input: &Input) -> bool {
    matches!(input, Input::Receipt { outcome: Outcome::Stopped(_), .. })
}
