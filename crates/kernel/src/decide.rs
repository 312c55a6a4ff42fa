//! Chooses what follows from an input, and never changes anything but by a record.
//!
//! A turn takes one input in: the records that it gives at once, then whatever follows from them until nothing more
//! does. What goes out to the world is chosen last, when everything that needs no world is settled: so a `return` that
//! is ready wins over its siblings, and the order of calls does not depend on the order of bookkeeping.

mod begin;
mod blocks;
mod children;
mod edges;
mod effects;
mod ending;
mod evaluations;
mod executions;
mod gates;
mod loops;
mod waits;

pub use children::{canceled_by, child_key, child_key_of};
pub use evaluations::unfit_input;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    vec::Vec,
};
use core::cmp::Reverse;

use crate::{
    apply::{
        Illegal, apply,
        size::{RECORD_BYTES, of_value},
    },
    effect::Attempt,
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    input::{Input, ORGANIZATION_IN_TRIGGER, Queue, Start, Timer},
    instance::{Instance, Scope},
    key::ExecutionKey,
    limits::{
        EVALUATIONS_AT_A_TIME_MAX, EXECUTION_JOURNAL_BYTES_MAX, EXECUTION_MEMORY_BYTES_MAX, TURN_BYTES_MAX,
        TURN_BYTES_PER_STEP, TURN_EVALUATIONS_MAX, TURN_RECORDS_MAX, TURN_RESULTS_MAX, UNCOUNTED_MAX, VALUE_BYTES_MAX,
        VALUE_MEMORY_BYTES_MAX,
    },
    plan::{OnError, Work},
    record::{Ending, FailureFate, Fault, Payload, Record},
    state::{ExecutionStatus, State, Status, View},
    value::{Map, Value},
};
use evaluations::Task;
use executions::Weights;

/// The version of what this module decides. It is pinned at the start of an execution; what changes the records that
/// come of an input changes only behind a higher one.
pub const DECIDE_VERSION: u32 = 6;

/// From this version on what needs no place begins beside what holds all of them; a retry policy is asked about an
/// interruption as about any failure; a parent knows when its child waits for people and when one has denied there; a
/// failure that calls off what waits further inside is followed along its edges in the same turn.
const SECOND_RULES: u32 = 2;

/// From this version on an execution can wait in a queue before its work begins.
pub const QUEUES_SINCE: u32 = 3;

/// From this version on the signals that are kept have a bound in bytes too, and one that is waited for is taken however
/// many are kept.
pub const SIGNAL_BYTES_SINCE: u32 = 4;

/// From this version on everything that an execution does has a bound: the executions that it starts, rounds and skipped
/// steps, the size of what blocks, returns and gates hold, the evaluations of a turn. Where it ends well, what is out is
/// waited for.
pub const BOUNDS_SINCE: u32 = 5;

/// From this version on the memory and the journal that an execution takes have a bound, a loop ends as soon as its outputs
/// are too large, and the blocks that a turn opens count among its bytes. Where an execution ends well, a child that waits
/// for people is stopped, and the execution's time does not stand still. A quarantined child keeps its share of executions.
pub const MEMORY_SINCE: u32 = 6;

/// The code of the failure that a parent is told of when its child is quarantined.
pub const CHILD_QUARANTINED: &str = "child_quarantined";

/// Bytes of a state whose memory a debug build counts anew after each turn.
#[cfg(debug_assertions)]
const RECOUNT_BYTES_MAX: u64 = 32 * 1024;

/// How far an input has been taken in.
#[derive(Debug)]
pub enum Decided {
    /// All that follows from it has been decided.
    Turn(Turn),
    /// What follows depends on evaluations. The state is half changed until their results are taken in.
    Paused(Box<Paused>),
}

