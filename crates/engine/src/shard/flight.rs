//! Commits: what goes to the disk together, and what its answer releases.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use mainspring_kernel::{decide::Action, input::Input, instance::Instance, key::ExecutionKey};
use mainspring_store::{Answer, Batch, CommitError, Expected, Fence, Letter, Part, Refusal};

use crate::{
    limits::BATCH_BYTES_MAX,
    shard::{
        Shard,
        cell::{Cell, Draft},
        refusals::Cause,
        tenants::Picks,
        words::{Moment, Output, Queued, ShardError, Taken},
    },
};

/// Executions in one commit at the most: what bounds the time of a transaction.
const PARTS_MAX: usize = 4096;

/// Plans of which it is remembered that the store has them. Whoever brings one that is forgotten writes it once more, which
/// changes nothing.
const PLANS_KNOWN_MAX: usize = 65_536;

/// A commit on its way.
#[derive(Debug)]
pub(super) struct Flight {
    id: u64,
    passengers: Vec<Passenger>,
    batch: Arc<Batch>,
}

/// Lists of an earlier commit that are empty by now: what is large and new again and again costs the system a page for
/// every few parts.
#[derive(Debug, Default)]
pub(super) struct Room {
    passengers: Vec<Passenger>,
    parts: Vec<Part>,
}

/// What one execution waits for.
#[derive(Debug)]
pub(super) struct Passenger {
    execution: ExecutionKey,
    after: Option<Expected>,
    queued: Vec<(Queued, bool)>,
    actions: Vec<Action>,
    moments: Vec<Moment>,
    settled: Vec<(String, u32)>,
    /// Its partition was let go of or lost meanwhile: nothing of it is begun, and nothing that is in memory by now hangs
    /// on it.
    is_orphan: bool,
}

impl Flight {
    /// Who waits, and what is written.
    pub(super) fn into_parts(self) -> (Vec<Passenger>, Batch) {
        (self.passengers, Arc::unwrap_or_clone(self.batch))
    }

    /// What is written.
    pub(super) fn parts(&self) -> &[Part] {
        &self.batch.parts
    }

    /// What is on its way.
    pub(super) fn passengers(&mut self) -> &mut [Passenger] {
        &mut self.passengers
    }

    /// Its lists without what was in them; new ones if somebody else still has the batch.
    fn emptied(self) -> Room {
        let Self { mut passengers, batch, .. } = self;
        passengers.clear();
        let mut parts = Arc::into_inner(batch).map(|batch| batch.parts).unwrap_or_default();
        parts.clear();
        Room { passengers, parts }
    }
}

