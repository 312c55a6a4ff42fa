//! Parts that the store refuses although it works: a row that contradicts a journal, or a value or size that the
//! database does not accept.
//!
//! A refused commit is repeated in halves until the faulty part is alone, so that all other parts are written. The
//! journal of its execution is read again, and its inputs are processed on top of it in commits of their own. If the
//! store refuses those as well while it accepts other commits, the execution is quarantined with the message of the
//! store. Without other commits, that takes more tries.
//!
//! A commit that is blocked by the lock of another transaction is repeated in the same way and never leads to a
//! quarantine. Its execution is retried with a growing pause until the lock is released. Halves go to the end of the
//! queue, so that at least every second commit does not contain the waiting part.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{Batch, Fence, Part, Refusal};

use super::{
    LOOK_AGAIN_MS, Shard,
    cell::Cell,
    flight::{Flight, Passenger, is_burial},
    words::{Queued, ShardError},
};
use crate::limits::{REFUSALS_ALONE_MAX, REFUSALS_MAX, UNWRITABLE_MAX};

/// The cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The content of the part.
    Content,
    /// A resource shared with other writers: a lock, or a row of the whole organization.
    Shared,
}

/// Refused parts and their retries.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Halves of refused commits, in the order of their repetition.
    halves: VecDeque<Half>,
    /// Executions that are committed alone, since a commit with only them was refused.
    suspects: BTreeMap<ExecutionKey, Suspect>,
    /// New executions that cannot be written. They have no stored head to mark as quarantined.
    unwritable: BTreeMap<ExecutionKey, String>,
    /// Number of written parts.
    written: u64,
    now: u64,
    /// The last commit contained a suspect.
    was_suspect: bool,
}

#[derive(Debug)]
struct Half {
    passengers: Vec<Passenger>,
    parts: Vec<Part>,
    fences: Vec<Fence>,
}

#[derive(Debug)]
struct Suspect {
    tries: u32,
    /// Tries that were refused for the content of the part.
    refusals: u32,
    /// Earliest time of the next try, in milliseconds.
    not_before: u64,
    /// Value of `written` at the first refusal.
    written_before: u64,
}

impl Refusals {
    /// Counts a written part.
    pub(super) fn written(&mut self, execution: ExecutionKey) {
        self.written += 1;
        if !self.suspects.is_empty() {
            self.suspects.remove(&execution);
        }
    }

    /// True if the execution is committed alone.
    pub(super) fn is_suspect(&self, execution: ExecutionKey) -> bool {
        !self.suspects.is_empty() && self.suspects.contains_key(&execution)
    }

    /// True while halves of a refused commit wait.
    pub(super) fn is_halving(&self) -> bool {
        !self.halves.is_empty()
    }

    /// Sets the time of the event in progress.
    pub(super) fn at(&mut self, now: u64) {
        self.now = now;
    }

    /// The time of the next try of a suspect.
    pub(super) fn next_try(&self) -> Option<u64> {
        self.suspects.values().map(|suspect| suspect.not_before).filter(|at| *at > self.now).min()
    }

    /// The parts that are still to be repeated.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.halves.iter().flat_map(|half| &half.parts)
    }

    /// The effects of the parts that are still to be repeated.
    pub(super) fn passengers(&mut self) -> impl Iterator<Item = &mut Passenger> {
        self.halves.iter_mut().flat_map(|half| &mut half.passengers)
    }

    /// The reason for which a new execution cannot be written.
    pub(super) fn why_unwritable(&self, execution: ExecutionKey) -> Option<&String> {
        self.unwritable.get(&execution)
    }

    /// Drops the entries of executions that are no longer owned.
    pub(super) fn forget(&mut self, is_gone: &impl Fn(&ExecutionKey) -> bool) {
        self.suspects.retain(|execution, _| !is_gone(execution));
        self.unwritable.retain(|execution, _| !is_gone(execution));
    }
}

impl Shard {
    /// True if a write is pending, or follows as soon as a journal is read. Suspects do not count, since the store
    /// works.
    pub(crate) fn has_to_write(&self) -> bool {
        let is_awaited = |cell: &Cell| matches!(cell, Cell::Loading(waiting) if !waiting.is_empty());
        let is_unread = |execution: &ExecutionKey| !self.refusals.is_suspect(*execution);
        self.flight.is_some()
            || self.refusals.is_halving()
            || !self.dirty.is_empty()
            || !self.dead_letters.is_empty()
            || self.kept.keys().any(is_unread)
            || self.cells.values().any(is_awaited)
    }

    /// Returns the suspect to commit next. Suspects alternate with other commits.
    pub(super) fn next_suspect(&mut self) -> Option<ExecutionKey> {
        if self.refusals.suspects.is_empty() {
            return None;
        }
        let now = self.refusals.now;
        let waiting = || self.refusals.suspects.iter().filter(|(execution, _)| self.dirty.contains(execution));
        // A new input does not shorten the pause, since all other commits wait behind a try.
        let first = waiting().find(|(_, suspect)| suspect.not_before <= now).map(|(execution, _)| *execution);
        let others = self.dirty.len() - waiting().count();
        let is_turn = others == 0 || !self.refusals.was_suspect;
        self.refusals.was_suspect = is_turn && first.is_some();
        first.filter(|_| is_turn)
    }

