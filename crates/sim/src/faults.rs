//! The faults of a run: their probabilities, and the random numbers that decide about them.
//!
//! A probability of 100 needs no random number, so the modes of scenarios are faults like any other: one table of
//! numbers.

use crate::scenario::Mode;

/// The probabilities of the faults of a run, each in percent of its opportunities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Before an input: the node loses its memory and recovers. Calls continue, and their responses arrive.
    pub crash_before_input: u8,
    /// Before an input: the node dies together with its calls, and recovers.
    pub kill_before_input: u8,
    /// An input is delivered a second time, before any result of it is durable.
    pub deliver_twice: u8,
    /// An input is delivered a second time, after all of its results are durable.
    pub deliver_again: u8,
    /// Before an input: one that was accepted long ago is delivered once more.
    pub deliver_late: u8,
    /// The node dies after it has sent a commit, before the commit is on the disk.
    pub crash_before_commit: u8,
    /// The node dies after a commit is on the disk, before any of its effects are released.
    pub crash_after_commit: u8,
    /// A commit is written, and its response is lost.
    pub unknown_written: u8,
    /// A commit is not written, and its response is lost.
    pub unknown_not_written: u8,
    /// A commit is rejected once because the disk is full.
    pub not_written: u8,
    /// At the end, all inputs are delivered once more.
    pub inbox_again: bool,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self {
        crash_before_input: 0,
        kill_before_input: 0,
        deliver_twice: 0,
        deliver_again: 0,
        deliver_late: 0,
        crash_before_commit: 0,
        crash_after_commit: 0,
        unknown_written: 0,
        unknown_not_written: 0,
        not_written: 0,
        inbox_again: false,
    };

    /// Returns the faults of a scenario's mode.
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Straight => Self::NONE,
            Mode::CrashBeforeInputs => Self { crash_before_input: 100, ..Self::NONE },
            Mode::InputsTwice => Self { deliver_twice: 100, deliver_again: 100, ..Self::NONE },
            Mode::InboxAgain => Self { inbox_again: true, ..Self::NONE },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitFault {
    None,
    CrashBefore,
    CrashAfter,
    UnknownWritten,
    UnknownNotWritten,
    NotWritten,
}

/// Draws the faults of a run.
#[derive(Debug, Clone)]
pub(crate) struct FaultInjector {
    pub(crate) faults: Faults,
    rng: Rng,
    /// True if the last commit failed. The next one then succeeds, so that every run ends.
    last_commit_failed: bool,
}

impl FaultInjector {
    pub(crate) fn new(faults: Faults, seed: u64) -> Self {
        Self { faults, rng: Rng::new(seed), last_commit_failed: false }
    }

    pub(crate) fn draws(&mut self, percent: u8) -> bool {
        percent > 0 && self.rng.below(100) < u64::from(percent)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Draws the fault of a commit. A commit without frames has none: it only stores late receipts, and each repetition
    /// of its input would store another one.
    pub(crate) fn of_commit(&mut self, writes_frames: bool) -> CommitFault {
        if !writes_frames || std::mem::take(&mut self.last_commit_failed) {
            return CommitFault::None;
        }
        let chances = [
            (self.faults.crash_before_commit, CommitFault::CrashBefore),
            (self.faults.crash_after_commit, CommitFault::CrashAfter),
            (self.faults.unknown_written, CommitFault::UnknownWritten),
            (self.faults.unknown_not_written, CommitFault::UnknownNotWritten),
            (self.faults.not_written, CommitFault::NotWritten),
        ];
        let fault = chances.into_iter().find(|(percent, _)| self.draws(*percent));
        let fault = fault.map_or(CommitFault::None, |(_, fault)| fault);
        // A written commit is final, so its frames are never committed again.
        let is_retried = !matches!(fault, CommitFault::None | CommitFault::CrashAfter | CommitFault::UnknownWritten);
        self.last_commit_failed = is_retried;
        fault
    }
}

/// Reproducible random numbers: SplitMix64 (Steele, Lea, Flood 2014), small and good enough for choices.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to below the bound; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// Returns true in the given percentage of calls.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}
