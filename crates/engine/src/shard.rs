//! The shard: a synchronous state machine without I/O. It takes events and returns outputs, and the driver performs the
//! outputs.
//!
//! A shard owns its executions without locks. It holds the effects of a turn until the frame is durable. While one
//! commit is in flight, new frames gather for the next one. The simulator runs the same code on virtual time.

mod abandon;
mod aside;
mod burials;
mod cell;
mod flight;
mod gates;
pub(crate) mod long;
mod memory;
mod owning;
pub(crate) mod panics;
mod performing;
mod refusals;
mod resting;
mod split;
pub mod tally;
pub(crate) mod tenants;
mod timers;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    sync::{Arc, atomic::AtomicBool},
};

use mainspring_kernel::{
    decide::{Action, BOUNDS_SINCE, Decided, Letter, QUEUES_SINCE, Turn, child_key, decide},
    effect::Outcome,
    frame::Frame,
    hash::Hash,
    input::{Input, Timer},
    instance::Instance,
    key::ExecutionKey,
    plan::Work,
    state::State,
    value::Value,
};
use mainspring_store::{Expected, Fence, RemoteAttempt, StoredPlan};

use crate::{
    evaluator::{Finished, Rest, Suspended},
    inbox,
    intake::Charge,
    lease::Leases,
    load::Journal,
    noting,
    rim::Pending,
    shard::{
        cell::{Cell, Evaluating},
        long::Decision,
        performing::Performing,
        resting::Resting,
        tenants::{Tenant, Turns},
        timers::Timers,
    },
    span::{self, SpanStart},
};

pub(crate) use cell::Summary;
pub(crate) use gates::open_gates;
pub use words::{
    Event, Fate, GivenUp, LoadAnswer, Message, Moment, Output, Queued, Reply, ShardError, Submission, Taken, Ticket,
};

/// The executions that this process owns, and the work that is in progress for them.
#[derive(Debug)]
pub struct Shard {
    keys: Keys,
    leases: Leases,
    cells: BTreeMap<ExecutionKey, Cell>,
    /// The cache of idle executions.
    resting: Resting,
    memory: memory::Memory,
    /// Executions with a draft for the next commit.
    dirty: tenants::Dirty,
    /// Wake-up times by execution.
    timers: Timers,
    /// Executions with a split turn whose frames so far are durable, in the order in which they continue.
    to_continue: Turns<ExecutionKey>,
    /// Attempts that run in this process, with the names of their steps. An execution whose journal could not be read
    /// again has no cell, but its attempts still become detached when its partition is released.
    performing: BTreeMap<(ExecutionKey, Instance, u32), Performing>,
    /// Detached attempts: they run here, and their executions were released to other nodes.
    lent: BTreeMap<(ExecutionKey, Instance, u32), owning::Lent>,
    /// Attempts that run on the named node, which has released their execution.
    elsewhere: BTreeMap<(ExecutionKey, Instance, u32), String>,
    /// Partitions that are released as soon as no commit of them is in flight.
    handing_over: BTreeSet<u32>,
    /// Releases that the store has not confirmed. The answer to an earlier heartbeat may still list these partitions.
    letting_go: Vec<Fence>,
    /// Attempts whose outcome is being recovered, by execution.
    adopting: BTreeMap<ExecutionKey, BTreeMap<Instance, u32>>,
    /// Inputs of executions whose journals could not be read. They exist only in memory. Code that creates a cell takes
    /// its execution's inputs from here, since an execution with a cell never looks here.
    kept: BTreeMap<ExecutionKey, Vec<Queued>>,
    /// Attempts that were decided in commits with an unknown outcome, and were therefore not started. While their
    /// partition is owned here, no other node has started them.
    never_begun: BTreeSet<(ExecutionKey, Instance, u32)>,
    /// The number of the last load of each journal that is being read. The answer to an earlier load may lack a commit
    /// that became durable since.
    reading: BTreeMap<ExecutionKey, u64>,
    /// Callers whose inputs are in commits with an unknown outcome.
    in_doubt: BTreeSet<Ticket>,
    /// Commits with an unknown outcome, until the journal is read again.
    untold: BTreeMap<ExecutionKey, Vec<flight::Untold>>,
    /// Messages to discard: their executions do not exist.
    dead_letters: BTreeMap<ExecutionKey, flight::Burial>,
    delayed: burials::Delayed,
    /// Plans that the store is known to contain.
    plans_stored: BTreeSet<Hash>,
    flight: Option<flight::Flight>,
    /// Effects of durable commits that are not released yet, in order, and the buffers of the last commit.
    landing: VecDeque<flight::Passenger>,
    spent: Option<flight::Flight>,
    /// Effects were released since the last flush, so there may be more to write.
    has_landed: bool,
    room: flight::Room,
    refusals: refusals::Refusals,
    sharing: tenants::Sharing,
    flights: u64,
    evaluations: u64,
    loads: u64,
    tally: tally::Tally,
    /// Durable frames carry the spans that end with them.
    makes_spans: bool,
    outputs: VecDeque<Output>,
}

