//! Split turns. A turn that reaches the bounds of one frame is cut, and goes on in a later event: not before its frames
//! so far are durable, so that what an execution has in memory and not in the store stays one frame, and one execution
//! at a time, so that heartbeats, commits and the turns of other executions come between.

use mainspring_kernel::{
    input::{Input, Timer},
    key::ExecutionKey,
};

use super::{
    Queued, Shard,
    cell::{Cell, Live},
};

impl Shard {
    /// Puts an execution with a split turn in the queue of those that go on. Nothing is done as long as frames of it are
    /// not durable: the end of their commit calls this again.
    pub(super) fn queue_split(&mut self, execution: ExecutionKey) {
        if let Some(Cell::Live(live)) = self.cells.get_mut(&execution)
            && can_go_on(live)
            && !std::mem::replace(&mut live.is_queued, true)
        {
            self.to_continue.push(live.tenant, execution);
        }
    }

    /// Goes on with one execution whose turn was split. A timer that is due goes first: a deadline ends also an
    /// execution that never comes to rest.
    pub(super) fn continue_one(&mut self, now: u64) {
        while let Some(execution) = self.to_continue.pop() {
            let Some(Cell::Live(live)) = self.cells.get_mut(&execution) else { continue };
            live.is_queued = false;
            // Another input was taken in meanwhile, and its commit queues the execution again.
            if !can_go_on(live) {
                continue;
            }
            let input = match self.next_timer(execution, now) {
                Some((at, timer)) if at <= now => {
                    self.tally.timer(now - at);
                    Input::Timer(timer)
                }
                _ => Input::Continue,
            };
            return self.turn(now, execution, Queued::silent(input));
        }
    }

    /// The first timer of an execution in memory that may fire. An attempt of which it is not known yet whether it runs is
    /// not out of time: a node that was down for long would report a timeout where the attempt was interrupted. What is
    /// due besides does not wait for it.
    pub(super) fn next_timer(&self, execution: ExecutionKey, now: u64) -> Option<(u64, Timer)> {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return None };
        let adopting = self.adopting.get(&execution);
        let waits = |timer: &Timer| match (timer, adopting) {
            (Timer::Attempt(instance, attempt), Some(adopting)) => adopting.get(instance) == Some(attempt),
            _ => false,
        };
        live.state.timers.iter().find(|(at, timer)| *at > now || !waits(timer)).cloned()
    }
}

fn can_go_on(live: &Live) -> bool {
    live.state.is_split && live.on_the_way == 0 && live.draft.is_empty()
}
