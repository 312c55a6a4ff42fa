//! Permits for loads of journals: a few at a time, shared between organizations while many loads wait.

use std::sync::Arc;

use mainspring_kernel::key::ExecutionKey;
use tokio::sync::Semaphore;

use crate::{
    fair::{Bounds, FairPermit, FairSemaphore},
    journal_loader::Loader,
    limits::{LOADS_AT_A_TIME, UNSHARED_LOADS_MAX},
};

/// Permits for loads.
#[derive(Clone)]
pub(in crate::driver) struct Loads {
    pub(in crate::driver) permits: FairSemaphore<String>,
    /// Permits for reads of an execution's organization. They do not wait behind loads.
    pub(in crate::driver) schedule: Arc<Semaphore>,
    /// A reference per requested load, and one of this struct: the reference count is the number of loads.
    pub(in crate::driver) asked: Arc<()>,
}

impl Default for Loads {
    fn default() -> Self {
        Self {
            permits: FairSemaphore::new(Bounds::of(LOADS_AT_A_TIME)),
            schedule: Arc::new(Semaphore::new(LOADS_AT_A_TIME)),
            asked: Arc::default(),
        }
    }
}

impl Loads {
    /// Returns a permit for background work, which can wait for a time with fewer loads.
    pub(in crate::driver) fn try_acquire(&self) -> Option<FairPermit<String>> {
        self.permits.try_acquire(String::new())
    }

    /// Returns the organization that a load counts for, or an empty string while few loads are requested. It is read
    /// from the store, since the execution is not in memory.
    pub(in crate::driver) async fn organization(&self, loader: &Arc<Loader>, execution: ExecutionKey) -> String {
        // The driver holds one reference.
        if Arc::strong_count(&self.asked) <= 1 + UNSHARED_LOADS_MAX {
            return String::new();
        }
        let (loader, permit) = (loader.clone(), self.schedule.acquire().await);
        let row = tokio::task::spawn_blocking(move || loader.store().execution(execution)).await;
        drop(permit);
        // An error of the store is reported by the load itself.
        row.ok().and_then(Result::ok).flatten().and_then(|row| row.organization).unwrap_or_default()
    }
}
