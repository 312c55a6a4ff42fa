//! Replays a recorded execution with another plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_kernel::{
    budget::Limits,
    decide::{Action, decide_yielding},
    effect::Outcome,
    evaluation::{Evaluated, Evaluation},
    hash::Hash,
    input::{Input, Lineage, Pinned, Policy, Start, Timer},
    instance::Instance,
    leases::LeaseChange,
    limits::{EXECUTIONS_DEFAULT, PARALLEL_DEFAULT},
    plan::{Plan, Work},
    record::{Payload, Record, StopReason},
    state::State,
    value::Value,
};

use super::{
    calls::{Call, calls},
    recording::{RecordedCall, RecordedGate, Recording, evaluation_key, input_name, timer_name},
    trail::{End, Trail},
};
use crate::limits::{SHADOW_DRIFT_MS_MAX, SHADOW_HORIZON_MAX, SHADOW_RECORDS_MAX, SHADOW_TURNS_MAX};

/// The plan with which executions are replayed.
#[derive(Debug, Clone)]
pub struct Change {
    /// The new plan, with the verdicts of the policy about its calls.
    pub plan: Arc<Plan>,
    /// SHA-256 of the stored plan.
    pub plan_hash: Hash,
}

/// Evaluates functions and schemas. `None` ends the replay, because its time limit has passed.
pub type Evaluate<'e> = dyn FnMut(&[&Evaluation]) -> Option<Vec<Evaluated>> + 'e;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The steps.
    pub trail: Trail,
    /// The end; `None` if the replay stopped before.
    pub end: Option<End>,
    /// Calls and waits without a recorded answer; at most [`SHADOW_HORIZON_MAX`].
    pub horizon: Vec<Horizon>,
    /// Calls that were answered.
    pub answered: usize,
    /// Calls whose step has another input or effect than recorded, by name.
    pub other_inputs: BTreeMap<String, (Value, Value)>,
    /// The reason for which the replay stopped.
    pub stop: Stop,
    /// Time of the last turn after the start, in milliseconds.
    pub duration_ms: u64,
}

/// A call or wait without a recorded answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Horizon {
    /// The step instance.
    pub step: String,
    /// The attempt or the number of the gate; 0 for a signal.
    pub number: u32,
    /// Kind of effect, `approval` or `signal`.
    pub kind: String,
    /// Returns the reason for which no recorded answer counts.
    pub reason: HorizonReason,
}

/// The reason for which a call or wait has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HorizonReason {
    /// The recorded execution did not have this call or gate.
    NotRecorded,
    /// The recorded call or gate had another input.
    OtherInput,
    /// The recorded execution had fewer attempts.
    MoreAttempts,
    /// The recorded call or gate was never answered.
    Unanswered,
    /// The recorded call was stopped before it ended.
    Stopped,
    /// No recorded signal was left.
    NoSignal,
}

impl HorizonReason {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotRecorded => "not_recorded",
            Self::OtherInput => "other_input",
            Self::MoreAttempts => "more_attempts",
            Self::Unanswered => "unanswered",
            Self::Stopped => "stopped",
            Self::NoSignal => "no_signal",
        }
    }
}

/// The reason for which a replay stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The execution ended.
    Ended,
    /// The rest depends on an answer that is not recorded.
    Horizon,
    /// A bound on turns, records or time was reached.
    Bound,
    /// The new plan has a decision of the kernel that is not legal. This is a bug.
    Illegal,
}

impl Stop {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Horizon => "horizon",
            Self::Bound => "bound",
            Self::Illegal => "illegal",
        }
    }
}

/// Replays an execution. `observe` gets the time and the records of each turn.
pub fn replay(
    recording: &Recording,
    change: &Change,
    evaluate: &mut Evaluate<'_>,
    observe: &mut dyn FnMut(u64, &[Record]),
) -> Replay {
    let mut runner = Runner {
        recording,
        state: State::new(recording.key, change.plan.clone()),
        queue: BTreeMap::new(),
        orders: 0,
        open: BTreeSet::new(),
        opened: BTreeMap::new(),
        records: 0,
        replay: Replay {
            trail: Trail::default(),
            end: None,
            horizon: Vec::new(),
            answered: 0,
            other_inputs: BTreeMap::new(),
            stop: Stop::Horizon,
            duration_ms: 0,
        },
    };
    for (at, place, input) in &recording.arrivals {
        runner.enqueue(*at, *place, Event::Arrival(input.clone()));
    }
    let start = Input::Start(Box::new(start(recording, change)));
    runner.replay.stop = runner.run(start, evaluate, observe);
    runner.replay.end = End::of(&runner.state);
    runner.replay.duration_ms = runner.state.now.saturating_sub(recording.started_at);
    if runner.replay.stop == Stop::Horizon {
        runner.add_open_waits();
    }
    runner.replay
}