/// What came of an input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// What evaluations gave, in the order in which they were asked for.
    pub results: Vec<Evaluated>,
    /// What has happened, in order. None for an input that is stale, repeated or late.
    pub records: Vec<Record>,
    /// What is to be done once the records are durable.
    pub actions: Vec<Action>,
    /// What other executions are told, in the commit that makes the records durable.
    pub letters: Vec<Letter>,
}

/// Something to be done in the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Perform an attempt.
    Perform {
        /// Whose.
        instance: Instance,
        /// What.
        attempt: Box<Attempt>,
    },
    /// Ask an attempt that is out to stop.
    Stop {
        /// Whose.
        instance: Instance,
        /// Which.
        attempt: u32,
    },
}

/// An input of another execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Whose.
    pub to: ExecutionKey,
    /// What makes the same letter the same.
    pub id: alloc::string::String,
    /// The input.
    pub input: Input,
}

/// A turn that waits for evaluations.
#[derive(Debug)]
pub struct Paused {
    agenda: Agenda,
}

impl Paused {
    /// What is to be evaluated, in any order and at the same time.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        self.agenda.tasks.iter().map(Task::evaluation)
    }

    /// Results that the turn has with those of [`evaluations`](Self::evaluations).
    pub fn result_count(&self) -> usize {
        self.agenda.turn.results.len() + self.agenda.tasks.len()
    }

    /// Ends the turn as soon as the results of [`evaluations`](Self::evaluations) are taken in and nothing else is being
    /// evaluated; the record says where. By rules up to version 4 turns do not end for this reason.
    pub fn yield_after(&mut self) {
        if self.agenda.is_bounded && self.agenda.yields_at.is_none() {
            self.agenda.yields_at = Some(self.result_count() as u32);
        }
    }

    /// Goes on with the results, in the order of [`evaluations`](Self::evaluations).
    pub fn resume(self, state: &mut State, results: Vec<Evaluated>) -> Result<Decided, Illegal> {
        let mut decider = Decider { state, agenda: self.agenda };
        decider.take_results(results)?;
        decider.finish()
    }
}

/// Takes an input in: chooses the records and applies them to the state. An error means that what was chosen cannot
/// happen, which is a fault of ours: the state is then of no use any more and the execution is to be set aside.
pub fn decide(state: &mut State, input: &Input, now: u64) -> Result<Decided, Illegal> {
    let now = now.max(state.now);
    if state.ended_at.is_some() || state.start.is_none() != matches!(input, Input::Start(_)) {
        return Ok(Decided::Turn(Turn::default()));
    }
    let mut decider = Decider { state, agenda: Agenda::at(now) };
    decider.agenda.is_bounded = decider.is_bounded();
    decider.agenda.is_beginning = matches!(input, Input::Start(_));
    if decider.state.is_split {
        decider.agenda.has_to_stop = true;
        decider.agenda.dirty.extend(decider.state.scopes.keys().cloned());
        decider.agenda.dirty_loops.extend(decider.state.loops.keys().cloned());
        for scope in edges::scopes_with_edges(decider.state).cloned().collect::<Vec<_>>() {
            decider.look_at_all_decidable(&scope);
        }
    }
    decider.take_in(input)?;
    decider.finish()
}

/// Takes an input in where somebody answers every evaluation at once.
pub fn decide_with(
    state: &mut State,
    input: &Input,
    now: u64,
    evaluate: impl FnMut(&[&Evaluation]) -> Vec<Evaluated>,
) -> Result<Turn, Illegal> {
    decide_yielding(state, input, now, None, evaluate)
}

/// The same, of a turn that ended because its evaluations took too long: with so many results.
pub fn decide_yielding(
    state: &mut State,
    input: &Input,
    now: u64,
    yields_at: Option<u32>,
    mut evaluate: impl FnMut(&[&Evaluation]) -> Vec<Evaluated>,
) -> Result<Turn, Illegal> {
    let mut decided = decide(state, input, now)?;
    loop {
        match decided {
            Decided::Turn(turn) => return Ok(turn),
            Decided::Paused(mut paused) => {
                if yields_at.is_some_and(|at| at as usize == paused.result_count()) {
                    paused.yield_after();
                }
                let results = evaluate(&paused.evaluations().collect::<Vec<_>>());
                decided = paused.resume(state, results)?;
            }
        }
    }
}

