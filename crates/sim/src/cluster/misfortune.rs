//! What goes wrong, how often, and for how long.

use mainspring_store::Batch;

use super::{Cluster, Happening};
use crate::{faults::Dice, setup::START_MS};

/// The lease of simulated nodes, in milliseconds.
pub(super) const LEASE_MS: u64 = 10_000;

/// How long before it loses everything a node that is held up is about to.
const ABOUT_TO_LAPSE_MS: u64 = LEASE_MS * 3 / 10;

/// The temper of a seed: each kind of misfortune has a weight of its own, often none.
#[derive(Debug, Clone)]
pub(super) struct Misfortune {
    /// How long it goes on.
    pub(super) lasts_ms: u64,
    /// Percent of commits that are slow, fail, or of which the answer is lost.
    pub(super) slow: u64,
    pub(super) not_written: u64,
    pub(super) unknown_written: u64,
    pub(super) unknown_not_written: u64,
    pub(super) crash_around_commit: u64,
    /// Percent of outputs before which a node stands still.
    pub(super) pause_before_output: u64,
    /// Percent of commits after which a node stands still, if there is a kind of record in them that no pause has followed.
    pub(super) pause_after_new: u64,
    /// Percent of receipts and letters that come twice.
    pub(super) twice: u64,
    /// Percent of reads and words that fail.
    pub(super) read_fails: u64,
    /// Percent of words that are answered after the lease is over, while a commit is on its way and no journal can be read.
    pub(super) held_up: u64,
    /// Percent of words that the store hears and answers late.
    pub(super) late_words: u64,
    /// Percent of receipts whose way into another's inbox takes longer than it takes another to look there.
    pub(super) slow_posts: u64,
    /// Percent of calls that take very long.
    pub(super) long_calls: u64,
    /// Percent of the lives of nodes that cannot make calls.
    pub(super) unable: u64,
    /// Milliseconds between the events below, on average.
    pub(super) every_ms: u64,
    weights: [(u64, Blow); 6],
}

/// What may go wrong, as a command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nodes die, also around commits.
    Crashes,
    /// Nodes leave and come back.
    Leaves,
    /// Nodes stand still, and their leases end.
    Pauses,
    /// The store does not answer for a while, and reads fail.
    Outages,
    /// Commits are refused, or their answers are lost.
    LostAnswers,
    /// Commits, words and posts are slow.
    Delays,
    /// Receipts and inputs come twice.
    Duplicates,
    /// Calls take very long.
    LongCalls,
    /// The store is spread over another number of partitions.
    Repartitions,
    /// Clocks of nodes jump and stand still.
    Clocks,
    /// The store refuses what one execution has to write, and takes it later.
    Refusals,
    /// Somebody writes rows into the store that the engine must not believe, and takes them out later.
    ForeignRows,
    /// The engine panics once over an execution, which is released later.
    Panics,
}

