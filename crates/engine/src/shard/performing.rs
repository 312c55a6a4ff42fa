//! Attempts that run in this process. The timeout of an attempt that waited for a permit counts from its start, so that
//! a full node does not let scripts time out before they run.

use mainspring_kernel::{input::Timer, instance::Instance, key::ExecutionKey, state::State};

use super::Shard;
use crate::limits::PERMIT_WAIT_MS_MAX;

/// An attempt that runs in this process, or waits for a permit.
#[derive(Debug)]
pub(super) struct Performing {
    /// The name of its step.
    pub(super) step: String,
    runs: Runs,
}

/// When the timeout of an attempt begins to count.
#[derive(Debug, Clone, Copy)]
enum Runs {
    /// At its dispatch: the timer fires at its own time.
    AtOnce,
    /// Not yet: the attempt waits for a permit.
    Waits,
    /// At this time, in milliseconds.
    Since(u64),
}

impl Performing {
    /// A dispatched attempt of the named step.
    pub(super) fn new(step: String) -> Self {
        Self { step, runs: Runs::AtOnce }
    }
}

impl Shard {
    /// Postpones the timeout of an attempt until [`Event::Began`](super::Event::Began), as it waits for a permit.
    pub fn wait_for_permit(&mut self, execution: ExecutionKey, instance: &Instance, attempt: u32) {
        if let Some(performing) = self.performing.get_mut(&(execution, instance.clone(), attempt)) {
            performing.runs = Runs::Waits;
        }
    }

    pub(super) fn began(&mut self, now: u64, execution: ExecutionKey, instance: Instance, attempt: u32) {
        if let Some(performing) = self.performing.get_mut(&(execution, instance, attempt)) {
            performing.runs = Runs::Since(now);
            self.reschedule(execution);
        }
    }

    /// The time at which a timer of an execution fires.
    pub(super) fn fires_at(&self, state: &State, (at, timer): &(u64, Timer)) -> u64 {
        let Timer::Attempt(instance, attempt) = timer else { return *at };
        let performing = self.performing.get(&(state.key, instance.clone(), *attempt));
        match performing.map_or(Runs::AtOnce, |performing| performing.runs) {
            Runs::AtOnce => *at,
            Runs::Waits => at.saturating_add(PERMIT_WAIT_MS_MAX),
            Runs::Since(began) => {
                let timeout_ms = state.plan.step(instance.step).timeout_ms.unwrap_or_default();
                began.saturating_add(timeout_ms).max(*at)
            }
        }
    }
}
