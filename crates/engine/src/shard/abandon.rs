//! Abandoned turns. While a turn waits for evaluations, its state is outside the shard. A cancel or the deadline of the
//! execution does not wait for functions: the turn is dropped, and the state before it is read back from the store.

use std::sync::atomic::Ordering;

use mainspring_kernel::{
    input::{Input, Timer},
    key::ExecutionKey,
};

use super::{
    Queued, Shard,
    cell::{Cell, Evaluating},
};

impl Shard {
    /// Abandons the turn of an execution if a waiting input ends the execution. While frames of it are not durable,
    /// nothing happens, and the end of their commit calls this again.
    pub(super) fn abandon(&mut self, execution: ExecutionKey) {
        let Some(Cell::Evaluating(out)) = self.cells.get(&execution) else { return };
        // The recovered outcome of an attempt is reported once, so a result that is here or on its way must not be
        // lost.
        let is_adopting = !out.adopted.is_empty() || self.adopting.contains_key(&execution);
        if !ends(out) || !is_stored(out) || is_adopting {
            return;
        }
        out.abandoned.store(true, Ordering::Relaxed);
        let is_overdue = out.is_overdue;
        let deadline = is_overdue.then(|| Queued::silent(Input::Timer(Timer::Deadline)));
        let queued = self.forget_cell(execution);
        let (first, rest): (Vec<_>, Vec<_>) = queued.into_iter().partition(is_cancel);
        self.load(execution, first.into_iter().chain(deadline).collect(), rest);
    }
}

fn is_cancel(queued: &Queued) -> bool {
    matches!(queued.input, Input::Cancel { .. })
}

fn ends(out: &Evaluating) -> bool {
    out.is_overdue || out.waiting.iter().any(is_cancel)
}

fn is_stored(out: &Evaluating) -> bool {
    out.live.durable.is_some() && out.live.on_the_way == 0 && out.live.draft.is_empty()
}
