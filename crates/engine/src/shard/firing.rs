//! Due timers, and timeouts of attempts that wait for a permit.

use mainspring_kernel::{
    input::{Input, Timer},
    instance::Instance,
    key::ExecutionKey,
    state::State,
};

use super::{
    Shard,
    attempts::{AttemptId, AttemptState, Timeout},
    entry::ExecutionEntry,
    protocol::PendingInput,
    split::Next,
};
use crate::limits::{PERMIT_WAIT_MS_MAX, SHARED_TIMERS_AT_A_TIME};

/// Timers fired per event, so that an execution that repeatedly sleeps for no time does not occupy the shard. The rest
/// fires with the next event, for which the shard asks at once.
const TIMERS_AT_A_TIME: usize = 256;

impl Shard {
    /// Fires the due timers. An execution that is not in memory is loaded first.
    pub(super) fn fire_timers(&mut self, now: u64) {
        let at_a_time = if self.queues.activity.is_shared() { SHARED_TIMERS_AT_A_TIME } else { TIMERS_AT_A_TIME };
        for _ in 0..at_a_time {
            let Some(execution) = self.timers.next_due(now) else { return };
            match self.executions.get_mut(&execution) {
                Some(ExecutionEntry::Loaded(loaded)) if loaded.state.journal.is_split => self.timers.remove(execution),
                Some(ExecutionEntry::Loaded(_)) => match self.next_timer(execution, now) {
                    Some(Next { at, timer }) if at <= now => {
                        self.telemetry.counters.timer(now - at);
                        self.fire(now, execution, timer);
                    }
                    next => self.set_timer(execution, next.map(|next| next.at)),
                },
                Some(ExecutionEntry::Loading(_)) => self.timers.remove(execution),
                Some(ExecutionEntry::Evaluating(out)) => {
                    out.is_overdue = true;
                    self.timers.remove(execution);
                    self.abandon(execution);
                }
                None => {
                    self.timers.remove(execution);
                    if self.is_held_back(now, execution, Vec::new()).is_some() {
                        self.load(execution, Vec::new(), Vec::new());
                    }
                }
            }
        }
    }

    fn fire(&mut self, now: u64, execution: ExecutionKey, (due, timer): (u64, Timer)) {
        self.turn(now, execution, PendingInput::without_reply(Input::Timer(timer.clone())));
        // A timer without an effect would fire forever: that is a fault of `decide`.
        if let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution)
            && !loaded.state.journal.is_split
            && loaded.state.open.timers.contains(&(due, timer.clone()))
        {
            self.quarantine(execution, format!("a timer has no effect: {timer:?}"));
        }
    }

    /// Sets or removes the wake-up time of an execution.
    pub(super) fn set_timer(&mut self, execution: ExecutionKey, at: Option<u64>) {
        self.timers.set(execution, self.tenant_key(execution), at);
    }

    /// Postpones the timeout of an attempt until [`Event::Began`](super::Event::Began), as it waits for a permit.
    pub fn wait_for_permit(&mut self, execution: ExecutionKey, instance: &Instance, attempt: u32) {
        if let Some(running) = self.attempts.running_mut(&AttemptId::new(execution, instance.clone(), attempt)) {
            running.timeout = Timeout::Waits;
        }
    }

    pub(super) fn began(&mut self, now: u64, execution: ExecutionKey, instance: Instance, attempt: u32) {
        if let Some(running) = self.attempts.running_mut(&AttemptId::new(execution, instance, attempt)) {
            running.timeout = Timeout::Since(now);
            self.reschedule(execution);
        }
    }

    /// The time at which a timer of an execution fires.
    pub(super) fn fires_at(&self, state: &State, (at, timer): &(u64, Timer)) -> u64 {
        let Timer::Attempt(instance, attempt) = timer else { return *at };
        let timeout = match self.attempts.get(&AttemptId::new(state.key, instance.clone(), *attempt)) {
            Some(AttemptState::Running(running)) => running.timeout,
            _ => Timeout::FromDispatch,
        };
        match timeout {
            Timeout::FromDispatch => *at,
            Timeout::Waits => at.saturating_add(PERMIT_WAIT_MS_MAX),
            Timeout::Since(began) => {
                let timeout_ms = state.plan.step(instance.step).timeout_ms.unwrap_or_default();
                began.saturating_add(timeout_ms).max(*at)
            }
        }
    }
}
