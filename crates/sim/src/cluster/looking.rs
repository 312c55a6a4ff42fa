//! Polling of the inbox and of timers, as in the engine's driver. A message or timer that one poll misses is found by a
//! later one.

use std::collections::BTreeSet;

use mainspring_engine::{
    inbox::{self, MessageError},
    shard::{Event, NewExecution},
};
use mainspring_kernel::{input::Queue, key::ExecutionKey};
use mainspring_store::prelude::*;
use mainspring_store::{Due, InboxEntry, InboxMessage, ReadLimit, StoreError};

use super::{Cluster, network::StoreRequest, node::NodeEvent};
use crate::fixture::keys;

/// Interval at which a node polls its inbox and its timers.
pub(super) const INBOX_POLL_INTERVAL_MS: u64 = 1_000;

/// Milliseconds ahead of the clock for which timers are read from the store.
const WINDOW_MS: u64 = 60_000;

impl Cluster {
    /// Reads the messages that have arrived since the last read. One read is in progress at a time; a request during
    /// that time causes one further read.
    pub(super) fn poll_inbox(&mut self, node: usize) {
        let (partitions, place) = (self.nodes[node].holds(), &mut self.nodes[node]);
        if partitions.is_empty() {
            return;
        }
        if std::mem::replace(&mut place.is_looking, true) {
            place.looks_again = true;
            return;
        }
        place.looks_again = false;
        let (after, generation) = (Some(place.inbox_cursor), place.generation);
        self.request_store(node, StoreRequest::Look { partitions, after, generation });
    }

    /// Handles the end of a read. Its messages are dropped if the node has reset its inbox since.
    pub(super) fn inbox_polled(
        &mut self,
        node: usize,
        generation: u64,
        found: Option<Vec<InboxEntry>>,
    ) -> Result<(), String> {
        let place = &mut self.nodes[node];
        let is_stale = place.generation != generation;
        place.is_looking = false;
        let again = std::mem::take(&mut place.looks_again) || is_stale;
        if let Some(messages) = found.filter(|_| !is_stale) {
            self.receive_messages(node, messages, None)?;
        }
        if again {
            self.poll_inbox(node);
        }
        Ok(())
    }

    /// Reads the whole inbox of partitions, then their due timers.
    pub(super) fn look_at(&mut self, node: usize, partitions: Vec<u32>) {
        if !partitions.is_empty() {
            let generation = self.nodes[node].generation;
            self.request_store(node, StoreRequest::Look { partitions, after: None, generation });
        }
    }

    /// Resets the inbox: every message may have to be consumed again.
    pub(super) fn reset_inbox_cursor(&mut self, node: usize) {
        self.nodes[node].generation += 1;
        self.nodes[node].inbox_cursor = 0;
        self.nodes[node].unacked.clear();
    }

    /// Reads all messages and then the due timers of acquired partitions.
    pub(super) fn look_at_gained(&mut self, node: usize, partitions: Vec<u32>) {
        self.nodes[node].unacked.retain(|_, partition| !partitions.contains(partition));
        self.look_at(node, partitions);
    }

    pub(super) fn activate(&mut self, node: usize, execution: ExecutionKey) {
        self.handle(node, Event::Due(vec![Due { execution, wake_at: 0 }]));
    }

    pub(super) fn hear(&mut self, node: usize, partitions: &[u32]) {
        if self.nodes[node].holds().iter().any(|held| partitions.contains(held)) {
            self.poll_inbox(node);
        }
    }

    pub(super) fn on_messages_enqueued(&mut self, node: usize, partitions: &BTreeSet<u32>) {
        let held: BTreeSet<u32> = self.nodes[node].holds().into_iter().collect();
        let elsewhere: Vec<u32> = partitions.difference(&held).copied().collect();
        if !elsewhere.is_empty() {
            self.hint(&elsewhere);
        }
        if !partitions.is_disjoint(&held) {
            self.poll_inbox(node);
        }
    }

