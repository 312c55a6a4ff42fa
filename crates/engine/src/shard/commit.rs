//! Group commit: the drafts that are written together, and the effects that their durability releases. Turns are
//! decided in `shard.rs`.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use mainspring_kernel::{decide::Action, hash::Hash, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{Batch, CommitError, Expected, Fence, InboxMessage, Part, PartOutcome, Refusal};

use crate::{
    limits::BATCH_BYTES_MAX,
    shard::{
        Shard,
        attempts::{AttemptId, AttemptState},
        entry::{Draft, ExecutionEntry},
        protocol::{CommittedFrame, Output, PendingInput, ShardError, Taken, Ticket},
        tenants::{Picks, Tenant},
    },
};

/// Executions in one commit. It bounds the duration of a transaction.
const PARTS_MAX: usize = 4096;

/// Remembered plans that the store contains. A forgotten plan is written again, which changes nothing.
const PLANS_KNOWN_MAX: usize = 65_536;

/// The commit in flight, and the effects of the last one.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) in_flight: Option<InFlightCommit>,
    /// Effects of durable commits that are not released yet, in order.
    pub(super) releasing: VecDeque<HeldEffects>,
    /// The last commit, whose buffers are used again.
    recycled: Option<InFlightCommit>,
    buffers: CommitBuffers,
    /// Effects were released since the last flush, so there may be more to write.
    pub(super) has_released: bool,
    /// The number of the last commit.
    submitted: u64,
    /// Plans that the store is known to contain.
    pub(super) plans_stored: BTreeSet<Hash>,
    /// Callers whose inputs are in commits with an unknown outcome.
    pub(super) in_doubt: BTreeSet<Ticket>,
    /// Commits with an unknown outcome, until the journal is read again.
    pub(super) unconfirmed: BTreeMap<ExecutionKey, Vec<UnconfirmedCommit>>,
}

/// The commit that waits for its answer.
#[derive(Debug)]
pub(super) struct InFlightCommit {
    id: u64,
    held_effects: Vec<HeldEffects>,
    batch: Arc<Batch>,
}

/// Empty buffers of an earlier commit. Allocating such large lists for each commit costs the system a page for every
/// few parts.
#[derive(Debug, Default)]
pub(super) struct CommitBuffers {
    held_effects: Vec<HeldEffects>,
    parts: Vec<Part>,
}

/// The effects of one execution's draft, held until the commit is durable.
#[derive(Debug)]
pub(super) struct HeldEffects {
    execution: ExecutionKey,
    after: Option<Expected>,
    queued: Vec<(PendingInput, bool)>,
    actions: Vec<Action>,
    committed: Vec<CommittedFrame>,
    settled: Vec<(String, u32)>,
    /// The partition was released or lost since the commit was sent: no attempt starts, and the slot in memory does not
    /// depend on this commit.
    is_stale: bool,
}

impl InFlightCommit {
    /// Splits the commit into effects and batch.
    pub(super) fn into_parts(self) -> (Vec<HeldEffects>, Batch) {
        (self.held_effects, Arc::unwrap_or_clone(self.batch))
    }

    /// The parts that are written.
    pub(super) fn parts(&self) -> &[Part] {
        &self.batch.parts
    }

    /// The effects that wait for the commit.
    pub(super) fn held_effects(&mut self) -> &mut [HeldEffects] {
        &mut self.held_effects
    }

    /// Empties the buffers for reuse. The parts get a new buffer if the batch is still referenced.
    fn into_buffers(self) -> CommitBuffers {
        let Self { mut held_effects, batch, .. } = self;
        held_effects.clear();
        let mut parts = Arc::into_inner(batch).map(|batch| batch.parts).unwrap_or_default();
        parts.clear();
        CommitBuffers { held_effects, parts }
    }
}

