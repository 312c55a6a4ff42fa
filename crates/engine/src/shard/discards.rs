//! Messages of executions that will never start: a commit deletes them from the inbox, and notifies a waiting parent.

use std::collections::BTreeMap;

use mainspring_kernel::{
    decide::{OutgoingMessage, canceled_by},
    effect::Outcome,
    failure::Failure,
    input::{Input, Parent},
    key::ExecutionKey,
};
use mainspring_store::Part;

use super::{
    Shard,
    commit::{Discard, is_discard},
    entry::ExecutionEntry,
    inbox_message,
    protocol::{NewExecution, PendingInput, ReceivedMessage},
};
use crate::start_request::not_started;

/// Messages to discard: their executions do not exist.
#[derive(Debug, Default)]
pub(super) struct Discards {
    /// Discards for the next commit.
    pub(super) undeliverable: BTreeMap<ExecutionKey, Discard>,
    pub(super) delayed: Delayed,
}

/// Discards that the store refused, with the time of the next try.
#[derive(Debug, Default)]
pub(super) struct Delayed(BTreeMap<ExecutionKey, (u64, Discard)>);

/// Pause between two tries of a discard, in milliseconds.
const DISCARD_RETRY_MS: u64 = 10_000;

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
        self.0.get(&execution).is_some_and(|(_, discard)| discard.consumes(id))
    }
}

impl Shard {
    /// Discards messages of an execution that does not exist in the store. If its parent has canceled it, the parent is
    /// notified that it never started: the start message was lost, forged or unreadable, and the parent waits for the
    /// child's end.
    pub(super) fn discard_not_started(&mut self, now: u64, execution: ExecutionKey, queued: &[PendingInput]) {
        self.discard_messages(execution, queued);
        let messages = queued.iter().filter_map(|queued| queued.message.as_ref());
        for parent in messages.filter_map(|message| canceled_by(&message.id)) {
            let why = "the execution is not stored, and no start message arrived before the cancel message";
            let notified = self.not_started_message(now, execution, &parent, not_started(execution, why));
            self.discards.undeliverable.entry(execution).or_default().messages.push(notified);
        }
    }

    /// Discards messages of an execution that will never exist, with the next commit.
    pub(super) fn discard_messages(&mut self, execution: ExecutionKey, queued: &[PendingInput]) {
        let messages: Vec<_> = queued.iter().filter_map(|queued| Some(queued.message.as_ref()?.id.clone())).collect();
        if !messages.is_empty() {
            self.discards.undeliverable.entry(execution).or_default().consumed.extend(messages);
        }
    }

    /// Rejects a child that may not start: one commit deletes its start message and notifies the parent of the failure.
    pub(super) fn turn_away(&mut self, now: u64, new_execution: NewExecution, failure: Failure) {
        let parent = new_execution.start.lineage.as_ref().and_then(|lineage| lineage.parent.as_ref());
        let (Some(parent), Some(message)) = (parent, &new_execution.message) else {
            return self.start(now, new_execution);
        };
        if self.executions.contains_key(&new_execution.execution) {
            return self.start(now, new_execution);
        }
        if self.holds(new_execution.execution) {
            self.discard_start(now, new_execution.execution, &message.id, parent, failure);
        }
    }

    /// The same, for a child whose start message cannot be read.
    pub(super) fn turn_child_away(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        message: ReceivedMessage,
        parent: &Parent,
        failure: Failure,
    ) {
        if self.executions.contains_key(&execution) {
            let queued = PendingInput { message: Some(message), ..PendingInput::without_reply(Input::Continue) };
            return self.take(now, execution, queued);
        }
        if self.holds(execution) {
            self.discard_start(now, execution, &message.id, parent, failure);
        }
    }

    /// Notifies the parent of a child that cannot start. Such a child has no row, so no list of quarantined executions
    /// contains it, and the parent would wait forever.
    pub(super) fn notify_parent_of_not_started(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        queued: &PendingInput,
        why: &str,
    ) {
        let Input::Start(start) = &queued.input else { return };
        let parent = start.lineage.as_ref().and_then(|lineage| lineage.parent.as_ref());
        if let (Some(parent), Some(message)) = (parent, &queued.message) {
            self.discard_start(now, execution, &message.id, parent, not_started(execution, why));
        }
    }

    /// The same, for an execution that is not in the store and not part of a commit.
    pub(super) fn notify_parent_of_quarantined(&mut self, execution: ExecutionKey, why: &str) {
        let Some(loaded) = self.executions.get_mut(&execution).and_then(ExecutionEntry::loaded_mut) else { return };
        if loaded.durable.is_some() || loaded.on_the_way > 0 {
            return;
        }
        if let Some(begun) = loaded.started_by.take() {
            let failure = not_started(execution, why);
            self.discard_start(begun.at, execution, &begun.message, &begun.parent, failure);
        }
    }

    fn discard_start(&mut self, now: u64, execution: ExecutionKey, message: &str, parent: &Parent, failure: Failure) {
        if self.is_being_discarded(execution, message) {
            return;
        }
        let notified = self.not_started_message(now, execution, parent, failure);
        let discard = self.discards.undeliverable.entry(execution).or_default();
        discard.consumed.push(message.to_owned());
        discard.messages.push(notified);
    }

    fn not_started_message(
        &self,
        now: u64,
        execution: ExecutionKey,
        parent: &Parent,
        failure: Failure,
    ) -> mainspring_store::InboxMessage {
        let (instance, attempt) = (parent.instance.clone(), parent.attempt);
        let input = Input::Receipt { instance, attempt, outcome: Outcome::Failed(failure) };
        let notified = OutgoingMessage { to: parent.execution, id: format!("refusal of {execution}"), input };
        inbox_message(notified, (&self.keys.sealing, &self.ownership.leases), now)
    }

    /// True if the message is about to be discarded. An execution that started from it would run although its parent
    /// was notified that it never started.
    pub(super) fn is_being_discarded(&self, execution: ExecutionKey, message: &str) -> bool {
        let consumes = |part: &Part| {
            part.execution == execution && is_discard(part) && part.consumed.iter().any(|id| id == message)
        };
        self.discards.undeliverable.get(&execution).is_some_and(|discard| discard.consumes(message))
            || self.discards.delayed.consumes(execution, message)
            || self.refusals.parts().any(consumes)
            || self.commits.in_flight.as_ref().is_some_and(|commit_id| commit_id.parts().iter().any(consumes))
    }

    /// Schedules another try for a discard that was refused alone, since it is the only notification of the parent.
    pub(super) fn delay_discard(&mut self, now: u64, part: &Part) {
        let (at, discard) = self.discards.delayed.0.entry(part.execution).or_default();
        *at = now.saturating_add(DISCARD_RETRY_MS);
        discard.consumed.extend(part.consumed.iter().cloned());
        discard.messages.extend(part.messages.iter().cloned());
    }

    /// Adds the discards that are due again to the next commit.
    pub(super) fn resume_discards(&mut self, now: u64) {
        for (execution, (_, delayed)) in self.discards.delayed.0.extract_if(.., |_, (at, _)| *at <= now) {
            let discard = self.discards.undeliverable.entry(execution).or_default();
            discard.consumed.extend(delayed.consumed);
            discard.messages.extend(delayed.messages);
        }
    }
}
