//! Counters of the shard: plain numbers that the driver takes periodically.
//!
//! The shard depends on no metrics library and no clock. Counting is an addition.

use mainspring_kernel::{budget::Usage, input::Input};
use mainspring_store::{CommitError, Part, PartOutcome, is_final};

use super::{Shard, entry::ExecutionEntry};

/// Counts since the last [`clear`](Counters::clear).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Turns that produced a frame, in the order of [`INPUTS`].
    pub turns: [u64; INPUTS.len()],
    /// Inputs that changed nothing: repeated, late or stale.
    pub unchanged: u64,
    /// Commits, in the order of [`COMMIT_ANSWERS`].
    pub commits: [u64; COMMIT_ANSWERS.len()],
    /// Durable parts of commits.
    pub parts_durable: u64,
    /// Refused parts of commits.
    pub parts_refused: u64,
    /// Executions whose start is durable.
    pub started: u64,
    /// Executions whose end is durable, in the order of [`ENDINGS`].
    pub ended: [u64; ENDINGS.len()],
    /// Late receipts that were stored beside a journal.
    pub late_receipts: u64,
    /// The amounts that agents have used, according to durable receipts.
    pub used: Usage,
    /// Lateness of each fired timer in milliseconds, at most [`LATENESS_KEPT_MAX`] values.
    pub lateness_ms: Vec<u64>,
}

/// The parts of the shard that people observe.
#[derive(Debug, Default)]
pub(super) struct Telemetry {
    pub(super) counters: Counters,
    /// Durable frames contain the spans that end with them.
    pub(super) makes_spans: bool,
}

/// Labels of inputs.
pub const INPUTS: [&str; 13] = [
    "start",
    "receipt",
    "timer",
    "decide",
    "signal",
    "cancel",
    "continue",
    "child_waits",
    "admit",
    "skip_cleanup",
    "message",
    "lease",
    "migrate",
];

/// Labels of commit results. A commit with a refused part counts as refused.
pub const COMMIT_ANSWERS: [&str; 5] = ["durable", "refused", "not_written", "unknown", "fatal"];

/// Labels of final statuses.
pub const ENDINGS: [&str; 3] = ["completed", "failed", "cancelled"];

/// Bound of `lateness_ms`, since a simulation never clears it.
pub const LATENESS_KEPT_MAX: usize = 4096;

/// Executions in memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StateCounts {
    /// With open work or a commit in flight.
    pub active: usize,
    /// Without work in progress.
    pub idle: usize,
    /// Waiting for their journals.
    pub loading: usize,
    /// With a turn that waits for functions or schemas.
    pub evaluating: usize,
}

impl Shard {
    /// The counters. The reader resets them with [`Counters::clear`].
    pub fn counters(&mut self) -> &mut Counters {
        &mut self.telemetry.counters
    }

    /// Counts the executions in memory, by visiting each.
    pub fn counts(&self) -> StateCounts {
        let mut counts = StateCounts::default();
        for entry in self.executions.values() {
            match entry {
                ExecutionEntry::Loading(_) => counts.loading += 1,
                ExecutionEntry::Loaded(loaded) if loaded.is_idle() => counts.idle += 1,
                ExecutionEntry::Loaded(_) => counts.active += 1,
                ExecutionEntry::Evaluating(_) => counts.evaluating += 1,
            }
        }
        counts
    }
}

impl Counters {
    /// Resets the counters and keeps the allocated memory.
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
            Input::SkipCleanup { .. } => 9,
            Input::Message { .. } => 10,
            Input::Lease { .. } => 11,
            Input::Migrate { .. } => 12,
        };
        self.turns[place] += 1;
    }

    pub(super) fn timer(&mut self, late_by_ms: u64) {
        if self.lateness_ms.len() < LATENESS_KEPT_MAX {
            self.lateness_ms.push(late_by_ms);
        }
    }

    pub(super) fn commit(&mut self, answer: &Result<Vec<PartOutcome>, CommitError>) {
        let place = match answer {
            Ok(answers) => {
                let durable = answers.iter().filter(|answer| **answer == PartOutcome::Durable).count();
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
        self.late_receipts += part.receipts.late.len() as u64;
        if let Some(account) = part.receipts.account.as_deref().filter(|_| !part.frames.is_empty()) {
            self.used = account.used.values().fold(self.used, |sum, used| sum.plus(*used));
        }
        self.started += u64::from(part.row.is_some());
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
    fn every_final_status_has_a_label() {
        use ExecutionStatus::{CancelRequested, Cancelled, Completed, Failed, Pending, Running, WaitingApproval};
        assert_eq!(ENDINGS, [Completed, Failed, Cancelled].map(ExecutionStatus::name));
        let others = [Pending, Running, WaitingApproval, CancelRequested];
        assert!(others.iter().all(|status| !ENDINGS.contains(&status.name())));
    }

    #[test]
    fn untaken_counters_are_bounded() {
        let mut counters = Counters::default();
        for late_by_ms in 0..2 * LATENESS_KEPT_MAX as u64 {
            counters.timer(late_by_ms);
        }
        assert_eq!(counters.lateness_ms.len(), LATENESS_KEPT_MAX);
        counters.turn(&Input::Continue);
        counters.clear();
        assert_eq!(counters, Counters::default());
    }
}
