//! Group commit: the drafts that are written together, and the effects that their durability releases. Turns are
//! decided in `shard.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
};

use mainspring_kernel::{decide::Action, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{Batch, CommitError, Expected, Fence, InboxMessage, Part, PartOutcome, Refusal};

use crate::{
    limits::BATCH_BYTES_MAX,
    shard::{
        Shard,
        cell::{Cell, Draft},
        refusals::Cause,
        tenants::{Picks, Tenant},
        words::{Moment, Output, Queued, ShardError, Taken},
    },
};

/// Executions in one commit. It bounds the duration of a transaction.
const PARTS_MAX: usize = 4096;

/// Remembered plans that the store contains. A forgotten plan is written again, which changes nothing.
const PLANS_KNOWN_MAX: usize = 65_536;

/// The in-flight commit.
#[derive(Debug)]
pub(super) struct Flight {
    id: u64,
    passengers: Vec<Passenger>,
    batch: Arc<Batch>,
}

/// Empty buffers of an earlier commit. Allocating such large lists for each commit costs the system a page for every
/// few parts.
#[derive(Debug, Default)]
pub(super) struct Room {
    passengers: Vec<Passenger>,
    parts: Vec<Part>,
}

/// The effects of one execution's draft, held until the commit is durable.
#[derive(Debug)]
pub(super) struct Passenger {
    execution: ExecutionKey,
    after: Option<Expected>,
    queued: Vec<(Queued, bool)>,
    actions: Vec<Action>,
    moments: Vec<Moment>,
    settled: Vec<(String, u32)>,
    /// The partition was released or lost since the submission: no attempt starts, and the slot in memory does not
    /// depend on this commit.
    is_orphan: bool,
}

impl Flight {
    /// Splits the commit into effects and batch.
    pub(super) fn into_parts(self) -> (Vec<Passenger>, Batch) {
        (self.passengers, Arc::unwrap_or_clone(self.batch))
    }

    /// The parts that are written.
    pub(super) fn parts(&self) -> &[Part] {
        &self.batch.parts
    }

    /// The effects that wait for the commit.
    pub(super) fn passengers(&mut self) -> &mut [Passenger] {
        &mut self.passengers
    }

    /// Empties the buffers for reuse. The parts get a new buffer if the batch is still referenced.
    fn emptied(self) -> Room {
        let Self { mut passengers, batch, .. } = self;
        passengers.clear();
        let mut parts = Arc::into_inner(batch).map(|batch| batch.parts).unwrap_or_default();
        parts.clear();
        Room { passengers, parts }
    }
}

impl Shard {
    /// Submits the pending drafts, unless a commit is in flight. It precedes the effects of the last commit, so that
    /// the disk is busy while they run.
    pub fn flush(&mut self) {
        if self.flight.is_some() {
            return;
        }
        if !self.handing_over.is_empty() {
            // All effects must be released first, so that it is known which attempts run here.
            while self.land_next() {}
        }
        self.has_landed = false;
        if self.send_half() {
            return;
        }
        self.hand_over();
        // Reserves the buffers once: parts are large, and growing a list moves them.
        let room = self.dirty.len().min(PARTS_MAX) + self.dead_letters.len();
        let Room { mut passengers, mut parts } = std::mem::take(&mut self.room);
        passengers.reserve(room);
        parts.reserve(room);
        let (mut bytes, mut later, alone) = (0, Vec::new(), self.next_suspect());
        let mut picks = Picks::of(&self.dirty, self.sharing.is_shared());
        while parts.len() < PARTS_MAX
            && bytes < BATCH_BYTES_MAX
            && let Some(execution) = self.next_dirty(alone, &mut picks, &mut later)
        {
            let Some(live) = self.cells.get_mut(&execution).and_then(Cell::live_mut) else { continue };
            let partition = self.leases.partition(execution);
            let part = live.part(partition, &self.keys.sealing);
            let after = Some(Expected { sequence: live.next_sequence.wrapping_sub(1), hash: live.head });
            let passenger = Passenger::of(execution, after, std::mem::take(&mut live.draft));
            live.on_the_way += 1;
            match part {
                Some(part) => {
                    let part_bytes = part.byte_count();
                    bytes += part_bytes;
                    picks.took(part_bytes);
                    passengers.push(passenger);
                    parts.push(part);
                }
                // Nothing to write, and no earlier frame in flight: the callers can be answered.
                None => self.landing.push_back(passenger),
            }
        }
        for execution in later {
            self.dirty.insert(execution, self.tenant_key(execution));
        }
        while parts.len() < PARTS_MAX
            && alone.is_none()
            && let Some((execution, burial)) = self.dead_letters.pop_first()
        {
            // The execution has started, or is about to, and receives the messages itself.
            if self.cells.contains_key(&execution) {
                self.outputs.push_back(Output::LettersWait);
                continue;
            }
            passengers.push(Passenger::of(execution, None, Draft::default()));
            parts.push(burial.part(execution, self.leases.partition(execution)));
        }
        if parts.is_empty() {
            self.room = Room { passengers, parts };
            return;
        }
        let partitions: BTreeSet<u32> = parts.iter().map(|part| part.partition).collect();
        let fences = partitions.into_iter().filter_map(|partition| self.leases.fence(partition)).collect();
        self.send(passengers, Arc::new(Batch { fences, parts, sealing: self.keys.sealing }));
    }

    /// Returns the next execution to write. Executions that are committed alone are skipped, except `alone`.
    fn next_dirty(
        &mut self,
        alone: Option<ExecutionKey>,
        picks: &mut Picks,
        later: &mut Vec<ExecutionKey>,
    ) -> Option<ExecutionKey> {
        if let Some(alone) = alone {
            return self.dirty.remove(&alone).then_some(alone);
        }
        loop {
            let execution = picks.next(&mut self.dirty)?;
            if !self.refusals.is_suspect(execution) {
                return Some(execution);
            }
            later.push(execution);
        }
    }

    pub(super) fn send(&mut self, passengers: Vec<Passenger>, batch: Arc<Batch>) {
        self.flights += 1;
        self.outputs.push_back(Output::Commit { flight: self.flights, batch: batch.clone() });
        self.flight = Some(Flight { id: self.flights, passengers, batch });
    }

    pub(super) fn committed(&mut self, now: u64, id: u64, answer: Result<Vec<PartOutcome>, CommitError>) {
        let Some(mut flight) = self.flight.take_if(|flight| flight.id == id) else { return };
        // The effects of earlier commits are released before slots are dropped.
        while self.land_next() {}
        self.tally.commit(&answer);
        match answer {
            Ok(answers) => {
                let (mut posted, mut landing) = (BTreeSet::new(), Vec::with_capacity(flight.passengers.len()));
                for ((passenger, part), answer) in flight.passengers.drain(..).zip(&flight.batch.parts).zip(answers) {
                    match answer {
                        PartOutcome::Durable => {
                            posted.extend(receivers(part));
                            self.durable(&passenger, part);
                            landing.push(passenger);
                        }
                        // The execution exists by now.
                        PartOutcome::Refused(Refusal::Sequence) if is_burial(part) => {
                            self.outputs.push_back(Output::LettersWait);
                        }
                        PartOutcome::Refused(refusal) => {
                            let mut fences = flight.batch.fences.iter();
                            let fence = fences.find(|fence| fence.partition == part.partition).copied();
                            self.refused(passenger, refusal, fence);
                        }
                    }
                }
                self.letters_posted(posted);
                self.queue_landing(landing);
                self.spent = Some(flight);
            }
            Err(CommitError::NotWritten(why)) => {
                self.outputs.push_back(Output::Stalled(why));
                self.send_again(flight);
            }
            Err(CommitError::Refused(why)) => self.commit_refused(now, flight, Cause::Content, &why),
            Err(CommitError::Blocked(why)) => self.commit_refused(now, flight, Cause::Shared, &why),
            Err(CommitError::Unknown(_)) => {
                // Announced in case the messages were written after all: their receivers then poll the inbox.
                let receivers = flight.batch.parts.iter().flat_map(receivers);
                self.letters_posted(receivers.collect());
                for (passenger, part) in flight.passengers.into_iter().zip(&flight.batch.parts) {
                    if is_burial(part) {
                        // Repeated if the messages still exist, since no other code discards them.
                        let burial = self.dead_letters.entry(part.execution).or_default();
                        burial.consumed.extend(part.consumed.iter().cloned());
                        burial.letters.extend(part.messages.iter().cloned());
                        continue;
                    }
                    self.never_begun.extend(passenger.attempts());
                    let (untold, queued) = Untold::of(passenger, part);
                    self.untold.entry(part.execution).or_default().push(untold);
                    self.in_doubt.extend(queued.iter().filter_map(|(queued, _)| queued.ticket));
                    self.reload(part.execution, queued);
                }
            }
            Err(CommitError::Fatal(why)) => self.outputs.push_back(Output::Fatal(why)),
        }
    }

    /// Queues the effects of a durable commit. While organizations share the driver, those with fewer executions in the
    /// commit go first.
    fn queue_landing(&mut self, mut landing: Vec<Passenger>) {
        if self.sharing.is_shared() {
            let mut counts: BTreeMap<Tenant, usize> = BTreeMap::new();
            for passenger in &landing {
                *counts.entry(self.tenant_key(passenger.execution)).or_default() += 1;
            }
            // The sort is stable: commits of one execution are released in order.
            landing.sort_by_cached_key(|passenger| counts.get(&self.tenant_key(passenger.execution)).copied());
        }
        self.landing.extend(landing);
    }

    /// Submits the same commit again, since nothing of it was written. It is rebuilt only if partitions of it were
    /// lost.
    fn send_again(&mut self, flight: Flight) {
        let is_held = |fence: &Fence| self.leases.fence(fence.partition) == Some(*fence);
        if flight.batch.fences.iter().all(is_held) {
            return self.send(flight.passengers, flight.batch);
        }
        let (passengers, batch) = flight.into_parts();
        if let Some((passengers, batch)) = self.without_lost(passengers, batch) {
            self.send(passengers, Arc::new(batch));
        }
    }

    fn letters_posted(&mut self, partitions: BTreeSet<u32>) {
        if !partitions.is_empty() {
            self.outputs.push_back(Output::LettersPosted(partitions));
        }
    }

    fn durable(&mut self, passenger: &Passenger, part: &Part) {
        self.tally.durable(part);
        self.refusals.written(part.execution);
        if self.plans_stored.len() >= PLANS_KNOWN_MAX {
            self.plans_stored.clear();
        }
        self.plans_stored.extend(part.plans.iter().map(|plan| plan.hash));
        // The partition was lost and acquired again, and the journal may have been read before this commit.
        if passenger.is_orphan && !part.frames.is_empty() && self.cells.contains_key(&passenger.execution) {
            return self.reload(passenger.execution, Vec::new());
        }
        if !passenger.is_orphan
            && !part.frames.is_empty()
            && let Some(live) = self.cells.get_mut(&passenger.execution).and_then(Cell::live_mut)
        {
            live.durable = passenger.after;
            live.begun_by = None;
        }
    }

    /// Settles commits in doubt with the head of the journal that was read. Frames of a written commit are announced,
    /// and its receipts are not processed again: they would be stored as late.
    pub(super) fn settle_doubts(
        &mut self,
        execution: ExecutionKey,
        untold: Vec<Untold>,
        head: Expected,
        waiting: &mut Vec<Queued>,
    ) {
        // Compared by hash: an earlier commit may have been written in place of this one.
        for Untold { moments, mut receipts, .. } in untold.into_iter().filter(|untold| untold.after == Some(head)) {
            self.outputs.extend(moments.into_iter().map(|moment| Output::Tell(Arc::new(moment))));
            waiting.retain(|queued| {
                let place = receipt_of(queued).and_then(|receipt| receipts.iter().position(|known| *known == receipt));
                place.map(|place| receipts.swap_remove(place)).is_none_or(|(instance, attempt)| {
                    let name = (execution, instance, attempt);
                    self.performing.remove(&name);
                    self.elsewhere.remove(&name);
                    false
                })
            });
        }
    }

    /// Releases the effects of one execution of a durable commit. False if none is left.
    pub(super) fn land_next(&mut self) -> bool {
        let Some(passenger) = self.landing.pop_front() else {
            if let Some(spent) = self.spent.take() {
                self.room = spent.emptied();
            }
            return false;
        };
        self.has_landed = true;
        self.land(passenger);
        true
    }

    fn land(&mut self, passenger: Passenger) {
        let Passenger { execution, after, queued, actions, moments, settled, is_orphan } = passenger;
        if !is_orphan {
            // A discard has no slot, and an execution that started since does not count it.
            if after.is_some()
                && let Some(live) = self.cells.get_mut(&execution).and_then(Cell::live_mut)
            {
                live.on_the_way = live.on_the_way.saturating_sub(1);
                for letter in queued.iter().filter_map(|(queued, _)| queued.letter.as_ref()) {
                    live.letters.remove(&letter.id);
                }
            }
            actions.into_iter().for_each(|action| self.act(execution, action));
        }
        let forgotten = settled.into_iter().map(|(step, attempt)| Output::Forget { execution, step, attempt });
        self.outputs.extend(forgotten);
        self.outputs.extend(moments.into_iter().map(|moment| Output::Tell(Arc::new(moment))));
        for (queued, changed) in queued {
            if let Some(ticket) = queued.ticket {
                self.reply(ticket, Ok(Taken { changed }));
            }
        }
        self.queue_split(execution);
        self.abandon(execution);
        self.rest(execution);
    }

    /// Moves an idle execution to the idle cache. An ended execution leaves memory at once.
    fn rest(&mut self, execution: ExecutionKey) {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return };
        if !live.is_idle() {
            return;
        }
        let (has_ended, bytes) = (live.state.ended_at.is_some(), live.state.memory_bytes as usize);
        self.unweigh(execution, None);
        if has_ended {
            self.cells.remove(&execution);
            return self.resting.remove(execution);
        }
        if !self.resting.add(execution, bytes) {
            self.cells.remove(&execution);
            return;
        }
        while let Some(surplus) = self.resting.pop_surplus() {
            if matches!(self.cells.get(&surplus), Some(Cell::Live(live)) if live.is_idle()) {
                self.cells.remove(&surplus);
            }
        }
    }

    /// Handles a refused part. `fence` is the fence under which it was submitted.
    pub(super) fn refused(&mut self, passenger: Passenger, refusal: Refusal, fence: Option<Fence>) {
        let execution = passenger.execution;
        match refusal {
            Refusal::IdTaken(other) | Refusal::IdempotencyKeyTaken(other) => {
                let newer = self.forget_cell(execution);
                let queued: Vec<_> = passenger.queued.into_iter().map(|(queued, _)| queued).chain(newer).collect();
                self.bury(execution, &queued);
                self.refuse(queued, ShardError::Exists(other));
            }
            // Another writer was first. The stored journal counts, and the inputs are processed again on top of it.
            Refusal::Sequence | Refusal::Ended => self.reload(execution, passenger.queued),
            Refusal::Partition => {
                let why = format!(
                    "its head (`heads.partition`) is not in partition {}, where it belongs: something other than Mainspring has changed the store",
                    self.leases.partition(execution)
                );
                self.turn_back(execution, passenger.into_queued().collect(), &why);
                self.quarantine(execution, why);
            }
            Refusal::Fence => {
                let partition = self.leases.partition(execution);
                let held = self.leases.fence(partition);
                // The partition was lost and acquired again. Unwritten inputs are processed again under the new fence,
                // and turns decided since are dropped, since they did not know of them.
                if held.is_some() && held != fence {
                    return self.reload(execution, passenger.queued);
                }
                let queued = passenger.queued.into_iter().map(|(queued, _)| queued).collect();
                self.pass_on(execution, queued);
                if held.is_some() {
                    self.lose(&[partition]);
                }
            }
        }
    }

    /// Drops an execution from memory and reads its journal again.
    fn reload(&mut self, execution: ExecutionKey, queued: Vec<(Queued, bool)>) {
        if !self.holds(execution) {
            // It is unknown if the input was written, so the caller is not told to ask another node.
            let (asked, silent): (Vec<_>, Vec<_>) =
                queued.into_iter().map(|(queued, _)| queued).partition(|queued: &Queued| queued.ticket.is_some());
            let why =
                "the execution was handed off to another node, and it is unknown if the input was processed before";
            self.refuse(asked, ShardError::Store(why.into()));
            return self.pass_on(execution, silent);
        }
        let newer = self.forget_cell(execution);
        self.load(execution, queued.into_iter().map(|(queued, _)| queued).collect(), newer);
    }

    pub(super) fn forget_cell(&mut self, execution: ExecutionKey) -> Vec<Queued> {
        self.dirty.remove(&execution);
        self.resting.remove(execution);
        self.reading.remove(&execution);
        self.timers.remove(execution);
        let cell = self.cells.remove(&execution);
        // The result of an evaluation in progress is not needed.
        let out = match &cell {
            Some(Cell::Evaluating(out)) => Some(out.abandoned.clone()),
            _ => None,
        };
        if let Some(abandoned) = &out {
            abandoned.store(true, Ordering::Relaxed);
        }
        self.unweigh(execution, out.as_ref());
        cell.map(Cell::into_queued).unwrap_or_default()
    }
}