/// Returns the recorded start as the new plan would have it. Bounds that came from the old definition come from the new one.
fn start(recording: &Recording, change: &Change) -> Start {
    let mut start = recording.start.clone();
    let (old, new) = (defaults(&recording.plan), defaults(&change.plan));
    let given = start.policy;
    start.policy = Policy {
        max_steps: if given.max_steps == old.max_steps { new.max_steps } else { given.max_steps },
        max_parallel: if given.max_parallel == old.max_parallel { new.max_parallel } else { given.max_parallel },
        timeout_ms: if given.timeout_ms == old.timeout_ms { new.timeout_ms } else { given.timeout_ms },
        max_output_bytes: if given.max_output_bytes == old.max_output_bytes {
            new.max_output_bytes
        } else {
            given.max_output_bytes
        },
    };
    (start.workflow_hash, start.plan_hash) = (change.plan.workflow_hash, change.plan_hash);
    let mut lineage = start.lineage.take().unwrap_or_default();
    let names = change.plan.steps.iter().filter_map(|step| match &step.work {
        Work::Subworkflow { workflow, .. } => Some(workflow),
        _ => None,
    });
    let mut is_new = false;
    for name in names {
        if !lineage.workflows.iter().any(|pinned| pinned.name == *name) {
            // The child is never started, so its plan is not needed.
            let (workflow_hash, plan_hash) = (Hash::default(), Hash::default());
            lineage.workflows.push(Pinned { name: name.clone(), workflow_hash, plan_hash });
            is_new = true;
        }
    }
    if is_new && lineage.executions.is_none_or(|count| count == 0) {
        lineage.executions = Some(change.plan.constraints.max_executions.unwrap_or(EXECUTIONS_DEFAULT));
    }
    start.lineage = (lineage != Lineage::default()).then_some(lineage);
    start
}

/// Returns the bounds of an execution that is started without bounds of its own.
fn defaults(plan: &Plan) -> Policy {
    Policy {
        max_steps: plan.constraints.max_steps.unwrap_or_else(|| plan.max_steps_default()),
        max_parallel: plan.constraints.max_parallel.unwrap_or(PARALLEL_DEFAULT),
        timeout_ms: plan.constraints.timeout_ms,
        max_output_bytes: plan.constraints.max_output_bytes,
    }
}

/// A future input.
#[derive(Debug, Clone)]
enum Event {
    /// The answer of a call.
    Answer { instance: Instance, attempt: u32, outcome: Outcome },
    /// The point at which the recorded call was stopped, so that its own answer is unknown.
    Unknown { instance: Instance, attempt: u32 },
    /// Any other recorded input.
    Arrival(Input),
}

struct Runner<'r> {
    recording: &'r Recording,
    state: State,
    /// Future inputs by time, then by their place in the recording, then by order of their creation.
    queue: BTreeMap<(u64, u64, u64), Event>,
    orders: u64,
    /// Calls at the horizon.
    open: BTreeSet<(Instance, u32)>,
    /// Times at which gates were opened, in milliseconds since 1970.
    opened: BTreeMap<(Instance, u32), u64>,
    records: usize,
    replay: Replay,
}

