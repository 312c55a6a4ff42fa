//! The shard: a synchronous machine without I/O. Events go in, outputs come out, and a rim carries both.
//!
//! It owns its executions without locks. What a turn decides is held until its frame is durable; while one commit is on
//! its way to the disk, what comes in gathers for the next. The simulator drives this very code on virtual time.

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

/// The owner of some executions.
#[derive(Debug)]
pub struct Shard {
    keys: Keys,
    leases: Leases,
    cells: BTreeMap<ExecutionKey, Cell>,
    /// Those of them of which nothing is going on.
    resting: Resting,
    memory: memory::Memory,
    /// Executions with something that waits for the next commit.
    dirty: tenants::Dirty,
    /// When to look at which execution again.
    timers: Timers,
    /// Executions whose turn was split and whose frames are durable, in the order in which they go on.
    to_continue: Turns<ExecutionKey>,
    /// Attempts that this process performs, with the names of their steps: of an execution that could not be read again
    /// there is no cell, and what runs of it is lent all the same.
    performing: BTreeMap<(ExecutionKey, Instance, u32), String>,
    /// Attempts that this process performs of executions which it has given up.
    lent: BTreeMap<(ExecutionKey, Instance, u32), owning::Lent>,
    /// Attempts that go on at other nodes, by those, which have given up the execution.
    elsewhere: BTreeMap<(ExecutionKey, Instance, u32), String>,
    /// Partitions that are given up as soon as nothing of them is on its way to the disk.
    handing_over: BTreeSet<u32>,
    /// What was given up, until the store says so too: a word that was begun before may still tell of it.
    letting_go: Vec<Fence>,
    /// Attempts of which it is being found out what became of them, by execution.
    adopting: BTreeMap<ExecutionKey, BTreeMap<Instance, u32>>,
    /// Inputs that nobody sends again, of executions that could not be read. Whoever makes a cell takes them out of here
    /// with it: of an execution with a cell there are none, or they would wait for nobody.
    kept: BTreeMap<ExecutionKey, Vec<Queued>>,
    /// Attempts that were released by commits of which nobody knows whether they were written, and that were not begun for
    /// that reason: as long as their partition is held, nobody has begun them.
    never_begun: BTreeSet<(ExecutionKey, Instance, u32)>,
    /// The journals that are being read, by the number of the last time that each was asked for: an answer to what was asked
    /// before may have been read before a commit that has landed since.
    reading: BTreeMap<ExecutionKey, u64>,
    /// Who asked for what is in commits of which nobody knows whether they were written.
    in_doubt: BTreeSet<Ticket>,
    /// Commits of which nobody knows yet whether they were written.
    untold: BTreeMap<ExecutionKey, Vec<flight::Untold>>,
    /// Letters that nobody can take in any more.
    dead_letters: BTreeMap<ExecutionKey, flight::Burial>,
    delayed: burials::Delayed,
    /// Plans that the store certainly has.
    plans_stored: BTreeSet<Hash>,
    flight: Option<flight::Flight>,
    /// What a commit has released and nobody has carried out yet, in its order; and that commit.
    landing: VecDeque<flight::Passenger>,
    spent: Option<flight::Flight>,
    /// Whether something was released that may have more to write, since there was a look for that.
    has_landed: bool,
    room: flight::Room,
    refusals: refusals::Refusals,
    sharing: tenants::Sharing,
    flights: u64,
    evaluations: u64,
    loads: u64,
    tally: tally::Tally,
    /// Whether it is told what attempts and executions were, for those who write traces.
    makes_spans: bool,
    outputs: VecDeque<Output>,
}

/// When an execution that could not be read is looked at again, in milliseconds.
const LOOK_AGAIN_MS: u64 = 1_000;

/// The secrets of a shard. None of them is in the store.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Authenticates the heads of chains.
    pub sealing: [u8; 32],
    /// Makes salts; drawn anew for every process, so that nobody can make them again.
    pub salting: [u8; 32],
}

impl Shard {
    /// A shard that holds what it holds, with room for executions that rest: bytes of memory.
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

    /// From now on, moments have the spans that end with them.
    pub fn make_spans(&mut self) {
        self.makes_spans = true;
    }

    /// Takes an event in. Outputs gather until they are asked for; commits are made by [`flush`](Self::flush).
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

    /// The next thing to be done, if there is one. What a commit has released comes out behind all else, a little at a
    /// time, and what that gives to write is sent to the store by itself.
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

    /// The organization that an execution in memory belongs to; empty if it has none or is not in memory.
    pub fn tenant(&self, execution: ExecutionKey) -> &str {
        match self.cells.get(&execution) {
            Some(Cell::Live(live)) => live.organization(),
            Some(Cell::Evaluating(out)) => &out.tenant,
            Some(Cell::Loading(_)) | None => "",
        }
    }

    /// The same, as organizations are told apart where they take turns.
    pub(crate) fn tenant_key(&self, execution: ExecutionKey) -> Tenant {
        self.cells.get(&execution).map(Cell::tenant).unwrap_or_default()
    }