/// A commit with an unknown outcome.
#[derive(Debug)]
pub(super) struct Untold {
    /// The head if it was written.
    after: Option<Expected>,
    /// The frames to announce if it was written.
    moments: Vec<Moment>,
    /// The attempts whose receipts are in its frames. Empty without frames, since the head then does not tell if it was
    /// written.
    receipts: Vec<(Instance, u32)>,
}

impl Untold {
    /// Splits effects in doubt, and returns the inputs to process again.
    fn of(passenger: Passenger, part: &Part) -> (Self, Vec<(Queued, bool)>) {
        let Passenger { after, queued, moments, .. } = passenger;
        let receipts = match part.frames.is_empty() {
            true => Vec::new(),
            false => queued.iter().filter_map(|(queued, _)| receipt_of(queued)).collect(),
        };
        (Self { after, moments, receipts }, queued)
    }
}

/// The attempt of a receipt that no caller waits for.
fn receipt_of(queued: &Queued) -> Option<(Instance, u32)> {
    match &queued.input {
        Input::Receipt { instance, attempt, .. } if queued.ticket.is_none() => Some((instance.clone(), *attempt)),
        _ => None,
    }
}

/// The partitions to which a part sends messages.
fn receivers(part: &Part) -> impl Iterator<Item = u32> + '_ {
    part.messages.iter().map(|letter| letter.partition)
}

