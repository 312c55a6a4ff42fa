//! A recorded execution as a source of answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use mainspring_kernel::{
    apply::apply,
    cbor,
    decide::decide_yielding,
    effect::Outcome,
    evaluation::{Check, Evaluated, Evaluation, Function},
    frame::Frame,
    hash::Hash,
    input::{Input, Start, Timer},
    instance::Instance,
    key::ExecutionKey,
    plan::{Decision, Plan},
    record::{Purpose, Record, StopReason},
    state::State,
    value::Value,
};

use super::{
    calls::{Call, calls},
    trail::{End, Trail},
};

/// A recorded execution.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The key, from which idempotency keys and seeds derive.
    pub(super) key: ExecutionKey,
    /// The plan with which it ran.
    pub(super) plan: Arc<Plan>,
    /// The input of the first frame.
    pub(super) start: Start,
    /// Start, in milliseconds since 1970.
    pub(super) started_at: u64,
    /// Time of the last frame, in milliseconds since 1970.
    pub(super) last_at: u64,
    /// The calls, by step instance and attempt.
    pub(super) calls: BTreeMap<(String, u32), RecordedCall>,
    /// The gates, by step instance and number.
    pub(super) gates: BTreeMap<(String, u32), RecordedGate>,
    /// Signals, cancel requests and the admission, with their times and the sequences of their frames.
    pub(super) arrivals: Vec<(u64, u64, Input)>,
    /// Milliseconds by which timers fired after they were due, by name. Those that fired in time are left out.
    pub(super) late_timers: BTreeMap<String, u64>,
    /// Milliseconds that passed before the further frames of a split turn, by [`input_name`] of the turn and by the number of
    /// the frame, from 1. Functions took them.
    pub(super) split_delays: BTreeMap<(String, u32), u64>,
    /// Results of evaluations after which a frame of a turn ended, because its functions had taken their time. The keys are
    /// those of `split_delays`, and 0 is the first frame.
    pub(super) yields: BTreeMap<(String, u32), u32>,
    /// Results of functions and schema checks, by [`evaluation_key`].
    pub(super) evaluations: BTreeMap<Hash, Evaluated>,
    /// The steps.
    pub trail: Trail,
    /// The end; `None` if the execution has not ended.
    pub end: Option<End>,
    /// Public id of the execution.
    pub execution_id: String,
}

/// One attempt of a call, with its answer.
#[derive(Debug, Clone)]
pub(super) struct RecordedCall {
    /// Kind of effect.
    pub effect: String,
    /// The resolved parameters.
    pub params: Value,
    /// Time of dispatch, in milliseconds since 1970.
    pub at: u64,
    /// The answer, with the milliseconds after the dispatch and the sequence of its frame.
    pub answer: Option<(u64, u64, Outcome)>,
    /// Milliseconds from the dispatch to the stop request.
    pub stopped_after: Option<u64>,
    /// Reason of the stop request.
    pub stop: Option<StopReason>,
    /// Notifications of the child execution: milliseconds after the dispatch, and the number.
    pub notices: Vec<(u64, u32)>,
}

/// One gate, with the decisions of people.
#[derive(Debug, Clone)]
pub(super) struct RecordedGate {
    /// `{prompt, items}`, as it was shown to the approvers.
    pub question: Value,
    /// Subject of the question.
    pub purpose: Purpose,
    /// Time at which it was opened, in milliseconds since 1970.
    pub at: u64,
    /// Decisions of people: milliseconds after the opening, sequence of the frame, decision, user, reason.
    pub decisions: Vec<(u64, u64, Decision, String, Value)>,
    /// Milliseconds after the opening in which decisions were possible and would be recorded.
    pub observed_ms: u64,
    /// True while it waits for decisions.
    pub is_open: bool,
}

/// The reason for which an execution cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// Values of its journal were erased.
    Erased,
    /// The journal does not begin with a start.
    NoStart,
    /// The journal does not follow from its plan.
    Illegal(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Erased => out.write_str("values of its journal were erased"),
            Self::NoStart => out.write_str("its journal does not begin with a start"),
            Self::Illegal(why) => write!(out, "its journal does not follow from its plan: {why}"),
        }
    }
}

/// Reads a journal frame by frame.
#[derive(Debug)]
pub struct Recorder {
    state: State,
    /// The name of the input of the current turn, and the number of its further frames.
    turn: (String, u32),
    recording: Option<Recording>,
}

