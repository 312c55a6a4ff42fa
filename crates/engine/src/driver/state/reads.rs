//! Bounds of the reads from the store, and the results of heartbeats.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};

use super::loads::Loads;
use crate::{
    admission::Limits,
    limits::{COUNTS_AT_A_TIME, LEASES_AT_A_TIME},
    membership::Heartbeat,
    period_budgets::PeriodBudgets,
    shard::Handoff,
};

/// Bounds of the reads, and the results of heartbeats.
pub(in crate::driver) struct Reads {
    pub(in crate::driver) loads: Loads,
    /// Permits for counts and reads of organizations. They do not wait behind loads, which may be many and long.
    pub(in crate::driver) counting: Arc<Semaphore>,
    /// Permits for requests for leases of budgets.
    pub(in crate::driver) leasing: Arc<Semaphore>,
    pub(in crate::driver) limits: Option<Arc<dyn Limits>>,
    pub(in crate::driver) budgets: Option<Arc<dyn PeriodBudgets>>,
    /// Results of heartbeats. They do not wait behind commands.
    pub(in crate::driver) heartbeats:
        (mpsc::UnboundedSender<HeartbeatAnswer>, mpsc::UnboundedReceiver<HeartbeatAnswer>),
}

/// The result of a heartbeat, with the partitions that it released.
pub(in crate::driver) type HeartbeatAnswer = (Handoff, Heartbeat);

impl Reads {
    pub(in crate::driver) fn new(limits: Option<Arc<dyn Limits>>, budgets: Option<Arc<dyn PeriodBudgets>>) -> Self {
        Self {
            loads: Loads::default(),
            counting: Arc::new(Semaphore::new(COUNTS_AT_A_TIME)),
            leasing: Arc::new(Semaphore::new(LEASES_AT_A_TIME)),
            limits,
            budgets,
            heartbeats: mpsc::unbounded_channel(),
        }
    }

    /// Waits for the result of a heartbeat.
    pub(in crate::driver) async fn heartbeat(&mut self) -> Option<HeartbeatAnswer> {
        self.heartbeats.1.recv().await
    }

    /// Returns the result of a heartbeat that has arrived.
    pub(in crate::driver) fn try_heartbeat(&mut self) -> Option<HeartbeatAnswer> {
        self.heartbeats.1.try_recv().ok()
    }
}