impl Shard {
    /// Submits the pending drafts, unless a commit is in flight. It precedes the effects of the last commit, so that
    /// the disk is busy while they run.
    pub fn flush(&mut self) {
        if self.commits.in_flight.is_some() {
            return;
        }
        if !self.ownership.draining.is_empty() {
            // All effects must be released first, so that it is known which attempts run here.
            while self.release_next() {}
        }
        self.commits.has_released = false;
        if self.send_half() {
            return;
        }
        self.release_drained();
        // Reserves the buffers once: parts are large, and growing a list moves them.
        let room = self.queues.dirty.len().min(PARTS_MAX) + self.discards.undeliverable.len();
        let CommitBuffers { mut held_effects, mut parts } = std::mem::take(&mut self.commits.buffers);
        held_effects.reserve(room);
        parts.reserve(room);
        let (mut bytes, mut later, alone) = (0, Vec::new(), self.next_suspect());
        let mut picks = Picks::of(&self.queues.dirty, self.queues.activity.is_shared());
        while parts.len() < PARTS_MAX
            && bytes < BATCH_BYTES_MAX
            && let Some(execution) = self.next_dirty(alone, &mut picks, &mut later)
        {
            let Some(loaded) = self.executions.get_mut(&execution).and_then(ExecutionEntry::loaded_mut) else {
                continue;
            };
            let partition = self.ownership.leases.partition(execution);
            let part = loaded.part(partition, &self.keys.sealing);
            let after = Some(Expected { sequence: loaded.next_sequence.wrapping_sub(1), hash: loaded.head });
            let effects = HeldEffects::of(execution, after, std::mem::take(&mut loaded.draft));
            loaded.on_the_way += 1;
            match part {
                Some(part) => {
                    let part_bytes = part.byte_count();
                    bytes += part_bytes;
                    picks.took(part_bytes);
                    held_effects.push(effects);
                    parts.push(part);
                }
                // Nothing to write, and no earlier frame in flight: the callers can be answered.
                None => self.commits.releasing.push_back(effects),
            }
        }
        for execution in later {
            self.queues.dirty.insert(execution, self.tenant_key(execution));
        }
        while parts.len() < PARTS_MAX
            && alone.is_none()
            && let Some((execution, discard)) = self.discards.undeliverable.pop_first()
        {
            // The execution has started, or is about to, and receives the messages itself.
            if self.executions.contains_key(&execution) {
                self.outputs.push_back(Output::RescanInbox);
                continue;
            }
            held_effects.push(HeldEffects::of(execution, None, Draft::default()));
            parts.push(discard.part(execution, self.ownership.leases.partition(execution)));
        }
        if parts.is_empty() {
            self.commits.buffers = CommitBuffers { held_effects, parts };
            return;
        }
        let partitions: BTreeSet<u32> = parts.iter().map(|part| part.partition).collect();
        let fences = partitions.into_iter().filter_map(|partition| self.ownership.leases.fence(partition)).collect();
        self.send(held_effects, Arc::new(Batch { fences, parts, sealing: self.keys.sealing }));
    }

    /// Returns the next execution to write. Executions that are committed alone are skipped, except `alone`.
    fn next_dirty(
        &mut self,
        alone: Option<ExecutionKey>,
        picks: &mut Picks,
        later: &mut Vec<ExecutionKey>,
    ) -> Option<ExecutionKey> {
        if let Some(alone) = alone {
            return self.queues.dirty.remove(&alone).then_some(alone);
        }
        loop {
            let execution = picks.next(&mut self.queues.dirty)?;
            if !self.refusals.is_suspect(execution) {
                return Some(execution);
            }
            later.push(execution);
        }
    }

    pub(super) fn send(&mut self, held_effects: Vec<HeldEffects>, batch: Arc<Batch>) {
        self.commits.submitted += 1;
        self.outputs.push_back(Output::Commit { commit_id: self.commits.submitted, batch: batch.clone() });
        self.commits.in_flight = Some(InFlightCommit { id: self.commits.submitted, held_effects, batch });
    }

