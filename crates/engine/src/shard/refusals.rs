//! Parts that the store refuses although it works: a row that contradicts a journal, a value or a size that the database
//! does not take.
//!
//! A refused commit is repeated in halves until the part that cannot be written is alone, so that all others are written.
//! The execution of that part is read again, as what is stored counts, and its inputs are taken in on top of it, in
//! commits of its own. If the store refuses those as well, while it takes what others write, the execution is quarantined
//! with the sentence of the store. Where nothing else is to be written, that takes more tries.
//!
//! A commit that met a lock of another transaction is repeated in the same way, and never leads to a quarantine: its
//! execution is tried again, with a growing pause, until the lock is released. Halves go to the end of the queue, so
//! that every second commit at least is one without the part that waits.

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

/// Why a commit was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something that an execution has to write.
    Content,
    /// Something that it shares with other writers: a lock, or a row of its whole organization.
    Shared,
}

/// What the store has refused.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// What is left of refused commits, in the order in which it is repeated.
    halves: VecDeque<Half>,
    /// Executions that are committed alone, because a commit of them alone was refused.
    suspects: BTreeMap<ExecutionKey, Suspect>,
    /// New executions that cannot be written: there is no head that could be marked.
    unwritable: BTreeMap<ExecutionKey, String>,
    /// Parts that were written.
    written: u64,
    /// The time of the last event, in milliseconds.
    now: u64,
    /// Whether the last commit was one of a suspect.
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
    /// How many of them were refused for what the execution has to write.
    refusals: u32,
    /// It is not tried again before this time.
    not_before: u64,
    /// How many parts had been written when it was refused first.
    written_before: u64,
}

impl Refusals {
    /// A part was written.
    pub(super) fn written(&mut self, execution: ExecutionKey) {
        self.written += 1;
        if !self.suspects.is_empty() {
            self.suspects.remove(&execution);
        }
    }

    /// Whether an execution is committed alone.
    pub(super) fn is_suspect(&self, execution: ExecutionKey) -> bool {
        !self.suspects.is_empty() && self.suspects.contains_key(&execution)
    }

    /// Whether parts of a refused commit are still to be repeated.
    pub(super) fn is_halving(&self) -> bool {
        !self.halves.is_empty()
    }

    /// The time of an event.
    pub(super) fn at(&mut self, now: u64) {
        self.now = now;
    }

    /// When the next suspect may be tried, if that is to come.
    pub(super) fn next_try(&self) -> Option<u64> {
        self.suspects.values().map(|suspect| suspect.not_before).filter(|at| *at > self.now).min()
    }

    /// The parts that are still to be repeated.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.halves.iter().flat_map(|half| &half.parts)
    }

    /// Those who wait for the parts that are still to be repeated.
    pub(super) fn passengers(&mut self) -> impl Iterator<Item = &mut Passenger> {
        self.halves.iter_mut().flat_map(|half| &mut half.passengers)
    }

    /// Why a new execution cannot be written.
    pub(super) fn why_unwritable(&self, execution: ExecutionKey) -> Option<&String> {
        self.unwritable.get(&execution)
    }

    /// Forgets what was found of executions that are not held any more.
    pub(super) fn forget(&mut self, is_gone: &impl Fn(&ExecutionKey) -> bool) {
        self.suspects.retain(|execution, _| !is_gone(execution));
        self.unwritable.retain(|execution, _| !is_gone(execution));
    }
}

impl Shard {
    /// Whether something is on its way to the store, or will be as soon as a journal is read. An execution that is
    /// committed alone after a pause does not count: the store works.
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

    /// The suspect that is committed next, if it is the turn of one: after every commit of others.
    pub(super) fn next_suspect(&mut self) -> Option<ExecutionKey> {
        if self.refusals.suspects.is_empty() {
            return None;
        }
        let now = self.refusals.now;
        let waiting = || self.refusals.suspects.iter().filter(|(execution, _)| self.dirty.contains(execution));
        // An input that comes meanwhile does not shorten the pause: all other commits wait behind a try.
        let first = waiting().find(|(_, suspect)| suspect.not_before <= now).map(|(execution, _)| *execution);
        let others = self.dirty.len() - waiting().count();
        let is_turn = others == 0 || !self.refusals.was_suspect;
        self.refusals.was_suspect = is_turn && first.is_some();
        first.filter(|_| is_turn)
    }

    /// Repeats a refused commit in halves, or finds that it has the one part that cannot be written.
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

    /// Sends the next half of a refused commit; false if there is none. What was lost meanwhile is not sent any more.
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

    /// The parts of a commit of which nothing was written, without those of partitions that are not held under the same
    /// fence any more: they would be refused for ever, and nothing else would be written before them. `None` if nothing
    /// is left.
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
        // Callers ask again. Nobody else knows of the rest: it is kept until the execution is read again.
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
