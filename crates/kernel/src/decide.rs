//! Decides the records and actions that follow from an input.
//!
//! One call is a turn. It processes one input, and then everything that follows from it, until nothing more does. Every
//! change of the state is a record, applied through `apply`; `decide` performs no effects and reads no clock. Effects
//! are dispatched last, when everything else of the turn is settled. A `return` that can run therefore ends the
//! execution before its siblings make calls, and the order of calls does not depend on the order of bookkeeping.

mod agents;
mod begin;
mod blocks;
mod budgets;
mod children;
mod edges;
mod effects;
mod ending;
mod evaluations;
mod executions;
mod failures;
mod gates;
mod leases;
mod loops;
mod messages;
mod migrate;
mod reports;
mod runners;
mod waits;

pub use budgets::usage_of;
pub use children::{canceled_by, child_key, child_key_of};
pub use leases::{PeriodRaise, raises};
pub use reports::{Words, is_permission, unfit_answer};
pub use {begin::too_deep, evaluations::unfit_input};

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    vec::Vec,
};
use core::cmp::Reverse;

pub use crate::decide_version::{
    BOUNDS_SINCE, BUDGETS_SINCE, DECIDE_VERSION, DEPTH_SINCE, LEASES_SINCE, MEMORY_SINCE, MESSAGES_SINCE,
    MIGRATIONS_SINCE, QUEUES_SINCE, REPORTS_SINCE, SIGNAL_BYTES_SINCE, SIGNED_RECEIPTS_SINCE,
};
use crate::{
    apply::{IllegalTransition, apply, size::RECORD_BYTES},
    budget::Usage,
    effect::{Attempt, AttemptFlags},
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    input::{Input, ORGANIZATION_IN_TRIGGER, Queue, REPOSITORY_IN_TRIGGER, Start, Timer},
    instance::{Instance, Scope},
    key::ExecutionKey,
    limits::{
        EVALUATIONS_AT_A_TIME_MAX, EXECUTION_JOURNAL_BYTES_MAX, EXECUTION_MEMORY_BYTES_MAX, RESULT_DEPTH_MAX,
        TURN_BYTES_MAX, TURN_BYTES_PER_STEP, TURN_EVALUATIONS_MAX, TURN_RECORDS_MAX, TURN_RESULTS_MAX, UNCOUNTED_MAX,
        VALUE_BYTES_MAX, VALUE_MEMORY_BYTES_MAX,
    },
    plan::{AgentPart, Work},
    record::{Ending, FailureDisposition, Fault, Payload, Record},
    state::{CHILD_EFFECT, ExecutionStatus, State, Status, View},
    value::{Map, Value},
    value_size::of_value,
};
use evaluations::Task;
use executions::Weights;

/// Failure code that a parent receives when its child is quarantined.
pub const CHILD_QUARANTINED: &str = "child_quarantined";

/// Maximum state size, in bytes, for which debug builds verify the memory count after each turn. Larger states take too
/// long.
#[cfg(debug_assertions)]
const RECOUNT_BYTES_MAX: u64 = 32 * 1024;

/// Progress of a turn.
#[derive(Debug)]
pub enum Decided {
    /// The turn is complete.
    Turn(Turn),
    /// The turn needs evaluations. The state is partly changed until their results are passed to [`Paused::resume`].
    Paused(Box<Paused>),
}

/// The result of processing an input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// Results of evaluations, in the order of the requests.
    pub results: Vec<Evaluated>,
    /// Records in order. Empty if the input was stale, repeated or late.
    pub records: Vec<Record>,
    /// Actions to perform after the records are durable.
    pub actions: Vec<Action>,
    /// Messages to other executions, stored in the same commit as the records.
    pub messages: Vec<OutgoingMessage>,
}