    pub(super) fn committed(&mut self, now: u64, id: u64, answer: Result<Vec<PartOutcome>, CommitError>) {
        let Some(mut commit) = self.commits.in_flight.take_if(|commit| commit.id == id) else { return };
        // The effects of earlier commits are released before slots are dropped.
        while self.release_next() {}
        self.telemetry.counters.commit(&answer);
        match answer {
            Ok(answers) => {
                let (mut receivers_of_messages, mut releasing) =
                    (BTreeSet::new(), Vec::with_capacity(commit.held_effects.len()));
                for ((effects, part), answer) in commit.held_effects.drain(..).zip(&commit.batch.parts).zip(answers) {
                    match answer {
                        PartOutcome::Durable => {
                            receivers_of_messages.extend(receivers(part));
                            self.durable(&effects, part);
                            releasing.push(effects);
                        }
                        // The execution exists by now.
                        PartOutcome::Refused(Refusal::Sequence) if is_discard(part) => {
                            self.outputs.push_back(Output::RescanInbox);
                        }
                        PartOutcome::Refused(refusal) => {
                            let mut fences = commit.batch.fences.iter();
                            let fence = fences.find(|fence| fence.partition == part.partition).copied();
                            self.refused(effects, refusal, fence);
                        }
                    }
                }
                self.on_messages_enqueued(receivers_of_messages);
                self.queue_release(releasing);
                self.commits.recycled = Some(commit);
            }
            Err(CommitError::NotWritten(why)) => {
                self.outputs.push_back(Output::Stalled(why));
                self.send_again(commit);
            }
            Err(CommitError::Refused(why)) => self.commit_refused(now, commit, Cause::Content, &why),
            Err(CommitError::Blocked(why)) => self.commit_refused(now, commit, Cause::Shared, &why),
            Err(CommitError::Unknown(_)) => {
                // Announced in case the messages were written after all: their receivers then poll the inbox.
                let receivers = commit.batch.parts.iter().flat_map(receivers);
                self.on_messages_enqueued(receivers.collect());
                for (effects, part) in commit.held_effects.into_iter().zip(&commit.batch.parts) {
                    if is_discard(part) {
                        // Repeated if the messages still exist, since no other code discards them.
                        let discard = self.discards.undeliverable.entry(part.execution).or_default();
                        discard.consumed.extend(part.consumed.iter().cloned());
                        discard.messages.extend(part.messages.iter().cloned());
                        continue;
                    }
                    for id in effects.attempts() {
                        self.attempts.set(id, AttemptState::NotStarted);
                    }
                    let (unconfirmed, queued) = UnconfirmedCommit::of(effects, part);
                    self.commits.unconfirmed.entry(part.execution).or_default().push(unconfirmed);
                    self.commits.in_doubt.extend(queued.iter().filter_map(|(queued, _)| queued.ticket));
                    self.reload(part.execution, queued);
                }
            }
            Err(CommitError::Fatal(why)) => self.outputs.push_back(Output::Fatal(why)),
        }
    }

    /// Queues the effects of a durable commit. While organizations share the driver, those with fewer executions in the
    /// commit go first.
    fn queue_release(&mut self, mut releasing: Vec<HeldEffects>) {
        if self.queues.activity.is_shared() {
            let mut counts: BTreeMap<Tenant, usize> = BTreeMap::new();
            for effects in &releasing {
                *counts.entry(self.tenant_key(effects.execution)).or_default() += 1;
            }
            // The sort is stable: commits of one execution are released in order.
            releasing.sort_by_cached_key(|effects| counts.get(&self.tenant_key(effects.execution)).copied());
        }
        self.commits.releasing.extend(releasing);
    }