impl Recorder {
    /// Expects the first frame of an execution.
    pub fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self { state: State::new(key, plan), turn: (String::new(), 0), recording: None }
    }

    /// Adds a frame.
    pub fn push(&mut self, frame: &Frame) -> Result<(), Unusable> {
        if let (None, Input::Start(start)) = (&self.recording, &frame.input) {
            self.recording = Some(Recording {
                key: self.state.key,
                plan: self.state.plan.clone(),
                start: (**start).clone(),
                started_at: frame.now,
                last_at: frame.now,
                calls: BTreeMap::new(),
                gates: BTreeMap::new(),
                arrivals: Vec::new(),
                late_timers: BTreeMap::new(),
                split_delays: BTreeMap::new(),
                yields: BTreeMap::new(),
                evaluations: BTreeMap::new(),
                trail: Trail::default(),
                end: None,
                execution_id: start.execution_id.clone(),
            });
        }
        let Some(recording) = &mut self.recording else { return Err(Unusable::NoStart) };
        if let Some(Record::Started { decide_version, .. }) = frame.records.first() {
            self.state.decide_version = *decide_version;
        }
        if !frame.results.is_empty() {
            recording.evaluations.extend(evaluations(&self.state, frame)?);
        }
        let open: BTreeSet<(Instance, u32)> = open_attempts(&self.state);
        if frame.input == Input::Continue {
            self.turn.1 += 1;
            let passed_ms = frame.now.saturating_sub(recording.last_at);
            recording.split_delays.extend((passed_ms > 0).then(|| (self.turn.clone(), passed_ms)));
        } else {
            self.turn = (input_name(&self.state.plan, &frame.input), 0);
        }
        if let Some(Record::TurnYielded { results }) = frame.records.last() {
            recording.yields.insert(self.turn.clone(), *results);
        }
        if let Input::Timer(timer) = &frame.input {
            let due = self.state.open.timers.iter().find(|(_, open)| open == timer).map(|(due, _)| *due);
            let late_ms = due.map_or(0, |due| frame.now.saturating_sub(due));
            if late_ms > 0 {
                recording.late_timers.insert(timer_name(&self.state.plan, timer), late_ms);
            }
        }
        for record in &frame.records {
            apply(&mut self.state, record, frame.now).map_err(|illegal| Unusable::Illegal(illegal.message))?;
        }
        if self.state.journal.has_erased {
            return Err(Unusable::Erased);
        }
        recording.last_at = frame.now;
        recording.answered(&self.state.plan, frame, &open);
        for record in &frame.records {
            recording.trail.add(&self.state.plan, record);
            recording.record(&self.state.plan, record, (frame.now, frame.sequence));
        }
        recording.called(calls(&self.state, &frame.records), frame.now);
        recording.end = End::of(&self.state);
        Ok(())
    }

    /// Returns the execution after the last frame.
    pub fn finish(self) -> Result<Recording, Unusable> {
        let mut recording = self.recording.ok_or(Unusable::NoStart)?;
        let last = recording.last_at;
        for gate in recording.gates.values_mut().filter(|gate| gate.is_open) {
            gate.observed_ms = last.saturating_sub(gate.at);
        }
        Ok(recording)
    }
}

/// Decides a frame again for the requests of its evaluations.
fn evaluations(before: &State, frame: &Frame) -> Result<Vec<(Hash, Evaluated)>, Unusable> {
    let yields_at = match frame.records.last() {
        Some(Record::TurnYielded { results }) => Some(*results),
        _ => None,
    };
    let (mut results, mut pairs) = (frame.results.iter().cloned(), Vec::new());
    let turn = decide_yielding(&mut before.clone(), &frame.input, frame.now, yields_at, |requests| {
        let given: Vec<Evaluated> = results.by_ref().take(requests.len()).collect();
        pairs.extend(requests.iter().map(|request| evaluation_key(request)).zip(given.iter().cloned()));
        given
    });
    turn.map_err(|illegal| Unusable::Illegal(illegal.message))?;
    Ok(pairs)
}

/// Returns a hash of a request. The time that a function sees is left out: it moves with every change before the step.
pub(super) fn evaluation_key(request: &Evaluation) -> Hash {
    let value = match request {
        Evaluation::Function(Function { step, source, input, timeout_ms, .. }) => {
            vec![Value::from(step.as_str()), source.as_str().into(), input.clone(), (*timeout_ms).into()]
        }
        Evaluation::Check(Check { schema, value, fills_defaults }) => {
            vec![schema.clone(), value.clone(), (*fills_defaults).into()]
        }
    };
    Hash::of(&cbor::encode(&Value::List(value)))
}

