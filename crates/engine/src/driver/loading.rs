//! Loads of journals: a few at a time, with permits shared between organizations while many loads wait.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use mainspring_kernel::key::ExecutionKey;
use tokio::sync::Semaphore;

use super::{Driver, telemetry};
use crate::{
    fair::{Bounds, FairPermit, FairSemaphore, QueueFull},
    journal_loader::Loader,
    limits::{LOADS_AT_A_TIME, UNSHARED_LOADS_MAX},
    shard::{Event, LoadAnswer, panics},
};

/// Permits for loads.
#[derive(Clone)]
pub(super) struct Loads {
    permits: FairSemaphore<String>,
    /// Permits for reads of an execution's organization. They do not wait behind loads.
    schedule: Arc<Semaphore>,
    /// A reference per requested load, and one of this struct: the reference count is the number of loads.
    asked: Arc<()>,
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
    pub(super) fn try_acquire(&self) -> Option<FairPermit<String>> {
        self.permits.try_acquire(String::new())
    }

    /// Returns the organization that a load counts for, or an empty string while few loads are requested. It is read
    /// from the store, since the execution is not in memory.
    async fn organization(&self, loader: &Arc<Loader>, execution: ExecutionKey) -> String {
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

impl Driver {
    pub(super) fn load(&self, execution: ExecutionKey, number: u64) {
        let (loader, commands, loads) = (self.loader.clone(), self.commands.clone(), self.reads.loads.clone());
        let metrics = self.telemetry.metrics.loads.clone();
        tokio::spawn(async move {
            let organization = loads.organization(&loader, execution).await;
            let permit = match loads.permits.acquire(organization) {
                Ok(request) => Some(request.await),
                Err(QueueFull) => None,
            };
            tokio::task::spawn_blocking(move || {
                let began = Instant::now();
                let load = || loader.load(execution);
                // An execution whose journal causes a panic is quarantined, like one with a damaged journal.
                let answer = catch_unwind(AssertUnwindSafe(load));
                let answer = answer.unwrap_or_else(|panic| LoadAnswer::Broken(panics::why(&*panic)));
                let answer = Box::new(answer);
                metrics.count(&answer, began.elapsed());
                telemetry::log_load(execution, &answer);
                drop((permit, loads));
                let _ = commands.send(Event::Loaded(execution, number, answer).into());
            });
        });
    }
}