    /// Submits the same commit again, since nothing of it was written. It is rebuilt only if partitions of it were
    /// lost.
    fn send_again(&mut self, commit: InFlightCommit) {
        let is_held = |fence: &Fence| self.ownership.leases.fence(fence.partition) == Some(*fence);
        if commit.batch.fences.iter().all(is_held) {
            return self.send(commit.held_effects, commit.batch);
        }
        let (held_effects, batch) = commit.into_parts();
        if let Some((held_effects, batch)) = self.without_lost(held_effects, batch) {
            self.send(held_effects, Arc::new(batch));
        }
    }

    fn on_messages_enqueued(&mut self, partitions: BTreeSet<u32>) {
        if !partitions.is_empty() {
            self.outputs.push_back(Output::MessagesEnqueued(partitions));
        }
    }

    fn durable(&mut self, effects: &HeldEffects, part: &Part) {
        self.telemetry.counters.durable(part);
        self.refusals.written(part.execution);
        if self.commits.plans_stored.len() >= PLANS_KNOWN_MAX {
            self.commits.plans_stored.clear();
        }
        self.commits.plans_stored.extend(part.plans.iter().map(|plan| plan.hash));
        // The partition was lost and acquired again, and the journal may have been read before this commit.
        if effects.is_stale && !part.frames.is_empty() && self.executions.contains_key(&effects.execution) {
            return self.reload(effects.execution, Vec::new());
        }
        if !effects.is_stale
            && !part.frames.is_empty()
            && let Some(loaded) = self.executions.get_mut(&effects.execution).and_then(ExecutionEntry::loaded_mut)
        {
            loaded.durable = effects.after;
            loaded.started_by = None;
        }
    }

    /// Settles commits in doubt with the head of the journal that was read. Frames of a written commit are announced,
    /// and its receipts are not processed again: they would be stored as late.
    pub(super) fn settle_doubts(
        &mut self,
        execution: ExecutionKey,
        unconfirmed: Vec<UnconfirmedCommit>,
        head: Expected,
        waiting: &mut Vec<PendingInput>,
    ) {
        // Compared by hash: an earlier commit may have been written in place of this one.
        for UnconfirmedCommit { committed, mut receipts, .. } in
            unconfirmed.into_iter().filter(|unconfirmed| unconfirmed.after == Some(head))
        {
            self.outputs.extend(committed.into_iter().map(|frame| Output::Notify(Arc::new(frame))));
            waiting.retain(|queued| {
                let place = receipt_of(queued).and_then(|receipt| receipts.iter().position(|known| *known == receipt));
                place.map(|place| receipts.swap_remove(place)).is_none_or(|(instance, attempt)| {
                    let name = AttemptId::new(execution, instance, attempt);
                    self.attempts.end(&name);
                    false
                })
            });
        }
    }

    /// Releases the effects of one execution of a durable commit. False if none is left.
    pub(super) fn release_next(&mut self) -> bool {
        let Some(effects) = self.commits.releasing.pop_front() else {
            if let Some(recycled) = self.commits.recycled.take() {
                self.commits.buffers = recycled.into_buffers();
            }
            return false;
        };
        self.commits.has_released = true;
        self.release(effects);
        true
    }

    fn release(&mut self, effects: HeldEffects) {
        let HeldEffects { execution, after, queued, actions, committed, settled, is_stale } = effects;
        if !is_stale {
            // A discard has no slot, and an execution that started since does not count it.
            if after.is_some()
                && let Some(loaded) = self.executions.get_mut(&execution).and_then(ExecutionEntry::loaded_mut)
            {
                loaded.on_the_way = loaded.on_the_way.saturating_sub(1);
                for message in queued.iter().filter_map(|(queued, _)| queued.message.as_ref()) {
                    loaded.messages.remove(&message.id);
                }
            }
            actions.into_iter().for_each(|action| self.act(execution, action));
        }
        let forgotten = settled.into_iter().map(|(step, attempt)| Output::Forget { execution, step, attempt });
        self.outputs.extend(forgotten);
        self.outputs.extend(committed.into_iter().map(|frame| Output::Notify(Arc::new(frame))));
        for (queued, changed) in queued {
            if let Some(ticket) = queued.ticket {
                self.reply(ticket, Ok(Taken { changed }));
            }
        }
        self.queue_split(execution);
        self.abandon(execution);
        self.mark_idle(execution);
    }