impl Fault {
    /// Every fault and its word.
    pub const ALL: [(&'static str, Self); 13] = [
        ("crashes", Self::Crashes),
        ("leaves", Self::Leaves),
        ("pauses", Self::Pauses),
        ("outages", Self::Outages),
        ("lost-answers", Self::LostAnswers),
        ("delays", Self::Delays),
        ("duplicates", Self::Duplicates),
        ("long-calls", Self::LongCalls),
        ("repartitions", Self::Repartitions),
        ("clocks", Self::Clocks),
        ("refusals", Self::Refusals),
        ("foreign-rows", Self::ForeignRows),
        ("panics", Self::Panics),
    ];
}

/// Something that strikes a node or the store.
#[derive(Debug, Clone, Copy)]
enum Blow {
    Crash,
    Leave,
    Pause,
    LongPause,
    Outage,
    Repartition,
}

impl Misfortune {
    pub(super) fn of(dice: &mut Dice) -> Self {
        let often = |dice: &mut Dice| *dice.pick(&[0, 0, 1, 5, 15]);
        let blow = |dice: &mut Dice, blow| (*dice.pick(&[0, 1, 2, 4]), blow);
        Self {
            lasts_ms: 60_000 + dice.below(240_000),
            slow: *dice.pick(&[0, 2, 10, 40]),
            not_written: often(dice),
            unknown_written: often(dice),
            unknown_not_written: often(dice),
            crash_around_commit: *dice.pick(&[0, 0, 1, 2]),
            pause_before_output: *dice.pick(&[0, 0, 1]),
            pause_after_new: *dice.pick(&[0, 10]),
            twice: often(dice),
            read_fails: often(dice),
            held_up: *dice.pick(&[0, 2, 10, 30]),
            late_words: often(dice),
            slow_posts: *dice.pick(&[0, 2, 10, 40]),
            long_calls: often(dice),
            unable: *dice.pick(&[0, 0, 0, 20]),
            every_ms: *dice.pick(&[1_000, 4_000, 15_000]),
            weights: [
                blow(dice, Blow::Crash),
                blow(dice, Blow::Leave),
                blow(dice, Blow::Pause),
                blow(dice, Blow::LongPause),
                blow(dice, Blow::Outage),
                (*dice.pick(&[0, 0, 0, 1]), Blow::Repartition),
            ],
        }
    }
}

impl Misfortune {
    /// Leaves what an author's case can be held against: only these faults, each often enough to be met, or all as the
    /// seed has them where none is given. A node that cannot make calls is a mistake of its configuration, for which a
    /// call fails.
    pub(super) fn keep_only(&mut self, faults: &[Fault]) {
        self.unable = 0;
        if faults.is_empty() {
            return;
        }
        let percent = |fault: Fault, percent: u64| if faults.contains(&fault) { percent } else { 0 };
        let weight = |blow: Blow| match blow {
            Blow::Crash => percent(Fault::Crashes, 4),
            Blow::Leave => percent(Fault::Leaves, 2),
            Blow::Pause | Blow::LongPause => percent(Fault::Pauses, 2),
            Blow::Outage => percent(Fault::Outages, 2),
            Blow::Repartition => percent(Fault::Repartitions, 1),
        };
        self.slow = percent(Fault::Delays, 20);
        self.late_words = percent(Fault::Delays, 5);
        self.slow_posts = percent(Fault::Delays, 10);
        self.not_written = percent(Fault::LostAnswers, 5);
        self.unknown_written = percent(Fault::LostAnswers, 5);
        self.unknown_not_written = percent(Fault::LostAnswers, 5);
        self.crash_around_commit = percent(Fault::Crashes, 2);
        self.pause_before_output = percent(Fault::Pauses, 1);
        self.pause_after_new = percent(Fault::Pauses, 10);
        self.held_up = percent(Fault::Pauses, 5);
        self.twice = percent(Fault::Duplicates, 30);
        self.read_fails = percent(Fault::Outages, 5);
        self.long_calls = percent(Fault::LongCalls, 20);
        self.weights = self.weights.map(|(_, blow)| (weight(blow), blow));
    }
}

impl Cluster {
    /// Whether something of so many percent strikes; nothing does once it is calm.
    pub(super) fn strikes(&mut self, percent: u64) -> bool {
        !self.is_calm() && self.dice.chance(percent)
    }

    pub(super) fn think_up(&mut self) -> Result<(), String> {
        if self.is_calm() {
            return self.make_peace();
        }
        let all: u64 = self.misfortune.weights.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.dice.below(all);
        let node = self.dice.below(self.size.nodes as u64) as usize;
        let weights = self.misfortune.weights;
        let blow = weights.iter().find(|(weight, _)| {
            let is_it = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            is_it
        });
        let soon = self.dice.below(1_000);
        match blow.map(|(_, blow)| *blow) {
            None => {}
            Some(Blow::Crash) => self.at(soon, Happening::Crash(node)),
            Some(Blow::Leave) => self.at(soon, Happening::Leave(node)),
            Some(Blow::Pause) => {
                let for_ms = 1 + self.dice.below(LEASE_MS);
                self.at(soon, Happening::Pause(node, for_ms));
            }
            Some(Blow::LongPause) => {
                let for_ms = LEASE_MS + self.dice.below(4 * LEASE_MS);
                self.at(soon, Happening::Pause(node, for_ms));
            }
            Some(Blow::Outage) => {
                let for_ms = 1 + self.dice.below(2 * LEASE_MS);
                self.at(soon, Happening::Outage(for_ms));
            }
            Some(Blow::Repartition) => {
                let partitions = 1 + self.dice.below(16) as u32;
                self.at(soon, Happening::Repartition(partitions));
            }
        }
        let next = 1 + self.dice.below(2 * self.misfortune.every_ms);
        self.at(next, Happening::Misfortune);
        Ok(())
    }