    /// Whether several organizations have work at present.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing.is_shared()
    }

    /// Executions with something that waits for the next commit.
    pub fn gathered(&self) -> usize {
        self.dirty.len()
    }

    /// When the shard wants to be woken; 0 if a split turn is to go on, which it does for each [`Event::Wake`].
    pub fn next_wake(&self) -> Option<u64> {
        if self.has_split() { Some(0) } else { self.next_time() }
    }

    /// When a timer fires, or something that the store refused is tried again.
    pub fn next_time(&self) -> Option<u64> {
        [self.timers.first(), self.refusals.next_try(), self.delayed.next()].into_iter().flatten().min()
    }

    /// Whether a split turn is to go on.
    pub fn has_split(&self) -> bool {
        !self.to_continue.is_empty()
    }

    /// What is going on, and what has a time set.
    pub fn pending(&self) -> Pending {
        let goes_on = |cell: &Cell| !matches!(cell, Cell::Live(live) if live.is_idle());
        let live = self.cells.iter().filter(|(_, cell)| goes_on(cell)).map(|(execution, _)| *execution);
        Pending { live: live.collect(), timed: self.timers.executions().collect() }
    }

    /// Whether something of an execution is in memory, or on its way to the disk.
    pub fn has(&self, execution: ExecutionKey) -> bool {
        self.cells.contains_key(&execution)
    }

    /// The messages that wait in memory for an execution that cannot take them in now, by count and by bytes; `None` if it
    /// takes what comes.
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

    /// By which rules new executions begin.
    pub fn decide_version(&self) -> u32 {
        self.leases.decide_version()
    }

    /// Whether inputs wait for a journal that is being read, or what an effect has brought back for a turn that waits for its
    /// evaluations: nobody else knows of it.
    pub fn has_waiting(&self) -> bool {
        self.cells.values().any(|cell| match cell {
            Cell::Loading(waiting) => !waiting.is_empty(),
            Cell::Evaluating(_) => cell.queued().any(|queued| owning::brought(queued).is_some()),
            Cell::Live(_) => false,
        })
    }

    fn submit(&mut self, now: u64, submission: Submission) {
        let Submission { execution, plan, stored_plans, mut start, row, ticket, letter, audit } = submission;
        // Whoever knows no queues could not even read of one.
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
            // The same execution again: the kernel takes a second start for what it is.
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

    /// One input, one turn, at most one frame.
    fn turn(&mut self, now: u64, execution: ExecutionKey, queued: Queued) {
        match self.cells.get_mut(&execution) {
            Some(Cell::Live(live)) => {
                // A message that was read a second time while the commit that consumes it is on its way.
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

    /// A turn waits for evaluations, or is decided elsewhere: it goes out with the state, and whatever comes meanwhile waits
    /// for it.
    fn suspend(&mut self, execution: ExecutionKey, queued: Queued, rest: Rest) {
        self.weigh_before(execution, &queued.input);
        let Some(Cell::Live(mut live)) = self.cells.remove(&execution) else { return };
        self.timers.set(execution, live.tenant, live.state.deadline);
        self.evaluations += 1;
        let number = self.evaluations;
        let nothing = State::new(execution, live.state.plan.clone());
        let tenant = live.organization().to_owned();
        let state = std::mem::replace(&mut live.state, nothing);
        // Its place in the queue of split turns is passed over meanwhile: the commit of this turn queues it again.
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

    /// A turn comes back from its evaluations. One that nobody waits for any more is decided again from what is stored.
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

    /// All of a turn is decided: it becomes a frame.
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

    /// Sets the time of an execution in memory by its state. Timers of a split turn fire where it goes on.
    fn reschedule(&mut self, execution: ExecutionKey) {
        let Some(Cell::Live(live)) = self.cells.get(&execution) else { return };
        let next = live.state.next_timer().filter(|_| !live.state.is_split).map(|(at, _)| *at);
        self.timers.set(execution, live.tenant, next);
    }

    /// Asks for a journal. What came before and what came after the inputs that are kept waits for it with them.
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
        // A partition that was lost and came back has two loads on their way, and the answer to the first is out of date.
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
                // A beginning comes this way when its commit failed in an unknown way: it was not written, and its
                // letter still waits. Whatever else waits is read again behind it, and taken in when it has begun.
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
            // Who waits for an answer asks again; of the rest nobody else knows, and it is kept for another look.
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

    /// Asks a loaded state for its open work. This is all of recovery. `remote` is what goes on at other nodes.
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
                self.performing.insert(name.clone(), attempt.step.clone());
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

    /// An attempt that this process did not begin: it begins for the first time if it was never started, runs on, or is
    /// interrupted.
    fn adopted(&mut self, now: u64, execution: ExecutionKey, instance: Instance, number: u32, fate: Fate) {
        // An answer to what was asked before its partition was lost and came back: somebody may have begun it since.
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
        // Its time may have come meanwhile, and was not counted.
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
                self.performing.insert((execution, instance.clone(), number), step);
                if is_stopping {
                    self.outputs.push_back(Output::Stop { execution, instance, attempt: number });
                }
            }
            (fate, _) => {
                // What was to be stopped and had never begun has stopped.
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
        self.performing.insert(name, attempt.step.clone());
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

    /// Takes a forged message out of the inbox: with an input that changes nothing.
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

/// Whether nobody is finding out yet what became of an attempt; from now on somebody is.
fn begin_adopting(
    adopting: &mut BTreeMap<ExecutionKey, BTreeMap<Instance, u32>>,
    (execution, instance, number): (ExecutionKey, Instance, u32),
) -> bool {
    adopting.entry(execution).or_default().insert(instance, number) != Some(number)
}

/// The execution that an attempt of a step waits for.
fn child_of(state: &State, instance: &Instance) -> Option<ExecutionKey> {
    let is_child = matches!(state.plan.step(instance.step).work, Work::Subworkflow { .. });
    let attempt = state.steps.get(instance)?.attempt;
    is_child.then(|| child_key(state, instance, attempt))
}

fn posted(letter: Letter, (key, leases): (&[u8; 32], &Leases), now: u64) -> mainspring_store::Letter {
    let Letter { to, id, input } = letter;
    let partition = leases.partition(to);
    let message = mainspring_store::Letter { execution: to, partition, id, body: input.encode(), posted_at: now };
    inbox::sealed(key, message)
}

/// The salt of a payload: nobody without the process's key can make it, and the process forgets its key.
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
