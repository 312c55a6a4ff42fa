//! The shard: a synchronous state machine without I/O. It takes events and returns outputs, and the driver performs the
//! outputs.
//!
//! A shard owns its executions without locks. It holds the effects of a turn until the frame is durable. While one
//! commit is in flight, new frames gather for the next one. The simulator runs the same code on virtual time.

mod abandon;
mod accounts;
mod approvals;
mod attempts;
mod commit;
pub mod counters;
mod discards;
mod entry;
mod firing;
mod idle_cache;
mod leased_calls;
mod long;
mod memory;
mod ownership;
pub(crate) mod panics;
pub(crate) mod protocol;
mod quarantine;
mod recovery;
mod refusals;
mod split;
pub(crate) mod tenants;
mod timers;
mod unbudgeted;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, atomic::AtomicBool},
};

use mainspring_kernel::{
    decide::{BOUNDS_SINCE, BUDGETS_SINCE, Decided, OutgoingMessage, QUEUES_SINCE, Turn, decide},
    frame::Frame,
    input::Input,
    key::ExecutionKey,
    receipt::{self, Receipt},
    state::State,
};
use mainspring_store::{Expected, StoredPlan};

use crate::{
    audit,
    derived_columns::Summary,
    evaluator::{Finished, Rest, Suspended},
    inbox,
    intake::Charge,
    lease::Leases,
    shard::{
        attempts::{AttemptId, Attempts},
        entry::{Evaluating, ExecutionEntry},
        idle_cache::IdleCache,
        tenants::Tenant,
        timers::Timers,
    },
    trace_spans::{self, SpanStart},
    turn::{self, DecidedTurn},
};

pub use crate::{journal_loader::LoadAnswer, membership::Handoff};
pub use protocol::{
    AttemptRecovery, CommittedFrame, Event, NewExecution, Output, Pending, PendingInput, ReceivedMessage, Reply,
    ShardError, Taken, Ticket,
};

/// The executions that this process owns, and the work that is in progress for them.
#[derive(Debug)]
pub struct Shard {
    keys: Keys,
    ownership: ownership::Ownership,
    executions: BTreeMap<ExecutionKey, ExecutionEntry>,
    /// The cache of idle executions.
    idle_cache: IdleCache,
    memory: memory::Memory,
    attempts: Attempts,
    /// Wake-up times by execution.
    timers: Timers,
    queues: tenants::TenantQueues,
    commits: commit::Commits,
    discards: discards::Discards,
    loads: Loads,
    refusals: refusals::Refusals,
    /// The number of the last evaluation.
    evaluations: u64,
    telemetry: counters::Telemetry,
    outputs: VecDeque<Output>,
}

/// Journals that are being read, and inputs that wait for one.
#[derive(Debug, Default)]
struct Loads {
    /// The number of the last request.
    requested: u64,
    /// The number of the last load of each journal that is being read. The answer to an earlier load may lack a commit
    /// that became durable since.
    reading: BTreeMap<ExecutionKey, u64>,
    /// Inputs of executions whose journals could not be read. They exist only in memory. Code that creates an entry takes
    /// its execution's inputs from here, since this map is not read for an execution with an entry.
    deferred_inputs: BTreeMap<ExecutionKey, Vec<PendingInput>>,
}

/// Delay until an execution whose journal could not be read is loaded again, in milliseconds.
const RELOAD_DELAY_MS: u64 = 1_000;

/// The secrets of a shard. The store contains none of them.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Seals the heads of journals and inbox messages.
    pub sealing: [u8; 32],
    /// Derives the salts of values. It is new for every process, so that salts cannot be computed again.
    pub salting: [u8; 32],
}

