//! Shadow runs: chooses recorded executions, and replays them with another plan. No effect is performed.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_engine::{
    evaluator::{Evaluator, ForTenant, evaluate},
    journal_loader::{Bounded, LoadError, Loader},
    start_request::stored_plan,
};
use mainspring_kernel::{
    evaluation::{Evaluated, Evaluation},
    hash::Hash,
    plan::Plan,
};
use mainspring_review::shadow::{
    Candidate, Change, ExecutionReport, Recorder, Recording, ShadowReport, Unusable, compare, replay, select,
};
use mainspring_store::{ExecutionRow, Filter, Store, StoreError};

/// Bounds of one shadow run.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Ended executions, the newest first, among which the replayed ones are chosen.
    pub candidates_max: usize,
    /// Bytes of one journal. A larger one is not replayed.
    pub journal_bytes_max: usize,
    /// Evaluations of functions and schemas that the recording does not answer.
    pub evaluations_max: usize,
    /// Milliseconds for the whole run.
    pub time_max_ms: u64,
}

impl Bounds {
    /// Bounds of a command, whose user waits and owns the machine.
    pub const COMMAND: Self = Self {
        candidates_max: 200,
        journal_bytes_max: 64 * 1024 * 1024,
        evaluations_max: 10_000,
        time_max_ms: 10 * 60_000,
    };

    /// Bounds of a request at a server: one member takes one slot for some seconds, and some megabytes of memory.
    pub const REQUEST: Self =
        Self { candidates_max: 100, journal_bytes_max: 4 * 1024 * 1024, evaluations_max: 500, time_max_ms: 10_000 };
}

/// The parts of an installation that a shadow run reads.
#[derive(Clone, Copy)]
pub struct Source<'s> {
    /// The store of executions.
    pub store: &'s dyn Store,
    /// Reads and checks journals.
    pub loader: &'s Loader,
    /// Evaluates functions and schemas.
    pub evaluator: &'s dyn Evaluator,
    /// The organization that is charged for evaluations; empty for the user of this machine.
    pub tenant: &'s str,
    /// Milliseconds since any fixed time.
    pub clock: fn() -> u64,
    /// Limits in time, memory and evaluations.
    pub bounds: Bounds,
}

/// A shadow run in progress.
pub struct ShadowRun<'s> {
    source: Source<'s>,
    ends_at: u64,
    evaluations: usize,
}

/// The reason for which an execution has no recording.
enum Skipped {
    /// It is left out of the choice.
    Reason(String),
    /// The store did not answer.
    Store(StoreError),
}

impl<'s> ShadowRun<'s> {
    /// Begins a run; its time starts now.
    pub fn new(source: Source<'s>) -> Self {
        let ends_at = (source.clock)().saturating_add(source.bounds.time_max_ms);
        Self { source, ends_at, evaluations: 0 }
    }

    /// Chooses at most `count` ended executions, so that every branch that the newest ones have taken occurs.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn choose(&self, filter: Filter, count: usize) -> Result<Vec<ExecutionRow>, StoreError> {
        let statuses = ["completed", "failed", "cancelled"].map(String::from).into();
        let filter = Filter { statuses, excludes_quarantined: true, ..filter };
        let rows = self.source.store.executions(&filter, None, self.source.bounds.candidates_max)?;
        let mut candidates = Vec::with_capacity(rows.len());
        for row in &rows {
            let features = match self.is_over() {
                true => BTreeSet::new(),
                false => match self.recording(row) {
                    Ok(recording) => recording.trail.features(),
                    Err(Skipped::Reason(_)) => BTreeSet::new(),
                    Err(Skipped::Store(error)) => return Err(error),
                },
            };
            candidates.push(Candidate { features });
        }
        let chosen: BTreeSet<usize> = select(&candidates, count).into_iter().collect();
        let rows = rows.into_iter().enumerate().filter(|(place, _)| chosen.contains(place));
        Ok(rows.map(|(_, row)| row).collect())
    }

    /// Replays executions with a plan. Values are in the report if `shows_values` is true.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn run(
        &mut self,
        plan: &Arc<Plan>,
        rows: &[ExecutionRow],
        shows_values: bool,
    ) -> Result<ShadowReport, StoreError> {
        let change = Change { plan: plan.clone(), plan_hash: Hash::of(&stored_plan(plan).bytes) };
        let mut executions = Vec::with_capacity(rows.len());
        for row in rows {
            executions.push(self.replay(row, &change, shows_values)?);
        }
        Ok(ShadowReport { proposed_hash: plan.workflow_hash, executions })
    }

    fn replay(
        &mut self,
        row: &ExecutionRow,
        change: &Change,
        shows_values: bool,
    ) -> Result<ExecutionReport, StoreError> {
        if self.is_over() {
            let why = format!("the {} ms of the shadow run have passed", self.source.bounds.time_max_ms);
            return Ok(ExecutionReport::refused(row.id.clone(), why));
        }
        let recording = match self.recording(row) {
            Ok(recording) => recording,
            Err(Skipped::Reason(why)) => return Ok(ExecutionReport::refused(row.id.clone(), why)),
            Err(Skipped::Store(error)) => return Err(error),
        };
        let result = replay(&recording, change, &mut |requests| self.evaluate(requests), &mut |_, _| {});
        Ok(compare(&recording, result, shows_values))
    }

    fn evaluate(&mut self, requests: &[&Evaluation]) -> Option<Vec<Evaluated>> {
        let evaluator = ForTenant { evaluator: self.source.evaluator, tenant: self.source.tenant };
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            self.evaluations += 1;
            if self.evaluations > self.source.bounds.evaluations_max || self.is_over() {
                return None;
            }
            results.push(evaluate(request, &evaluator));
        }
        Some(results)
    }

    fn is_over(&self) -> bool {
        (self.source.clock)() >= self.ends_at
    }

    fn recording(&self, row: &ExecutionRow) -> Result<Recording, Skipped> {
        let (mut recorder, mut unusable): (Option<Recorder>, Option<Unusable>) = (None, None);
        let bytes_max = self.source.bounds.journal_bytes_max;
        let read = self.source.loader.frames_within(row.key, bytes_max, |state, frame| {
            let recorder = recorder.get_or_insert_with(|| Recorder::new(state.key, state.plan.clone()));
            if unusable.is_none() {
                unusable = recorder.push(frame).err();
            }
        });
        let skipped = |why: &str| Skipped::Reason(why.into());
        match read {
            Ok(Bounded::Read) => {}
            Ok(Bounded::TooLarge) => return Err(skipped(&format!("its journal has more than {bytes_max} bytes"))),
            Ok(Bounded::Missing) => return Err(skipped("its journal is missing")),
            Err(LoadError::Store(error)) => return Err(Skipped::Store(error)),
            Err(error) => return Err(Skipped::Reason(error.to_string())),
        }
        if let Some(why) = unusable {
            return Err(Skipped::Reason(why.to_string()));
        }
        let recorder = recorder.ok_or_else(|| skipped("its journal is empty"))?;
        recorder.finish().map_err(|why| Skipped::Reason(why.to_string()))
    }
}
