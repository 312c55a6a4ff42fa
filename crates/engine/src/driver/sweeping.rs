//! A slow sweep over all unfinished executions: it compares the stored wake-up time with the journal. The column is not
//! sealed, and an execution with a wrong wake-up time would never run again.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Due, Expected, Filter, Store};
use tracing::warn;

use super::{Command, Driver, failures};
use crate::{
    admission::UNFINISHED,
    journal_loader::{LoadError, Loader},
    options::EngineScope,
};

/// Interval of the sweep, if a part of it takes negligible time.
const SWEEP_EVERY: Duration = Duration::from_secs(4);

/// Journals read at a time: with the pause, 3,600 an hour.
const JOURNALS_AT_A_TIME: usize = 4;

/// Rows of the catalogue read at a time. In a shared store, most of them belong to other nodes.
const ROWS_AT_A_TIME: usize = 64;

/// After a slow part, the pause is this many times as long as the part took. A sweep takes at most a fiftieth of one
/// processor, regardless of the size of journals.
const PAUSE_FACTOR: u32 = 50;

/// Position of the sweep.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    before: Option<ExecutionKey>,
    is_out: bool,
    at: Option<tokio::time::Instant>,
}

/// The result of one part of the sweep.
pub(crate) struct Swept {
    before: Option<ExecutionKey>,
    took: Duration,
    due: Vec<Due>,
    /// An execution whose journal causes a panic, with the message of the panic.
    panicked: Option<(ExecutionKey, String)>,
}

impl Swept {
    /// An empty result of a part that starts below a key.
    fn from(before: Option<ExecutionKey>) -> Self {
        Self { before, took: Duration::ZERO, due: Vec::new(), panicked: None }
    }
}

impl Driver {
    /// Compares some executions, unless all permits are taken by loads.
    pub(super) fn sweep(&mut self) {
        let now = tokio::time::Instant::now();
        let is_time = self.sweep.at.is_none_or(|at| at <= now);
        if self.scope != EngineScope::All || self.draining || self.sweep.is_out || !is_time {
            return;
        }
        let held: BTreeSet<u32> = self.shard.held().collect();
        let Some(permit) = self.loads.try_acquire() else { return };
        self.sweep.is_out = true;
        let (store, loader, commands) = (self.store.clone(), self.loader.clone(), self.commands.clone());
        let before = self.sweep.before;
        tokio::task::spawn_blocking(move || {
            // A panic without an answer would prevent all further parts.
            let result = catch_unwind(AssertUnwindSafe(|| sweep(&store, &loader, &held, before)));
            let swept = result.unwrap_or_else(|_| Swept::from(before));
            drop(permit);
            let _ = commands.send(Command::Swept(swept));
        });
    }

    pub(super) fn swept(&mut self, swept: Swept) {
        let pause = SWEEP_EVERY.max(swept.took * PAUSE_FACTOR);
        self.sweep = Sweep { before: swept.before, is_out: false, at: Some(tokio::time::Instant::now() + pause) };
        if let Some((execution, why)) = swept.panicked
            && !self.draining
        {
            tracing::error!(%execution, why, "an execution whose journal cannot be read was found, and is on_read at");
            self.handle(crate::shard::Event::Due(vec![Due { execution, wake_at: 0 }]));
        }
        if !swept.due.is_empty() && !self.draining {
            self.handle(crate::shard::Event::Due(swept.due));
        }
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