pub(super) fn is_burial(part: &Part) -> bool {
    part.expected.is_none() && part.frames.is_empty()
}

/// Messages to delete from the inbox of an execution that does not exist, with the messages that notify its parents.
#[derive(Debug, Default)]
pub(super) struct Burial {
    pub(super) consumed: Vec<String>,
    pub(super) letters: Vec<InboxMessage>,
}

impl Burial {
    /// True if this discard deletes the message.
    pub(super) fn consumes(&self, id: &str) -> bool {
        self.consumed.iter().any(|consumed| consumed == id)
    }

    /// The part of a batch for this discard.
    fn part(self, execution: ExecutionKey, partition: u32) -> Part {
        let Self { consumed, letters } = self;
        Part { consumed, messages: letters, ..Part::empty(execution, partition) }
    }
}

impl Passenger {
    /// The execution of the effects.
    pub(super) fn execution(&self) -> &ExecutionKey {
        &self.execution
    }

    /// Marks the effects as detached from the slot: no attempt starts.
    pub(super) fn orphan(&mut self) {
        self.is_orphan = true;
    }

    /// The attempts that start when the commit is durable. If the partition is lost, the new owner decides.
    fn attempts(&self) -> impl Iterator<Item = (ExecutionKey, Instance, u32)> + '_ {
        let actions = self.actions.iter().filter(|_| !self.is_orphan);
        actions.filter_map(|action| match action {
            Action::Perform { instance, attempt } => Some((self.execution, instance.clone(), attempt.number)),
            Action::Stop { .. } => None,
        })
    }

    /// The inputs of the draft.
    pub(super) fn into_queued(self) -> impl Iterator<Item = Queued> {
        self.queued.into_iter().map(|(queued, _)| queued)
    }

    fn of(execution: ExecutionKey, after: Option<Expected>, draft: Draft) -> Self {
        let Draft { queued, actions, moments, settled, .. } = draft;
        Self { execution, after, queued, actions, moments, settled, is_orphan: false }
    }
}