/// Returns the name of an input, which is the same in both plans.
pub(super) fn input_name(plan: &Plan, input: &Input) -> String {
    match input {
        Input::Timer(timer) => timer_name(plan, timer),
        Input::Receipt { instance, attempt, .. } => format!("receipt {attempt} {}", instance.name(plan)),
        Input::Decide { instance, gate, .. } => format!("decision {gate} {}", instance.name(plan)),
        Input::ChildWaits { instance, count, .. } => format!("child {count} {}", instance.name(plan)),
        Input::Signal { id, .. } => format!("signal {id}"),
        Input::Message { id, .. } => format!("message {id}"),
        Input::Lease { lease, .. } => format!("lease {lease}"),
        Input::Start(_) => "start".into(),
        Input::Admit => "admission".into(),
        Input::Cancel { .. } | Input::SkipCleanup { .. } | Input::Migrate { .. } | Input::Continue => "other".into(),
    }
}

/// Returns the name of a timer, which is the same in both plans.
pub(super) fn timer_name(plan: &Plan, timer: &Timer) -> String {
    match timer {
        Timer::Deadline => "deadline".into(),
        Timer::Attempt(instance, number) => format!("attempt {number} {}", instance.name(plan)),
        Timer::Retry(instance, number) => format!("retry {number} {}", instance.name(plan)),
        Timer::Sleep(instance) => format!("sleep {}", instance.name(plan)),
        Timer::Gate(instance, number) => format!("gate {number} {}", instance.name(plan)),
    }
}

fn open_attempts(state: &State) -> BTreeSet<(Instance, u32)> {
    let number = |instance: &Instance| state.steps.get(instance).map_or(0, |step| step.attempt);
    state.open.attempts.iter().map(|instance| (instance.clone(), number(instance))).collect()
}

impl Recording {
    /// Time from the start to the last frame, in milliseconds.
    pub fn duration_ms(&self) -> u64 {
        self.last_at.saturating_sub(self.started_at)
    }

    /// Adds the input of a frame.
    fn answered(&mut self, plan: &Plan, frame: &Frame, open: &BTreeSet<(Instance, u32)>) {
        match &frame.input {
            Input::Receipt { instance, attempt, outcome } if open.contains(&(instance.clone(), *attempt)) => {
                if let Some(call) = self.calls.get_mut(&(instance.name(plan), *attempt)) {
                    let after = frame.now.saturating_sub(call.at);
                    call.answer.get_or_insert((after, frame.sequence, outcome.clone()));
                }
            }
            Input::ChildWaits { instance, attempt, count } => {
                if let Some(call) = self.calls.get_mut(&(instance.name(plan), *attempt)) {
                    call.notices.push((frame.now.saturating_sub(call.at), *count));
                }
            }
            Input::Signal { .. } | Input::Message { .. } | Input::Cancel { .. } | Input::Admit => {
                self.arrivals.push((frame.now, frame.sequence, frame.input.clone()));
            }
            _ => {}
        }
    }

    fn record(&mut self, plan: &Plan, record: &Record, (now, sequence): (u64, u64)) {
        match record {
            Record::GateOpened { instance, gate, question, purpose, .. } => {
                let opened = RecordedGate {
                    question: question.value().clone(),
                    purpose: *purpose,
                    at: now,
                    decisions: Vec::new(),
                    observed_ms: 0,
                    is_open: true,
                };
                self.gates.insert((instance.name(plan), *gate), opened);
            }
            Record::GateDecided { instance, gate, decision, by, reason } => {
                if let Some(gate) = self.gates.get_mut(&(instance.name(plan), *gate)) {
                    let after = now.saturating_sub(gate.at);
                    let decided = by.clone().map(|by| (after, sequence, *decision, by, reason.value().clone()));
                    gate.decisions.extend(decided);
                    gate.observed_ms = after;
                    gate.is_open = by.is_some();
                }
            }
            Record::AttemptStopping { instance, attempt, reason } => {
                if let Some(call) = self.calls.get_mut(&(instance.name(plan), *attempt)) {
                    call.stopped_after = Some(now.saturating_sub(call.at));
                    call.stop = Some(*reason);
                }
            }
            ended if ended.ends_step() => self.close_gates(plan, ended, now),
            _ => {}
        }
    }

    /// Closes the gate of a step that has ended.
    fn close_gates(&mut self, plan: &Plan, record: &Record, now: u64) {
        let Some(instance) = record.instance() else { return };
        let name = instance.name(plan);
        let of_step = self.gates.range_mut((name.clone(), 0)..=(name, u32::MAX));
        for (_, gate) in of_step.filter(|(_, gate)| gate.is_open) {
            gate.is_open = false;
            gate.observed_ms = now.saturating_sub(gate.at);
        }
    }

    fn called(&mut self, calls: Vec<Call>, now: u64) {
        for Call { name, attempt, effect, params, .. } in calls {
            let call = RecordedCall {
                effect,
                params,
                at: now,
                answer: None,
                stopped_after: None,
                stop: None,
                notices: Vec::new(),
            };
            self.calls.insert((name, attempt), call);
        }
    }
}
