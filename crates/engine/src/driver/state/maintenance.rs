//! Progress of the periodic checks of the store.

use std::time::{Duration, Instant};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::Due;

/// Position of the sweep.
#[derive(Debug, Default)]
pub(in crate::driver) struct Sweep {
    pub(in crate::driver) before: Option<ExecutionKey>,
    pub(in crate::driver) is_out: bool,
    pub(in crate::driver) at: Option<Instant>,
}

/// The result of one part of the sweep.
pub(crate) struct Swept {
    pub(in crate::driver) before: Option<ExecutionKey>,
    pub(in crate::driver) took: Duration,
    pub(in crate::driver) due: Vec<Due>,
    /// An execution whose journal causes a panic, with the message of the panic.
    pub(in crate::driver) panicked: Option<(ExecutionKey, String)>,
}

impl Swept {
    /// An empty result of a part that starts below a key.
    pub(in crate::driver) fn from(before: Option<ExecutionKey>) -> Self {
        Self { before, took: Duration::ZERO, due: Vec::new(), panicked: None }
    }
}

/// Progress of the checks.
#[derive(Debug, Default)]
pub(in crate::driver) struct Maintenance {
    /// The time of the next checks.
    pub(in crate::driver) at: Option<Instant>,
    pub(in crate::driver) is_checking_files: bool,
    pub(in crate::driver) sweep: Sweep,
}

impl Maintenance {
    /// The time until the next checks.
    pub(in crate::driver) fn next(&self, now: Instant) -> Duration {
        self.at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}