impl Shard {
    /// Creates a shard with the given ownership and an idle cache of `idle_bytes_max` bytes of memory.
    pub fn new(leases: Leases, keys: Keys, idle_bytes_max: usize) -> Self {
        Self {
            keys,
            ownership: ownership::Ownership::new(leases),
            executions: BTreeMap::new(),
            idle_cache: IdleCache::new(idle_bytes_max),
            memory: memory::Memory::default(),
            attempts: Attempts::default(),
            timers: Timers::default(),
            queues: tenants::TenantQueues::default(),
            commits: commit::Commits::default(),
            discards: discards::Discards::default(),
            loads: Loads::default(),
            refusals: refusals::Refusals::default(),
            evaluations: 0,
            telemetry: counters::Telemetry::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Adds spans to all later durable frames.
    pub fn make_spans(&mut self) {
        self.telemetry.makes_spans = true;
    }

    /// Handles an event. Outputs gather until [`next_output`](Self::next_output) takes them. [`flush`](Self::flush)
    /// submits commits.
    pub fn handle(&mut self, now: u64, event: Event) {
        self.refusals.at(now);
        self.queues.activity.at(now);
        self.resume_discards(now);
        match event {
            Event::Start(new_execution) => self.start(now, *new_execution),
            Event::Take(execution, queued) => self.take(now, execution, queued),
            Event::Loaded(execution, number, answer) => self.loaded(now, execution, number, *answer),
            Event::Committed { commit_id, answer } => self.committed(now, commit_id, answer),
            Event::AttemptRecovered { execution, instance, attempt, recovery } => {
                self.attempt_recovered(now, execution, instance, attempt, recovery);
            }
            Event::Began { execution, instance, attempt } => self.began(now, execution, instance, attempt),
            Event::Evaluated { execution, evaluation, finished } => {
                self.evaluated(now, execution, evaluation, *finished);
            }
            Event::Discard(execution, message) => self.discard(now, execution, message),
            Event::TurnAway(new_execution, failure) => self.turn_away(now, *new_execution, failure),
            Event::TurnChildAway { execution, message, parent, failure } => {
                self.turn_child_away(now, execution, message, &parent, failure);
            }
            Event::Unbudgeted(free) => self.queues.unbudgeted.insert(now, free),
            Event::Quarantined(execution, reason) => self.drop_quarantined(execution, reason),
            Event::Due(due) => self.due(due),
            Event::LeaseRenewed(renewal) => self.renewed(&renewal),
            Event::LeaseExpired => self.lapsed(),
            Event::Wake => self.continue_one(now),
        }
        self.fire_timers(now);
        self.make_room(now);
    }

    /// Returns the next output. Effects of a durable commit follow all other outputs, one execution at a time. Frames
    /// that result from them are submitted without another call of [`flush`](Self::flush).
    pub fn next_output(&mut self) -> Option<Output> {
        while self.outputs.is_empty() {
            if self.release_next() {
                continue;
            }
            if !std::mem::take(&mut self.commits.has_released) {
                return None;
            }
            self.flush();
        }
        self.outputs.pop_front()
    }

    /// Reports outputs that [`next_output`](Self::next_output) has not returned yet.
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty() || !self.commits.releasing.is_empty()
    }

    /// The organization of an execution in memory, or an empty string.
    pub fn tenant(&self, execution: ExecutionKey) -> &str {
        match self.executions.get(&execution) {
            Some(ExecutionEntry::Loaded(loaded)) => loaded.organization(),
            Some(ExecutionEntry::Evaluating(out)) => &out.tenant,
            Some(ExecutionEntry::Loading(_)) | None => "",
        }
    }

    /// The organization of an execution as the fair queues identify it.
    pub(crate) fn tenant_key(&self, execution: ExecutionKey) -> Tenant {
        self.executions.get(&execution).map(ExecutionEntry::tenant).unwrap_or_default()
    }

    /// True while several organizations have work.
    pub(crate) fn is_shared(&self) -> bool {
        self.queues.activity.is_shared()
    }

    /// The number of executions with a draft for the next commit.
    pub fn gathered(&self) -> usize {
        self.queues.dirty.len()
    }

    /// The time of the next [`Event::Wake`]. 0 if a split turn can continue: each event continues one.
    pub fn next_wake(&self) -> Option<u64> {
        if self.has_split() { Some(0) } else { self.next_time() }
    }

    /// The time of the next timer or retry.
    pub fn next_time(&self) -> Option<u64> {
        [self.timers.first(), self.refusals.next_try(), self.discards.delayed.next()].into_iter().flatten().min()
    }

    /// True if a split turn can continue.
    pub fn has_split(&self) -> bool {
        !self.queues.split.is_empty()
    }

    /// Returns the active executions, and those with a timer.
    pub fn pending(&self) -> Pending {
        let is_active = |entry: &ExecutionEntry| !matches!(entry, ExecutionEntry::Loaded(loaded) if loaded.is_idle());
        let active = self.executions.iter().filter(|(_, entry)| is_active(entry)).map(|(execution, _)| *execution);
        Pending { live: active.collect(), timed: self.timers.executions().collect() }
    }

    /// True if the execution is in memory, being loaded, or part of a commit.
    pub fn has(&self, execution: ExecutionKey) -> bool {
        self.executions.contains_key(&execution)
    }

    /// The number and bytes of messages that wait in memory for an execution. `None` if it can process input at
    /// present.
    pub fn held_up(&self, execution: ExecutionKey) -> Option<(usize, usize)> {
        let waiting = match self.executions.get(&execution) {
            Some(ExecutionEntry::Loaded(_)) => return None,
            Some(ExecutionEntry::Evaluating(out)) => &out.waiting,
            Some(ExecutionEntry::Loading(waiting)) => waiting,
            None => self.loads.deferred_inputs.get(&execution)?,
        };
        let bytes = |queued: &PendingInput| queued.message.as_ref()?.charge.as_ref().map(Charge::bytes);
        Some((waiting.len(), waiting.iter().filter_map(bytes).sum()))
    }

    /// The version of `decide` for new executions.
    pub fn decide_version(&self) -> u32 {
        self.ownership.leases.decide_version()
    }

    /// True if an input in memory would be lost at the end of the process: it waits for a journal, or it is a receipt
    /// that waits for the evaluations of an earlier turn.
    pub fn has_waiting(&self) -> bool {
        self.executions.values().any(|entry| match entry {
            ExecutionEntry::Loading(waiting) => !waiting.is_empty(),
            ExecutionEntry::Evaluating(_) => entry.queued().any(|queued| ownership::brought(queued).is_some()),
            ExecutionEntry::Loaded(_) => false,
        })
    }

    fn start(&mut self, now: u64, new_execution: NewExecution) {
        let NewExecution { execution, plan, stored_plans, mut start, row, ticket, message, audit } = new_execution;
        // Older releases have no queues and could not read a journal with one.
        start.queue.take_if(|_| self.ownership.leases.decide_version() < QUEUES_SINCE);
        if self.ownership.leases.decide_version() < BOUNDS_SINCE {
            start.policy.max_output_bytes = None;
            start.lineage.iter_mut().for_each(|lineage| lineage.executions = None);
        }
        if self.ownership.leases.decide_version() < BUDGETS_SINCE {
            start.lineage.iter_mut().for_each(|lineage| lineage.budget = None);
        }
        if !self.holds(execution) {
            return self.pass_on(execution, vec![PendingInput { input: Input::Start(start), message, ticket, audit }]);
        }
        if let Some(why) = self.refusals.why_unwritable(execution).cloned() {
            let queued = PendingInput { input: Input::Start(start), message, ticket, audit };
            self.notify_parent_of_not_started(now, execution, &queued, &why);
            return self.refuse(vec![queued], ShardError::Quarantined(why));
        }
        if message.as_ref().is_some_and(|message| self.is_being_discarded(execution, &message.id)) {
            return;
        }
        if self.executions.contains_key(&execution) {
            // A repeated start: the kernel ignores it.
            let queued = PendingInput { input: Input::Start(start), message, ticket, audit };
            return self.take(now, execution, queued);
        }
        let is_new = |plan: &StoredPlan| !self.commits.plans_stored.contains(&plan.hash);
        let plans = stored_plans.into_iter().filter(is_new).collect();
        let parent = start.lineage.as_ref().and_then(|lineage| lineage.parent.clone());
        let started_by = parent
            .zip(message.as_ref())
            .map(|(parent, message)| Box::new(entry::StartedBy { parent, message: message.id.clone(), at: now }));
        self.executions.insert(
            execution,
            ExecutionEntry::fresh(execution, plan, plans, row, self.ownership.leases.decide_version(), started_by),
        );
        self.turn(now, execution, PendingInput { input: Input::Start(start), message, ticket, audit });
        for queued in self.loads.deferred_inputs.remove(&execution).unwrap_or_default() {
            self.take(now, execution, queued);
        }
    }

    fn take(&mut self, now: u64, execution: ExecutionKey, queued: PendingInput) {
        if !self.holds(execution) {
            return self.pass_on(execution, vec![queued]);
        }
        match self.executions.get_mut(&execution) {
            Some(ExecutionEntry::Loaded(_)) => self.turn(now, execution, queued),
            Some(ExecutionEntry::Loading(waiting)) => waiting.push(queued),
            Some(ExecutionEntry::Evaluating(out)) => {
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
    fn turn(&mut self, now: u64, execution: ExecutionKey, queued: PendingInput) {
        match self.executions.get_mut(&execution) {
            Some(ExecutionEntry::Loaded(loaded)) => {
                // The message was read again while the commit that consumes it is in flight.
                if let Some(message) = &queued.message
                    && !loaded.messages.insert(message.id.clone())
                {
                    return;
                }
                let asked = queued.ticket;
                self.contain(execution, asked, |shard| shard.decide(now, execution, queued));
            }
            Some(ExecutionEntry::Loading(waiting)) => waiting.push(queued),
            Some(ExecutionEntry::Evaluating(out)) => out.waiting.push(queued),
            None => {
                let why = "an earlier input has quarantined the execution";
                self.turn_back(execution, vec![queued], why);
            }
        }
    }

    fn decide(&mut self, now: u64, execution: ExecutionKey, queued: PendingInput) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution) else { return };
        if self.telemetry.makes_spans {
            loaded.before_turn.span_start = SpanStart::of(&loaded.state, &queued.input);
        }
        loaded.before_turn.intent = receipt::intent_of(&loaded.state, &queued.input);
        if let Some(rest) = self.whole(now, execution, &queued) {
            return self.suspend(execution, queued, rest);
        }
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution) else { return };
        match decide(&mut loaded.state, &queued.input, now) {
            Err(illegal) => {
                self.refuse(vec![queued], ShardError::Quarantined(illegal.message.clone()));
                self.quarantine(execution, illegal.message);
            }
            Ok(Decided::Turn(turn)) => self.finish(now, execution, queued, turn.into()),
            Ok(Decided::Paused(paused)) => self.suspend(execution, queued, Rest::Paused(paused)),
        }
    }

    /// Hands the turn and the state to an evaluation thread. Inputs of the execution wait until they return.
    fn suspend(&mut self, execution: ExecutionKey, queued: PendingInput, rest: Rest) {
        self.weigh_before(execution, &queued.input);
        let Some(ExecutionEntry::Loaded(mut loaded)) = self.executions.remove(&execution) else { return };
        self.timers.set(execution, loaded.tenant, loaded.state.end.deadline);
        self.evaluations += 1;
        let number = self.evaluations;
        let nothing = State::new(execution, loaded.state.plan.clone());
        let tenant = loaded.organization().to_owned();
        let state = std::mem::replace(&mut loaded.state, nothing);
        // It loses its place in the queue of split turns. The commit of this turn queues it again.
        loaded.is_queued = false;
        let waiting = Vec::new();
        let abandoned = Arc::new(AtomicBool::new(false));
        let (loaded, is_overdue) = (*loaded, false);
        let out = Evaluating { number, loaded, tenant, queued, waiting, is_overdue, abandoned: abandoned.clone() };
        self.executions.insert(execution, ExecutionEntry::Evaluating(Box::new(out)));
        let suspended = Box::new(Suspended { state, rest, abandoned });
        self.outputs.push_back(Output::Evaluate { execution, evaluation: number, suspended });
    }

    /// Continues a turn after its evaluations. The result of an abandoned turn is ignored, since the execution is read
    /// back from the store.
    fn evaluated(&mut self, now: u64, execution: ExecutionKey, number: u64, (state, turn): Finished) {
        if !matches!(self.executions.get(&execution), Some(ExecutionEntry::Evaluating(out)) if out.number == number) {
            return;
        }
        let Some(ExecutionEntry::Evaluating(out)) = self.executions.remove(&execution) else { return };
        let Evaluating { mut loaded, queued, waiting, .. } = *out;
        self.timers.remove(execution);
        loaded.state = state;
        self.executions.insert(execution, ExecutionEntry::Loaded(Box::new(loaded)));
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
        for queued in waiting {
            self.take(now, execution, queued);
        }
        // Behind the inputs: one of them may be the receipt of an attempt that was recovered as interrupted.
        self.apply_recoveries(now, execution);
    }

    /// Converts a decided turn to a frame of the draft.
    fn finish(&mut self, now: u64, execution: ExecutionKey, queued: PendingInput, decision: DecidedTurn) {
        let DecidedTurn { turn, stored } = decision;
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution) else { return };
        let mut granted = None;
        if let Input::Receipt { instance, attempt, .. } = &queued.input {
            self.attempts.end(&AttemptId::new(execution, instance.clone(), *attempt));
        }
        if turn.records.is_empty() && stored.is_none() {
            loaded.last_records = 0;
            self.telemetry.counters.unchanged += 1;
            loaded.draft.take_without_frame(now, queued, &loaded.state);
        } else {
            let Turn { results, records, mut actions, messages } = turn;
            granted = self.queues.unbudgeted.grant(now, &loaded.state, &mut actions);
            let now = loaded.state.now;
            let via = queued.via();
            let PendingInput { input, message, ticket, audit } = queued;
            let Keys { salting, sealing } = self.keys;
            let (frame, stored, hash) = stored.map_or_else(
                || {
                    let (sequence, before) = (loaded.next_sequence, loaded.head);
                    let frame = Frame { sequence, before, now, input, results, records };
                    let (stored, hash) = turn::store(&frame, &salting, execution);
                    (frame, stored, hash)
                },
                |stored| *stored,
            );
            let audit = audit.or_else(|| audit::of_itself(&loaded.state, &frame.input, &frame.records).map(Box::new));
            self.telemetry.counters.turn(&frame.input);
            let spans = match self.telemetry.makes_spans {
                true => trace_spans::ended(&loaded.state, &frame.input, &frame.records, loaded.before_turn.span_start),
                false => Vec::new(),
            };
            let of_frame = Some((frame.sequence, hash));
            let receipt = Receipt::of(&loaded.state, &frame.input, loaded.before_turn.intent, via, now, of_frame);
            loaded.last_records = frame.records.len();
            (loaded.head, loaded.next_sequence) = (hash, frame.sequence + 1);
            loaded.summary = Summary::of(&loaded.state);
            loaded.gates.follow(&loaded.state, &frame.records);
            accounts::note(loaded, &frame.records, now);
            let leases = &self.ownership.leases;
            loaded
                .draft
                .messages
                .extend(messages.into_iter().map(|message| inbox_message(message, (&sealing, leases), now)));
            loaded.draft.take(
                (stored, receipt),
                (frame, spans),
                (message, ticket, audit),
                actions,
                &loaded.state,
                loaded.summary.status,
            );
        }
        self.queues.activity.turn(loaded.tenant);
        self.queues.dirty.insert(execution, loaded.tenant);
        self.reschedule(execution);
        self.weigh(execution);
        if let Some(input) = granted {
            self.take(now, execution, PendingInput::without_reply(input));
        }
    }

