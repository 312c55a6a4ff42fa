//! Abandoned turns. While a turn waits for evaluations, its state is outside the shard. A cancel or the deadline of the
//! execution does not wait for functions: the turn is dropped, and the state before it is read back from the store.

use std::sync::atomic::Ordering;

use mainspring_kernel::{
    input::{Input, Timer},
    key::ExecutionKey,
};

use super::{
    PendingInput, Shard,
    entry::{Evaluating, ExecutionEntry},
};

impl Shard {
    /// Abandons the turn of an execution if a waiting input ends the execution. While frames of it are not durable,
    /// nothing happens, and the end of their commit calls this again.
    pub(super) fn abandon(&mut self, execution: ExecutionKey) {
        let Some(ExecutionEntry::Evaluating(out)) = self.executions.get(&execution) else { return };
        if !ends(out) || !is_stored(out) {
            return;
        }
        out.abandoned.store(true, Ordering::Relaxed);
        let is_overdue = out.is_overdue;
        let deadline = is_overdue.then(|| PendingInput::without_reply(Input::Timer(Timer::Deadline)));
        let queued = self.forget_entry(execution);
        let (first, rest): (Vec<_>, Vec<_>) = queued.into_iter().partition(is_cancel);
        self.load(execution, first.into_iter().chain(deadline).collect(), rest);
    }
}

fn is_cancel(queued: &PendingInput) -> bool {
    matches!(queued.input, Input::Cancel { .. })
}

fn ends(out: &Evaluating) -> bool {
    out.is_overdue || out.waiting.iter().any(is_cancel)
}

fn is_stored(out: &Evaluating) -> bool {
    out.loaded.durable.is_some() && out.loaded.on_the_way == 0 && out.loaded.draft.is_empty()
}
