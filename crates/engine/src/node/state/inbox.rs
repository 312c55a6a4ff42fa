//! Progress of the reads of the inbox and of due executions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mainspring_kernel::key::ExecutionKey;

use super::recovery::ToReconcile;
use crate::{
    clock::MonotonicMs,
    intake::Intake,
    limits::{HELD_UP_EACH_BYTES_MAX, HELD_UP_EACH_MAX},
    node::page::{Page, Pass},
};

/// State of the inbox.
#[derive(Debug, Default)]
pub(in crate::node) struct Inbox {
    /// The inbox cursor: all messages up to this number that were visible are received.
    pub(in crate::node) seen: u64,
    /// Received messages that may still be in the inbox, with their partitions.
    pub(in crate::node) out: BTreeMap<u64, u32>,
    pub(in crate::node) new: Reader,
    pub(in crate::node) all: Reader,
    /// Changes when the cursor is reset. Pages of an earlier generation are discarded.
    pub(in crate::node) generation: u64,
    /// Pages that were read and whose messages are not received yet.
    pub(in crate::node) pages: VecDeque<Page>,
    /// Until this time, a pass over all messages starts only on request.
    pub(in crate::node) pause_until: Option<MonotonicMs>,
    pub(in crate::node) intake: Bounds,
    /// Executions with a message that a pass over new messages skipped, with the number of full passes started by that
    /// time. Later messages of these executions wait for a full pass.
    pub(in crate::node) left: BTreeMap<ExecutionKey, u64>,
    pub(in crate::node) passes_over_all: u64,
    /// Partitions whose due executions are read after the next page of a full pass.
    pub(in crate::node) due_in: BTreeSet<u32>,
    pub(in crate::node) due: Due,
    /// Messages received since the last call of [`Node::take_received`].
    pub(in crate::node) received: u64,
}

/// The bounds of received messages without a durable result.
#[derive(Debug, Default)]
pub(in crate::node) struct Bounds {
    pub(in crate::node) taken: Intake,
    /// The part of them for executions that cannot process input at present.
    pub(in crate::node) held_up: Intake,
}

/// The passes of one kind.
#[derive(Debug, Default)]
pub(in crate::node) struct Reader {
    pub(in crate::node) pass: Option<Progress>,
    pub(in crate::node) is_wanted_again: bool,
}

/// The progress of a pass over the inbox.
#[derive(Debug)]
pub(in crate::node) struct Progress {
    pub(in crate::node) began: MonotonicMs,
    /// Number of the last message that was read.
    pub(in crate::node) after: u64,
    /// Executions with a message that cannot be received yet. Their later messages wait as well, since the inputs of an
    /// execution keep their order.
    pub(in crate::node) waiting: BTreeSet<ExecutionKey>,
    /// A skipped message holds the cursor back, so that the next pass reads it again.
    pub(in crate::node) is_held_back: bool,
    /// Attempts to recover when the pass is complete.
    pub(in crate::node) asked: Vec<ToReconcile>,
}

/// Reads of due executions.
#[derive(Debug, Default)]
pub(in crate::node) struct Due {
    pub(in crate::node) is_underway: bool,
    /// Partitions to read after the read in progress.
    pub(in crate::node) again: BTreeSet<u32>,
}

impl Inbox {
    pub(in crate::node) fn reader(&mut self, pass: Pass) -> &mut Reader {
        match pass {
            Pass::New => &mut self.new,
            Pass::All => &mut self.all,
        }
    }

    /// Keeps the attempts to recover for which the predicate holds.
    pub(in crate::node) fn retain_asked(&mut self, is_kept: impl Fn(&ToReconcile) -> bool) {
        for progress in [&mut self.new.pass, &mut self.all.pass].into_iter().flatten() {
            progress.asked.retain(&is_kept);
        }
    }

    /// True if the next message of a page fits the bound of received messages.
    pub(in crate::node) fn can_take(&self) -> bool {
        let next = self.pages.front().map(|page| page.messages.front().map_or(0, |message| message.byte_count));
        next.is_some_and(|byte_count| self.intake.taken.has_room(byte_count))
    }

    /// True if an execution that cannot process input has no room for another message, by count or by bytes.
    pub(in crate::node) fn is_full_for(&self, (count, bytes): (usize, usize), byte_count: usize) -> bool {
        count >= HELD_UP_EACH_MAX
            || bytes.saturating_add(byte_count) > HELD_UP_EACH_BYTES_MAX && count > 0
            || !self.intake.held_up.has_room_beside(byte_count) && count > 0
    }

    /// A message received for another partition is read again: the store was repartitioned, and the message was lost
    /// with the former partition.
    pub(in crate::node) fn has_taken(&self, number: u64, partition: u32, is_alone: bool) -> bool {
        is_alone && number <= self.seen || self.out.get(&number) == Some(&partition)
    }

    /// Forgets received messages that the page should contain and does not: they were consumed.
    pub(in crate::node) fn forget_consumed(&mut self, from: u64, page: &Page) {
        let last = match page.end {
            Ok(false) => page.until,
            _ => page.numbers.last().copied().unwrap_or(from).min(page.until),
        };
        if last > from {
            let is_gone = |number: &u64| !page.numbers.contains(number);
            let gone: Vec<u64> = self.out.range(from + 1..=last).map(|(number, _)| *number).filter(is_gone).collect();
            for number in gone {
                self.out.remove(&number);
            }
        }
    }
}