/// Delay until an execution whose journal could not be read is loaded again, in milliseconds.
const LOOK_AGAIN_MS: u64 = 1_000;

/// The secrets of a shard. The store contains none of them.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Seals the heads of journals and inbox messages.
    pub sealing: [u8; 32],
    /// Derives the salts of values. It is new for every process, so that salts cannot be computed again.
    pub salting: [u8; 32],
}

impl Shard {
    /// Creates a shard with the given ownership and an idle cache of `resting_bytes_max` bytes of memory.
    pub fn new(leases: Leases, keys: Keys, resting_bytes_max: usize) -> Self {
        Self {
            keys,
            leases,
            cells: BTreeMap::new(),
            resting: Resting::new(resting_bytes_max),
            memory: memory::Memory::default(),
            dirty: tenants::Dirty::default(),
            timers: Timers::default(),
            to_continue: Turns::default(),
            performing: BTreeMap::new(),
            lent: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            handing_over: BTreeSet::new(),
            letting_go: Vec::new(),
            adopting: BTreeMap::new(),
            kept: BTreeMap::new(),
            never_begun: BTreeSet::new(),
            reading: BTreeMap::new(),
            in_doubt: BTreeSet::new(),
            untold: BTreeMap::new(),
            dead_letters: BTreeMap::new(),
            delayed: burials::Delayed::default(),
            plans_stored: BTreeSet::new(),
            flight: None,
            landing: VecDeque::new(),
            spent: None,
            has_landed: false,
            room: flight::Room::default(),
            refusals: refusals::Refusals::default(),
            sharing: tenants::Sharing::default(),
            flights: 0,
            evaluations: 0,
            loads: 0,
            tally: tally::Tally::default(),
            makes_spans: false,
            outputs: VecDeque::new(),
        }
    }

    /// Adds spans to all later durable frames.
    pub fn make_spans(&mut self) {
        self.makes_spans = true;
    }

    /// Handles an event. Outputs gather until [`next_output`](Self::next_output) takes them. [`flush`](Self::flush)
    /// submits commits.
    pub fn handle(&mut self, now: u64, event: Event) {
        self.refusals.at(now);
        self.sharing.at(now);
        self.resume_burials(now);
        match event {
            Event::Submit(submission) => self.submit(now, *submission),
            Event::Take(execution, queued) => self.take(now, execution, queued),
            Event::Loaded(execution, number, answer) => self.loaded(now, execution, number, *answer),
            Event::Committed { flight, answer } => self.committed(now, flight, answer),
            Event::Adopted { execution, instance, attempt, fate } => {
                self.adopted(now, execution, instance, attempt, fate);
            }
            Event::Began { execution, instance, attempt } => self.began(now, execution, instance, attempt),
            Event::Evaluated { execution, evaluation, finished } => {
                self.evaluated(now, execution, evaluation, *finished);
            }
            Event::Discard(execution, message) => self.discard(now, execution, message),
            Event::TurnAway(submission, failure) => self.turn_away(now, *submission, failure),
            Event::TurnChildAway { execution, letter, parent, failure } => {
                self.turn_child_away(now, execution, letter, &parent, failure);
            }
            Event::SetAside(execution, reason) => self.set_aside(execution, reason),
            Event::Due(due) => self.due(due),
            Event::Heard(heard) => self.heard(&heard),
            Event::Lapsed => self.lapsed(),
            Event::Wake => self.continue_one(now),
        }
        self.fire_timers(now);
        self.make_room(now);
    }

