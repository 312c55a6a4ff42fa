//! Faults of clocks, rows and backups. They strike in every eighth seed, by dice of their own: the other seeds give the
//! same bytes with them and without, so that a bug that a seed has found is found by that seed again.

use std::collections::BTreeMap;

use mainspring_engine::limits::REFUSALS_MAX;
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Batch, Part};

use super::{Cluster, Fault, Happening};
use crate::faults::Dice;

/// One seed in so many has mishaps.
const SEEDS_BETWEEN: u64 = 8;

/// Milliseconds between two mishaps, on average.
const EVERY_MS: u64 = 8_000;

/// A kind of mishap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    /// Clocks jump, stand still, or stand still with their guest.
    Clocks,
    /// The store refuses what an execution has to write, and takes it later.
    Refusals,
}

/// Every kind.
const ALL: [Mishap; 2] = [Mishap::Clocks, Mishap::Refusals];

/// What has to be met by some seed of a test run.
pub(super) const MET: [&str; 7] = [
    "clock jumps ahead",
    "clock jumps back",
    "clock stands still",
    "guest paused for longer than its lease",
    REFUSED_AMONG_OTHERS,
    REFUSED_ALONE,
    REFUSED_FIRST,
];

const REFUSED_AMONG_OTHERS: &str = "commit refused for one of its executions";
const REFUSED_ALONE: &str = "execution refused alone";
const REFUSED_FIRST: &str = "beginning refused alone";

/// Percent of parts that begin to be refused.
const REFUSED: u64 = 2;

/// The mishaps of a seed.
#[derive(Debug, Clone)]
pub(super) struct Mishaps {
    pub(super) dice: Dice,
    kinds: Vec<Mishap>,
    /// Executions that were ever refused, and how often more they are refused alone: so seldom that none is quarantined.
    refused: BTreeMap<ExecutionKey, u32>,
}

impl Mishaps {
    pub(super) fn of(seed: u64) -> Self {
        let kinds = if seed % SEEDS_BETWEEN == SEEDS_BETWEEN - 1 { ALL.to_vec() } else { Vec::new() };
        Self { dice: Dice::new(!seed), kinds, refused: BTreeMap::new() }
    }

    /// Leaves what an author's case can be held against: these faults, in any seed, or all where none is given.
    pub(super) fn keep_only_of(&mut self, faults: &[Fault]) {
        if !faults.is_empty() {
            let kind = |fault: &Fault| match fault {
                Fault::Clocks => Some(Mishap::Clocks),
                Fault::Refusals => Some(Mishap::Refusals),
                _ => None,
            };
            self.kinds = faults.iter().filter_map(kind).collect();
        }
    }

    pub(super) fn strikes(&self, kind: Mishap) -> bool {
        self.kinds.contains(&kind)
    }
}

impl Cluster {
    /// The first mishap is thought up, in a seed that has any.
    pub(super) fn expect_mishaps(&mut self) {
        if !self.mishaps.kinds.is_empty() {
            self.at(EVERY_MS / 2, Happening::Mishap);
        }
    }

    /// Whether the store refuses a commit for what one of its executions has to write. That one is refused in every commit
    /// until it was refused alone.
    pub(super) fn refuses(&mut self, batch: &Batch) -> bool {
        if !self.mishaps.strikes(Mishap::Refusals) {
            return false;
        }
        let is_calm = self.is_calm();
        let Mishaps { dice, refused, .. } = &mut self.mishaps;
        for part in batch.parts.iter().filter(|part| !part.frames.is_empty() && !is_calm) {
            if !refused.contains_key(&part.execution) && dice.chance(REFUSED) {
                refused.insert(part.execution, 1 + dice.below(u64::from(REFUSALS_MAX) - 1) as u32);
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
        self.table.met_fault(fault);
        true
    }

    pub(super) fn mishap(&mut self) {
        if self.is_calm() {
            return self.set_clocks_right();
        }
        let node = self.mishaps.dice.below(self.size.nodes as u64) as usize;
        let kinds = self.mishaps.kinds.clone();
        match *self.mishaps.dice.pick(&kinds) {
            Mishap::Clocks => self.strike_clock(node),
            // Commits meet them.
            Mishap::Refusals => {}
        }
        let next = 1 + self.mishaps.dice.below(2 * EVERY_MS);
        self.at(next, Happening::Mishap);
    }
}
