//! The shard: a synchronous state machine without I/O. It takes events and returns outputs, and the driver performs the
//! outputs.
//!
//! A shard owns its executions without locks. It holds the effects of a turn until the frame is durable. While one
//! commit is in flight, new frames gather for the next one. The simulator runs the same code on virtual time.

mod abandon;
mod approvals;
mod commit;
pub mod counters;
mod discards;
mod entry;
mod idle_cache;
pub(crate) mod long;
mod memory;
mod ownership;
pub(crate) mod panics;
mod performing;
mod protocol;
mod quarantine;
mod refusals;
mod split;
pub(crate) mod tenants;
mod timers;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    sync::{Arc, atomic::AtomicBool},
};

use mainspring_kernel::{
    decide::{Action, BOUNDS_SINCE, Decided, OutgoingMessage, QUEUES_SINCE, Turn, child_key, decide},
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
    audit,
    driver::Pending,
    evaluator::{Finished, Rest, Suspended},
    inbox,
    intake::Charge,
    lease::Leases,
    shard::{
        entry::{Evaluating, ExecutionEntry},
        idle_cache::IdleCache,
        long::Decision,
        performing::Performing,
        tenants::{Tenant, Turns},
        timers::Timers,
    },
    trace_spans::{self, SpanStart},
};

pub(crate) use approvals::open_gates;
pub(crate) use entry::Summary;
pub use protocol::{
    AttemptRecovery, CommittedFrame, Event, Handoff, LoadAnswer, NewExecution, Output, PendingInput, ReceivedMessage,
    Reply, ShardError, Taken, Ticket,
};

