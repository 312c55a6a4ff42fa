//! What a shard counts of itself: plain numbers, which whoever drives it takes now and then.
//!
//! The shard knows nothing of metrics, as it knows nothing of clocks: a number is added where something happens, and that
//! is all that it costs.

use mainspring_kernel::input::Input;
use mainspring_store::{Answer, CommitError, Part, is_final};

use super::{Shard, cell::Cell};

/// What has happened since the numbers were last taken.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Turns that gave a frame, in the order of [`INPUTS`].
    pub turns: [u64; INPUTS.len()],
    /// Inputs that changed nothing: repeated, late or stale.
    pub unchanged: u64,
    /// Commits, in the order of [`COMMIT_ANSWERS`].
    pub commits: [u64; COMMIT_ANSWERS.len()],
    /// Parts of commits that are durable.
    pub parts_durable: u64,
    /// Parts of commits that were refused.
    pub parts_refused: u64,
    /// Executions whose beginning is durable.
    pub begun: u64,
    /// Executions whose end is durable, in the order of [`ENDINGS`].
    pub ended: [u64; ENDINGS.len()],
    /// Receipts that count for nothing and are kept beside a journal.
    pub late_receipts: u64,
    /// By how many milliseconds each timer was taken in too late; no more than [`LATENESS_KEPT_MAX`] of them.
    pub lateness_ms: Vec<u64>,
}

/// The words for what a turn takes in.
pub const INPUTS: [&str; 9] =
    ["start", "receipt", "timer", "decide", "signal", "cancel", "continue", "child_waits", "admit"];

/// The words for what became of a commit. One of which a part was refused counts as refused.
pub const COMMIT_ANSWERS: [&str; 5] = ["durable", "refused", "not_written", "unknown", "fatal"];

/// The words for how executions end.
pub const ENDINGS: [&str; 3] = ["completed", "failed", "cancelled"];

/// Nobody may ever take the numbers of a shard, as in a simulation: what is kept of each timer is bounded.
pub const LATENESS_KEPT_MAX: usize = 4096;

/// Executions in memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// Something of them is out, or on its way to the disk.
    pub live: usize,
    /// Nothing of them is going on.
    pub resting: usize,
    /// Their journals are being read.
    pub loading: usize,
    /// A turn of theirs waits for functions or schemas.
    pub evaluating: usize,
}

impl Shard {
    /// What was counted; whoever reads it sets it back with [`Tally::clear`].
    pub fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Counts the executions in memory. Looks at each of them.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        for cell in self.cells.values() {
            match cell {
                Cell::Loading(_) => census.loading += 1,
                Cell::Live(live) if live.is_idle() => census.resting += 1,
                Cell::Live(_) => census.live += 1,
                Cell::Evaluating(_) => census.evaluating += 1,
            }
        }
        census
    }
}

impl Tally {
    /// Begins anew, and keeps its memory.
    pub fn clear(&mut self) {
        let mut lateness_ms = std::mem::take(&mut self.lateness_ms);
        lateness_ms.clear();
        *self = Self { lateness_ms, ..Self::default() };
    }

    pub(super) fn turn(&mut self, input: &Input) {
        let place = match input {
            Input::Start(_) => 0,
            Input::Receipt { .. } => 1,
            Input::Timer(_) => 2,
            Input::Decide { .. } => 3,
            Input::Signal { .. } => 4,
            Input::Cancel { .. } => 5,
            Input::Continue => 6,
            Input::ChildWaits { .. } => 7,
            Input::Admit => 8,
        };
        self.turns[place] += 1;
    }

    pub(super) fn timer(&mut self, late_by_ms: u64) {
        if self.lateness_ms.len() < LATENESS_KEPT_MAX {
            self.lateness_ms.push(late_by_ms);
        }
    }

    pub(super) fn commit(&mut self, answer: &Result<Vec<Answer>, CommitError>) {
        let place = match answer {
            Ok(answers) => {
                let durable = answers.iter().filter(|answer| **answer == Answer::Durable).count();
                self.parts_durable += durable as u64;
                self.parts_refused += (answers.len() - durable) as u64;
                usize::from(durable < answers.len())
            }
            Err(CommitError::NotWritten(_) | CommitError::Refused(_) | CommitError::Blocked(_)) => 2,
            Err(CommitError::Unknown(_)) => 3,
            Err(CommitError::Fatal(_)) => 4,
        };
        self.commits[place] += 1;
    }

    pub(super) fn durable(&mut self, part: &Part) {
        self.late_receipts += part.late.len() as u64;
        self.begun += u64::from(part.row.is_some());
        let row = part.row.as_ref().map(|row| &row.status);
        let change = part.change.as_ref().map(|change| &change.status);
        if let Some(status) = row.or(change).filter(|status| is_final(status))
            && let Some(place) = ENDINGS.iter().position(|ending| ending == status)
        {
            self.ended[place] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::state::ExecutionStatus;

    use super::*;

    #[test]
    fn every_end_has_its_word_and_no_other_status() {
        use ExecutionStatus::{CancelRequested, Cancelled, Completed, Failed, Pending, Running, WaitingApproval};
        assert_eq!(ENDINGS, [Completed, Failed, Cancelled].map(ExecutionStatus::name));
        let others = [Pending, Running, WaitingApproval, CancelRequested];
        assert!(others.iter().all(|status| !ENDINGS.contains(&status.name())));
    }

    #[test]
    fn what_nobody_takes_does_not_grow() {
        let mut tally = Tally::default();
        for late_by_ms in 0..2 * LATENESS_KEPT_MAX as u64 {
            tally.timer(late_by_ms);
        }
        assert_eq!(tally.lateness_ms.len(), LATENESS_KEPT_MAX);
        tally.turn(&Input::Continue);
        tally.clear();
        assert_eq!(tally, Tally::default());
    }
}