impl Runner<'_> {
    /// Adds a future input. `place` is the sequence of its frame in the recording.
    fn enqueue(&mut self, at: u64, place: u64, event: Event) {
        self.orders += 1;
        self.queue.insert((at, place, self.orders), event);
    }

    fn run(&mut self, start: Input, evaluate: &mut Evaluate<'_>, observe: &mut dyn FnMut(u64, &[Record])) -> Stop {
        let mut next = Some((self.recording.started_at, start));
        let mut turn = (String::new(), 0);
        for _ in 0..SHADOW_TURNS_MAX {
            let Some((now, input)) = next.take().or_else(|| self.next()) else { return Stop::Horizon };
            turn = match &input {
                Input::Continue => (turn.0, turn.1 + 1),
                input => (input_name(&self.state.plan, input), 0),
            };
            let yields_at = self.recording.yields.get(&turn).copied();
            let Some(records) = self.turn((&input, yields_at), now, evaluate) else { return Stop::Illegal };
            let Ok(records) = records else { return Stop::Bound };
            observe(now, &records);
            self.records += records.len();
            if self.state.end.ended_at.is_some() {
                return Stop::Ended;
            }
            if self.records > SHADOW_RECORDS_MAX {
                return Stop::Bound;
            }
            if self.state.journal.is_split {
                // The functions of the recorded turn have taken time.
                let delay_ms = self.recording.split_delays.get(&(turn.0.clone(), turn.1 + 1)).copied();
                next = Some((now.saturating_add(delay_ms.unwrap_or_default()), Input::Continue));
            }
        }
        Stop::Bound
    }

    /// Decides one input. `None` if the kernel reports an illegal record, an error if no evaluation is left.
    fn turn(
        &mut self,
        (input, yields_at): (&Input, Option<u32>),
        now: u64,
        evaluate: &mut Evaluate<'_>,
    ) -> Option<Result<Vec<Record>, ()>> {
        let mut is_over = false;
        let recording = self.recording;
        let turn = decide_yielding(&mut self.state, input, now, yields_at, |requests| {
            let results = evaluated(recording, requests, evaluate);
            results.unwrap_or_else(|| {
                is_over = true;
                requests.iter().map(|_| Evaluated::of(Ok(Value::Null))).collect()
            })
        });
        let turn = turn.ok()?;
        if is_over {
            return Some(Err(()));
        }
        for record in &turn.records {
            self.replay.trail.add(&self.state.plan, record);
        }
        // A replay spends nothing, so budgets of a day or a month do not limit it.
        for action in &turn.actions {
            if let Action::Lease { lease, .. } = action {
                let notice = Payload::Known(Value::List(Vec::new()));
                let change = LeaseChange::Granted { amount: Limits::default(), until: u64::MAX, notice };
                self.enqueue(now, 0, Event::Arrival(Input::Lease { lease: *lease, change }));
            }
        }
        for call in calls(&self.state, &turn.records) {
            self.answer(call, now);
        }
        for record in &turn.records {
            self.follow(record, now);
        }
        Some(Ok(turn.records))
    }

    /// Returns the next input; `None` if it depends on an answer that is not recorded.
    fn next(&mut self) -> Option<(u64, Input)> {
        // A timer fires as late as it did, so that later decisions of people have their recorded times.
        let timer = self.state.open.timers.first().cloned().map(|(due, timer)| {
            let late_ms = self.recording.late_timers.get(&timer_name(&self.state.plan, &timer)).copied();
            (due, due.saturating_add(late_ms.unwrap_or_default()), timer)
        });
        let queued = self.queue.keys().next().copied();
        // All timers of one time fire before its next input, as they do in the engine.
        let is_first = |at: u64, due: u64| at <= due && due > self.state.now;
        match (queued, timer) {
            (Some(queued), timer) if timer.as_ref().is_none_or(|(_, fires_at, _)| is_first(queued.0, *fires_at)) => {
                let at = queued.0.max(self.state.now);
                match self.queue.remove(&queued)? {
                    Event::Arrival(input) => Some((at, input)),
                    Event::Answer { instance, attempt, outcome } => {
                        self.replay.answered += usize::from(self.is_out(&instance, attempt));
                        Some((at, Input::Receipt { instance, attempt, outcome }))
                    }
                    Event::Unknown { instance, attempt } => {
                        if self.is_out(&instance, attempt) {
                            let call = self.open_call(&instance, attempt);
                            self.add_horizon(call, HorizonReason::Stopped);
                            self.open.insert((instance, attempt));
                        }
                        self.next()
                    }
                }
            }
            (_, Some((due, fires_at, timer))) => {
                let at = fires_at.max(self.state.now);
                self.may_fire(due, &timer).then_some((at, Input::Timer(timer)))
            }
            _ => None,
        }
    }

    fn is_out(&self, instance: &Instance, attempt: u32) -> bool {
        let is_open = self.state.open.attempts.contains(instance);
        is_open && self.state.steps.get(instance).is_some_and(|step| step.attempt == attempt)
    }

    /// False for a timer whose effect depends on an answer that is not recorded.
    fn may_fire(&self, due: u64, timer: &Timer) -> bool {
        match timer {
            Timer::Attempt(instance, attempt) => !self.open.contains(&(instance.clone(), *attempt)),
            Timer::Deadline => self.open.is_empty(),
            Timer::Retry(..) => true,
            Timer::Sleep(instance) => {
                let is_signal = matches!(self.state.plan.step(instance.step).work, Work::Signal { .. });
                !is_signal || due <= self.recording.last_at
            }
            Timer::Gate(instance, number) => {
                let opened = self.opened.get(&(instance.clone(), *number)).copied().unwrap_or_default();
                let gate = self.gate(instance, *number);
                gate.is_some_and(|gate| due.saturating_sub(opened) <= gate.observed_ms)
            }
        }
    }

    /// Returns the recorded gate with the same question.
    fn gate(&self, instance: &Instance, number: u32) -> Option<&RecordedGate> {
        let open = self.state.steps.get(instance)?.gate.as_ref().filter(|gate| gate.number == number)?;
        let recorded = self.recording.gates.get(&(instance.name(&self.state.plan), number))?;
        let question = Value::map([("prompt", Value::from(open.prompt.as_str())), ("items", open.items.clone())]);
        (recorded.question == question && recorded.purpose == open.purpose).then_some(recorded)
    }

    /// Schedules the recorded answer of a call.
    fn answer(&mut self, call: Call, now: u64) {
        let recorded = self.recording.calls.get(&(call.name.clone(), call.attempt));
        let first = self.recording.calls.get(&(call.name.clone(), 1));
        if let Some(other) = first.filter(|first| !is_same(first, &call)) {
            let inputs = (other.params.clone(), call.params.clone());
            self.replay.other_inputs.entry(call.name.clone()).or_insert(inputs);
        }
        if !call.waits {
            if first.is_none() {
                self.add_horizon(call, HorizonReason::NotRecorded);
            }
            return;
        }
        let (instance, attempt) = (call.instance.clone(), call.attempt);
        let reason = match (recorded, first) {
            (Some(recorded), _) if is_same(recorded, &call) => match &recorded.answer {
                Some((after, place, outcome)) => {
                    let place = *place;
                    let event = match recorded.stopped_after {
                        None => Event::Answer { instance, attempt, outcome: outcome.clone() },
                        Some(_) => Event::Unknown { instance, attempt },
                    };
                    let after = recorded.stopped_after.unwrap_or(*after);
                    let notices = recorded.notices.clone();
                    // A stop at the same time is decided first.
                    let late = u64::from(recorded.stopped_after.is_some());
                    self.enqueue(now.saturating_add(after).saturating_add(late), place, event);
                    for (after, count) in notices {
                        let instance = call.instance.clone();
                        let notice = Input::ChildWaits { instance, attempt, count };
                        self.enqueue(now.saturating_add(after), place, Event::Arrival(notice));
                    }
                    return;
                }
                None => HorizonReason::Unanswered,
            },
            (Some(_), _) => HorizonReason::OtherInput,
            (None, Some(first)) if is_same(first, &call) => HorizonReason::MoreAttempts,
            (None, Some(_)) => HorizonReason::OtherInput,
            (None, None) => HorizonReason::NotRecorded,
        };
        self.open.insert((instance, attempt));
        self.add_horizon(call, reason);
    }

    /// Schedules recorded decisions of an opened gate, and the answer of a call that is asked to stop.
    fn follow(&mut self, record: &Record, now: u64) {
        match record {
            Record::GateOpened { instance, gate, .. } => {
                self.opened.insert((instance.clone(), *gate), now);
                let Some(recorded) = self.gate(instance, *gate) else { return };
                let decisions = recorded.decisions.clone();
                // The recorded time of a decision is in the output of its gate.
                let is_on_time = recorded.at >= now && recorded.at - now <= SHADOW_DRIFT_MS_MAX;
                let opened_at = if is_on_time { recorded.at } else { now };
                for (after, place, decision, by, reason) in decisions {
                    let decide = Input::Decide { instance: instance.clone(), gate: *gate, decision, by, reason };
                    self.enqueue(opened_at.saturating_add(after), place, Event::Arrival(decide));
                }
            }
            Record::AttemptStopping { instance, attempt, reason } => self.stopped(instance, *attempt, *reason, now),
            _ => {}
        }
    }

    /// Answers a call that is asked to stop: as recorded if it was stopped for the same reason, and otherwise that it has
    /// stopped at once.
    fn stopped(&mut self, instance: &Instance, attempt: u32, reason: StopReason, now: u64) {
        let is_its = |event: &Event| match event {
            Event::Answer { instance: of, attempt: number, .. } | Event::Unknown { instance: of, attempt: number } => {
                of == instance && *number == attempt
            }
            Event::Arrival(_) => false,
        };
        self.queue.retain(|_, event| !is_its(event));
        let name = instance.name(&self.state.plan);
        let recorded = self.recording.calls.get(&(name, attempt));
        let of_stop =
            recorded.filter(|call| call.stop == Some(reason) && !self.open.contains(&(instance.clone(), attempt)));
        let answer = of_stop.and_then(|call| {
            let (after, _, outcome) = call.answer.clone()?;
            Some((after.saturating_sub(call.stopped_after?), outcome))
        });
        let (after, outcome) = answer.unwrap_or((0, Outcome::Stopped(Value::Null)));
        let event = Event::Answer { instance: instance.clone(), attempt, outcome };
        self.enqueue(now.saturating_add(after), u64::MAX, event);
    }

    fn open_call(&self, instance: &Instance, attempt: u32) -> Call {
        let plan = &self.state.plan;
        Call {
            instance: instance.clone(),
            name: instance.name(plan),
            attempt,
            effect: plan.step(instance.step).work.kind().into(),
            params: Value::Null,
            waits: true,
        }
    }

    fn add_horizon(&mut self, call: Call, reason: HorizonReason) {
        if self.replay.horizon.len() < SHADOW_HORIZON_MAX {
            let Call { name, attempt, effect, .. } = call;
            self.replay.horizon.push(Horizon { step: name, number: attempt, kind: effect, reason });
        }
    }

    /// Lists the gates and signals for which the execution waits in the end.
    fn add_open_waits(&mut self) {
        for instance in self.state.open.waits.clone() {
            let name = instance.name(&self.state.plan);
            let open = self.state.steps.get(&instance).and_then(|step| step.gate.as_ref());
            let (number, kind, reason) =
                match (open.filter(|gate| gate.is_open), &self.state.plan.step(instance.step).work) {
                    (Some(gate), _) => {
                        let recorded = self.recording.gates.contains_key(&(name.clone(), gate.number));
                        let reason = match (recorded, self.gate(&instance, gate.number)) {
                            (false, _) => HorizonReason::NotRecorded,
                            (true, None) => HorizonReason::OtherInput,
                            (true, Some(_)) => HorizonReason::Unanswered,
                        };
                        (gate.number, "approval", reason)
                    }
                    (None, Work::Signal { .. }) => (0, "signal", HorizonReason::NoSignal),
                    _ => continue,
                };
            if self.replay.horizon.len() < SHADOW_HORIZON_MAX {
                self.replay.horizon.push(Horizon { step: name, number, kind: kind.into(), reason });
            }
        }
    }
}

fn is_same(recorded: &RecordedCall, call: &Call) -> bool {
    recorded.effect == call.effect && recorded.params == call.params
}

/// Answers evaluations: with recorded results where the request is the same, otherwise with new ones.
fn evaluated(recording: &Recording, requests: &[&Evaluation], evaluate: &mut Evaluate<'_>) -> Option<Vec<Evaluated>> {
    let recorded = |request: &Evaluation| recording.evaluations.get(&evaluation_key(request)).cloned();
    let mut results: Vec<Option<Evaluated>> = requests.iter().map(|request| recorded(request)).collect();
    let missing: Vec<&Evaluation> =
        requests.iter().zip(&results).filter(|(_, result)| result.is_none()).map(|(request, _)| *request).collect();
    if !missing.is_empty() {
        let mut new = evaluate(&missing)?.into_iter();
        for result in results.iter_mut().filter(|result| result.is_none()) {
            *result = new.next();
        }
    }
    results.into_iter().collect()
}