    /// Repeats a refused commit in halves, or handles the single part that cannot be written.
    pub(super) fn commit_refused(&mut self, now: u64, flight: Flight, cause: Cause, why: &str) {
        let (mut passengers, mut batch) = flight.into_parts();
        if batch.parts.len() > 1 {
            let middle = batch.parts.len() / 2;
            let (later_passengers, later_parts) = (passengers.split_off(middle), batch.parts.split_off(middle));
            let fences = batch.fences.clone();
            self.refusals.halves.push_back(Half { passengers, parts: batch.parts, fences: batch.fences });
            self.refusals.halves.push_back(Half { passengers: later_passengers, parts: later_parts, fences });
        } else if let (Some(passenger), Some(part)) = (passengers.pop(), batch.parts.pop()) {
            self.refused_alone(now, passenger, &part, &batch.fences, (cause, why));
        }
        self.send_half();
    }

    /// Submits the next half of a refused commit, without lost partitions. False if there is none.
    pub(super) fn send_half(&mut self) -> bool {
        while let Some(Half { passengers, parts, fences }) = self.refusals.halves.pop_front() {
            let batch = Batch { fences, parts, sealing: self.keys.sealing };
            if let Some((passengers, batch)) = self.without_lost(passengers, batch) {
                self.send(passengers, Arc::new(batch));
                return true;
            }
        }
        false
    }

    /// Removes parts whose partitions are no longer owned under the same fence. They would be refused forever, and
    /// block all later commits. `None` if no part is left.
    pub(super) fn without_lost(&mut self, passengers: Vec<Passenger>, batch: Batch) -> Option<(Vec<Passenger>, Batch)> {
        let Batch { fences, parts, sealing } = batch;
        let (mut kept_passengers, mut kept) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        for (passenger, part) in passengers.into_iter().zip(parts) {
            let fence = fences.iter().find(|fence| fence.partition == part.partition).copied();
            if fence.is_some() && self.leases.fence(part.partition) == fence {
                kept_passengers.push(passenger);
                kept.push(part);
            } else if !is_burial(&part) {
                self.refused(passenger, Refusal::Fence, fence);
            }
        }
        (!kept.is_empty()).then_some((kept_passengers, Batch { fences, parts: kept, sealing }))
    }

    fn refused_alone(
        &mut self,
        now: u64,
        passenger: Passenger,
        part: &Part,
        fences: &[Fence],
        (cause, why): (Cause, &str),
    ) {
        if is_burial(part) {
            return self.delay_burial(now, part);
        }
        let fence = fences.iter().find(|fence| fence.partition == part.partition).copied();
        let execution = part.execution;
        if self.leases.fence(part.partition) != fence {
            return self.refused(passenger, Refusal::Fence, fence);
        }
        let written = self.refusals.written;
        let first = Suspect { tries: 0, refusals: 0, not_before: 0, written_before: written };
        let suspect = self.refusals.suspects.entry(execution).or_insert(first);
        suspect.tries += 1;
        suspect.refusals += u32::from(cause == Cause::Content);
        let (tries, refusals, is_proved) = (suspect.tries, suspect.refusals, written > suspect.written_before);
        let is_alone = refusals >= REFUSALS_ALONE_MAX && self.refusals.suspects.len() == 1;
        let newer = self.forget_cell(execution);
        let queued: Vec<Queued> = passenger.into_queued().chain(newer).collect();
        if cause == Cause::Content && (refusals >= REFUSALS_MAX && is_proved || is_alone) {
            return self.set_unwritable_aside(now, execution, queued, part.expected.is_none(), why);
        }
        // Callers send their requests again. Other inputs exist only here and are kept until the execution is read
        // again.
        let (asked, silent): (Vec<_>, Vec<_>) = queued.into_iter().partition(|queued| queued.ticket.is_some());
        self.refuse(asked, ShardError::Store(why.to_owned()));
        if part.expected.is_none() && silent.is_empty() {
            self.refusals.suspects.remove(&execution);
            return;
        }
        self.kept.entry(execution).or_default().extend(silent);
        let again_at = now.saturating_add(LOOK_AGAIN_MS << (tries - 1).min(5));
        if let Some(suspect) = self.refusals.suspects.get_mut(&execution) {
            suspect.not_before = again_at;
        }
        self.set_timer(execution, Some(again_at));
    }

    fn set_unwritable_aside(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        queued: Vec<Queued>,
        is_new: bool,
        why: &str,
    ) {
        let reason = format!("the store refuses what this execution has to write, and nothing else: {why}");
        self.refusals.suspects.remove(&execution);
        for queued in queued.iter().filter(|_| is_new) {
            self.tell_parent_of_unbegun(now, execution, queued, &reason);
        }
        self.turn_back(execution, queued, &reason);
        if is_new {
            if self.refusals.unwritable.len() >= UNWRITABLE_MAX {
                self.refusals.unwritable.pop_first();
            }
            self.refusals.unwritable.insert(execution, reason.clone());
        }
        self.quarantine(execution, reason);
    }
}