/// An action that an executor has to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Perform an attempt.
    Perform {
        /// The step instance of the attempt.
        instance: Instance,
        /// The attempt with its parameters.
        attempt: Box<Attempt>,
    },
    /// Ask a running attempt to stop.
    Stop {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
    },
    /// Request a lease of the budgets for this day and month. The answer is [`Input::Lease`].
    Lease {
        /// Number of the lease within the execution, from 1.
        lease: u32,
        /// The amounts that the first call needs.
        amount: Usage,
        /// The root of the execution's tree, whose workflow pays as well.
        root: ExecutionKey,
        /// The time of the execution, in milliseconds since 1970.
        at: u64,
    },
}

/// A message to the inbox of another execution.
#[derive(Debug, Clone, PartialEq)]
pub struct OutgoingMessage {
    /// Key of the receiving execution.
    pub to: ExecutionKey,
    /// Deduplication id of the message.
    pub id: alloc::string::String,
    /// The input that the message delivers.
    pub input: Input,
}

/// A turn that waits for evaluations.
#[derive(Debug)]
pub struct Paused {
    agenda: Agenda,
}

impl Paused {
    /// Returns the requested evaluations. They may run in any order and concurrently.
    pub fn evaluations(&self) -> impl Iterator<Item = &Evaluation> {
        self.agenda.tasks.iter().map(Task::evaluation)
    }

    /// Returns the number of results that the turn will have, including those of [`evaluations`](Self::evaluations).
    pub fn result_count(&self) -> usize {
        self.agenda.turn.results.len() + self.agenda.tasks.len()
    }

    /// Ends the turn once the results of [`evaluations`](Self::evaluations) are processed, because its evaluations took
    /// too long. The record states the position, so a replay splits the turn at the same place. Has no effect for
    /// decide versions up to 4.
    pub fn yield_after(&mut self) {
        if self.agenda.is_bounded && self.agenda.yields_at.is_none() {
            self.agenda.yields_at = Some(self.result_count() as u32);
        }
    }

    /// Continues with the results, in the order of [`evaluations`](Self::evaluations).
    pub fn resume(self, state: &mut State, results: Vec<Evaluated>) -> Result<Decided, IllegalTransition> {
        let mut decider = Decider { state, agenda: self.agenda };
        decider.take_results(results)?;
        decider.finish()
    }
}

/// Processes an input: decides the records and applies them to the state. An error means that a decided record is not a
/// legal transition, which is a bug; the state must then be discarded and the execution quarantined.
pub fn decide(state: &mut State, input: &Input, now: u64) -> Result<Decided, IllegalTransition> {
    let now = now.max(state.now);
    if state.end.ended_at.is_some() || state.start.is_none() != matches!(input, Input::Start(_)) {
        return Ok(Decided::Turn(Turn::default()));
    }
    let mut decider = Decider { state, agenda: Agenda::at(now) };
    decider.agenda.is_bounded = decider.is_bounded();
    decider.agenda.is_beginning = matches!(input, Input::Start(_));
    if decider.state.journal.is_split {
        decider.agenda.has_to_stop = true;
        decider.agenda.dirty.scopes.extend(decider.state.blocks.scopes.keys().cloned());
        decider.agenda.dirty.loops.extend(decider.state.blocks.loops.keys().cloned());
        for scope in edges::scopes_with_edges(decider.state).cloned().collect::<Vec<_>>() {
            decider.look_at_all_decidable(&scope);
        }
    }
    decider.take_in(input)?;
    decider.finish()
}

/// Processes an input with a callback that runs evaluations at once.
pub fn decide_with(
    state: &mut State,
    input: &Input,
    now: u64,
    evaluate: impl FnMut(&[&Evaluation]) -> Vec<Evaluated>,
) -> Result<Turn, IllegalTransition> {
    decide_yielding(state, input, now, None, evaluate)
}

