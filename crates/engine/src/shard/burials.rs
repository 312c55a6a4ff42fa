//! Messages of executions that will never start: a commit deletes them from the inbox, and notifies a waiting parent.

use std::collections::BTreeMap;

use mainspring_kernel::{
    decide::{Letter, canceled_by},
    effect::Outcome,
    failure::Failure,
    input::{Input, Parent},
    key::ExecutionKey,
};
use mainspring_store::Part;

use super::{
    Shard,
    cell::Cell,
    flight::{Burial, is_burial},
    posted,
    words::{Message, Queued, Submission},
};
use crate::aside::not_started;

/// Discards that the store refused, with the time of the next try.
#[derive(Debug, Default)]
pub(super) struct Delayed(BTreeMap<ExecutionKey, (u64, Burial)>);

/// Pause between two tries of a discard, in milliseconds.
const BURIAL_AGAIN_MS: u64 = 10_000;

impl Delayed {
    /// The time of the next retry.
    pub(super) fn next(&self) -> Option<u64> {
        self.0.values().map(|(at, _)| *at).min()
    }

    /// Drops the discards of partitions that are no longer owned.
    pub(super) fn forget(&mut self, is_gone: &impl Fn(&ExecutionKey) -> bool) {
        self.0.retain(|execution, _| !is_gone(execution));
    }

    fn consumes(&self, execution: ExecutionKey, id: &str) -> bool {
        self.0.get(&execution).is_some_and(|(_, burial)| burial.consumes(id))
    }
}

impl Shard {
    /// Discards messages of an execution that does not exist in the store. If its parent has canceled it, the parent is
    /// notified that it never started: the start message was lost, forged or unreadable, and the parent waits for the
    /// child's end.
    pub(super) fn bury_unbegun(&mut self, now: u64, execution: ExecutionKey, queued: &[Queued]) {
        self.bury(execution, queued);
        let letters = queued.iter().filter_map(|queued| queued.letter.as_ref());
        for parent in letters.filter_map(|letter| canceled_by(&letter.id)) {
            let why = "the execution is not stored, and no start message arrived before the cancel message";
            let told = self.told_unbegun(now, execution, &parent, not_started(execution, why));
            self.dead_letters.entry(execution).or_default().letters.push(told);
        }
    }

    /// Discards messages of an execution that will never exist, with the next commit.
    pub(super) fn bury(&mut self, execution: ExecutionKey, queued: &[Queued]) {
        let letters: Vec<_> = queued.iter().filter_map(|queued| Some(queued.letter.as_ref()?.id.clone())).collect();
        if !letters.is_empty() {
            self.dead_letters.entry(execution).or_default().consumed.extend(letters);
        }
    }

    /// Rejects a child that may not start: one commit deletes its start message and notifies the parent of the failure.
    pub(super) fn turn_away(&mut self, now: u64, submission: Submission, failure: Failure) {
        let parent = submission.start.lineage.as_ref().and_then(|lineage| lineage.parent.as_ref());
        let (Some(parent), Some(letter)) = (parent, &submission.letter) else { return self.submit(now, submission) };
        if self.cells.contains_key(&submission.execution) {
            return self.submit(now, submission);
        }
        if self.holds(submission.execution) {
            self.bury_start(now, submission.execution, &letter.id, parent, failure);
        }
    }

    /// The same, for a child whose start message cannot be read.
    pub(super) fn turn_child_away(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        letter: Message,
        parent: &Parent,
        failure: Failure,
    ) {
        if self.cells.contains_key(&execution) {
            let queued = Queued { letter: Some(letter), ..Queued::silent(Input::Continue) };
            return self.take(now, execution, queued);
        }
        if self.holds(execution) {
            self.bury_start(now, execution, &letter.id, parent, failure);
        }
    }

    /// Notifies the parent of a child that cannot start. Such a child has no row, so no list of quarantined executions
    /// contains it, and the parent would wait forever.
    pub(super) fn tell_parent_of_unbegun(&mut self, now: u64, execution: ExecutionKey, queued: &Queued, why: &str) {
        let Input::Start(start) = &queued.input else { return };
        let parent = start.lineage.as_ref().and_then(|lineage| lineage.parent.as_ref());
        if let (Some(parent), Some(letter)) = (parent, &queued.letter) {
            self.bury_start(now, execution, &letter.id, parent, not_started(execution, why));
        }
    }

    /// The same, for an execution that is not in the store and not part of a commit.
    pub(super) fn tell_parent_of_quarantined(&mut self, execution: ExecutionKey, why: &str) {
        let Some(live) = self.cells.get_mut(&execution).and_then(Cell::live_mut) else { return };
        if live.durable.is_some() || live.on_the_way > 0 {
            return;
        }
        if let Some(begun) = live.begun_by.take() {
            let failure = not_started(execution, why);
            self.bury_start(begun.at, execution, &begun.letter, &begun.parent, failure);
        }
    }

    fn bury_start(&mut self, now: u64, execution: ExecutionKey, letter: &str, parent: &Parent, failure: Failure) {
        if self.is_being_buried(execution, letter) {
            return;
        }
        let told = self.told_unbegun(now, execution, parent, failure);
        let burial = self.dead_letters.entry(execution).or_default();
        burial.consumed.push(letter.to_owned());
        burial.letters.push(told);
    }

    fn told_unbegun(
        &self,
        now: u64,
        execution: ExecutionKey,
        parent: &Parent,
        failure: Failure,
    ) -> mainspring_store::InboxMessage {
        let (instance, attempt) = (parent.instance.clone(), parent.attempt);
        let input = Input::Receipt { instance, attempt, outcome: Outcome::Failed(failure) };
        let told = Letter { to: parent.execution, id: format!("refusal of {execution}"), input };
        posted(told, (&self.keys.sealing, &self.leases), now)
    }

    /// True if the message is about to be discarded. An execution that started from it would run although its parent
    /// was notified that it never started.
    pub(super) fn is_being_buried(&self, execution: ExecutionKey, letter: &str) -> bool {
        let consumes =
            |part: &Part| part.execution == execution && is_burial(part) && part.consumed.iter().any(|id| id == letter);
        self.dead_letters.get(&execution).is_some_and(|burial| burial.consumes(letter))
            || self.delayed.consumes(execution, letter)
            || self.refusals.parts().any(consumes)
            || self.flight.as_ref().is_some_and(|flight| flight.parts().iter().any(consumes))
    }

    /// Schedules another try for a discard that was refused alone, since it is the only notification of the parent.
    pub(super) fn delay_burial(&mut self, now: u64, part: &Part) {
        let (at, burial) = self.delayed.0.entry(part.execution).or_default();
        *at = now.saturating_add(BURIAL_AGAIN_MS);
        burial.consumed.extend(part.consumed.iter().cloned());
        burial.letters.extend(part.messages.iter().cloned());
    }

    /// Adds the discards that are due again to the next commit.
    pub(super) fn resume_burials(&mut self, now: u64) {
        for (execution, (_, delayed)) in self.delayed.0.extract_if(.., |_, (at, _)| *at <= now) {
            let burial = self.dead_letters.entry(execution).or_default();
            burial.consumed.extend(delayed.consumed);
            burial.letters.extend(delayed.letters);
        }
    }
}