/// The executions that this process owns, and the work that is in progress for them.
#[derive(Debug)]
pub struct Shard {
    keys: Keys,
    leases: Leases,
    executions: BTreeMap<ExecutionKey, ExecutionEntry>,
    /// The cache of idle executions.
    idle_cache: IdleCache,
    memory: memory::Memory,
    /// Executions with a draft for the next commit.
    dirty: tenants::Dirty,
    /// Wake-up times by execution.
    timers: Timers,
    /// Executions with a split turn whose frames so far are durable, in the order in which they continue.
    to_continue: Turns<ExecutionKey>,
    /// Attempts that run in this process, with the names of their steps. An execution whose journal could not be read
    /// again has no entry, but its attempts still become detached when its partition is released.
    performing: BTreeMap<(ExecutionKey, Instance, u32), Performing>,
    /// Detached attempts: they run here, and their executions were released to other nodes.
    detached: BTreeMap<(ExecutionKey, Instance, u32), ownership::DetachedAttempt>,
    /// Attempts that run on the named node, which has released their execution.
    elsewhere: BTreeMap<(ExecutionKey, Instance, u32), String>,
    /// Partitions that are released as soon as no commit of them is in flight.
    draining: BTreeSet<u32>,
    /// Releases that the store has not confirmed. The answer to an earlier heartbeat may still list these partitions.
    unconfirmed_releases: Vec<Fence>,
    /// Attempts whose outcome is being recovered, by execution.
    reconciling: BTreeMap<ExecutionKey, BTreeMap<Instance, u32>>,
    /// Inputs of executions whose journals could not be read. They exist only in memory. Code that creates an entry takes
    /// its execution's inputs from here, since an execution with an entry never looks here.
    kept: BTreeMap<ExecutionKey, Vec<PendingInput>>,
    /// Attempts that were decided in commits with an unknown outcome, and were therefore not started. While their
    /// partition is owned here, no other node has started them.
    never_started: BTreeSet<(ExecutionKey, Instance, u32)>,
    /// The number of the last load of each journal that is being read. The answer to an earlier load may lack a commit
    /// that became durable since.
    reading: BTreeMap<ExecutionKey, u64>,
    /// Callers whose inputs are in commits with an unknown outcome.
    in_doubt: BTreeSet<Ticket>,
    /// Commits with an unknown outcome, until the journal is read again.
    unconfirmed: BTreeMap<ExecutionKey, Vec<commit::UnconfirmedCommit>>,
    /// Messages to discard: their executions do not exist.
    undeliverable: BTreeMap<ExecutionKey, commit::Discard>,
    delayed: discards::Delayed,
    /// Plans that the store is known to contain.
    plans_stored: BTreeSet<Hash>,
    in_flight: Option<commit::InFlightCommit>,
    /// Effects of durable commits that are not released yet, in order, and the buffers of the last commit.
    releasing: VecDeque<commit::HeldEffects>,
    recycled: Option<commit::InFlightCommit>,
    /// Effects were released since the last flush, so there may be more to write.
    has_released: bool,
    buffers: commit::CommitBuffers,
    refusals: refusals::Refusals,
    sharing: tenants::TenantActivity,
    commits_submitted: u64,
    evaluations: u64,
    loads: u64,
    counters: counters::Counters,
    /// Durable frames run_outputs the spans that end with them.
    makes_spans: bool,
    outputs: VecDeque<Output>,
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
            leases,
            executions: BTreeMap::new(),
            idle_cache: IdleCache::new(idle_bytes_max),
            memory: memory::Memory::default(),
            dirty: tenants::Dirty::default(),
            timers: Timers::default(),
            to_continue: Turns::default(),
            performing: BTreeMap::new(),
            detached: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            draining: BTreeSet::new(),
            unconfirmed_releases: Vec::new(),
            reconciling: BTreeMap::new(),
            kept: BTreeMap::new(),
            never_started: BTreeSet::new(),
            reading: BTreeMap::new(),
            in_doubt: BTreeSet::new(),
            unconfirmed: BTreeMap::new(),
            undeliverable: BTreeMap::new(),
            delayed: discards::Delayed::default(),
            plans_stored: BTreeSet::new(),
            in_flight: None,
            releasing: VecDeque::new(),
            recycled: None,
            has_released: false,
            buffers: commit::CommitBuffers::default(),
            refusals: refusals::Refusals::default(),
            sharing: tenants::TenantActivity::default(),
            commits_submitted: 0,
            evaluations: 0,
            loads: 0,
            counters: counters::Counters::default(),
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
        self.resume_discards(now);
        match event {
            Event::Submit(submission) => self.submit(now, *submission),
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
            Event::TurnAway(submission, failure) => self.turn_away(now, *submission, failure),
            Event::TurnChildAway { execution, message, parent, failure } => {
                self.turn_child_away(now, execution, message, &parent, failure);
            }
            Event::Quarantined(execution, reason) => self.drop_quarantined(execution, reason),
            Event::Due(due) => self.due(due),
            Event::LeaseRenewed(renewal) => self.heard(&renewal),
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
            if !std::mem::take(&mut self.has_released) {
                return None;
            }
            self.flush();
        }
        self.outputs.pop_front()
    }

    /// Reports outputs that [`next_output`](Self::next_output) has not returned yet.
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty() || !self.releasing.is_empty()
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
        let goes_on = |entry: &ExecutionEntry| !matches!(entry, ExecutionEntry::Loaded(loaded) if loaded.is_idle());
        let active = self.executions.iter().filter(|(_, entry)| goes_on(entry)).map(|(execution, _)| *execution);
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
            None => self.kept.get(&execution)?,
        };
        let bytes = |queued: &PendingInput| queued.message.as_ref()?.charge.as_ref().map(Charge::bytes);
        Some((waiting.len(), waiting.iter().filter_map(bytes).sum()))
    }

    /// The version of `decide` for new executions.
    pub fn decide_version(&self) -> u32 {
        self.leases.decide_version()
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

    fn submit(&mut self, now: u64, submission: NewExecution) {
        let NewExecution { execution, plan, stored_plans, mut start, row, ticket, message, audit } = submission;
        // Older releases have no queues and could not read a journal with one.
        start.queue.take_if(|_| self.leases.decide_version() < QUEUES_SINCE);
        if self.leases.decide_version() < BOUNDS_SINCE {
            start.policy.max_output_bytes = None;
            start.lineage.iter_mut().for_each(|lineage| lineage.executions = None);
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
        let is_new = |plan: &StoredPlan| !self.plans_stored.contains(&plan.hash);
        let plans = stored_plans.into_iter().filter(is_new).collect();
        let parent = start.lineage.as_ref().and_then(|lineage| lineage.parent.clone());
        let started_by = parent
            .zip(message.as_ref())
            .map(|(parent, message)| Box::new(entry::StartedBy { parent, message: message.id.clone(), at: now }));
        self.executions.insert(
            execution,
            ExecutionEntry::fresh(execution, plan, plans, row, self.leases.decide_version(), started_by),
        );
        self.turn(now, execution, PendingInput { input: Input::Start(start), message, ticket, audit });
        for queued in self.kept.remove(&execution).unwrap_or_default() {
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
                let why = "an input before this one has set the execution aside";
                self.turn_back(execution, vec![queued], why);
            }
        }
    }

    fn decide(&mut self, now: u64, execution: ExecutionKey, queued: PendingInput) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution) else { return };
        if self.makes_spans {
            loaded.span_start = SpanStart::of(&loaded.state, &queued.input);
        }
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
        let (waiting, recovered) = (Vec::new(), Vec::new());
        let abandoned = Arc::new(AtomicBool::new(false));
        let (loaded, is_overdue) = (*loaded, false);
        let out =
            Evaluating { number, loaded, tenant, queued, waiting, is_overdue, abandoned: abandoned.clone(), recovered };
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
        let Evaluating { mut loaded, queued, waiting, recovered, .. } = *out;
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
        for (instance, attempt, recovery) in recovered {
            self.apply_recovery(now, execution, instance, attempt, recovery);
        }
        for queued in waiting {
            self.take(now, execution, queued);
        }
    }

    /// Converts a decided turn to a frame of the draft.
    fn finish(&mut self, now: u64, execution: ExecutionKey, queued: PendingInput, decision: Decision) {
        let Decision { turn, stored } = decision;
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get_mut(&execution) else { return };
        if let Input::Receipt { instance, attempt, .. } = &queued.input {
            let name = (execution, instance.clone(), *attempt);
            self.performing.remove(&name);
            self.elsewhere.remove(&name);
        }
        if turn.records.is_empty() && stored.is_none() {
            loaded.last_records = 0;
            self.counters.unchanged += 1;
            loaded.draft.take_without_frame(now, queued);
        } else {
            let now = loaded.state.now;
            let Turn { results, records, actions, messages } = turn;
            let PendingInput { input, message, ticket, audit } = queued;
            let Keys { salting, sealing } = self.keys;
            let (frame, stored, hash) = stored.map_or_else(
                || {
                    let (sequence, before) = (loaded.next_sequence, loaded.head);
                    let frame = Frame { sequence, before, now, input, results, records };
                    let (stored, hash) = long::store(&frame, &salting, execution);
                    (frame, stored, hash)
                },
                |stored| *stored,
            );
            let audit = audit.or_else(|| audit::of_itself(&loaded.state, &frame.input, &frame.records).map(Box::new));
            self.counters.turn(&frame.input);
            let spans = match self.makes_spans {
                true => trace_spans::ended(&loaded.state, &frame.input, &frame.records, loaded.span_start),
                false => Vec::new(),
            };
            loaded.last_records = frame.records.len();
            (loaded.head, loaded.next_sequence) = (hash, frame.sequence + 1);
            loaded.summary = Summary::of(&loaded.state);
            loaded.gates.follow(&loaded.state, &frame.records);
            let leases = &self.leases;
            loaded.draft.messages.extend(messages.into_iter().map(|message| posted(message, (&sealing, leases), now)));
            loaded.draft.take(
                stored,
                (frame, spans),
                (message, ticket, audit),
                actions,
                &loaded.state,
                loaded.summary.status,
            );
        }
        self.sharing.turn(loaded.tenant);
        self.dirty.insert(execution, loaded.tenant);
        self.reschedule(execution);
        self.weigh(execution);
    }

    /// Sets the wake-up time of an execution from its state. The timers of a split turn fire when it continues.
    fn reschedule(&mut self, execution: ExecutionKey) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        let next = loaded.state.next_timer().filter(|_| !loaded.state.journal.is_split).map(|(at, _)| *at);
        self.timers.set(execution, loaded.tenant, next);
    }

    /// Requests the journal of an execution. The given inputs and the deferred ones wait for it in their order.
    fn load(&mut self, execution: ExecutionKey, before: Vec<PendingInput>, after: Vec<PendingInput>) {
        let kept = self.kept.remove(&execution).unwrap_or_default();
        self.executions
            .insert(execution, ExecutionEntry::Loading(before.into_iter().chain(kept).chain(after).collect()));
        self.ask_for_journal(execution);
    }

    fn ask_for_journal(&mut self, execution: ExecutionKey) {
        self.loads += 1;
        self.reading.insert(execution, self.loads);
        self.outputs.push_back(Output::Load(execution, self.loads));
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
        if self.reading.get(&execution) != Some(&number) {
            return;
        }
        self.reading.remove(&execution);
        let Some(ExecutionEntry::Loading(waiting)) = self.executions.get_mut(&execution) else { return };
        let mut waiting = std::mem::take(waiting);
        self.executions.remove(&execution);
        let is_known = !matches!(answer, LoadAnswer::Unavailable(_));
        if is_known && !matches!(answer, LoadAnswer::Journal(_)) {
            self.memory.let_in(execution);
        }
        let unconfirmed = if is_known { self.unconfirmed.remove(&execution).unwrap_or_default() } else { Vec::new() };
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
                    shard.continue_work(now, execution, &remote);
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
            // Callers send their requests again. Other inputs exist only here and are kept for another load.
            LoadAnswer::Unavailable(reason) => {
                let (asked, without_reply): (Vec<_>, Vec<_>) =
                    waiting.into_iter().partition(|queued| queued.ticket.is_some());
                self.refuse(asked, ShardError::Store(reason));
                if !without_reply.is_empty() {
                    self.kept.insert(execution, without_reply);
                    self.timers.set_at_latest(execution, now + RELOAD_DELAY_MS);
                }
            }
        }
    }

    /// Continues the open work of a loaded state: recovery consists of this alone. `remote` contains attempts on other
    /// nodes.
    fn continue_work(&mut self, now: u64, execution: ExecutionKey, remote: &[(RemoteAttempt, String)]) {
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        let mut never_started = Vec::new();
        for instance in &loaded.state.open.attempts {
            if let Some(child) = child_of(&loaded.state, instance) {
                self.outputs.push_back(Output::Activate(child));
                continue;
            }
            let Some(attempt) = mainspring_kernel::decide::open_attempt(&loaded.state, instance) else { continue };
            let is_stopping = loaded.state.steps.get(instance).is_some_and(|step| step.stopping.is_some());
            let number = attempt.number;
            let name = (execution, instance.clone(), number);
            if self.detached.remove(&name).is_some() {
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
            } else if self.never_started.remove(&name) {
                never_started.push((name.1, number));
            } else if begin_reconciling(&mut self.reconciling, name) {
                self.outputs.push_back(Output::Reconcile { execution, instance: instance.clone(), attempt });
            }
        }
        for (instance, number) in never_started {
            self.apply_recovery(now, execution, instance, number, AttemptRecovery::NeverStarted);
        }
        self.reschedule(execution);
        self.queue_split(execution);
    }

    /// Handles the recovered outcome of an attempt: it starts if it never started, is awaited if it still runs, and is
    /// interrupted otherwise.
    fn attempt_recovered(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        instance: Instance,
        number: u32,
        recovery: AttemptRecovery,
    ) {
        // An outdated answer: the partition was lost and acquired again since the request, and the attempt may have
        // started.
        let Entry::Occupied(mut reconciling) = self.reconciling.entry(execution) else { return };
        if reconciling.get().get(&instance) != Some(&number) {
            return;
        }
        reconciling.get_mut().remove(&instance);
        if reconciling.get().is_empty() {
            reconciling.remove();
        }
        if let Some(ExecutionEntry::Evaluating(out)) = self.executions.get_mut(&execution) {
            return out.recovered.push((instance, number, recovery));
        }
        self.apply_recovery(now, execution, instance, number, recovery);
    }

    fn apply_recovery(
        &mut self,
        now: u64,
        execution: ExecutionKey,
        instance: Instance,
        number: u32,
        recovery: AttemptRecovery,
    ) {
        // The timer of the attempt may have become due during its recovery, when it was ignored.
        self.reschedule(execution);
        let Some(ExecutionEntry::Loaded(loaded)) = self.executions.get(&execution) else { return };
        let is_open = loaded.state.open.attempts.contains(&instance);
        let Some(step) = loaded.state.steps.get(&instance).filter(|step| is_open && step.attempt == number) else {
            return;
        };
        let is_stopping = step.stopping.is_some();
        let attempt = mainspring_kernel::decide::open_attempt(&loaded.state, &instance);
        match (recovery, attempt) {
            (AttemptRecovery::NeverStarted, Some(attempt)) if !is_stopping => {
                self.perform(execution, instance, attempt)
            }
            (AttemptRecovery::StillRunning, _) => {
                let step = instance.name(&loaded.state.plan);
                self.performing.insert((execution, instance.clone(), number), Performing::new(step));
                if is_stopping {
                    self.outputs.push_back(Output::Stop { execution, instance, attempt: number });
                }
            }
            (recovery, _) => {
                // An attempt that never started counts as stopped if it was to be stopped.
                let was_started = recovery == AttemptRecovery::Interrupted;
                let outcome = if was_started { Outcome::Interrupted } else { Outcome::Stopped(Value::Null) };
                let input = Input::Receipt { instance, attempt: number, outcome };
                self.turn(now, execution, PendingInput::without_reply(input));
            }
        }
    }

    fn perform(&mut self, execution: ExecutionKey, instance: Instance, attempt: mainspring_kernel::effect::Attempt) {
        let name = (execution, instance.clone(), attempt.number);
        self.never_started.remove(&name);
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
        let queued = PendingInput { message: Some(message.into()), ..PendingInput::without_reply(Input::Continue) };
        self.take(now, execution, queued);
    }

    fn refuse(&mut self, queued: Vec<PendingInput>, error: ShardError) {
        for ticket in queued.into_iter().filter_map(|queued| queued.ticket) {
            self.reply(ticket, Err(error.clone()));
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: protocol::Reply) {
        self.in_doubt.remove(&ticket);
        self.outputs.push_back(Output::Reply(ticket, reply));
    }
}

/// Records that an attempt is being recovered. False if that is in progress already.
fn begin_reconciling(
    reconciling: &mut BTreeMap<ExecutionKey, BTreeMap<Instance, u32>>,
    (execution, instance, number): (ExecutionKey, Instance, u32),
) -> bool {
    reconciling.entry(execution).or_default().insert(instance, number) != Some(number)
}

/// The key of the child execution that an attempt waits for.
fn child_of(state: &State, instance: &Instance) -> Option<ExecutionKey> {
    let is_child = matches!(state.plan.step(instance.step).work, Work::Subworkflow { .. });
    let attempt = state.steps.get(instance)?.attempt;
    is_child.then(|| child_key(state, instance, attempt))
}

fn posted(message: OutgoingMessage, (key, leases): (&[u8; 32], &Leases), now: u64) -> mainspring_store::InboxMessage {
    let OutgoingMessage { to, id, input } = message;
    let partition = leases.partition(to);
    let message =
        mainspring_store::InboxMessage { execution: to, partition, id, body: input.encode(), enqueued_at: now };
    inbox::sealed(key, message)
}
