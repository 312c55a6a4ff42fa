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
    RELOAD_DELAY_MS, Shard,
    commit::{Cause, HeldEffects, InFlightCommit, is_discard},
    entry::ExecutionEntry,
    protocol::{PendingInput, ShardError},
};
use crate::limits::{REFUSALS_ALONE_MAX, REFUSALS_MAX, UNWRITABLE_MAX};

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
    held_effects: Vec<HeldEffects>,
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
    pub(super) fn held_effects(&mut self) -> impl Iterator<Item = &mut HeldEffects> {
        self.halves.iter_mut().flat_map(|half| &mut half.held_effects)
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
        let is_awaited =
            |entry: &ExecutionEntry| matches!(entry, ExecutionEntry::Loading(waiting) if !waiting.is_empty());
        let is_unread = |execution: &ExecutionKey| !self.refusals.is_suspect(*execution);
        self.commits.in_flight.is_some()
            || self.refusals.is_halving()
            || !self.queues.dirty.is_empty()
            || !self.discards.undeliverable.is_empty()
            || self.loads.deferred_inputs.keys().any(is_unread)
            || self.executions.values().any(is_awaited)
    }

    /// Returns the suspect to commit next. Suspects alternate with other commits.
    pub(super) fn next_suspect(&mut self) -> Option<ExecutionKey> {
        if self.refusals.suspects.is_empty() {
            return None;
        }
        let now = self.refusals.now;
        let waiting = || self.refusals.suspects.iter().filter(|(execution, _)| self.queues.dirty.contains(execution));
        // A new input does not shorten the pause, since all other commits wait behind a try.
        let first = waiting().find(|(_, suspect)| suspect.not_before <= now).map(|(execution, _)| *execution);
        let others = self.queues.dirty.len() - waiting().count();
        let is_turn = others == 0 || !self.refusals.was_suspect;
        self.refusals.was_suspect = is_turn && first.is_some();
        first.filter(|_| is_turn)
    }

    /// Repeats a refused commit in halves, or handles the single part that cannot be written.
    pub(super) fn commit_refused(&mut self, now: u64, commit: InFlightCommit, cause: Cause, why: &str) {
        let (mut held_effects, mut batch) = commit.into_parts();
        if batch.parts.len() > 1 {
            let middle = batch.parts.len() / 2;
            let (later_effects, later_parts) = (held_effects.split_off(middle), batch.parts.split_off(middle));
            let fences = batch.fences.clone();
            self.refusals.halves.push_back(Half { held_effects, parts: batch.parts, fences: batch.fences });
            self.refusals.halves.push_back(Half { held_effects: later_effects, parts: later_parts, fences });
        } else if let (Some(effects), Some(part)) = (held_effects.pop(), batch.parts.pop()) {
            self.refused_alone(now, effects, &part, &batch.fences, (cause, why));
        }
        self.send_half();
    }

    /// Submits the next half of a refused commit, without lost partitions. False if there is none.
    pub(super) fn send_half(&mut self) -> bool {
        while let Some(Half { held_effects, parts, fences }) = self.refusals.halves.pop_front() {
            let batch = Batch { fences, parts, sealing: self.keys.sealing };
            if let Some((held_effects, batch)) = self.without_lost(held_effects, batch) {
                self.send(held_effects, Arc::new(batch));
                return true;
            }
        }
        false
    }

    /// Removes parts whose partitions are no longer owned under the same fence. They would be refused forever, and
    /// block all later commits. `None` if no part is left.
    pub(super) fn without_lost(
        &mut self,
        held_effects: Vec<HeldEffects>,
        batch: Batch,
    ) -> Option<(Vec<HeldEffects>, Batch)> {
        let Batch { fences, parts, sealing } = batch;
        let (mut kept_effects, mut kept) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        for (effects, part) in held_effects.into_iter().zip(parts) {
            let fence = fences.iter().find(|fence| fence.partition == part.partition).copied();
            if fence.is_some() && self.ownership.leases.fence(part.partition) == fence {
                kept_effects.push(effects);
                kept.push(part);
            } else if !is_discard(&part) {
                self.refused(effects, Refusal::Fence, fence);
            }
        }
        (!kept.is_empty()).then_some((kept_effects, Batch { fences, parts: kept, sealing }))
    }

    fn refused_alone(
        &mut self,
        now: u64,
        effects: HeldEffects,
        part: &Part,
        fences: &[Fence],
        (cause, why): (Cause, &str),
    ) {
        if is_discard(part) {
            return self.delay_discard(now, part);
        }
        let fence = fences.iter().find(|fence| fence.partition == part.partition).copied();
        let execution = part.execution;
        if self.ownership.leases.fence(part.partition) != fence {
            return self.refused(effects, Refusal::Fence, fence);
        }
        let written = self.refusals.written;
        let first = Suspect { tries: 0, refusals: 0, not_before: 0, written_before: written };
        let suspect = self.refusals.suspects.entry(execution).or_insert(first);
        suspect.tries += 1;
        suspect.refusals += u32::from(cause == Cause::Content);
        let (tries, refusals, is_proved) = (suspect.tries, suspect.refusals, written > suspect.written_before);
        let is_alone = refusals >= REFUSALS_ALONE_MAX && self.refusals.suspects.len() == 1;
        let newer = self.forget_entry(execution);
        let queued: Vec<PendingInput> = effects.into_queued().chain(newer).collect();
        if cause == Cause::Content && (refusals >= REFUSALS_MAX && is_proved || is_alone) {
            return self.quarantine_unwritable(now, execution, queued, part.expected.is_none(), why);
        }
        // Callers send their requests again. Other inputs exist only here and are kept until the execution is read
        // again.
        let (asked, without_reply): (Vec<_>, Vec<_>) = queued.into_iter().partition(|queued| queued.ticket.is_some());
        self.refuse(asked, ShardError::Store(why.to_owned()));
        if part.expected.is_none() && without_reply.is_empty() {
            self.refusals.suspects.remove(&execution);
            return;
        }
        self.loads.deferred_inputs.entry(execution).or_default().extend(without_reply);
        let again_at = now.saturating_add(RELOAD_DELAY_MS << (tries - 1).min(5));
        if let Some(suspect) = self.refusals.suspects.get_mut(&execution) {
            suspect.not_before = again_at;
        }
        self.set_timer(execution, Some(again_at));
    }

    fn quarantine_unwritable(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        queued: Vec<PendingInput>,
        is_new: bool,
        why: &str,
    ) {
        let reason = format!("the store refuses what this execution has to write, and nothing else: {why}");
        self.refusals.suspects.remove(&execution);
        for queued in queued.iter().filter(|_| is_new) {
            self.notify_parent_of_not_started(now, execution, queued, &reason);
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
