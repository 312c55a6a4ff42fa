//! Long turns. While several organizations share the driver, a turn that may have thousands of records is decided on
//! another thread, like a turn with functions, and the driver continues with other executions.

use mainspring_kernel::{
    input::{Input, Timer},
    key::ExecutionKey,
    plan::{Plan, Work},
};

use super::{Shard, entry::ExecutionEntry, protocol::PendingInput};
use crate::{
    evaluator::Rest,
    limits::{LONG_TURN_RECORDS, SHORT_PLAN_STEPS_MAX},
    turn::UndecidedTurn,
};

impl Shard {
    /// Makes the shard act as if several organizations always shared the driver: for tests.
    pub fn share_always(&mut self) {
        self.queues.activity.share_always();
    }

    /// True after [`share_always`](Self::share_always).
    pub fn is_always_shared(&self) -> bool {
        self.queues.activity.is_always_shared()
    }

    /// Returns the turn for an input if it is to be decided on another thread. A turn that ends the execution is
    /// decided here: it abandons a turn in progress, and would otherwise abandon itself.
    pub(super) fn whole(&self, now: u64, execution: ExecutionKey, queued: &PendingInput) -> Option<Rest> {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return None };
        let may_be_long = match &queued.input {
            Input::Cancel { .. } | Input::SkipCleanup { .. } | Input::Timer(Timer::Deadline) => false,
            Input::Start(_) => is_long(&loaded.state.plan),
            // Each first turn is split. A plan of few steps without loops has a short turn behind it.
            _ => {
                loaded.last_records >= LONG_TURN_RECORDS || loaded.state.journal.is_split && is_long(&loaded.state.plan)
            }
        };
        (may_be_long && self.queues.activity.is_shared()).then(|| {
            Rest::Undecided(Box::new(UndecidedTurn {
                input: queued.input.clone(),
                now,
                sequence: loaded.next_sequence,
                before: loaded.head,
                salting: self.keys.salting,
            }))
        })
    }
}

/// True if the first turn of a plan may be long.
fn is_long(plan: &Plan) -> bool {
    plan.steps.len() > SHORT_PLAN_STEPS_MAX || plan.steps.iter().any(|step| matches!(step.work, Work::Loop(_)))
}
