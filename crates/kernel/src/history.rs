//! The history of an execution, attempt by attempt, for people and API clients. It is derived from the frames of the
//! journal and decides nothing.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    decide::child_key_of,
    failure::Failure,
    frame::Frame,
    hash::Hash,
    instance::Instance,
    key::ExecutionKey,
    plan::{AgentPart, Decision, Plan, Work},
    record::{FailureDisposition, Fault, Record, SkipReason},
    state::{CHILD_EFFECT, Status},
    time::rfc3339,
    value::{Map, Value},
    value_size,
};

mod reason;

use reason::{why, why_not, why_not_retried};

/// The attempts of an execution in the order of their start: all of them, or those of a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The attempts in the window.
    pub attempts: Vec<AttemptHistory>,
    /// Number of all attempts, inside or outside the window.
    pub count: usize,
    window: Option<Window>,
    /// Last attempt of each step instance: its index among all attempts, and its status. Instances of ended rounds are
    /// removed.
    last: BTreeMap<Instance, (usize, Status)>,
    /// Open attempts outside the window, without their inputs.
    outside: BTreeMap<Instance, AttemptHistory>,
    inputs: BTreeMap<Instance, Value>,
    dispositions: BTreeMap<Instance, FailureDisposition>,
    children: Children,
}

/// The part of the history that is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    /// Index of the first attempt in the window.
    from: usize,
    rows_max: usize,
    memory_bytes_max: u64,
    /// Bytes of memory taken by the attempts in the window.
    memory_bytes: u64,
}

/// Derives the keys of child executions from records alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Children {
    intents: BTreeMap<Instance, Hash>,
}

impl Children {
    /// Processes a record. Returns the key of the child execution, if the record starts an attempt that has one.
    pub fn of_record(&mut self, plan: &Plan, record: &Record, now: u64) -> Option<ExecutionKey> {
        let instance = record.instance()?;
        match record {
            Record::StepStarted { intent: Some(intent), input, .. } => {
                let is_called = || {
                    plan.agent_part(instance.step) == Some(AgentPart::Call)
                        && input.value().get("effect").and_then(Value::as_text) == Some(CHILD_EFFECT)
                };
                if matches!(plan.step(instance.step).work, Work::Subworkflow { .. }) || is_called() {
                    self.intents.insert(instance.clone(), *intent);
                }
                None
            }
            Record::AttemptStarted { attempt, .. } => {
                let intent = self.intents.get(instance)?;
                Some(child_key_of(*intent, *attempt, now))
            }
            ended if ended.ends_step() => {
                self.intents.remove(instance);
                None
            }
            _ => None,
        }
    }
}

/// One attempt of a step instance. A step that was skipped or failed before its start has an entry with attempt 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptHistory {
    /// Name of the step instance, such as `fetch[3].parse`.
    pub step: String,
    /// Attempt number, from 1; 0 if the step never started.
    pub attempt: u32,
    /// Status of the attempt.
    pub status: Status,
    /// Start, in milliseconds since 1970.
    pub started_at: u64,
    /// End, in milliseconds since 1970; `None` while the attempt is open.
    pub ended_at: Option<u64>,
    /// The resolved parameters.
    pub input: Value,
    /// Output of a completed attempt; null otherwise.
    pub output: Value,
    /// Failure of a failed attempt.
    pub failure: Option<Failure>,
    /// The reason for its start, as a phrase: the preceding step, the taken edge, the item of a loop.
    pub because: String,
    /// The reason for its end or its current wait, as a phrase.
    pub note: Option<String>,
    /// Decisions at the step's gates, in order.
    pub decisions: Vec<DecisionTrace>,
    /// Console output of the step's function: a list of `{level, text}`.
    pub log: Vec<Value>,
    /// Key of the child execution that it started.
    pub child: Option<ExecutionKey>,
}

/// A decision at an approval gate.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionTrace {
    /// Approval or denial.
    pub decision: Decision,
    /// User id of the decider; `None` if the gate expired.
    pub by: Option<String>,
    /// Time of the decision, in milliseconds since 1970.
    pub at: u64,
    /// Reason given by the decider; `None` if there is none or it was erased.
    pub reason: Option<String>,
}

impl History {
    /// Creates a history that keeps a window of attempts. It starts at index `from` and ends after `rows_max` attempts,
    /// or earlier at `memory_bytes_max`, which never excludes the first attempt. Memory use is that of the window and
    /// of the open steps.
    pub fn window(from: usize, rows_max: usize, memory_bytes_max: u64) -> Self {
        let window = Window { from, rows_max, memory_bytes_max, memory_bytes: 0 };
        Self { window: Some(window), ..Self::default() }
    }

    /// Adds the records of a frame.
    pub fn add(&mut self, plan: &Plan, frame: &Frame) {
        for record in &frame.records {
            self.add_record(plan, record, frame.now);
        }
    }

