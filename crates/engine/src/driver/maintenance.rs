//! Periodic checks of the store: its files, and a slow sweep over all unfinished executions that compares the stored
//! wake-up time with the journal. The column is not sealed, and an execution with a wrong wake-up time would never run
//! again.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Due, Expected, Filter, Store, StoreError};
use tracing::warn;

use super::{
    command::Command,
    failures,
    state::{
        Driver,
        maintenance::{Sweep, Swept},
    },
};
use crate::{
    admission::UNFINISHED,
    journal_loader::{LoadError, Loader},
    node::NodeEvent,
    shard::Event,
};

/// Interval of the checks.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Interval of the sweep, if a part of it takes negligible time.
const SWEEP_EVERY: Duration = Duration::from_secs(4);

/// Journals read at a time: with the pause, 3,600 an hour.
const JOURNALS_AT_A_TIME: usize = 4;

/// Rows of the catalogue read at a time. In a shared store, most of them belong to other nodes.
const ROWS_AT_A_TIME: usize = 64;

/// After a slow part, the pause is this many times as long as the part took. A sweep takes at most a fiftieth of one
/// processor, regardless of the size of journals.
const PAUSE_FACTOR: u32 = 50;

impl Driver {
    /// Runs the checks when they are due.
    pub(super) fn maintain(&mut self) {
        let now = Instant::now();
        if self.maintenance.next(now) > Duration::ZERO {
            return;
        }
        self.maintenance.at = Some(now + CHECK_EVERY);
        self.callers.forget_gone();
        self.telemetry.count_memory(&self.node);
        self.check_files();
        self.sweep();
    }

    /// Compares some executions, unless all permits are taken by loads.
    pub(super) fn sweep(&mut self) {
        let now = Instant::now();
        let is_time = self.maintenance.sweep.at.is_none_or(|at| at <= now);
        if !self.node.works_on_all() || self.node.is_draining() || self.maintenance.sweep.is_out || !is_time {
            return;
        }
        let held: BTreeSet<u32> = self.node.shard().held().collect();
        let Some(permit) = self.reads.loads.try_acquire() else { return };
        self.maintenance.sweep.is_out = true;
        let (store, loader, commands) = (self.store.clone(), self.loader.clone(), self.commands.clone());
        let before = self.maintenance.sweep.before;
        self.runtime.spawn_blocking(move || {
            // A panic without an answer would prevent all further parts.
            let result = catch_unwind(AssertUnwindSafe(|| sweep(&store, &loader, &held, before)));
            let swept = result.unwrap_or_else(|_| Swept::from(before));
            drop(permit);
            let _ = commands.send(Command::Swept(swept));
        });
    }

    pub(super) fn swept(&mut self, swept: Swept) {
        let pause = SWEEP_EVERY.max(swept.took * PAUSE_FACTOR);
        self.maintenance.sweep = Sweep { before: swept.before, is_out: false, at: Some(Instant::now() + pause) };
        if let Some((execution, why)) = swept.panicked
            && !self.node.is_draining()
        {
            tracing::error!(%execution, why, "an execution whose journal cannot be read was found, and is loaded to be quarantined");
            self.node.receive(NodeEvent::Shard(Event::Due(vec![Due { execution, wake_at: 0 }])));
        }
        if !swept.due.is_empty() && !self.node.is_draining() {
            self.node.receive(NodeEvent::Shard(Event::Due(swept.due)));
        }
    }

    /// Checks that the store still has its files, so that an idle engine stops as well. One check at a time: on a disk
    /// that hangs, further ones would pile up.
    pub(super) fn check_files(&mut self) {
        if self.node.session().is_some() || std::mem::replace(&mut self.maintenance.is_checking_files, true) {
            return;
        }
        let (store, commands) = (self.store.clone(), self.commands.clone());
        self.runtime.spawn_blocking(move || {
            // A panic without an answer would prevent all further checks.
            let found = catch_unwind(AssertUnwindSafe(|| store.check_files())).unwrap_or_else(|panic| {
                let why = failures::text(&*panic);
                Err(StoreError::Unavailable(format!("checking the files of the store panicked: {why}")))
            });
            let _ = commands.send(Command::FilesChecked(found));
        });
    }

    pub(super) fn files_checked(&mut self, found: Result<(), StoreError>) {
        self.maintenance.is_checking_files = false;
        if let Err(error) = found
            && !self.node.is_over()
        {
            self.node.receive(NodeEvent::Fatal(error.to_string()));
        }
    }

    /// Writes the newest durable frame to the data folder, which detects a restored copy of the store. False if that
    /// fails.
    pub(super) fn has_recorded_frames(&mut self) -> bool {
        let (Some((_, held)), Some(frame)) = (&mut self.data_dir, self.store.newest_frame()) else { return true };
        let raised = held.raise(frame);
        raised.inspect_err(|error| warn!(%error, "the file `generation` of the folder cannot be written")).is_ok()
    }
}

fn sweep(store: &Arc<dyn Store>, loader: &Loader, held: &BTreeSet<u32>, before: Option<ExecutionKey>) -> Swept {
    let began = Instant::now();
    let mut swept = Swept::from(before);
    let statuses = UNFINISHED.map(|status| status.name().into()).into();
    let filter = Filter { statuses, excludes_quarantined: true, ..Filter::default() };
    // Repeated after the pause if the store does not answer.
    let Ok(rows) = store.executions(&filter, before, ROWS_AT_A_TIME) else { return swept };
    let is_last = rows.len() < ROWS_AT_A_TIME;
    let mut journals = 0;
    for row in rows {
        if journals == JOURNALS_AT_A_TIME {
            return Swept { took: began.elapsed(), ..swept };
        }
        swept.before = Some(row.key);
        if held.contains(&row.partition) {
            journals += 1;
            // The sweep continues behind a journal that causes a panic.
            match catch_unwind(AssertUnwindSafe(|| repair(store, loader, row.key))) {
                Ok(repaired) => swept.due.extend(repaired.ok().flatten()),
                Err(panic) => {
                    swept.panicked = Some((row.key, failures::text(&*panic).to_owned()));
                    return Swept { took: began.elapsed(), ..swept };
                }
            }
        }
    }
    let before = swept.before.filter(|_| !is_last);
    Swept { before, took: began.elapsed(), ..swept }
}

/// Corrects the wake-up time of an execution if it differs from the journal. Returns it if it is due.
fn repair(store: &Arc<dyn Store>, loader: &Loader, execution: ExecutionKey) -> Result<Option<Due>, LoadError> {
    let Some(head) = store.head(execution)?.filter(|head| head.quarantined.is_none() && !head.ended) else {
        return Ok(None);
    };
    let Some(read) = loader.journal(execution)?.filter(|read| read.journal.head == head.head) else { return Ok(None) };
    let derived = read.journal.state.wake_at().map(|at| at.min(i64::MAX as u64));
    if derived == head.wake_at {
        return Ok(None);
    }
    let expected = Expected { sequence: head.head.sequence, hash: head.head.hash };
    if !store.set_wake_at(execution, expected, derived)? {
        return Ok(None);
    }
    warn!(
        %execution, stored = ?head.wake_at, derived = ?derived,
        "the stored wake-up time of an execution was wrong and was corrected; the store was changed by another program than the engine"
    );
    Ok(derived.map(|wake_at| Due { execution, wake_at }))
}
