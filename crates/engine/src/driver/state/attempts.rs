//! The executors and the running attempts.

use std::{collections::BTreeMap, time::Instant};

use mainspring_effects::{CancelHandle, Executors};

use crate::{driver::metrics::Effect, fair::FairSemaphore, node::AttemptId};

/// The executors and the running attempts.
pub(in crate::driver) struct Attempts {
    pub(in crate::driver) executors: Executors,
    /// Permits for effects.
    pub(in crate::driver) permits: FairSemaphore<String>,
    pub(in crate::driver) running: BTreeMap<AttemptId, RunningAttempt>,
}

/// An attempt in progress, with the time of its start.
pub(in crate::driver) struct RunningAttempt {
    pub(in crate::driver) cancel_handle: CancelHandle,
    pub(in crate::driver) effect: Effect,
    pub(in crate::driver) step: String,
    pub(in crate::driver) began: Instant,
}

impl Attempts {
    pub(in crate::driver) fn new(executors: Executors, permits: FairSemaphore<String>) -> Self {
        Self { executors, permits, running: BTreeMap::new() }
    }

    pub(in crate::driver) fn executors(&self) -> &Executors {
        &self.executors
    }

    /// Stops an attempt. Does nothing if it no longer runs here.
    pub(in crate::driver) fn end(&self, name: &AttemptId, end: fn(&CancelHandle)) {
        self.running.get(name).into_iter().for_each(|underway| end(&underway.cancel_handle));
    }

    pub(in crate::driver) fn ended(&mut self, name: &AttemptId) -> Option<RunningAttempt> {
        self.running.remove(name)
    }
}