/// Processes an input as [`decide_with`] does. If `yields_at` is given, the turn ends after that number of evaluation
/// results, as recorded by a turn that took too long.
pub fn decide_yielding(
    state: &mut State,
    input: &Input,
    now: u64,
    yields_at: Option<u32>,
    mut evaluate: impl FnMut(&[&Evaluation]) -> Vec<Evaluated>,
) -> Result<Turn, IllegalTransition> {
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

/// Returns the running attempt of a step instance as it was dispatched. A node that takes over an execution needs it to
/// recover the attempt. `None` for what no executor performs: children, and messages to conversations.
pub fn open_attempt(state: &State, instance: &Instance) -> Option<Attempt> {
    let step = state.steps.get(instance)?;
    let start = state.start.as_ref()?;
    let planned = state.plan.step(instance.step);
    if state.conversation_of_message(instance.step).is_some() {
        return None;
    }
    let Work::Effect { effect, .. } = &planned.work else { return None };
    let (effect, params) = match state.plan.agent_part(instance.step) {
        None => (effect.clone(), step.input.clone()),
        Some(AgentPart::Call) => {
            let effect = step.input.get("effect").and_then(Value::as_text).unwrap_or(effect);
            // The child is an execution of its own, and no executor performs it.
            if effect == CHILD_EFFECT {
                return None;
            }
            (effect.into(), step.input.get("params").cloned().unwrap_or_default())
        }
        Some(_) => (effect.clone(), agents::model_params(state, instance)?),
    };
    Some(Attempt {
        execution: state.key,
        root: state.root(),
        execution_id: start.execution_id.clone(),
        organization: start.trigger.get(ORGANIZATION_IN_TRIGGER).and_then(Value::as_text).map(Into::into),
        workflow_id: state.workflow().map(Into::into),
        step: instance.name(&state.plan),
        number: step.attempt,
        intent: step.intent?,
        flags: AttemptFlags {
            key_per_attempt: planned.key_per_attempt,
            has_repository: start.trigger.get(REPOSITORY_IN_TRIGGER).is_some(),
        },
        handed_out_at: step.times.handed_out_at,
        workspace: start.workspace.clone(),
        secrets: effects::secrets_of(state, instance),
        progress: reports::progress_of(state, step, &effect, &params).map(Box::new),
        effect,
        params,
    })
}

struct Decider<'a> {
    state: &'a mut State,
    agenda: Agenda,
}

/// Blocks and loops in which something has changed since they were last examined.
#[derive(Debug, Default)]
struct Dirty {
    scopes: BTreeSet<Scope>,
    loops: BTreeSet<Instance>,
    /// Agents of conversations that have ended in this turn. Steps may still wait for their answers.
    ended_agents: Vec<Instance>,
}

/// Progress of a turn: its results so far and the work that remains.
#[derive(Debug)]
struct Agenda {
    now: u64,
    turn: Turn,
    /// Size of the payloads in the turn so far, in bytes.
    bytes: usize,
    /// Blocks, loops and agents to examine.
    dirty: Dirty,
    /// Effects that are ready for dispatch, by descending priority and then in plan order.
    ready: BTreeSet<(Reverse<i32>, Instance)>,
    /// For each block with ready steps: their number, and the index of the last one in the block.
    waiting: BTreeMap<Scope, (usize, u32)>,
    /// In blocks with edges: steps whose last incoming edge was settled in this turn, by index in the block.
    fresh: BTreeSet<(Scope, u32)>,
    /// For blocks with edges: the rank at which the search for the next step starts. All decidable steps before it are
    /// ready.
    cursors: BTreeMap<Scope, (Reverse<i32>, u32)>,
    /// True if running attempts may have to be asked to stop.
    has_to_stop: bool,
    /// Evaluations that were requested and have no result yet.
    tasks: Vec<Task>,
    /// True if the rules since [`BOUNDS_SINCE`] apply.
    is_bounded: bool,
    /// True if the execution starts with this turn.
    is_beginning: bool,
    /// True if the turn ends before any further evaluation.
    ends_early: bool,
    /// Number of evaluation results after which the turn ends, because its evaluations took too long.
    yields_at: Option<u32>,
    /// Weights for sharing the execution budget, computed on first use.
    weights: Option<Weights>,
}