    /// Sets the wake-up time of an execution from its state. The timers of a split turn fire when it continues.
    fn reschedule(&mut self, execution: ExecutionKey) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        let next = loaded.state.next_timer().filter(|_| !loaded.state.journal.is_split).map(|(at, _)| *at);
        self.timers.set(execution, loaded.tenant, next);
    }

    /// Requests the journal of an execution. The given inputs and the deferred ones wait for it in their order.
    fn load(&mut self, execution: ExecutionKey, before: Vec<PendingInput>, after: Vec<PendingInput>) {
        let kept = self.loads.deferred_inputs.remove(&execution).unwrap_or_default();
        self.executions
            .insert(execution, ExecutionEntry::Loading(before.into_iter().chain(kept).chain(after).collect()));
        self.ask_for_journal(execution);
    }

    fn ask_for_journal(&mut self, execution: ExecutionKey) {
        self.loads.requested += 1;
        self.loads.reading.insert(execution, self.loads.requested);
        self.outputs.push_back(Output::Load(execution, self.loads.requested));
    }

    fn due(&mut self, due: Vec<mainspring_store::Due>) {
        for due in due {
            if self.holds(due.execution) && !self.executions.contains_key(&due.execution) {
                self.timers.set_at_latest(due.execution, due.wake_at);
            }
        }
    }

    fn loaded(&mut self, now: u64, execution: ExecutionKey, number: u64, answer: LoadAnswer) {
        // A partition that was lost and acquired again can have two loads in progress. The answer to the first is
        // outdated.
        if self.loads.reading.get(&execution) != Some(&number) {
            return;
        }
        self.loads.reading.remove(&execution);
        let Some(ExecutionEntry::Loading(waiting)) = self.executions.get_mut(&execution) else { return };
        let mut waiting = std::mem::take(waiting);
        self.executions.remove(&execution);
        let is_known = !matches!(answer, LoadAnswer::Unavailable(_));
        if is_known && !matches!(answer, LoadAnswer::Journal(_)) {
            self.memory.admit_held_back(execution);
        }
        let unconfirmed = is_known.then(|| self.commits.unconfirmed.remove(&execution)).flatten().unwrap_or_default();
        match answer {
            LoadAnswer::Journal(mut journal) => {
                let head = Expected { sequence: journal.head.sequence, hash: journal.head.hash };
                self.settle_doubts(execution, unconfirmed, head, &mut waiting);
                if self.hold_back(now, &journal.state, &mut waiting) {
                    return;
                }
                let remote = std::mem::take(&mut journal.remote);
                let asked: Vec<Ticket> = waiting.iter().filter_map(|queued| queued.ticket).collect();
                self.contain(execution, asked, |shard| {
                    shard.executions.insert(execution, ExecutionEntry::from_journal(*journal));
                    shard.continue_work(execution, &remote);
                    shard.weigh(execution);
                });
                waiting.into_iter().for_each(|queued| self.turn(now, execution, queued));
                self.apply_recoveries(now, execution);
                self.queues.dirty.insert(execution, self.tenant_key(execution));
            }
            LoadAnswer::Unknown => {
                // A start arrives here if its commit had an unknown outcome and was not written. Its message is still
                // in the inbox. Other inputs are read again behind it and processed after the start.
                let is_start = |queued: &PendingInput| matches!(queued.input, Input::Start(_));
                let (starts, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_start);
                if starts.iter().any(|start| start.message.is_some()) {
                    self.outputs.push_back(Output::RescanInbox);
                } else {
                    self.discard_not_started(now, execution, &others);
                }
                self.refuse(others, ShardError::NoSuchExecution);
                let why =
                    "the execution's beginning could not be written, and nothing of it is stored; is the disk full?";
                self.refuse(starts, ShardError::Store(why.into()));
            }
            LoadAnswer::Newer(reason) => self.refuse(waiting, ShardError::Store(reason)),
            LoadAnswer::Quarantined(reason) => {
                self.drop_quarantined(execution, reason.clone());
                self.turn_back(execution, waiting, &reason);
            }
            LoadAnswer::Broken(reason) => {
                self.quarantine(execution, reason.clone());
                self.turn_back(execution, waiting, &reason);
            }
            LoadAnswer::Unavailable(reason) => self.defer_inputs(now, execution, waiting, reason),
        }
    }

    /// Callers send their requests again. Other inputs exist only here and are kept for another load.
    fn defer_inputs(&mut self, now: u64, execution: ExecutionKey, waiting: Vec<PendingInput>, reason: String) {
        let (asked, without_reply): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|queued| queued.ticket.is_some());
        self.refuse(asked, ShardError::Store(reason));
        if !without_reply.is_empty() {
            self.loads.deferred_inputs.insert(execution, without_reply);
            self.timers.set_at_latest(execution, now + RELOAD_DELAY_MS);
        }
    }

    /// Deletes a forged message: its id is consumed by an input that changes nothing.
    fn discard(&mut self, now: u64, execution: ExecutionKey, message: String) {
        let queued = PendingInput { message: Some(message.into()), ..PendingInput::without_reply(Input::Continue) };
        self.take(now, execution, queued);
    }

    fn refuse(&mut self, queued: Vec<PendingInput>, error: ShardError) {
        for ticket in queued.into_iter().filter_map(|queued| queued.ticket) {
            self.reply(ticket, Err(error.clone()));
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: protocol::Reply) {
        self.commits.in_doubt.remove(&ticket);
        self.outputs.push_back(Output::Reply(ticket, reply));
    }
}

fn inbox_message(
    message: OutgoingMessage,
    (key, leases): (&[u8; 32], &Leases),
    now: u64,
) -> mainspring_store::InboxMessage {
    let OutgoingMessage { to, id, input } = message;
    let partition = leases.partition(to);
    let message =
        mainspring_store::InboxMessage { execution: to, partition, id, body: input.encode(), enqueued_at: now };
    inbox::sealed(key, message)
}