    /// Returns the next output. Effects of a durable commit follow all other outputs, one execution at a time. Frames
    /// that result from them are submitted without another call of [`flush`](Self::flush).
    pub fn next_output(&mut self) -> Option<Output> {
        while self.outputs.is_empty() {
            if self.land_next() {
                continue;
            }
            if !std::mem::take(&mut self.has_landed) {
                return None;
            }
            self.flush();
        }
        self.outputs.pop_front()
    }

    /// Reports outputs that [`next_output`](Self::next_output) has not returned yet.
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty() || !self.landing.is_empty()
    }

    /// The organization of an execution in memory, or an empty string.
    pub fn tenant(&self, execution: ExecutionKey) -> &str {
        match self.cells.get(&execution) {
            Some(Cell::Live(live)) => live.organization(),
            Some(Cell::Evaluating(out)) => &out.tenant,
            Some(Cell::Loading(_)) | None => "",
        }
    }

    /// The organization of an execution as the fair queues identify it.
    pub(crate) fn tenant_key(&self, execution: ExecutionKey) -> Tenant {
        self.cells.get(&execution).map(Cell::tenant).unwrap_or_default()
    }

    /// True while several organizations have work.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing.is_shared()
    }

    /// The number of executions with a draft for the next commit.
    pub fn gathered(&self) -> usize {
        self.dirty.len()
    }

    /// The time of the next [`Event::Wake`]. 0 if a split turn can continue: each event continues one.
    pub fn next_wake(&self) -> Option<u64> {
        if self.has_split() { Some(0) } else { self.next_time() }
    }

    /// The time of the next timer or retry.
    pub fn next_time(&self) -> Option<u64> {
        [self.timers.first(), self.refusals.next_try(), self.delayed.next()].into_iter().flatten().min()
    }

    /// True if a split turn can continue.
    pub fn has_split(&self) -> bool {
        !self.to_continue.is_empty()
    }

    /// Returns the active executions, and those with a timer.
    pub fn pending(&self) -> Pending {
        let goes_on = |cell: &Cell| !matches!(cell, Cell::Live(live) if live.is_idle());
        let live = self.cells.iter().filter(|(_, cell)| goes_on(cell)).map(|(execution, _)| *execution);
        Pending { live: live.collect(), timed: self.timers.executions().collect() }
    }

    /// True if the execution is in memory, being loaded, or part of a commit.
    pub fn has(&self, execution: ExecutionKey) -> bool {
        self.cells.contains_key(&execution)
    }

    /// The number and bytes of messages that wait in memory for an execution. `None` if it can process input at
    /// present.
    pub fn held_up(&self, execution: ExecutionKey) -> Option<(usize, usize)> {
        let waiting = match self.cells.get(&execution) {
            Some(Cell::Live(_)) => return None,
            Some(Cell::Evaluating(out)) => &out.waiting,
            Some(Cell::Loading(waiting)) => waiting,
            None => self.kept.get(&execution)?,
        };
        let bytes = |queued: &Queued| queued.letter.as_ref()?.charge.as_ref().map(Charge::bytes);
        Some((waiting.len(), waiting.iter().filter_map(bytes).sum()))
    }

    /// The version of `decide` for new executions.
    pub fn decide_version(&self) -> u32 {
        self.leases.decide_version()
    }

    /// True if an input in memory would be lost at the end of the process: it waits for a journal, or it is a receipt
    /// that waits for the evaluations of an earlier turn.
    pub fn has_waiting(&self) -> bool {
        self.cells.values().any(|cell| match cell {
            Cell::Loading(waiting) => !waiting.is_empty(),
            Cell::Evaluating(_) => cell.queued().any(|queued| owning::brought(queued).is_some()),
            Cell::Live(_) => false,
        })
    }

    fn submit(&mut self, now: u64, submission: Submission) {
        let Submission { execution, plan, stored_plans, mut start, row, ticket, letter, audit } = submission;
        // Older releases have no queues and could not read a journal with one.
        start.queue.take_if(|_| self.leases.decide_version() < QUEUES_SINCE);
        if self.leases.decide_version() < BOUNDS_SINCE {
            start.policy.max_output_bytes = None;
            start.lineage.iter_mut().for_each(|lineage| lineage.executions = None);
        }
        if !self.holds(execution) {
            return self.pass_on(execution, vec![Queued { input: Input::Start(start), letter, ticket, audit }]);
        }
        if let Some(why) = self.refusals.why_unwritable(execution).cloned() {
            let queued = Queued { input: Input::Start(start), letter, ticket, audit };
            self.tell_parent_of_unbegun(now, execution, &queued, &why);
            return self.refuse(vec![queued], ShardError::Quarantined(why));
        }
        if letter.as_ref().is_some_and(|letter| self.is_being_buried(execution, &letter.id)) {
            return;
        }
        if self.cells.contains_key(&execution) {
            // A repeated start: the kernel ignores it.
            let queued = Queued { input: Input::Start(start), letter, ticket, audit };
            return self.take(now, execution, queued);
        }
        let is_new = |plan: &StoredPlan| !self.plans_stored.contains(&plan.hash);
        let plans = stored_plans.into_iter().filter(is_new).collect();
        let parent = start.lineage.as_ref().and_then(|lineage| lineage.parent.clone());
        let begun_by = parent
            .zip(letter.as_ref())
            .map(|(parent, letter)| Box::new(cell::BegunBy { parent, letter: letter.id.clone(), at: now }));
        self.cells.insert(execution, Cell::fresh(execution, plan, plans, row, self.leases.decide_version(), begun_by));
        self.turn(now, execution, Queued { input: Input::Start(start), letter, ticket, audit });
        for queued in self.kept.remove(&execution).unwrap_or_default() {
            self.take(now, execution, queued);
        }
    }

    fn take(&mut self, now: u64, execution: ExecutionKey, queued: Queued) {
        if !self.holds(execution) {
            return self.pass_on(execution, vec![queued]);
        }
        match self.cells.get_mut(&execution) {
            Some(Cell::Live(_)) => self.turn(now, execution, queued),
            Some(Cell::Loading(waiting)) => waiting.push(queued),
            Some(Cell::Evaluating(out)) => {
                out.waiting.push(queued);
                self.abandon(execution);
            }
            None => {
                if let Some(queued) = self.is_held_back(now, execution, vec![queued]) {
                    self.load(execution, Vec::new(), queued);
                }
            }
        }
    }

    /// Processes one input in one turn, which produces at most one frame.
    fn turn(&mut self, now: u64, execution: ExecutionKey, queued: Queued) {
        match self.cells.get_mut(&execution) {
            Some(Cell::Live(live)) => {
                // The message was read again while the commit that consumes it is in flight.
                if let Some(letter) = &queued.letter
                    && !live.letters.insert(letter.id.clone())
                {
                    return;
                }
                let asked = queued.ticket;
                self.contain(execution, asked, |shard| shard.decide(now, execution, queued));
            }
            Some(Cell::Loading(waiting)) => waiting.push(queued),
            Some(Cell::Evaluating(out)) => out.waiting.push(queued),
            None => {
                let why = "an input before this one has set the execution aside";
                self.turn_back(execution, vec![queued], why);
            }
        }
    }

    fn decide(&mut self, now: u64, execution: ExecutionKey, queued: Queued) {
        let Some(Cell::Live(live)) = self.cells.get_mut(&execution) else { return };
        if self.makes_spans {
            live.span_start = SpanStart::of(&live.state, &queued.input);
        }
        if let Some(rest) = self.whole(now, execution, &queued) {
            return self.suspend(execution, queued, rest);
        }
        let Some(Cell::Live(live)) = self.cells.get_mut(&execution) else { return };
        match decide(&mut live.state, &queued.input, now) {
            Err(illegal) => {
                self.refuse(vec![queued], ShardError::Quarantined(illegal.message.clone()));
                self.quarantine(execution, illegal.message);
            }
            Ok(Decided::Turn(turn)) => self.finish(now, execution, queued, turn.into()),
            Ok(Decided::Paused(paused)) => self.suspend(execution, queued, Rest::Paused(paused)),
        }
    }

    /// Hands the turn and the state to an evaluation thread. Inputs of the execution wait until they return.
    fn suspend(&mut self, execution: ExecutionKey, queued: Queued, rest: Rest) {
        self.weigh_before(execution, &queued.input);
        let Some(Cell::Live(mut live)) = self.cells.remove(&execution) else { return };
        self.timers.set(execution, live.tenant, live.state.deadline);
        self.evaluations += 1;
        let number = self.evaluations;
        let nothing = State::new(execution, live.state.plan.clone());
        let tenant = live.organization().to_owned();
        let state = std::mem::replace(&mut live.state, nothing);
        // It loses its place in the queue of split turns. The commit of this turn queues it again.
        live.is_queued = false;
        let (waiting, adopted) = (Vec::new(), Vec::new());
        let abandoned = Arc::new(AtomicBool::new(false));
        let (live, is_overdue) = (*live, false);
        let out =
            Evaluating { number, live, tenant, queued, waiting, is_overdue, abandoned: abandoned.clone(), adopted };
        self.cells.insert(execution, Cell::Evaluating(Box::new(out)));
        let suspended = Box::new(Suspended { state, rest, abandoned });
        self.outputs.push_back(Output::Evaluate { execution, evaluation: number, suspended });
    }

    /// Continues a turn after its evaluations. The result of an abandoned turn is ignored, since the execution is read
    /// back from the store.
    fn evaluated(&mut self, now: u64, execution: ExecutionKey, number: u64, (state, turn): Finished) {
        if !matches!(self.cells.get(&execution), Some(Cell::Evaluating(out)) if out.number == number) {
            return;
        }
        let Some(Cell::Evaluating(out)) = self.cells.remove(&execution) else { return };
        let Evaluating { mut live, queued, waiting, adopted, .. } = *out;
        self.timers.remove(execution);
        live.state = state;
        self.cells.insert(execution, Cell::Live(Box::new(live)));
        match turn {
            Ok(turn) => {
                let asked = queued.ticket;
                self.contain(execution, asked, |shard| shard.finish(now, execution, queued, turn));
            }
            Err(why) => {
                let all = [queued].into_iter().chain(waiting).collect();
                self.turn_back(execution, all, &why);
                return self.quarantine(execution, why);
            }
        }
        for (instance, attempt, fate) in adopted {
            self.fated(now, execution, instance, attempt, fate);
        }
        for queued in waiting {
            self.take(now, execution, queued);
        }
    }

    /// Converts a decided turn to a frame of the draft.
    fn finish(&mut self, now: u64, execution: ExecutionKey, queued: Queued, decision: Decision) {
        let Decision { turn, stored } = decision;
        let Some(Cell::Live(live)) = self.cells.get_mut(&execution) else { return };
        if let Input::Receipt { instance, attempt, .. } = &queued.input {
            let name = (execution, instance.clone(), *attempt);
            self.performing.remove(&name);
            self.elsewhere.remove(&name);
        }
        if turn.records.is_empty() && stored.is_none() {
            live.last_records = 0;
            self.tally.unchanged += 1;
            live.draft.take_without_frame(now, queued);
        } else {
            let now = live.state.now;
            let Turn { results, records, actions, letters } = turn;
            let Queued { input, letter, ticket, audit } = queued;
            let Keys { salting, sealing } = self.keys;
            let (frame, stored, hash) = stored.map_or_else(
                || {
                    let (sequence, before) = (live.next_sequence, live.head);
                    let frame = Frame { sequence, before, now, input, results, records };
                    let (stored, hash) = long::store(&frame, &salting, execution);
                    (frame, stored, hash)
                },
                |stored| *stored,
            );
            let audit = audit.or_else(|| noting::of_itself(&live.state, &frame.input, &frame.records).map(Box::new));
            self.tally.turn(&frame.input);
            let spans = match self.makes_spans {
                true => span::ended(&live.state, &frame.input, &frame.records, live.span_start),
                false => Vec::new(),
            };
            live.last_records = frame.records.len();
            (live.head, live.next_sequence) = (hash, frame.sequence + 1);
            live.summary = Summary::of(&live.state);
            live.gates.follow(&live.state, &frame.records);
            let leases = &self.leases;
            live.draft.letters.extend(letters.into_iter().map(|letter| posted(letter, (&sealing, leases), now)));
            live.draft.take(stored, (frame, spans), (letter, ticket, audit), actions, &live.state, live.summary.status);
        }
        self.sharing.turn(live.tenant);
        self.dirty.insert(execution, live.tenant);
        self.reschedule(execution);
        self.weigh(execution);
    }

    /// Sets the wake-up time of an execution from its state. The timers of a split turn fire when it continues.
    fn reschedule(&mut self, execution: ExecutionKey) {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return };
        let next = live.state.next_timer().filter(|_| !live.state.is_split).map(|(at, _)| *at);
        self.timers.set(execution, live.tenant, next);
    }

    /// Requests the journal of an execution. The given inputs and the deferred ones wait for it in their order.
    fn load(&mut self, execution: ExecutionKey, before: Vec<Queued>, after: Vec<Queued>) {
        let kept = self.kept.remove(&execution).unwrap_or_default();
        self.cells.insert(execution, Cell::Loading(before.into_iter().chain(kept).chain(after).collect()));
        self.ask_for_journal(execution);
    }

    fn ask_for_journal(&mut self, execution: ExecutionKey) {
        self.loads += 1;
        self.reading.insert(execution, self.loads);
        self.outputs.push_back(Output::Load(execution, self.loads));
    }

    fn due(&mut self, due: Vec<mainspring_store::Due>) {
        for due in due {
            if self.holds(due.execution) && !self.cells.contains_key(&due.execution) {
                self.timers.set_at_latest(due.execution, due.wake_at);
            }
        }
    }

    fn loaded(&mut self, now: u64, execution: ExecutionKey, number: u64, answer: LoadAnswer) {
        // A partition that was lost and acquired again can have two loads in progress. The answer to the first is
        // outdated.
        if self.reading.get(&execution) != Some(&number) {
            return;
        }
        self.reading.remove(&execution);
        let Some(Cell::Loading(waiting)) = self.cells.get_mut(&execution) else { return };
        let mut waiting = std::mem::take(waiting);
        self.cells.remove(&execution);
        let is_known = !matches!(answer, LoadAnswer::Unavailable(_));
        if is_known && !matches!(answer, LoadAnswer::Journal(_)) {
            self.memory.let_in(execution);
        }
        let untold = if is_known { self.untold.remove(&execution).unwrap_or_default() } else { Vec::new() };
        match answer {
            LoadAnswer::Journal(mut journal) => {
                let head = Expected { sequence: journal.head.sequence, hash: journal.head.hash };
                self.settle_doubts(execution, untold, head, &mut waiting);
                if self.hold_back(now, &journal.state, &mut waiting) {
                    return;
                }
                let remote = std::mem::take(&mut journal.remote);
                let asked: Vec<Ticket> = waiting.iter().filter_map(|queued| queued.ticket).collect();
                self.contain(execution, asked, |shard| {
                    shard.cells.insert(execution, Cell::loaded(*journal));
                    shard.go_on(now, execution, &remote);
                    shard.weigh(execution);
                });
                for queued in waiting {
                    self.turn(now, execution, queued);
                }
                self.dirty.insert(execution, self.tenant_key(execution));
            }
            LoadAnswer::Unknown => {
                // A start arrives here if its commit had an unknown outcome and was not written. Its message is still
                // in the inbox. Other inputs are read again behind it and processed after the start.
                let is_start = |queued: &Queued| matches!(queued.input, Input::Start(_));
                let (starts, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_start);
                if starts.iter().any(|start| start.letter.is_some()) {
                    self.outputs.push_back(Output::LettersWait);
                } else {
                    self.bury_unbegun(now, execution, &others);
                }
                self.refuse(others, ShardError::NoSuchExecution);
                let why =
                    "the execution's beginning could not be written, and nothing of it is stored; is the disk full?";
                self.refuse(starts, ShardError::Store(why.into()));
            }
            LoadAnswer::Newer(reason) => self.refuse(waiting, ShardError::Store(reason)),
            LoadAnswer::Quarantined(reason) => {
                self.set_aside(execution, reason.clone());
                self.turn_back(execution, waiting, &reason);
            }
            LoadAnswer::Broken(reason) => {
                self.quarantine(execution, reason.clone());
                self.turn_back(execution, waiting, &reason);
            }
            // Callers send their requests again. Other inputs exist only here and are kept for another load.
            LoadAnswer::Unavailable(reason) => {
                let (asked, silent): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|queued| queued.ticket.is_some());
                self.refuse(asked, ShardError::Store(reason));
                if !silent.is_empty() {
                    self.kept.insert(execution, silent);
                    self.timers.set_at_latest(execution, now + LOOK_AGAIN_MS);
                }
            }
        }
    }

    /// Continues the open work of a loaded state: recovery consists of this alone. `remote` contains attempts on other
    /// nodes.
    fn go_on(&mut self, now: u64, execution: ExecutionKey, remote: &[(RemoteAttempt, String)]) {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return };
        let mut never_begun = Vec::new();
        for instance in &live.state.open_attempts {
            if let Some(child) = child_of(&live.state, instance) {
                self.outputs.push_back(Output::Attend(child));
                continue;
            }
            let Some(attempt) = mainspring_kernel::decide::open_attempt(&live.state, instance) else { continue };
            let is_stopping = live.state.steps.get(instance).is_some_and(|step| step.stopping.is_some());
            let number = attempt.number;
            let name = (execution, instance.clone(), number);
            if self.lent.remove(&name).is_some() {
                self.performing.insert(name.clone(), Performing::new(attempt.step.clone()));
            }
            let at = remote.iter().find(|(remote, _)| remote.number == number && remote.step == attempt.step);
            if self.performing.contains_key(&name) {
                if is_stopping {
                    self.outputs.push_back(Output::Stop { execution, instance: instance.clone(), attempt: number });
                }
            } else if let Some((remote, node)) = at {
                self.elsewhere.insert(name, node.clone());
                if is_stopping {
                    self.outputs.push_back(Output::StopRemote(remote.clone()));
                }
            } else if self.never_begun.remove(&name) {
                never_begun.push((name.1, number));
            } else if begin_adopting(&mut self.adopting, name) {
                self.outputs.push_back(Output::Adopt { execution, instance: instance.clone(), attempt });
            }
        }
        for (instance, number) in never_begun {
            self.fated(now, execution, instance, number, Fate::NeverStarted);
        }
        self.reschedule(execution);
        self.queue_split(execution);
    }

    /// Handles the recovered outcome of an attempt: it starts if it never started, is awaited if it still runs, and is
    /// interrupted otherwise.
    fn adopted(&mut self, now: u64, execution: ExecutionKey, instance: Instance, number: u32, fate: Fate) {
        // An outdated answer: the partition was lost and acquired again since the request, and the attempt may have
        // started.
        let Entry::Occupied(mut adopting) = self.adopting.entry(execution) else { return };
        if adopting.get().get(&instance) != Some(&number) {
            return;
        }
        adopting.get_mut().remove(&instance);
        if adopting.get().is_empty() {
            adopting.remove();
        }
        if let Some(Cell::Evaluating(out)) = self.cells.get_mut(&execution) {
            return out.adopted.push((instance, number, fate));
        }
        self.fated(now, execution, instance, number, fate);
    }

    fn fated(&mut self, now: u64, execution: ExecutionKey, instance: Instance, number: u32, fate: Fate) {
        // The timer of the attempt may have become due during its recovery, when it was ignored.
        self.reschedule(execution);
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return };
        let is_open = live.state.open_attempts.contains(&instance);
        let Some(step) = live.state.steps.get(&instance).filter(|step| is_open && step.attempt == number) else {
            return;
        };
        let is_stopping = step.stopping.is_some();
        let attempt = mainspring_kernel::decide::open_attempt(&live.state, &instance);
        match (fate, attempt) {
            (Fate::NeverStarted, Some(attempt)) if !is_stopping => self.perform(execution, instance, attempt),
            (Fate::RunsOn, _) => {
                let step = instance.name(&live.state.plan);
                self.performing.insert((execution, instance.clone(), number), Performing::new(step));
                if is_stopping {
                    self.outputs.push_back(Output::Stop { execution, instance, attempt: number });
                }
            }
            (fate, _) => {
                // An attempt that never started counts as stopped if it was to be stopped.
                let was_started = fate == Fate::Interrupted;
                let outcome = if was_started { Outcome::Interrupted } else { Outcome::Stopped(Value::Null) };
                let input = Input::Receipt { instance, attempt: number, outcome };
                self.turn(now, execution, Queued::silent(input));
            }
        }
    }

    fn perform(&mut self, execution: ExecutionKey, instance: Instance, attempt: mainspring_kernel::effect::Attempt) {
        let name = (execution, instance.clone(), attempt.number);
        self.never_begun.remove(&name);
        self.performing.insert(name, Performing::new(attempt.step.clone()));
        self.outputs.push_back(Output::Perform { execution, instance, attempt });
    }

    fn act(&mut self, execution: ExecutionKey, action: Action) {
        match action {
            Action::Perform { instance, attempt } => self.perform(execution, instance, *attempt),
            Action::Stop { instance, attempt } => {
                let name = (execution, instance, attempt);
                let remote = self.elsewhere.contains_key(&name).then(|| self.remote_attempt(&name)).flatten();
                let (execution, instance, attempt) = name;
                self.outputs.push_back(match remote {
                    Some(remote) => Output::StopRemote(remote),
                    None => Output::Stop { execution, instance, attempt },
                });
            }
        }
    }

    /// Deletes a forged message: its id is consumed by an input that changes nothing.
    fn discard(&mut self, now: u64, execution: ExecutionKey, message: String) {
        let queued = Queued { letter: Some(message.into()), ..Queued::silent(Input::Continue) };
        self.take(now, execution, queued);
    }

    fn refuse(&mut self, queued: Vec<Queued>, error: ShardError) {
        for ticket in queued.into_iter().filter_map(|queued| queued.ticket) {
            self.reply(ticket, Err(error.clone()));
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: words::Reply) {
        self.in_doubt.remove(&ticket);
        self.outputs.push_back(Output::Reply(ticket, reply));
    }
}