/// The attempt that is out for an instance, as it was handed out: what a node that takes over needs to know.
pub fn open_attempt(state: &State, instance: &Instance) -> Option<Attempt> {
    let step = state.steps.get(instance)?;
    let start = state.start.as_ref()?;
    let planned = state.plan.step(instance.step);
    let Work::Effect { effect, .. } = &planned.work else { return None };
    Some(Attempt {
        execution: state.key,
        root: crate::span::root_of(state),
        execution_id: start.execution_id.clone(),
        organization: start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).map(Into::into),
        step: instance.name(&state.plan),
        number: step.attempt,
        effect: effect.clone(),
        params: step.input.clone(),
        intent: step.intent?,
        key_per_attempt: planned.key_per_attempt,
        handed_out_at: step.handed_out_at,
        workspace: start.workspace.clone(),
    })
}

struct Decider<'a> {
    state: &'a mut State,
    agenda: Agenda,
}

/// What a turn has done and has yet to look at.
#[derive(Debug)]
struct Agenda {
    now: u64,
    turn: Turn,
    /// Bytes of the values of the turn so far.
    bytes: usize,
    /// Blocks to look at.
    dirty: BTreeSet<Scope>,
    /// Loops to look at.
    dirty_loops: BTreeSet<Instance>,
    /// Work that goes out and whose turn has come: the higher priority first, then in the order of the plan.
    ready: BTreeSet<(Reverse<i32>, Instance)>,
    /// Of each block with such work: how much there is, and the place of the last.
    waiting: BTreeMap<Scope, (usize, u32)>,
    /// Places of blocks that go by edges whose last edge was settled in this turn.
    fresh: BTreeSet<(Scope, u32)>,
    /// Of blocks that go by edges: where to look for what begins next. All that stands before it has come to the door.
    cursors: BTreeMap<Scope, (Reverse<i32>, u32)>,
    /// Whether attempts may be out that are to be asked to stop.
    has_to_stop: bool,
    /// Evaluations whose results are waited for.
    tasks: Vec<Task>,
    /// Whether the rules of [`BOUNDS_SINCE`] are in force.
    is_bounded: bool,
    /// Whether the execution begins with this turn.
    is_beginning: bool,
    /// Whether the turn ends before anything else of it is evaluated.
    ends_early: bool,
    /// The results with which the time of the turn's evaluations was over.
    yields_at: Option<u32>,
    /// How shares of executions are reckoned, once that was asked for.
    weights: Option<Weights>,
}

impl Agenda {
    fn at(now: u64) -> Self {
        Self {
            now,
            turn: Turn::default(),
            bytes: 0,
            dirty: BTreeSet::new(),
            dirty_loops: BTreeSet::new(),
            ready: BTreeSet::new(),
            waiting: BTreeMap::new(),
            fresh: BTreeSet::new(),
            cursors: BTreeMap::new(),
            has_to_stop: false,
            tasks: Vec::new(),
            is_bounded: false,
            is_beginning: false,
            ends_early: false,
            yields_at: None,
            weights: None,
        }
    }

    /// Whether the turn is long enough for one frame.
    fn is_full(&self) -> bool {
        let evaluations = self.turn.results.len() + if self.is_bounded { self.tasks.len() } else { 0 };
        let evaluations_max = if self.is_bounded { TURN_EVALUATIONS_MAX } else { TURN_RESULTS_MAX };
        self.turn.records.len() >= TURN_RECORDS_MAX
            || evaluations >= evaluations_max
            || self.ends_early
            || self.yields_at.is_some_and(|results| self.turn.results.len() >= results as usize)
            || self.bytes >= TURN_BYTES_MAX
    }
}