    /// Moves an idle execution to the idle cache. An ended execution leaves memory at once.
    fn mark_idle(&mut self, execution: ExecutionKey) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        if !loaded.is_idle() {
            return;
        }
        let (has_ended, bytes) = (loaded.state.end.ended_at.is_some(), loaded.state.counts.memory_bytes as usize);
        self.unweigh(execution, None);
        if has_ended {
            self.executions.remove(&execution);
            return self.idle_cache.remove(execution);
        }
        if !self.idle_cache.add(execution, bytes) {
            self.executions.remove(&execution);
            return;
        }
        while let Some(surplus) = self.idle_cache.pop_surplus() {
            if matches!(self.executions.get(&surplus), Some(ExecutionEntry::Loaded(loaded)) if loaded.is_idle()) {
                self.executions.remove(&surplus);
            }
        }
    }

    /// Handles a refused part. `fence` is the fence under which it was submitted.
    pub(super) fn refused(&mut self, effects: HeldEffects, refusal: Refusal, fence: Option<Fence>) {
        let execution = effects.execution;
        match refusal {
            Refusal::IdTaken(other) | Refusal::IdempotencyKeyTaken(other) => {
                let newer = self.forget_entry(execution);
                let queued: Vec<_> = effects.queued.into_iter().map(|(queued, _)| queued).chain(newer).collect();
                self.discard_messages(execution, &queued);
                self.refuse(queued, ShardError::Exists(other));
            }
            // Another writer was first. The stored journal counts, and the inputs are processed again on top of it.
            Refusal::Sequence | Refusal::Ended => self.reload(execution, effects.queued),
            Refusal::Partition => {
                let why = format!(
                    "its head (`heads.partition`) is not in partition {}, where it belongs: something other than Mainspring has changed the store",
                    self.ownership.leases.partition(execution)
                );
                self.turn_back(execution, effects.into_queued().collect(), &why);
                self.quarantine(execution, why);
            }
            Refusal::Fence => {
                let partition = self.ownership.leases.partition(execution);
                let held = self.ownership.leases.fence(partition);
                // The partition was lost and acquired again. Unwritten inputs are processed again under the new fence,
                // and turns decided since are dropped, since they did not know of them.
                if held.is_some() && held != fence {
                    return self.reload(execution, effects.queued);
                }
                let queued = effects.queued.into_iter().map(|(queued, _)| queued).collect();
                self.pass_on(execution, queued);
                if held.is_some() {
                    self.lose(&[partition]);
                }
            }
        }
    }

    /// Drops an execution from memory and reads its journal again.
    fn reload(&mut self, execution: ExecutionKey, queued: Vec<(PendingInput, bool)>) {
        if !self.holds(execution) {
            // It is unknown if the input was written, so the caller is not redirected to another node.
            let (asked, without_reply): (Vec<_>, Vec<_>) =
                queued.into_iter().map(|(queued, _)| queued).partition(|queued: &PendingInput| queued.ticket.is_some());
            let why =
                "the execution was handed off to another node, and it is unknown if the input was processed before";
            self.refuse(asked, ShardError::Store(why.into()));
            return self.pass_on(execution, without_reply);
        }
        let newer = self.forget_entry(execution);
        self.load(execution, queued.into_iter().map(|(queued, _)| queued).collect(), newer);
    }

    pub(super) fn forget_entry(&mut self, execution: ExecutionKey) -> Vec<PendingInput> {
        self.queues.dirty.remove(&execution);
        self.idle_cache.remove(execution);
        self.loads.reading.remove(&execution);
        self.timers.remove(execution);
        let entry = self.executions.remove(&execution);
        // The result of an evaluation in progress is not needed.
        let out = match &entry {
            Some(ExecutionEntry::Evaluating(out)) => Some(out.abandoned.clone()),
            _ => None,
        };
        if let Some(abandoned) = &out {
            abandoned.store(true, Ordering::Relaxed);
        }
        self.unweigh(execution, out.as_ref());
        entry.map(ExecutionEntry::into_queued).unwrap_or_default()
    }
}

