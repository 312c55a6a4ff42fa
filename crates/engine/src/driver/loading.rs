//! Loads of journals: a few at a time, with permits shared between organizations while many loads wait.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use mainspring_kernel::key::ExecutionKey;

use super::{state::Driver, telemetry};
use crate::{
    fair::QueueFull,
    shard::{Event, LoadAnswer, panics},
};

impl Driver {
    pub(super) fn load(&self, execution: ExecutionKey, number: u64) {
        let (loader, commands, loads) = (self.loader.clone(), self.commands.clone(), self.reads.loads.clone());
        let metrics = self.telemetry.metrics.loads.clone();
        self.runtime.spawn(async move {
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