impl Agenda {
    fn at(now: u64) -> Self {
        Self {
            now,
            turn: Turn::default(),
            bytes: 0,
            dirty: Dirty::default(),
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

    /// True if the turn has reached a limit and must be split.
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
    /// True if the rules since [`BOUNDS_SINCE`] apply.
    fn is_bounded(&self) -> bool {
        self.state.decide_version >= BOUNDS_SINCE
    }

    /// Continues until nothing more follows, or until evaluations are needed.
    fn finish(mut self) -> Result<Decided, IllegalTransition> {
        self.follow()?;
        if !self.agenda.tasks.is_empty() {
            return Ok(Decided::Paused(Box::new(Paused { agenda: self.agenda })));
        }
        if self.state.journal.is_split && self.agenda.turn.records.is_empty() {
            self.record(Record::TurnJoined)?;
            self.hold_or_set_deadline()?;
        }
        self.assert_counts();
        Ok(Decided::Turn(self.agenda.turn))
    }

    /// Compares the incremental memory count with a full count. Large states are skipped, because a full count takes
    /// too long.
    fn assert_counts(&self) {
        #[cfg(debug_assertions)]
        if self.state.counts.memory_bytes <= RECOUNT_BYTES_MAX {
            assert_eq!(self.state.counts.memory_bytes, crate::apply::size::recount(self.state), "memory of the state");
        }
    }

    fn take_in(&mut self, input: &Input) -> Result<(), IllegalTransition> {
        match input {
            Input::Start(start) => self.start(start),
            Input::Receipt { instance, attempt, outcome } => self.receipt(instance, *attempt, outcome),
            Input::Timer(timer) => self.timer(timer),
            Input::Decide { instance, gate, decision, by, reason } => {
                self.decision(instance, *gate, *decision, by, reason)
            }
            Input::Signal { id, name, payload } => self.signal(id, name, payload),
            Input::Message { id, conversation, content, interrupt, by } => {
                self.message(id, conversation.as_deref(), content, *interrupt, by)
            }
            Input::Admit => self.admit(),
            Input::Cancel { reason, by } => self.cancel(reason, by),
            Input::SkipCleanup { by } => self.skip_cleanup(by),
            Input::Lease { lease, change } => self.lease_answered(*lease, change),
            Input::Migrate { plan, version, by, reason } => self.migrate(plan, version.as_deref(), by, reason),
            Input::Continue => Ok(()),
            Input::ChildWaits { instance, attempt, count } => self.child_waits(instance, *attempt, *count),
        }
    }

    /// Starts the execution, after checking its input if the plan has an input schema.
    fn start(&mut self, start: &Start) -> Result<(), IllegalTransition> {
        match self.state.plan.input_schema.clone() {
            Some(schema) => self.check_input(start, schema),
            None => self.begin_with(start, Ok(start.input.clone())),
        }
    }

    fn begin_with(&mut self, start: &Start, input: Result<Value, Failure>) -> Result<(), IllegalTransition> {
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
            let lineage = self.with_budget(self.with_executions(lineage));
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

    /// Queues the execution, if its limits require that. An execution that fails at its start is never queued.
    fn queue(&mut self, queue: Option<Queue>) -> Result<(), IllegalTransition> {
        match queue.filter(|_| self.state.decide_version >= QUEUES_SINCE) {
            Some(queue) => self.record(Record::Queued { queue }),
            None => Ok(()),
        }
    }

    /// Admits the execution. Has no effect if it is not queued or is being canceled.
    fn admit(&mut self) -> Result<(), IllegalTransition> {
        if self.state.queue.is_some() { self.record(Record::Admitted) } else { Ok(()) }
    }

    /// Processes a timer. It has an effect only if it is set in the state and due, so a repeated timer has none.
    fn timer(&mut self, timer: &Timer) -> Result<(), IllegalTransition> {
        let is_due =
            self.state.open.timers.iter().take_while(|(at, _)| *at <= self.agenda.now).any(|(_, due)| due == timer);
        if !is_due {
            return Ok(());
        }
        match timer {
            Timer::Deadline => self.deadline_passed(),
            Timer::Attempt(instance, attempt) => self.attempt_timed_out(instance, *attempt),
            // The step is about to be canceled in the rest of a split turn.
            Timer::Retry(instance, _) if !self.may_try_again(instance) => Ok(()),
            Timer::Retry(instance, attempt) => self.hand_out(instance, *attempt),
            Timer::Sleep(instance) => self.wait_is_over(instance),
            Timer::Gate(instance, gate) => self.gate_expired(instance, *gate),
        }
    }

    /// Follows all consequences of the changes so far.
    fn follow(&mut self) -> Result<(), IllegalTransition> {
        while self.state.end.ended_at.is_none() {
            let evaluates = !self.agenda.tasks.is_empty();
            if let Some(agent) = self.agenda.dirty.ended_agents.pop() {
                // Comes before the end of a full turn, since the next one does not know which agents have ended.
                self.agent_has_ended(&agent)?;
                continue;
            }
            if self.agenda.is_full() {
                // A frame ends only when all requested evaluations have results.
                return if evaluates { Ok(()) } else { self.split() };
            }
            if self.agenda.is_bounded && self.agenda.tasks.len() >= EVALUATIONS_AT_A_TIME_MAX {
                return Ok(());
            }
            if self.state.end.ending.is_none() && (self.is_out_of_uncounted()? || self.is_out_of_memory()?) {
                continue;
            }
            if self.state.is_cleaning_up() && self.is_cleanup_out_of_memory()? {
                continue;
            }
            if self.is_ending() {
                if !self.wind_down()? {
                    break;
                }
            } else if self.state.queue.is_some() {
                break;
            } else if let Some(scope) = self.agenda.dirty.scopes.pop_first() {
                self.consider(&scope)?;
            } else if let Some(instance) = self.agenda.dirty.loops.pop_first() {
                self.consider_loop(&instance)?;
            } else if evaluates {
                return Ok(());
            } else if let Some((instance, call)) = self.next_released() {
                self.take_up(&instance, call)?;
            } else if let Some((_, instance)) = self.agenda.ready.pop_first() {
                self.no_longer_waits(&instance);
                self.dispatch(&instance)?;
            } else {
                break;
            }
        }
        self.return_leases(false)?;
        self.hold_or_set_deadline()
    }

    fn split(&mut self) -> Result<(), IllegalTransition> {
        self.record(match self.agenda.yields_at {
            Some(results) => Record::TurnYielded { results },
            None => Record::TurnSplit,
        })
    }

    /// Completes a step and evaluates its `bail` condition, which may end the execution. The condition is ignored if
    /// the execution is already ending or certain to fail, as for a step that completes after a cancel or cleans up
    /// after a failure.
    fn complete(&mut self, instance: &Instance, output: Value) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        if self.is_too_deep(&output) {
            return self.fail(instance, begin::too_deep(&format!("step `{}`: its output", plan.id(instance.step))));
        }
        let bail = plan.step(instance.step).bail.as_ref();
        self.record(Record::StepCompleted { instance: instance.clone(), output: output.clone().into() })?;
        if plan.agent_part(instance.step) == Some(AgentPart::Model) {
            self.answer_senders(instance, &output)?;
        }
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

    /// True if the execution is ending or certain to fail.
    fn is_end_settled(&self) -> bool {
        self.state.end.ending.is_some() || self.is_going_to_fail()
    }

    /// True if the execution is completing and waits for running attempts. Their outcomes do not change its result.
    fn ends_well(&self) -> bool {
        self.is_bounded() && self.is_ending() && matches!(self.state.end.ending, Some(Ending::Completed { .. }))
    }

    fn is_going_to_fail(&self) -> bool {
        self.state.blocks.scopes.get(&Scope::root()).is_some_and(|root| root.is_failing)
    }

    /// Counts bytes towards the size of the turn, for decide versions up to 4. Later versions count payloads as they
    /// are recorded.
    fn count_bytes(&mut self, bytes: usize) {
        if !self.is_bounded() {
            self.agenda.bytes += bytes;
        }
    }

    /// Ends the execution and returns true if it has used up its rounds and skipped steps. Running attempts are
    /// awaited.
    fn is_out_of_uncounted(&mut self) -> Result<bool, IllegalTransition> {
        if !self.is_bounded() || self.state.counts.uncounted < UNCOUNTED_MAX {
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

    /// True if the rules since [`MEMORY_SINCE`] apply.
    fn counts_memory(&self) -> bool {
        self.state.decide_version >= MEMORY_SINCE
    }

    /// True if a value exceeds the maximum size of a value, encoded or in memory.
    fn is_too_large(&self, value: &Value, encoded_bytes: usize) -> bool {
        encoded_bytes > VALUE_BYTES_MAX || (self.counts_memory() && of_value(value) > VALUE_MEMORY_BYTES_MAX)
    }

    /// True if a value is nested too deep to be read again with what contains it.
    fn is_too_deep(&self, value: &Value) -> bool {
        self.state.decide_version >= DEPTH_SINCE && value.is_deeper_than(RESULT_DEPTH_MAX)
    }

    /// Ends the execution and returns true if it exceeds the limit on memory or journal size. Running attempts are
    /// awaited.
    fn is_out_of_memory(&mut self) -> Result<bool, IllegalTransition> {
        let (memory_bytes, journal_bytes) = (self.state.counts.memory_bytes, self.state.journal.bytes);
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

    /// Applies a record, adds it to the turn, and marks the blocks and loops that it affects. All changes of the state
    /// go through here.
    fn record(&mut self, record: Record) -> Result<(), IllegalTransition> {
        let (halts_loops, was_going_to_fail) = (self.halts_loops(&record), self.is_going_to_fail());
        let (journal_bytes, scopes) = (self.state.journal.bytes, self.state.blocks.scopes.len());
        apply(self.state, &record, self.agenda.now)?;
        if self.is_bounded() {
            self.agenda.bytes += (self.state.journal.bytes - journal_bytes - RECORD_BYTES) as usize;
        }
        if self.counts_memory() && self.state.blocks.scopes.len() > scopes {
            self.agenda.bytes += self.opened_byte_count(&record);
        }
        if !was_going_to_fail && self.is_going_to_fail() {
            // Steps without a free slot were decidable already and must be examined again: only handlers and cleanup
            // steps may still start.
            self.look_at_all_decidable(&Scope::root());
        }
        match &record {
            Record::Started { .. } | Record::Admitted => {
                self.agenda.dirty.scopes.insert(Scope::root());
                self.look_at_all_decidable(&Scope::root());
            }
            Record::FailureBoundReached { .. } => self.look_everywhere(),
            Record::EndingBegun { .. } | Record::FinallyHalted { .. } => self.agenda.has_to_stop = true,
            Record::FinallyBegun { .. } => {
                let scopes = self.state.blocks.scopes.keys().cloned();
                self.agenda.dirty.scopes.extend(scopes);
            }
            Record::Ended { .. } => self.notify_parent(),
            _ => {}
        }
        if let Some(instance) = record.instance() {
            self.agenda.dirty.scopes.insert(instance.scope(&self.state.plan));
            if matches!(record, Record::StepFailed { disposition: FailureDisposition::Failed, .. }) {
                self.look_outwards(instance);
            }
            if halts_loops {
                self.look_everywhere();
            }
            if record.ends_step() && self.state.plan.conversation_of_agent(instance.step).is_some() {
                self.agenda.dirty.ended_agents.push(instance.clone());
            }
            self.look_inside(instance, &record);
            self.look_along_edges(instance);
        }
        self.agenda.turn.records.push(record);
        Ok(())
    }

    /// Returns the bytes that blocks opened by the record add to the size of the turn. Each step of such a block is
    /// examined.
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

    /// Marks the blocks and loops inside the step for examination.
    fn look_inside(&mut self, instance: &Instance, record: &Record) {
        let work = &self.state.plan.step(instance.step).work;
        if let Work::Loop(of) = work {
            if self.state.blocks.loops.contains_key(instance) {
                self.agenda.dirty.loops.insert(instance.clone());
            }
            if let Record::RoundStarted { round, .. } = record {
                self.agenda.dirty.scopes.insert(Scope::of_round(instance, of.block, *round));
            }
            return;
        }
        let inner = work.branches().into_iter().map(|(_, block)| Scope::inside(instance, block));
        self.agenda.dirty.scopes.extend(inner.filter(|scope| self.state.blocks.scopes.contains_key(scope)));
    }

    /// Marks all enclosing blocks and loops: the failure halts them and the other steps in them.
    fn look_outwards(&mut self, instance: &Instance) {
        let mut scope = instance.scope(&self.state.plan);
        while let Some(owner) = scope.owner(&self.state.plan) {
            if self.state.blocks.loops.contains_key(&owner) {
                self.agenda.dirty.loops.insert(owner.clone());
            }
            scope = owner.scope(&self.state.plan);
            self.agenda.dirty.scopes.insert(scope.clone());
        }
    }

    /// True if the record is the first to fail an enclosing loop, so that all rounds of that loop must be examined.
    /// Later failures in other rounds are processed where they occur.
    fn halts_loops(&self, record: &Record) -> bool {
        let Record::StepFailed { instance, disposition: FailureDisposition::Failed, .. } = record else { return false };
        let mut scope = instance.scope(&self.state.plan);
        while let Some(owner) = scope.owner(&self.state.plan) {
            if self.state.blocks.loops.get(&owner).is_some_and(|rounds| !rounds.is_failing) {
                return true;
            }
            scope = owner.scope(&self.state.plan);
        }
        false
    }

    fn look_everywhere(&mut self) {
        self.agenda.dirty.scopes.extend(self.state.blocks.scopes.keys().cloned());
        self.agenda.dirty.loops.extend(self.state.blocks.loops.keys().cloned());
    }

    /// Returns the view in which references of the step instance are resolved.
    fn view(&self, instance: &Instance) -> View<'_> {
        View::at(self.state, instance)
    }

    fn max_parallel(&self) -> u32 {
        self.state.start.as_ref().map_or(1, |start| start.policy.max_parallel.max(1))
    }

    fn status_of(&self, instance: &Instance) -> Status {
        self.state.steps.get(instance).map_or(Status::Pending, |step| step.status)
    }

    /// Suspends the deadline while the execution waits for approvals only or is queued, and resumes it afterwards. A
    /// parent that waits for this execution is notified of approvals, so that its deadline is suspended too, but not of
    /// queueing.
    fn hold_or_set_deadline(&mut self) -> Result<(), IllegalTransition> {
        if self.state.end.ended_at.is_some() {
            return Ok(());
        }
        let waits_for_people = self.state.status() == ExecutionStatus::WaitingApproval;
        let is_ending = self.counts_memory() && self.state.end.ending.is_some();
        let stands_still = !is_ending && (waits_for_people || self.state.queue.is_some());
        match (stands_still, self.state.end.deadline, self.state.end.deadline_held) {
            (true, Some(at), _) => {
                self.record(Record::DeadlineHeld { remaining_ms: at.saturating_sub(self.agenda.now) })
            }
            (false, None, Some(remaining)) => {
                self.record(Record::DeadlineSet { at: self.agenda.now.saturating_add(remaining) })
            }
            _ => Ok(()),
        }?;
        self.notify_parent_of_waiting(waits_for_people)
    }
}

/// Creates a failure in the form that records hold.
fn fault(class: Class, code: &str, message: impl Into<alloc::string::String>) -> Fault {
    Failure::new(class, code, message).into()
}

/// The payload for a decision without a reason.
fn no_reason() -> Payload {
    Payload::Known(Value::Null)
}
