//! Quarantined executions: they do not continue here, and none of their receipts is lost.

use mainspring_kernel::{effect::Outcome, input::Input, key::ExecutionKey};

use super::{
    Shard,
    flight::{Flight, Passenger},
    owning::brought,
    words::{Output, Queued, ShardError},
};

impl Shard {
    /// Quarantines an execution, here and in the store. Other executions continue.
    pub(super) fn quarantine(&mut self, execution: ExecutionKey, reason: String) {
        self.tell_parent_of_quarantined(execution, &reason);
        self.set_aside(execution, reason.clone());
        self.outputs.push_back(Output::Quarantine(execution, reason));
    }

    /// Drops a quarantined execution and ends its attempts, since its parent may be notified of a failure and start the
    /// same work again. After a release from quarantine, each attempt is interrupted or has its receipt in the inbox.
    pub(super) fn set_aside(&mut self, execution: ExecutionKey, reason: String) {
        self.end_work(execution);
        let mut queued = self.forget_cell(execution);
        queued.extend(self.kept.remove(&execution).unwrap_or_default());
        self.turn_back(execution, queued, &reason);
    }

    fn end_work(&mut self, execution: ExecutionKey) {
        let is_its = |of: &ExecutionKey| *of == execution;
        self.outputs.retain(|output| match output {
            Output::Perform { execution, .. }
            | Output::Adopt { execution, .. }
            | Output::Evaluate { execution, .. } => !is_its(execution),
            _ => true,
        });
        self.adopting.remove(&execution);
        let on_the_way = self.flight.iter_mut().flat_map(Flight::passengers).chain(&mut self.landing);
        let on_the_way = on_the_way.chain(self.refusals.passengers());
        on_the_way.filter(|passenger| is_its(passenger.execution())).for_each(Passenger::orphan);
        let elsewhere: Vec<_> = self.elsewhere.keys().filter(|(of, ..)| is_its(of)).cloned().collect();
        for name in elsewhere {
            self.outputs.extend(self.remote_attempt(&name).map(Output::StopRemote));
            self.elsewhere.remove(&name);
        }
        for ((execution, instance, attempt), _) in self.performing.extract_if(.., |(of, ..), _| is_its(of)) {
            self.outputs.push_back(Output::Kill { execution, instance, attempt });
        }
    }

    /// Rejects inputs for a quarantined execution. Callers receive the reason, and messages stay in the inbox. Receipts
    /// are sent to the inbox for the time after a release, except those of stopped attempts.
    pub(super) fn turn_back(&mut self, execution: ExecutionKey, queued: Vec<Queued>, why: &str) {
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