/// Records that an attempt is being recovered. False if that is in progress already.
fn begin_adopting(
    adopting: &mut BTreeMap<ExecutionKey, BTreeMap<Instance, u32>>,
    (execution, instance, number): (ExecutionKey, Instance, u32),
) -> bool {
    adopting.entry(execution).or_default().insert(instance, number) != Some(number)
}

/// The key of the child execution that an attempt waits for.
fn child_of(state: &State, instance: &Instance) -> Option<ExecutionKey> {
    let is_child = matches!(state.plan.step(instance.step).work, Work::Subworkflow { .. });
    let attempt = state.steps.get(instance)?.attempt;
    is_child.then(|| child_key(state, instance, attempt))
}

fn posted(letter: Letter, (key, leases): (&[u8; 32], &Leases), now: u64) -> mainspring_store::InboxMessage {
    let Letter { to, id, input } = letter;
    let partition = leases.partition(to);
    let message =
        mainspring_store::InboxMessage { execution: to, partition, id, body: input.encode(), enqueued_at: now };
    inbox::sealed(key, message)
}

/// The salt of a value. It cannot be computed without the key of this process, which is never stored.
fn salt(key: &[u8; 32], execution: ExecutionKey, sequence: u64, place: usize) -> [u8; 16] {
    let hash = Hash::keyed(key, &[&execution.0, &sequence.to_be_bytes(), &(place as u64).to_be_bytes()]);
    let mut salt = [0; 16];
    salt.copy_from_slice(&hash.0[..16]);
    salt
}

impl From<Journal> for LoadAnswer {
    fn from(journal: Journal) -> Self {
        Self::Journal(Box::new(journal))
    }
}