    fn add_record(&mut self, plan: &Plan, record: &Record, now: u64) {
        let Some(instance) = record.instance() else { return };
        let child = self.children.of_record(plan, record, now);
        match record {
            Record::StepSkipped { reason, .. } => self.skip(plan, instance, *reason, now),
            Record::StepStarted { input, .. } => {
                self.inputs.insert(instance.clone(), input.value().clone());
                self.begin(plan, instance, 1, now);
            }
            Record::AttemptStarted { attempt, .. } => {
                if *attempt > 1 {
                    self.begin(plan, instance, *attempt, now);
                }
                self.last(instance).child = child;
            }
            Record::AttemptResumed { .. } => self.last(instance).status = Status::Running,
            Record::AttemptContinued { .. } => {
                self.last(instance).note = Some("the call continues in the tool server".into());
            }
            Record::AttemptFailed { fault, retry_at, .. } => {
                let row = self.end(instance, Status::Failed, now);
                row.failure = Some(fault.failure());
                row.note = retry_at.map(|at| alloc::format!("tried again at {}", rfc3339(at)));
            }
            Record::WaitStarted { until, .. } => {
                let note = wait_in_words(&plan.step(instance.step).work, *until);
                let row = self.last(instance);
                (row.status, row.note) = (Status::Waiting, Some(note));
            }
            Record::StepLogged { lines, .. } => {
                let lines = lines.value().as_list().unwrap_or_default();
                self.last(instance).log.extend_from_slice(lines);
                self.count_bytes(instance, lines.iter().map(value_size::of_value).sum());
            }
            // An interrupted attempt has failed already; the gate only asks about the next attempt.
            Record::GateOpened { .. } => {
                let row = self.last(instance);
                if row.ended_at.is_none() {
                    row.status = Status::WaitingApproval;
                }
            }
            Record::GateDecided { decision, by, reason, .. } => {
                let (by, reason) = (by.clone(), reason_in_words(reason.value()));
                self.decided(instance, DecisionTrace { decision: *decision, by, at: now, reason });
            }
            Record::StepCompleted { output, .. } => {
                self.end(instance, Status::Completed, now).output = output.value().clone();
                self.count_bytes(instance, value_size::of_value(output.value()));
            }
            Record::StepFailed { fault, disposition, .. } => self.fail(plan, instance, fault, *disposition, now),
            Record::StepCancelled { reason, .. } => {
                let row = self.end(instance, Status::Cancelled, now);
                row.note.get_or_insert_with(|| reason.clone());
            }
            Record::BranchTaken { block, .. } => {
                let branches = plan.step(instance.step).work.branches();
                let name =
                    branches.iter().find(|(_, branch)| Some(*branch) == *block).map_or("neither", |(name, _)| name);
                self.last(instance).note = Some(alloc::format!("took {name}"));
            }
            Record::RoundEnded { round, .. } => self.forget_round(plan, instance, *round),
            _ => {}
        }
        if record.ends_step() {
            self.inputs.remove(instance);
            self.outside.remove(instance);
        }
    }

    fn decided(&mut self, instance: &Instance, decided: DecisionTrace) {
        let row = self.last(instance);
        row.note = Some(decided.words());
        row.decisions.push(decided);
    }

    /// Forgets the steps of an ended round, which get no further records. Their attempts in the window remain.
    fn forget_round(&mut self, plan: &Plan, instance: &Instance, round: u32) {
        for range in instance.steps_of_round(plan, round) {
            self.last.extract_if(range.clone(), |_, _| true).for_each(drop);
            self.dispositions.extract_if(range, |_, _| true).for_each(drop);
        }
    }

    /// Counts memory of an attempt in the window. If the limit is exceeded, the window is cut at its end.
    fn count_bytes(&mut self, instance: &Instance, bytes: u64) {
        let is_inside = self.place_of(instance).is_some();
        let Some(window) = self.window.as_mut().filter(|_| is_inside) else { return };
        window.memory_bytes += bytes;
        while window.memory_bytes > window.memory_bytes_max && self.attempts.len() > 1 {
            let dropped = self.attempts.pop().map_or(0, |row| memory_bytes(&row));
            window.memory_bytes = window.memory_bytes.saturating_sub(dropped);
            window.rows_max = self.attempts.len();
        }
    }

    /// Returns the index within the window of the last attempt of an instance.
    fn place_of(&self, instance: &Instance) -> Option<usize> {
        let (place, _) = self.last.get(instance)?;
        let from = self.window.map_or(0, |window| window.from);
        place.checked_sub(from).filter(|place| *place < self.attempts.len())
    }

    fn skip(&mut self, plan: &Plan, instance: &Instance, reason: SkipReason, now: u64) {
        self.begin(plan, instance, 0, now);
        let why = if reason == SkipReason::NoEdgeTaken { why_not(self, plan, instance) } else { String::new() };
        // For a skipped step the reason for skipping replaces the reason for starting.
        let row = self.end(instance, Status::Skipped, now);
        row.because = alloc::format!("{}{why}", reason.description());
        row.note = Some(row.because.clone());
    }

