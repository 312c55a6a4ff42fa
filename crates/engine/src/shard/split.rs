//! Split turns. A turn beyond the bounds of a frame is cut and continues in a later event. It waits until its
//! frames are durable, so that an execution has at most one frame in memory only. Executions continue one at a time, so
//! that heartbeats, commits and turns of other executions come between.

use mainspring_kernel::{
    input::{Input, Timer},
    key::ExecutionKey,
};

use super::{
    PendingInput, Shard,
    attempts::{AttemptId, AttemptState},
    entry::{ExecutionEntry, LoadedExecution},
    tenants::Tenant,
};

/// The next timer of an execution.
pub(super) struct Next {
    /// The time at which it fires.
    pub(super) at: u64,
    /// The timer with its own time.
    pub(super) timer: (u64, Timer),
}

impl Shard {
    /// Queues an execution whose split turn can continue. While frames of it are not durable, nothing happens, and the
    /// end of their commit calls this again.
    pub(super) fn queue_split(&mut self, execution: ExecutionKey) {
        if let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution)
            && can_continue(loaded)
            && !std::mem::replace(&mut loaded.is_queued, true)
        {
            self.queues.split.push(loaded.tenant, execution);
        }
    }

    /// Returns the organizations with split turns in the order in which they are served.
    pub(crate) fn split_tenants(&self) -> impl Iterator<Item = Tenant> {
        self.queues.split.tenants()
    }

    /// Serves the split turns of an organization next.
    pub(crate) fn put_split_first(&mut self, tenant: Tenant) {
        self.queues.split.put_first(tenant);
    }

    /// Continues the split turn of one execution. Due timers go first, so that a deadline ends an execution that would
    /// otherwise run forever.
    pub(super) fn continue_one(&mut self, now: u64) {
        while let Some(execution) = self.queues.split.pop() {
            let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution) else { continue };
            loaded.is_queued = false;
            // Another input was processed since, and its commit queues the execution again.
            if !can_continue(loaded) {
                continue;
            }
            let input = match self.next_timer(execution, now) {
                Some(Next { at, timer: (_, timer) }) if at <= now => {
                    self.telemetry.counters.timer(now - at);
                    Input::Timer(timer)
                }
                _ => Input::Continue,
            };
            return self.turn(now, execution, PendingInput::without_reply(input));
        }
    }

    /// The first timer of an execution in memory that may fire. The timeout of an attempt that is being recovered does
    /// not fire: after a long downtime it would report a timeout for an interrupted attempt. Other timers do not wait
    /// for it.
    pub(super) fn next_timer(&self, execution: ExecutionKey, now: u64) -> Option<Next> {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return None };
        let waits = |timer: &Timer| match timer {
            Timer::Attempt(instance, attempt) => {
                let id = AttemptId::new(execution, instance.clone(), *attempt);
                self.attempts.get(&id).is_some_and(AttemptState::is_being_recovered)
            }
            _ => false,
        };
        let mut first: Option<Next> = None;
        for timer in loaded.state.open.timers.iter().filter(|(at, timer)| *at > now || !waits(timer)) {
            // No timer fires before its own time, and later ones are set for later times.
            if first.as_ref().is_some_and(|first| first.at <= timer.0) {
                break;
            }
            let at = self.fires_at(&loaded.state, timer);
            if first.as_ref().is_none_or(|first| at < first.at) {
                first = Some(Next { at, timer: timer.clone() });
            }
        }
        first
    }
}

fn can_continue(loaded: &LoadedExecution) -> bool {
    loaded.state.journal.is_split && loaded.on_the_way == 0 && loaded.draft.is_empty()
}
