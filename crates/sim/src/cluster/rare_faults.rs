//! Further faults: clock faults, refused commits, foreign rows and panics. They occur in every eighth seed and use RNGs
//! of their own. All other seeds give the same bytes as without them, so a bug that a seed has found is found by that
//! seed again. For the same reason, the faults that quarantine executions occur only in every sixteenth seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use mainspring_engine::{
    evaluator::{InProcess, Suspended},
    limits::REFUSALS_MAX,
    shard::{Event, LoadAnswer},
};
use mainspring_kernel::{key::ExecutionKey, state::State};
use mainspring_store::{Batch, Part};

use super::{Cluster, ClusterEvent, Fault, foreign, load, operators};
use crate::faults::Rng;

/// The faults of this module occur in one of so many seeds.
const SEEDS_BETWEEN: u64 = 8;

/// Average interval between two faults, in milliseconds.
const EVERY_MS: u64 = 8_000;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RareFault {
    /// Clocks jump or stop, or a guest is paused.
    Clocks,
    /// The store refuses the commits of an execution, and accepts them later.
    Refusals,
    /// An intruder writes rows into the store that the engine must reject.
    ForeignRows,
    /// The engine panics once while it reads a journal or evaluates a turn.
    Panics,
}

const ALL: [RareFault; 4] = [RareFault::Clocks, RareFault::Refusals, RareFault::ForeignRows, RareFault::Panics];

/// The kinds without a quarantine.
const WITHOUT_QUARANTINE: [RareFault; 2] = [RareFault::Clocks, RareFault::Refusals];

/// The faults that must occur in some seed of a test run.
pub(super) const RARE_FAULTS: [&str; 23] = [
    load::BUSY,
    "clock jumps ahead",
    "clock jumps back",
    "clock stands still",
    "guest paused for longer than its lease",
    REFUSED_AMONG_OTHERS,
    REFUSED_ALONE,
    REFUSED_FIRST,
    foreign::FRAME,
    foreign::FRAME_AND_HEAD,
    foreign::SEAL,
    foreign::ENDED,
    foreign::WAKE_AT,
    foreign::PARTITION,
    foreign::MESSAGE,
    foreign::START,
    PANICS_READING,
    PANICS_EVALUATING,
    operators::QUARANTINED,
    operators::RELEASED,
    operators::RELEASED_AND_CANCELED,
    operators::NOT_RELEASED,
    operators::ENDED_BY_FORCE,
];

const REFUSED_AMONG_OTHERS: &str = "commit refused for one of its executions";
const REFUSED_ALONE: &str = "execution refused alone";
const REFUSED_FIRST: &str = "beginning refused alone";
const PANICS_READING: &str = "panic while a journal is read";
const PANICS_EVALUATING: &str = "panic in an evaluation";

/// Percent of parts that start a series of refusals.
const REFUSED: u64 = 2;

/// Percent of journals and of evaluations at which the engine panics, once per execution.
const PANICS: u64 = 10;
const PANICS_IN_EVALUATIONS: u64 = 80;

/// The engine's message about a panic.
const PANICKED: &str = "the engine panicked while it worked on this execution; this is a fault of the engine";

/// The further faults of a seed.
#[derive(Debug, Clone)]
pub(super) struct RareFaults {
    pub(super) rng: Rng,
    kinds: Vec<RareFault>,
    /// Executions that were refused, with the number of remaining refusals alone: fewer than lead to a quarantine.
    refused: BTreeMap<ExecutionKey, u32>,
    /// RNG of foreign rows, panics and operators.
    pub(super) others: Rng,
    /// The foreign rows in the store.
    pub(super) rows: BTreeMap<ExecutionKey, foreign::Row>,
    /// Executions whose start is forged.
    pub(super) forged_starts: BTreeSet<ExecutionKey>,
    /// Number of forged messages.
    pub(super) messages: u64,
    /// Executions at which the engine has panicked.
    panicked: BTreeSet<ExecutionKey>,
    /// Executions with an injected cause for a quarantine; no others may be quarantined.
    pub(super) may_be_quarantined: BTreeSet<ExecutionKey>,
}

impl RareFaults {
    pub(super) fn of(seed: u64) -> Self {
        let kinds = match (seed % SEEDS_BETWEEN == SEEDS_BETWEEN - 1, seed / SEEDS_BETWEEN % 2) {
            (true, 0) => WITHOUT_QUARANTINE.to_vec(),
            (true, _) => ALL.to_vec(),
            (false, _) => Vec::new(),
        };
        Self {
            rng: Rng::new(!seed),
            kinds,
            refused: BTreeMap::new(),
            others: Rng::new(seed.rotate_left(32)),
            rows: BTreeMap::new(),
            forged_starts: BTreeSet::new(),
            messages: 0,
            panicked: BTreeSet::new(),
            may_be_quarantined: BTreeSet::new(),
        }
    }

    /// Limits the kinds to the given faults in any seed; an empty list keeps the kinds of the seed.
    pub(super) fn keep_only(&mut self, faults: &[Fault]) {
        if !faults.is_empty() {
            let kind = |fault: &Fault| match fault {
                Fault::Clocks => Some(RareFault::Clocks),
                Fault::Refusals => Some(RareFault::Refusals),
                Fault::ForeignRows => Some(RareFault::ForeignRows),
                Fault::Panics => Some(RareFault::Panics),
                _ => None,
            };
            self.kinds = faults.iter().filter_map(kind).collect();
        }
    }