impl Decider<'_> {
    /// Whether the rules of [`BOUNDS_SINCE`] are in force.
    fn is_bounded(&self) -> bool {
        self.state.decide_version >= BOUNDS_SINCE
    }

    /// Goes on until nothing more follows, or until something has to be evaluated first.
    fn finish(mut self) -> Result<Decided, Illegal> {
        self.follow()?;
        if !self.agenda.tasks.is_empty() {
            return Ok(Decided::Paused(Box::new(Paused { agenda: self.agenda })));
        }
        if self.state.is_split && self.agenda.turn.records.is_empty() {
            self.record(Record::TurnJoined)?;
            self.hold_or_set_deadline()?;
        }
        self.assert_counts();
        Ok(Decided::Turn(self.agenda.turn))
    }

    /// What changes have added and taken away is what there is. Large states are left out: counting them takes long.
    fn assert_counts(&self) {
        #[cfg(debug_assertions)]
        if self.state.memory_bytes <= RECOUNT_BYTES_MAX {
            assert_eq!(self.state.memory_bytes, crate::apply::size::recount(self.state), "memory of the state");
        }
    }

    fn take_in(&mut self, input: &Input) -> Result<(), Illegal> {
        match input {
            Input::Start(start) => self.start(start),
            Input::Receipt { instance, attempt, outcome } => self.receipt(instance, *attempt, outcome),
            Input::Timer(timer) => self.timer(timer),
            Input::Decide { instance, gate, decision, by, reason } => {
                self.decision(instance, *gate, *decision, by, reason)
            }
            Input::Signal { id, name, payload } => self.signal(id, name, payload),
            Input::Admit => self.admit(),
            Input::Cancel { reason, by } => self.cancel(reason, by),
            Input::Continue => Ok(()),
            Input::ChildWaits { instance, attempt, count } => self.child_waits(instance, *attempt, *count),
        }
    }

    /// What an execution begins with is checked first, if its plan asks for that.
    fn start(&mut self, start: &Start) -> Result<(), Illegal> {
        match self.state.plan.input_schema.clone() {
            Some(schema) => self.check_input(start, schema),
            None => self.begin_with(start, Ok(start.input.clone())),
        }
    }

    fn begin_with(&mut self, start: &Start, input: Result<Value, Failure>) -> Result<(), Illegal> {
        let variables = self.state.plan.variables(&start.variables);
        let failure = input.as_ref().err().or(variables.as_ref().err()).cloned();
        let input = input.unwrap_or_else(|_| start.input.clone());
        let variables = variables.unwrap_or_else(|_| start.variables.clone());
        let policy = self.policy_of(start);
        let mut context = Map::from([("trigger".into(), start.trigger.clone())]);
        if let Some(workspace) = &start.workspace {
            context.insert("workspace".into(), workspace.as_str().into());
        }
        self.record(Record::Started {
            execution_id: start.execution_id.clone(),
            workflow_hash: start.workflow_hash,
            plan_hash: start.plan_hash,
            decide_version: self.state.decide_version,
            policy,
            attempt: start.attempt,
            by: start.by.clone(),
            input: input.into(),
            variables: variables.into(),
            context: Value::Map(context).into(),
            deadline: policy.timeout_ms.map(|timeout| self.agenda.now.saturating_add(timeout)),
        })?;
        if let Some(lineage) = &start.lineage {
            let lineage = self.with_executions(lineage);
            self.record(Record::LineageSet { lineage })?;
        }
        match failure {
            Some(failure) => {
                let ending = Ending::Failed { fault: failure.into(), instance: None, stops: false };
                self.record(Record::EndingBegun { ending })
            }
            None => self.queue(start.queue),
        }
    }

    /// What cannot run anyway does not wait first, and by rules that know no queues nothing does.
    fn queue(&mut self, queue: Option<Queue>) -> Result<(), Illegal> {
        match queue.filter(|_| self.state.decide_version >= QUEUES_SINCE) {
            Some(queue) => self.record(Record::Queued { queue }),
            None => Ok(()),
        }
    }

    /// One that waits in no queue, or is being called off, is not admitted.
    fn admit(&mut self) -> Result<(), Illegal> {
        if self.state.queue.is_some() { self.record(Record::Admitted) } else { Ok(()) }
    }

    /// A timer counts only if the state has set it and its time has come: a repeated one finds nothing.
    fn timer(&mut self, timer: &Timer) -> Result<(), Illegal> {
        let is_due = self.state.timers.iter().take_while(|(at, _)| *at <= self.agenda.now).any(|(_, due)| due == timer);
        if !is_due {
            return Ok(());
        }
        match timer {
            Timer::Deadline => self.deadline_passed(),
            Timer::Attempt(instance, attempt) => self.attempt_timed_out(instance, *attempt),
            // Of what a cut turn has yet to call off nothing starts.
            Timer::Retry(instance, _) if !self.may_try_again(instance) => Ok(()),
            Timer::Retry(instance, attempt) => self.hand_out(instance, *attempt),
            Timer::Sleep(instance) => self.wait_is_over(instance),
            Timer::Gate(instance, gate) => self.gate_expired(instance, *gate),
        }
    }

    /// What follows until nothing more does.
    fn follow(&mut self) -> Result<(), Illegal> {
        while self.state.ended_at.is_none() {
            let evaluates = !self.agenda.tasks.is_empty();
            if self.agenda.is_full() {
                // What is being evaluated is settled in this turn: no frame ends in the midst of it.
                return if evaluates { Ok(()) } else { self.split() };
            }
            if self.agenda.is_bounded && self.agenda.tasks.len() >= EVALUATIONS_AT_A_TIME_MAX {
                return Ok(());
            }
            if self.state.ending.is_none() && (self.is_out_of_uncounted()? || self.is_out_of_memory()?) {
                continue;
            }
            if self.state.ending.is_some() {
                if !self.wind_down()? {
                    break;
                }
            } else if self.state.queue.is_some() {
                break;
            } else if let Some(scope) = self.agenda.dirty.pop_first() {
                self.consider(&scope)?;
            } else if let Some(instance) = self.agenda.dirty_loops.pop_first() {
                self.consider_loop(&instance)?;
            } else if evaluates {
                return Ok(());
            } else if let Some((_, instance)) = self.agenda.ready.pop_first() {
                self.no_longer_waits(&instance);
                self.dispatch(&instance)?;
            } else {
                break;
            }
        }
        self.hold_or_set_deadline()
    }

    fn split(&mut self) -> Result<(), Illegal> {
        self.record(match self.agenda.yields_at {
            Some(results) => Record::TurnYielded { results },
            None => Record::TurnSplit,
        })
    }

    /// A step has succeeded; that may be the end of everything. Where the end is settled already it is not another one:
    /// a step that was still out when the execution was cancelled, or that cleans up after a failure, ends nothing.
    fn complete(&mut self, instance: &Instance, output: Value) -> Result<(), Illegal> {
        let plan = self.state.plan.clone();
        let bail = plan.step(instance.step).bail.as_ref();
        self.record(Record::StepCompleted { instance: instance.clone(), output: output.clone().into() })?;
        if self.is_end_settled() {
            return Ok(());
        }
        let ending = match bail.map(|bail| bail.holds(&self.view(instance))) {
            None | Some(Ok(false)) => return Ok(()),
            Some(Ok(true)) => match self.output_too_large(&output) {
                Some(failure) => {
                    Ending::Failed { fault: failure.into(), instance: Some(instance.clone()), stops: false }
                }
                None => Ending::Completed { output: output.into() },
            },
            Some(Err(unreadable)) => {
                let failure = begin::unreadable_condition(plan.id(instance.step), "bail", &unreadable);
                Ending::Failed { fault: failure.into(), instance: Some(instance.clone()), stops: false }
            }
        };
        self.record(Record::EndingBegun { ending })
    }

    /// Whether the execution is ending, or is certain to fail.
    fn is_end_settled(&self) -> bool {
        self.state.ending.is_some() || self.is_going_to_fail()
    }

    /// Whether the execution is ending well, and waits for what is out: nothing that becomes of it changes the end.
    fn ends_well(&self) -> bool {
        self.is_bounded() && matches!(self.state.ending, Some(Ending::Completed { .. }))
    }

    fn is_going_to_fail(&self) -> bool {
        self.state.scopes.get(&Scope::root()).is_some_and(|root| root.is_doomed)
    }

    fn fail(&mut self, instance: &Instance, failure: Failure) -> Result<(), Illegal> {
        let plan = self.state.plan.clone();
        let fate = if self.is_handled(instance) || self.ends_well() {
            FailureFate::Handled
        } else if plan.step(instance.step).on_error == OnError::Continue || plan.policy.fail_open {
            FailureFate::LetThrough
        } else {
            FailureFate::Fails
        };
        self.record(Record::StepFailed { instance: instance.clone(), fault: failure.into(), fate })?;
        self.check_failure_bounds()
    }

    /// Too many failures fail the execution, however each of them was taken.
    fn check_failure_bounds(&mut self) -> Result<(), Illegal> {
        let (policy, state) = (self.state.plan.policy, &*self.state);
        let reached = |bound: Option<u32>, count: u32| bound.filter(|bound| count >= *bound);
        let (code, message) = if let Some(bound) = reached(policy.max_node_failures, state.node_failures) {
            (
                format!("max_node_failures:{bound}"),
                format!("{} steps have failed, and {bound} is the bound", state.node_failures),
            )
        } else if let Some(bound) = reached(policy.max_retries_exhausted, state.retries_exhausted) {
            let used_up = state.retries_exhausted;
            (
                format!("max_retries_exhausted:{bound}"),
                format!("{used_up} steps have used up their attempts, and {bound} is the bound"),
            )
        } else {
            return Ok(());
        };
        if state.bound_reached.is_some() || state.ending.is_some() {
            return Ok(());
        }
        self.record(Record::FailureBoundReached { fault: fault(Class::Policy, &code, message) })
    }

    fn call_off(&mut self, instance: &Instance, reason: &str) -> Result<(), Illegal> {
        self.record(Record::StepCancelled { instance: instance.clone(), reason: reason.into() })
    }

    /// Counts what stands in a turn, by the rules up to version 4. Later all payloads count where they are recorded.
    fn count_bytes(&mut self, bytes: usize) {
        if !self.is_bounded() {
            self.agenda.bytes += bytes;
        }
    }

    /// Whether rounds and skipped steps are used up. One too many ends the execution: what is out is awaited, nothing new
    /// starts.
    fn is_out_of_uncounted(&mut self) -> Result<bool, Illegal> {
        if !self.is_bounded() || self.state.uncounted < UNCOUNTED_MAX {
            return Ok(false);
        }
        let message = format!(
            "more than {UNCOUNTED_MAX} rounds were to begin and steps to be skipped; split the work among several executions"
        );
        let code = format!("rounds_and_skips_exceeded:{UNCOUNTED_MAX}");
        let fault = fault(Class::Policy, &code, message);
        self.record(Record::EndingBegun { ending: Ending::Failed { fault, instance: None, stops: false } })?;
        Ok(true)
    }

    /// Whether the rules of [`MEMORY_SINCE`] are in force.
    fn counts_memory(&self) -> bool {
        self.state.decide_version >= MEMORY_SINCE
    }

    /// Whether a value is larger than any may be: in the journal, or in memory.
    fn is_too_large(&self, value: &Value, encoded_bytes: usize) -> bool {
        encoded_bytes > VALUE_BYTES_MAX || (self.counts_memory() && of_value(value) > VALUE_MEMORY_BYTES_MAX)
    }

    /// Ends the execution if it takes more memory, or more of the journal, than it may: what is out is awaited, nothing new
    /// starts.
    fn is_out_of_memory(&mut self) -> Result<bool, Illegal> {
        let (memory_bytes, journal_bytes) = (self.state.memory_bytes, self.state.journal_bytes);
        let (code, message) = if memory_bytes > EXECUTION_MEMORY_BYTES_MAX {
            let message = format!(
                "the values of the execution take {memory_bytes} bytes of memory, more than {EXECUTION_MEMORY_BYTES_MAX}; write large outputs to files and hand on their names, or split the work among several executions"
            );
            (format!("memory_exceeded:{EXECUTION_MEMORY_BYTES_MAX}"), message)
        } else if journal_bytes > EXECUTION_JOURNAL_BYTES_MAX {
            let message = format!(
                "the journal of the execution takes more than {EXECUTION_JOURNAL_BYTES_MAX} bytes; write large values to files and hand on their names, or split the work among several executions"
            );
            (format!("journal_exceeded:{EXECUTION_JOURNAL_BYTES_MAX}"), message)
        } else {
            return Ok(false);
        };
        if !self.counts_memory() {
            return Ok(false);
        }
        let fault = fault(Class::Policy, &code, message);
        self.record(Record::EndingBegun { ending: Ending::Failed { fault, instance: None, stops: false } })?;
        Ok(true)
    }

    /// The only way in which anything changes.
    fn record(&mut self, record: Record) -> Result<(), Illegal> {
        let (halts_loops, was_going_to_fail) = (self.halts_loops(&record), self.is_going_to_fail());
        let (journal_bytes, scopes) = (self.state.journal_bytes, self.state.scopes.len());
        apply(self.state, &record, self.agenda.now)?;
        if self.is_bounded() {
            self.agenda.bytes += (self.state.journal_bytes - journal_bytes - RECORD_BYTES) as usize;
        }
        if self.counts_memory() && self.state.scopes.len() > scopes {
            self.agenda.bytes += self.opened_byte_count(&record);
        }
        if !was_going_to_fail && self.is_going_to_fail() {
            // Steps that could begin were waiting for room: of those only what cleans up still may.
            self.look_at_all_decidable(&Scope::root());
        }
        match &record {
            Record::Started { .. } | Record::Admitted => {
                self.agenda.dirty.insert(Scope::root());
                self.look_at_all_decidable(&Scope::root());
            }
            Record::FailureBoundReached { .. } => self.look_everywhere(),
            Record::EndingBegun { .. } => self.agenda.has_to_stop = true,
            Record::Ended { .. } => self.tell_parent(),
            _ => {}
        }
        if let Some(instance) = record.instance() {
            self.agenda.dirty.insert(instance.scope(&self.state.plan));
            if matches!(record, Record::StepFailed { fate: FailureFate::Fails, .. }) {
                self.look_outwards(instance);
            }
            if halts_loops {
                self.look_everywhere();
            }
            self.look_inside(instance, &record);
            self.look_along_edges(instance);
        }
        self.agenda.turn.records.push(record);
        Ok(())
    }

    /// Bytes for which the blocks count that a record has opened: each of their steps is looked at.
    fn opened_byte_count(&self, record: &Record) -> usize {
        let plan = &self.state.plan;
        let step_count = |block: u32| plan.block(block).steps.len();
        let opened = match (record, record.instance().map(|instance| &plan.step(instance.step).work)) {
            (Record::BranchTaken { block: Some(block), .. }, _) => step_count(*block),
            (Record::RoundStarted { .. }, Some(Work::Loop(of))) => step_count(of.block),
            (_, Some(Work::Parallel { block })) => step_count(*block),
            _ => 0,
        };
        opened * TURN_BYTES_PER_STEP
    }

    /// What a record opens inside its step is looked at.
    fn look_inside(&mut self, instance: &Instance, record: &Record) {
        let work = &self.state.plan.step(instance.step).work;
        if let Work::Loop(of) = work {
            if self.state.loops.contains_key(instance) {
                self.agenda.dirty_loops.insert(instance.clone());
            }
            if let Record::RoundStarted { round, .. } = record {
                self.agenda.dirty.insert(Scope::of_round(instance, of.block, *round));
            }
            return;
        }
        let inner = work.branches().into_iter().map(|(_, block)| Scope::inside(instance, block));
        self.agenda.dirty.extend(inner.filter(|scope| self.state.scopes.contains_key(scope)));
    }

    /// A failure halts the blocks around it as well, and what else runs inside them.
    fn look_outwards(&mut self, instance: &Instance) {
        let mut scope = instance.scope(&self.state.plan);
        while let Some(owner) = scope.owner(&self.state.plan) {
            if self.state.loops.contains_key(&owner) {
                self.agenda.dirty_loops.insert(owner.clone());
            }
            scope = owner.scope(&self.state.plan);
            self.agenda.dirty.insert(scope.clone());
        }
    }

    /// Whether a record is the first to halt a loop, so that every round of it has to be looked at. Of the failures that
    /// follow in other rounds each is seen where it happens.
    fn halts_loops(&self, record: &Record) -> bool {
        let Record::StepFailed { instance, fate: FailureFate::Fails, .. } = record else { return false };
        let mut scope = instance.scope(&self.state.plan);
        while let Some(owner) = scope.owner(&self.state.plan) {
            if self.state.loops.get(&owner).is_some_and(|rounds| !rounds.is_doomed) {
                return true;
            }
            scope = owner.scope(&self.state.plan);
        }
        false
    }

    fn look_everywhere(&mut self) {
        self.agenda.dirty.extend(self.state.scopes.keys().cloned());
        self.agenda.dirty_loops.extend(self.state.loops.keys().cloned());
    }

    /// What references mean to an instance.
    fn view(&self, instance: &Instance) -> View<'_> {
        View::at(self.state, instance)
    }

    fn max_parallel(&self) -> u32 {
        self.state.start.as_ref().map_or(1, |start| start.policy.max_parallel.max(1))
    }

    fn status_of(&self, instance: &Instance) -> Status {
        self.state.steps.get(instance).map_or(Status::Pending, |step| step.status)
    }

    /// The execution's time stands still while only people are waited for, and so does that of its parent; in a queue its
    /// own alone.
    fn hold_or_set_deadline(&mut self) -> Result<(), Illegal> {
        if self.state.ended_at.is_some() {
            return Ok(());
        }
        let waits_for_people = self.state.status() == ExecutionStatus::WaitingApproval;
        let is_ending = self.counts_memory() && self.state.ending.is_some();
        let stands_still = !is_ending && (waits_for_people || self.state.queue.is_some());
        match (stands_still, self.state.deadline, self.state.deadline_held) {
            (true, Some(at), _) => {
                self.record(Record::DeadlineHeld { remaining_ms: at.saturating_sub(self.agenda.now) })
            }
            (false, None, Some(remaining)) => {
                self.record(Record::DeadlineSet { at: self.agenda.now.saturating_add(remaining) })
            }
            _ => Ok(()),
        }?;
        self.tell_parent_of_waiting(waits_for_people)
    }
}

/// A failure as a record holds it.
fn fault(class: Class, code: &str, message: impl Into<alloc::string::String>) -> Fault {
    Failure::new(class, code, message).into()
}

/// Data without a person's reason in it.
fn no_reason() -> Payload {
    Payload::Known(Value::Null)
}