/// A commit with an unknown outcome.
#[derive(Debug)]
pub(super) struct UnconfirmedCommit {
    /// The head if it was written.
    after: Option<Expected>,
    /// The frames to announce if it was written.
    committed: Vec<CommittedFrame>,
    /// The attempts whose receipts are in its frames. Empty without frames, since the head then does not show if it was
    /// written.
    receipts: Vec<(Instance, u32)>,
}

impl UnconfirmedCommit {
    /// Splits effects in doubt, and returns the inputs to process again.
    fn of(effects: HeldEffects, part: &Part) -> (Self, Vec<(PendingInput, bool)>) {
        let HeldEffects { after, queued, committed, .. } = effects;
        let receipts = match part.frames.is_empty() {
            true => Vec::new(),
            false => queued.iter().filter_map(|(queued, _)| receipt_of(queued)).collect(),
        };
        (Self { after, committed, receipts }, queued)
    }
}

/// The attempt of a receipt that no caller waits for.
fn receipt_of(queued: &PendingInput) -> Option<(Instance, u32)> {
    match &queued.input {
        Input::Receipt { instance, attempt, .. } if queued.ticket.is_none() => Some((instance.clone(), *attempt)),
        _ => None,
    }
}

/// The partitions to which a part sends messages.
fn receivers(part: &Part) -> impl Iterator<Item = u32> + '_ {
    part.messages.iter().map(|message| message.partition)
}

pub(super) fn is_discard(part: &Part) -> bool {
    part.expected.is_none() && part.frames.is_empty()
}

/// Messages to delete from the inbox of an execution that does not exist, with the messages that notify its parents.
#[derive(Debug, Default)]
pub(super) struct Discard {
    pub(super) consumed: Vec<String>,
    pub(super) messages: Vec<InboxMessage>,
}

impl Discard {
    /// True if this discard deletes the message.
    pub(super) fn consumes(&self, id: &str) -> bool {
        self.consumed.iter().any(|consumed| consumed == id)
    }

    /// The part of a batch for this discard.
    fn part(self, execution: ExecutionKey, partition: u32) -> Part {
        let Self { consumed, messages } = self;
        Part { consumed, messages, ..Part::empty(execution, partition) }
    }
}

impl HeldEffects {
    /// The execution of the effects.
    pub(super) fn execution(&self) -> &ExecutionKey {
        &self.execution
    }

    /// Marks the effects as detached from the slot: no attempt starts.
    pub(super) fn detach(&mut self) {
        self.is_stale = true;
    }

    /// The attempts that start when the commit is durable. If the partition is lost, the new owner decides.
    fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        let actions = self.actions.iter().filter(|_| !self.is_stale);
        actions.filter_map(|action| match action {
            Action::Perform { instance, attempt } => {
                Some(AttemptId::new(self.execution, instance.clone(), attempt.number))
            }
            Action::Stop { .. } | Action::Lease { .. } => None,
        })
    }

    /// The inputs of the draft.
    pub(super) fn into_queued(self) -> impl Iterator<Item = PendingInput> {
        self.queued.into_iter().map(|(queued, _)| queued)
    }

    fn of(execution: ExecutionKey, after: Option<Expected>, draft: Draft) -> Self {
        let Draft { queued, actions, committed, settled, .. } = draft;
        Self { execution, after, queued, actions, committed, settled, is_stale: false }
    }
}

/// The cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The content of the part.
    Content,
    /// A resource shared with other writers: a lock, or a row of the whole organization.
    Shared,
}