    pub(super) fn has(&self, kind: RareFault) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns whether executions are quarantined in this seed.
    pub(super) fn quarantines(&self) -> bool {
        self.has(RareFault::ForeignRows) || self.has(RareFault::Panics)
    }
}

impl Cluster {
    /// Schedules the first faults of the seed.
    pub(super) fn schedule_rare_faults(&mut self) {
        if self.rare_faults.has(RareFault::Clocks) || self.rare_faults.has(RareFault::Refusals) {
            self.at(EVERY_MS / 2, ClusterEvent::RareFault);
        }
        if self.rare_faults.has(RareFault::ForeignRows) {
            self.at(EVERY_MS / 2, ClusterEvent::ForeignRow);
        }
        if self.rare_faults.quarantines() {
            self.at(operators::ROUND_MS, ClusterEvent::Operators);
        }
    }

    /// Returns whether the store refuses a commit because of one of its executions. That execution is refused in every
    /// commit until it was refused in a commit of its own.
    pub(super) fn refuses(&mut self, batch: &Batch) -> bool {
        if !self.rare_faults.has(RareFault::Refusals) {
            return false;
        }
        let is_healed = self.is_healed();
        let RareFaults { rng, refused, .. } = &mut self.rare_faults;
        for part in batch.parts.iter().filter(|part| !part.frames.is_empty() && !is_healed) {
            if !refused.contains_key(&part.execution) && rng.chance(REFUSED) {
                refused.insert(part.execution, 1 + rng.below(u64::from(REFUSALS_MAX) - 1) as u32);
            }
        }
        let is_refused = |part: &&Part| refused.get(&part.execution).is_some_and(|left| *left > 0);
        let Some(part) = batch.parts.iter().find(is_refused) else { return false };
        let fault = match (batch.parts.len(), part.expected) {
            (1, Some(_)) => REFUSED_ALONE,
            (1, None) => REFUSED_FIRST,
            _ => REFUSED_AMONG_OTHERS,
        };
        if batch.parts.len() == 1 {
            refused.entry(part.execution).and_modify(|left| *left -= 1);
        }
        self.progress.coverage.add_fault(fault);
        true
    }

    pub(super) fn inject_rare_fault(&mut self) {
        if self.is_healed() {
            return self.set_clocks_right();
        }
        let node = self.rare_faults.rng.below(self.settings.size.nodes as u64) as usize;
        let kinds: Vec<RareFault> =
            self.rare_faults.kinds.iter().copied().filter(|kind| WITHOUT_QUARANTINE.contains(kind)).collect();
        if *self.rare_faults.rng.pick(&kinds) == RareFault::Clocks {
            self.inject_clock_fault(node);
        }
        let next = 1 + self.rare_faults.rng.below(2 * EVERY_MS);
        self.at(next, ClusterEvent::RareFault);
    }

    /// Returns whether an execution may be quarantined. In an author's case children with a waiting parent are exempt:
    /// the parent would see a failure, and take another path than without faults.
    pub(super) fn allows_quarantine(&self, state: &State) -> bool {
        self.workflows.subject.is_none() || state.lineage.parent.is_none()
    }

    fn panics(&mut self, execution: ExecutionKey, percent: u64, fault: &'static str) -> bool {
        if !self.rare_faults.has(RareFault::Panics)
            || self.is_healed()
            || self.rare_faults.panicked.contains(&execution)
        {
            return false;
        }
        let allows_quarantine = self.commits.state(execution).is_some_and(|state| self.allows_quarantine(state));
        if !allows_quarantine || !self.rare_faults.others.chance(percent) {
            return false;
        }
        self.rare_faults.panicked.insert(execution);
        self.rare_faults.may_be_quarantined.insert(execution);
        self.progress.coverage.add_fault(fault);
        true
    }

    /// Loads a journal, or injects a panic while it is read.
    pub(super) fn load(&mut self, execution: ExecutionKey) -> LoadAnswer {
        match self.loader.load(execution) {
            LoadAnswer::Journal(_) if self.panics(execution, PANICS, PANICS_READING) => {
                LoadAnswer::Broken(PANICKED.into())
            }
            answer => answer,
        }
    }

    /// Finishes a turn that waits for evaluations. One third of the evaluations, by number, runs out of time.
    pub(super) fn evaluate(&mut self, execution: ExecutionKey, evaluation: u64, suspended: Suspended) -> Event {
        let panics = self.panics(execution, PANICS_IN_EVALUATIONS, PANICS_EVALUATING);
        let plan = suspended.state.plan.clone();
        let mut is_over = || match panics {
            // Unlike `panic!`, this prints nothing into the output of the tests.
            true => resume_unwind(Box::new("injected panic")),
            false => evaluation.is_multiple_of(3),
        };
        let finish = || suspended.finish(&InProcess, &mut is_over);
        let finished = catch_unwind(AssertUnwindSafe(finish));
        let finished = finished.unwrap_or_else(|_| (State::new(execution, plan), Err(PANICKED.into())));
        Event::Evaluated { execution, evaluation, finished: Box::new(finished) }
    }
}