impl Shard {
    /// Sends what has gathered to the store, unless a commit is on its way. It goes before what the last one has released,
    /// so that the disk is busy meanwhile.
    pub fn flush(&mut self) {
        if self.flight.is_some() {
            return;
        }
        if !self.handing_over.is_empty() {
            // Who performs what is known when all has landed.
            while self.land_next() {}
        }
        self.has_landed = false;
        if self.send_half() {
            return;
        }
        self.hand_over();
        // A part is large: moving all of them whenever there is no room for the next costs more than to count them first.
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
                // Nothing to write, and nothing before it that is not durable: it can be answered.
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
            // Somebody has begun it, or is about to, and takes them in.
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

    /// The next execution to be written: of those that are committed alone none but `alone`.
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

    pub(super) fn committed(&mut self, now: u64, id: u64, answer: Result<Vec<Answer>, CommitError>) {
        let Some(mut flight) = self.flight.take_if(|flight| flight.id == id) else { return };
        // What came before is released before anything is forgotten of it.
        while self.land_next() {}
        self.tally.commit(&answer);
        match answer {
            Ok(answers) => {
                let mut posted = BTreeSet::new();
                for ((passenger, part), answer) in flight.passengers.drain(..).zip(&flight.batch.parts).zip(answers) {
                    match answer {
                        Answer::Durable => {
                            posted.extend(receivers(part));
                            self.durable(&passenger, part);
                            self.landing.push_back(passenger);
                        }
                        // The execution is there by now.
                        Answer::Refused(Refusal::Sequence) if is_burial(part) => {
                            self.outputs.push_back(Output::LettersWait);
                        }
                        Answer::Refused(refusal) => {
                            let mut fences = flight.batch.fences.iter();
                            let fence = fences.find(|fence| fence.partition == part.partition).copied();
                            self.refused(passenger, refusal, fence);
                        }
                    }
                }
                self.letters_posted(posted);
                self.spent = Some(flight);
            }
            Err(CommitError::NotWritten(why)) => {
                self.outputs.push_back(Output::Stalled(why));
                self.send_again(flight);
            }
            Err(CommitError::Refused(why)) => self.commit_refused(now, flight, Cause::Content, &why),
            Err(CommitError::Blocked(why)) => self.commit_refused(now, flight, Cause::Shared, &why),
            Err(CommitError::Unknown(_)) => {
                // Letters that were written all the same wait for somebody who looks.
                let receivers = flight.batch.parts.iter().flat_map(receivers);
                self.letters_posted(receivers.collect());
                for (passenger, part) in flight.passengers.into_iter().zip(&flight.batch.parts) {
                    if is_burial(part) {
                        // Again, if they are still there: nobody else thinks of them.
                        let burial = self.dead_letters.entry(part.execution).or_default();
                        burial.consumed.extend(part.consumed.iter().cloned());
                        burial.letters.extend(part.letters.iter().cloned());
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

    /// The very same commit again: nothing of it is on the disk. It is made anew only where partitions of it were lost.
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
        // Its partition was lost and came back meanwhile: whoever has read it since may have read it without this.
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

    /// A journal was read whose head says which commits in doubt were written. What is to be told of one that was is told,
    /// and its receipts are not taken in a second time: as late ones they would be kept beside the journal.
    pub(super) fn settle_doubts(
        &mut self,
        execution: ExecutionKey,
        untold: Vec<Untold>,
        head: Expected,
        waiting: &mut Vec<Queued>,
    ) {
        // By the hash: a commit that was made before this one may have come to the disk in its place.
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

    /// Releases what waited for a commit that is durable, an execution at a time. False if there is nothing left.
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
            // A burial is of no cell, and whoever has begun since counts nothing for it.
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

    /// What nothing is going on of may leave memory: what has ended at once, the rest when there is no room any more.
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

    /// `fence` is that under which it went.
    pub(super) fn refused(&mut self, passenger: Passenger, refusal: Refusal, fence: Option<Fence>) {
        let execution = passenger.execution;
        match refusal {
            Refusal::IdTaken(other) | Refusal::IdempotencyKeyTaken(other) => {
                let newer = self.forget_cell(execution);
                let queued: Vec<_> = passenger.queued.into_iter().map(|(queued, _)| queued).chain(newer).collect();
                self.bury(execution, &queued);
                self.refuse(queued, ShardError::Exists(other));
            }
            // Somebody else has written: what is stored counts, and the inputs are taken in again on top of it.
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
                // Lost, and given to this node again: what was not written is taken in by the new right. What was decided
                // meanwhile knew nothing of it.
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

    /// Forgets what is believed of an execution and reads what is stored.
    fn reload(&mut self, execution: ExecutionKey, queued: Vec<(Queued, bool)>) {
        if !self.holds(execution) {
            // Whether it was written is not known: whoever asked must not ask for the same thing anew.
            let (asked, silent): (Vec<_>, Vec<_>) =
                queued.into_iter().map(|(queued, _)| queued).partition(|queued: &Queued| queued.ticket.is_some());
            let why = "the execution has passed to another node, and whether this was taken in before is unknown";
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
        // Nobody waits for an evaluation that is out.
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

/// What a commit in doubt has brought.
#[derive(Debug)]
pub(super) struct Untold {
    /// The head that it leads to.
    after: Option<Expected>,
    /// What is to be told of it.
    moments: Vec<Moment>,
    /// The attempts whose receipts are in it, if the head says whether it was written: without frames it stays as it was.
    receipts: Vec<(Instance, u32)>,
}

impl Untold {
    /// Of what was on its way, with the inputs to be taken in again.
    fn of(passenger: Passenger, part: &Part) -> (Self, Vec<(Queued, bool)>) {
        let Passenger { after, queued, moments, .. } = passenger;
        let receipts = match part.frames.is_empty() {
            true => Vec::new(),
            false => queued.iter().filter_map(|(queued, _)| receipt_of(queued)).collect(),
        };
        (Self { after, moments, receipts }, queued)
    }
}

/// The attempt whose receipt an input is, if nobody waits for an answer to it.
fn receipt_of(queued: &Queued) -> Option<(Instance, u32)> {
    match &queued.input {
        Input::Receipt { instance, attempt, .. } if queued.ticket.is_none() => Some((instance.clone(), *attempt)),
        _ => None,
    }
}

/// The partitions that a part's letters go to.
fn receivers(part: &Part) -> impl Iterator<Item = u32> + '_ {
    part.letters.iter().map(|letter| letter.partition)
}

pub(super) fn is_burial(part: &Part) -> bool {
    part.expected.is_none() && part.frames.is_empty()
}

/// Letters that are taken out of the inbox of an execution that is not there, and what others are told of that.
#[derive(Debug, Default)]
pub(super) struct Burial {
    pub(super) consumed: Vec<String>,
    pub(super) letters: Vec<Letter>,
}

impl Burial {
    /// Whether it takes a message out of the inbox.
    pub(super) fn consumes(&self, id: &str) -> bool {
        self.consumed.iter().any(|consumed| consumed == id)
    }

    /// The part that does nothing else.
    fn part(self, execution: ExecutionKey, partition: u32) -> Part {
        let Self { consumed, letters } = self;
        Part { consumed, letters, ..Part::empty(execution, partition) }
    }
}

impl Passenger {
    /// Its execution.
    pub(super) fn execution(&self) -> &ExecutionKey {
        &self.execution
    }

    /// Its execution is let go of or lost: nothing of it is begun.
    pub(super) fn orphan(&mut self) {
        self.is_orphan = true;
    }

    /// The attempts that begin when it is durable. Of an orphan somebody else decides.
    fn attempts(&self) -> impl Iterator<Item = (ExecutionKey, Instance, u32)> + '_ {
        let actions = self.actions.iter().filter(|_| !self.is_orphan);
        actions.filter_map(|action| match action {
            Action::Perform { instance, attempt } => Some((self.execution, instance.clone(), attempt.number)),
            Action::Stop { .. } => None,
        })
    }

    /// The inputs that it came of.
    pub(super) fn into_queued(self) -> impl Iterator<Item = Queued> {
        self.queued.into_iter().map(|(queued, _)| queued)
    }

    fn of(execution: ExecutionKey, after: Option<Expected>, draft: Draft) -> Self {
        let Draft { queued, actions, moments, settled, .. } = draft;
        Self { execution, after, queued, actions, moments, settled, is_orphan: false }
    }
}