    fn fail(&mut self, plan: &Plan, instance: &Instance, fault: &Fault, disposition: FailureDisposition, now: u64) {
        if !self.last.contains_key(instance) {
            self.begin(plan, instance, 0, now);
        }
        self.dispositions.insert(instance.clone(), disposition);
        let row = self.end(instance, Status::Failed, now);
        row.failure = Some(fault.failure());
        let consequence = match disposition {
            FailureDisposition::Failed => row.note.take(),
            FailureDisposition::Tolerated => Some("tolerated".into()),
            FailureDisposition::Handled => Some("taken up by a failure edge".into()),
        };
        let not_retried =
            row.failure.as_ref().and_then(|failure| why_not_retried(plan, instance, failure, row.attempt));
        let words: Vec<String> = consequence.into_iter().chain(not_retried).collect();
        row.note = (!words.is_empty()).then(|| words.join("; "));
    }

    fn begin(&mut self, plan: &Plan, instance: &Instance, attempt: u32, now: u64) {
        let because = if attempt > 1 { "the attempt before it failed".into() } else { why(self, plan, instance) };
        let mut row = AttemptHistory {
            step: instance.name(plan),
            attempt,
            status: Status::Running,
            started_at: now,
            ended_at: None,
            input: Value::Null,
            output: Value::Null,
            failure: None,
            because,
            note: None,
            decisions: Vec::new(),
            log: Vec::new(),
            child: None,
        };
        let place = self.count;
        self.count += 1;
        self.last.insert(instance.clone(), (place, Status::Running));
        let is_inside = self.window.is_none_or(|window| {
            place >= window.from && place - window.from == self.attempts.len() && self.attempts.len() < window.rows_max
        });
        if !is_inside {
            self.outside.insert(instance.clone(), row);
            return;
        }
        row.input = self.inputs.get(instance).cloned().unwrap_or_default();
        let bytes = memory_bytes(&row);
        self.attempts.push(row);
        self.count_bytes(instance, bytes);
    }

    fn end(&mut self, instance: &Instance, status: Status, now: u64) -> &mut AttemptHistory {
        if let Some(last) = self.last.get_mut(instance) {
            last.1 = status;
        }
        let row = self.last(instance);
        row.status = status;
        row.ended_at = Some(now);
        row
    }

    /// Returns the attempt that a record belongs to. Only records that were applied are added, so a started instance
    /// has an attempt.
    fn last(&mut self, instance: &Instance) -> &mut AttemptHistory {
        match self.place_of(instance) {
            Some(place) => &mut self.attempts[place],
            None => self.outside.entry(instance.clone()).or_default(),
        }
    }
}

/// Returns the reason of a decision: its text, or the content of a form as JSON.
fn reason_in_words(reason: &Value) -> Option<String> {
    match reason {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        other => Some(crate::json::compact(other)),
    }
}

fn memory_bytes(row: &AttemptHistory) -> u64 {
    ROW_BYTES
        + value_size::of_value(&row.input)
        + value_size::of_value(&row.output)
        + row.log.iter().map(value_size::of_value).sum::<u64>()
}

/// Bytes of memory of an attempt, without its values.
const ROW_BYTES: u64 = 1024;

fn wait_in_words(work: &Work, until: Option<u64>) -> String {
    let until = until.map(|at| alloc::format!(" until {}", rfc3339(at))).unwrap_or_default();
    match work {
        Work::Signal { name } => alloc::format!("waits for the signal {name}{until}"),
        _ => alloc::format!("waits{until}"),
    }
}

impl AttemptHistory {
    /// Returns `{stepId, status, attempt, startedAt, completedAt, input, output, error, note}`, the keys of the first
    /// specification, and further keys of our own.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("stepId".into(), self.step.as_str().into());
        map.insert("status".into(), self.status.name().into());
        map.insert("attempt".into(), self.attempt.into());
        map.insert("startedAt".into(), rfc3339(self.started_at).into());
        map.insert("completedAt".into(), self.ended_at.map(rfc3339).into());
        map.insert("input".into(), self.input.clone());
        map.insert("output".into(), self.output.clone());
        map.insert("error".into(), self.failure.as_ref().map(Failure::to_value).unwrap_or_default());
        map.insert("because".into(), self.because.as_str().into());
        if let Some(note) = &self.note {
            map.insert("note".into(), note.to_string().into());
        }
        if !self.decisions.is_empty() {
            map.insert(
                "decisions".into(),
                self.decisions.iter().map(DecisionTrace::to_value).collect::<Vec<_>>().into(),
            );
        }
        if let Some(child) = self.child {
            map.insert("childExecutionId".into(), child.to_string().into());
        }
        if !self.log.is_empty() {
            map.insert("log".into(), self.log.clone().into());
        }
        Value::Map(map)
    }
}

impl DecisionTrace {
    /// Returns `{decision, by, at, reason}`.
    pub fn to_value(&self) -> Value {
        Value::map([
            ("decision", self.decision.name().into()),
            ("by", self.by.as_deref().into()),
            ("at", rfc3339(self.at).into()),
            ("reason", self.reason.as_deref().into()),
        ])
    }

    fn words(&self) -> String {
        let by = self.by.as_deref().unwrap_or("nobody in time");
        let reason = self.reason.as_deref().map(|reason| alloc::format!(": {reason}")).unwrap_or_default();
        alloc::format!("{} by {by}{reason}", self.decision.name())
    }
}