    /// `all_of` lists the partitions of which `messages` is the complete inbox.
    pub(super) fn receive_messages(
        &mut self,
        node: usize,
        messages: Vec<InboxEntry>,
        all_of: Option<Vec<u32>>,
    ) -> Result<(), String> {
        if self.nodes[node].is_draining {
            return Ok(());
        }
        if let Some(partitions) = all_of {
            let waiting: BTreeSet<u64> = messages.iter().map(|arrived| arrived.number).collect();
            let out = &mut self.nodes[node].unacked;
            out.retain(|number, partition| waiting.contains(number) || !partitions.contains(partition));
        }
        let (mut waiting, mut seen) = (BTreeSet::new(), self.nodes[node].inbox_cursor);
        for InboxEntry { number, message } in messages {
            let (execution, partition) = (message.execution, message.partition);
            // Messages behind a deferred one of the same execution are deferred too. A message that was consumed for
            // another partition, before repartitioning, was lost and is consumed again.
            if self.nodes[node].unacked.get(&number) == Some(&partition) || waiting.contains(&execution) {
                continue;
            }
            match self.read_message(&message)? {
                Some(event) => {
                    self.nodes[node].unacked.insert(number, partition);
                    self.handle(node, event);
                    if self.draws_fault(self.faults.twice)
                        && let Some(again) = self.read_message(&message)?
                    {
                        self.handle(node, again);
                    }
                }
                None => drop(waiting.insert(execution)),
            }
            if waiting.is_empty() {
                seen = seen.max(number);
            }
        }
        self.nodes[node].inbox_cursor = seen;
        Ok(())
    }

    /// Converts a message to an event of the shard; `None` if the store did not return the plan that it needs.
    fn read_message(&mut self, message: &InboxMessage) -> Result<Option<Event>, String> {
        let mut event = match inbox::event_of(&self.store, &keys().sealing, message.clone()) {
            Ok(event) => event,
            Err(MessageError::Forged(_)) => {
                self.check_forged(&message.id)?;
                Event::Discard(message.execution, message.id.clone())
            }
            Err(message_error) => return Err(format!("a message cannot be received: {message_error:?}")),
        };
        if let Event::Submit(submission) = &mut event {
            self.count(submission);
        }
        let needs_plan = matches!(event, Event::Submit(_));
        let fails = needs_plan && (self.now < self.down_until || self.draws_fault(self.faults.read_fails));
        Ok((!fails).then_some(event))
    }

    /// Half of the started children without a waiting parent are queued until a client admits them, at every node
    /// alike.
    fn count(&self, submission: &mut NewExecution) {
        let start = &mut submission.start;
        let is_aside = start.lineage.as_ref().is_some_and(|lineage| lineage.depth > 0 && lineage.parent.is_none());
        if is_aside && submission.execution.0[15].is_multiple_of(2) {
            start.queue = Some(Queue::User);
        }
    }

    /// Handles a read at the store. Messages are delivered before timers, so a receipt in the inbox is known before its
    /// attempt is recovered.
    pub(super) fn look(
        &mut self,
        who: (usize, u32),
        partitions: &[u32],
        after: Option<u64>,
        generation: u64,
    ) -> Result<(), String> {
        let failed = |error: StoreError| error.to_string();
        let messages = self.store.inbox(partitions, after.unwrap_or(0), ReadLimit::of(usize::MAX)).map_err(failed)?;
        let delay = self.delay_of_answer();
        if after.is_some() {
            self.answer_in(delay, who, NodeEvent::InboxPolled(generation, Some(messages)));
            return Ok(());
        }
        self.answer_in(delay, who, NodeEvent::Letters(messages, Some(partitions.to_vec()), generation));
        if !self.draws_fault(self.faults.read_fails) {
            let until = self.nodes[who.0].clocks.read(self.now).wall_ms + WINDOW_MS;
            let due = self.store.due(partitions, until, None, usize::MAX).map_err(failed)?;
            self.answer_in(delay, who, NodeEvent::Due(due));
        }
        Ok(())
    }
}