    /// Whether the misfortunes are about to end, or have ended.
    fn is_last(&self) -> bool {
        self.now + LEASE_MS > START_MS + self.misfortune.lasts_ms
    }

    /// Whether nobody is told that a commit was not written in which something begins by letter. The last ones all meet
    /// that once, in a seed where any does: later misfortunes mend what is forgotten.
    pub(super) fn swallows_beginnings(&mut self, batch: &Batch) -> bool {
        if !self.is_last() || self.is_calm() || self.misfortune.unknown_not_written == 0 {
            return false;
        }
        let begun = batch.parts.iter().filter(|part| part.expected.is_none() && !part.frames.is_empty());
        let by_letter: Vec<_> = begun.filter(|part| !part.consumed.is_empty()).map(|part| part.execution).collect();
        let before = self.swallowed.len();
        self.swallowed.extend(by_letter);
        self.swallowed.len() > before
    }

    /// How long a commit takes so that much gathers behind it, for the one that is on its way when a node that is held up
    /// has lost everything. Only the last time, as above.
    pub(super) fn gathers_ms(&self, node: usize) -> u64 {
        let left_ms = self.nodes[node].held_up_until.saturating_sub(self.now);
        if self.is_last() { left_ms.saturating_sub(ABOUT_TO_LAPSE_MS) } else { 0 }
    }

    /// Whether a word is held up. The last one of every node that has something to lose always is, in a seed where any is:
    /// later misfortunes mend what is forgotten.
    pub(super) fn holds_word_up(&mut self, node: usize) -> bool {
        let is_last = self.is_last() && self.misfortune.held_up > 0;
        match self.nodes[node].holds().is_empty() {
            false if is_last => self.strikes(100),
            true if is_last => false,
            _ => self.strikes(self.misfortune.held_up),
        }
    }

    /// A word is answered so late that the node believes everything lost, and hears then that it was not. A lease is
    /// counted from the question: later than this, the answer would be worth nothing. Journals come back last: what
    /// comes for an execution meanwhile waits for them. Says how late the answer is.
    pub(super) fn hold_up(&mut self, node: usize) -> u64 {
        let held_up_ms = LEASE_MS * 13 / 20 + self.dice.below(LEASE_MS / 10);
        let unreadable_ms = LEASE_MS / 2 + self.dice.below(LEASE_MS);
        self.nodes[node].held_up_until = self.now + held_up_ms;
        self.nodes[node].unreadable_until = self.now + held_up_ms + unreadable_ms;
        held_up_ms
    }

    /// Whether a node is held up and its lease about to be over: a commit that it sends now is still on its way when
    /// everything is lost, and when it comes back.
    pub(super) fn is_about_to_lapse(&self, node: usize) -> bool {
        let left_ms = self.nodes[node].held_up_until.saturating_sub(self.now);
        (1..ABOUT_TO_LAPSE_MS).contains(&left_ms)
    }

    /// When the answer comes to a commit of a node that is held up: when the word after that has brought back for good what
    /// was lost. The last time that is as soon as journals can be read, before anybody has looked at them again.
    pub(super) fn delay_of_lapsed(&mut self, node: usize) -> Option<u64> {
        let held_up_ms = self.nodes[node].held_up_until.checked_sub(self.now)?;
        let unreadable_ms = self.nodes[node].unreadable_until - self.now;
        let is_last = self.is_last();
        let after_ms = self.dice.below(if is_last { LEASE_MS / 10 } else { LEASE_MS });
        Some(if is_last { unreadable_ms } else { held_up_ms + LEASE_MS / 4 } + after_ms)
    }

    /// All nodes live from now on, and are of the newest release.
    fn make_peace(&mut self) -> Result<(), String> {
        self.set_clocks_right();
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_old() {
                self.crash(node)?;
            } else if !self.nodes[node].is_alive() {
                self.begin(node)?;
            }
        }
        Ok(())
    }
}
