//! Progress events: the records of a journal in the terms of the first specification (6.6). This module formats given
//! records and reads no store.

use std::collections::BTreeMap;

use mainspring_kernel::{
    history::Children,
    instance::Instance,
    leases::LeaseChange,
    plan::{Decision, Plan},
    record::{Ending, FailureDisposition, Record},
    state::State,
    time::rfc3339,
    value::{Map, Value},
};

use crate::execution_tree::OpenGate;

/// Creates the events of an execution from its records, in order.
pub struct Events<'a> {
    execution_id: &'a str,
    earlier: EarlierRecords,
}

/// Facts of earlier records that the events of later ones contain.
#[derive(Debug, Clone, Default)]
pub struct EarlierRecords {
    /// The open attempt of each step instance, since records of an end do not repeat its number.
    attempts: BTreeMap<Instance, u32>,
    /// Lines logged by functions of each step instance since its last event.
    logged: BTreeMap<Instance, u64>,
    children: Children,
}

impl<'a> Events<'a> {
    /// Creates the state before the first record.
    pub fn new(execution_id: &'a str) -> Self {
        Self::after(execution_id, EarlierRecords::default())
    }

    /// Creates the state after earlier records.
    pub fn after(execution_id: &'a str, earlier: EarlierRecords) -> Self {
        Self { execution_id, earlier }
    }

    /// Returns the facts of the records so far.
    pub fn into_earlier(self) -> EarlierRecords {
        self.earlier
    }

    /// The event of a record, if it has one. The plan is that of the execution after the frame of the record: a
    /// migration replaces it. Records contain no tokens: see [`gates`](Self::gates).
    pub fn of_record(&mut self, plan: &Plan, record: &Record, now: u64) -> Option<Value> {
        let step = record.instance().map(|instance| instance.name(plan));
        let mut more = Map::new();
        if let Some(instance) = record.instance() {
            if let Some(attempt) = begun_attempt(record) {
                self.earlier.attempts.insert(instance.clone(), attempt);
            }
            more.extend(self.earlier.attempts.get(instance).map(|attempt| ("attempt".to_string(), (*attempt).into())));
            self.add_beyond(plan, (record, instance), now, &mut more);
            if record.ends_step() {
                self.earlier.attempts.remove(instance);
            }
        }
        let kind = match record {
            Record::Started { .. } => "execution.started",
            Record::Queued { queue } => {
                more.insert("waitingFor".into(), queue.name().into());
                "execution.queued"
            }
            Record::Admitted => "execution.admitted",
            Record::StepStarted { instance, .. } if !plan.step(instance.step).work.goes_out() => "step.started",
            Record::AttemptStarted { .. } => "step.started",
            Record::AttemptFailed { fault, retry_at, .. } => {
                more.insert("error".into(), fault.failure().to_value());
                more.insert("retryAt".into(), retry_at.map(rfc3339).into());
                "step.retrying"
            }
            Record::StepCompleted { .. } => "step.completed",
            Record::StepFailed { fault, .. } => {
                more.insert("error".into(), fault.failure().to_value());
                "step.failed"
            }
            Record::StepSkipped { .. } => "step.skipped",
            Record::StepCancelled { reason, .. } => {
                more.insert("reason".into(), reason.as_str().into());
                "step.cancelled"
            }
            Record::GateDecided { decision, by, .. } => {
                more.insert("by".into(), by.as_deref().into());
                match decision {
                    Decision::Approve => "approval.approved",
                    Decision::Deny => "approval.denied",
                }
            }
            Record::BudgetWarned { agent, usage } => {
                more.insert("usage".into(), usage.to_value());
                let agent = agent.as_ref().map(|agent| agent.name(plan));
                return Some(self.event("budget.warning", agent.as_deref(), now, more));
            }
            Record::LeaseChanged { change: LeaseChange::Granted { notice, .. }, .. } => {
                more.insert("budgets".into(), warned(notice.value())?);
                return Some(self.event("budget.warning", None, now, more));
            }
            Record::BudgetRaised { agent, amount } => {
                more.insert("amount".into(), amount.to_value());
                let agent = agent.as_ref().map(|agent| agent.name(plan));
                return Some(self.event("budget.raised", agent.as_deref(), now, more));
            }
            Record::Migrated { version, by, reason, .. } => {
                more.extend(version.as_deref().map(|version| ("version".to_string(), version.into())));
                more.insert("by".into(), by.as_str().into());
                more.insert("reason".into(), reason.as_str().into());
                "execution.migrated"
            }
            _ => return None,
        };
        Some(self.event(kind, step.as_deref(), now, more))
    }

    /// The `execution.cancel_requested` event of a frame. It follows all other events of its frame: watchers resume by
    /// the position of an event in its frame, and earlier releases had no such event. A frame that ends the execution
    /// has none, since `execution.finished` contains the same facts.
    pub fn cancel_requested(&self, records: &[Record], now: u64) -> Option<Value> {
        let (reason, by) = records.iter().find_map(|record| match record {
            Record::CancelRequested { reason, by } => Some((reason, by)),
            _ => None,
        })?;
        if records.iter().any(|record| matches!(record, Record::Ended { .. })) {
            return None;
        }
        let more = [("reason", reason), ("by", by)].map(|(key, text)| (key.to_string(), text.as_str().into()));
        Some(self.event("execution.cancel_requested", None, now, Map::from(more)))
    }

    /// Adds fields beyond the specification: the type of a started step, its child execution, the reason of a skip, the
    /// disposition of a failure, and the number of logged lines.
    fn add_beyond(&mut self, plan: &Plan, (record, instance): (&Record, &Instance), now: u64, more: &mut Map) {
        let child = self.earlier.children.of_record(plan, record, now);
        match record {
            Record::StepStarted { .. } | Record::AttemptStarted { .. } => {
                more.insert("stepType".into(), plan.step(instance.step).work.kind().into());
                more.extend(child.map(|child| ("childExecutionId".to_string(), child.to_string().into())));
            }
            Record::StepLogged { lines, .. } => {
                let count = lines.value().as_list().map_or(0, <[Value]>::len) as u64;
                *self.earlier.logged.entry(instance.clone()).or_default() += count;
            }
            Record::StepSkipped { reason, .. } => drop(more.insert("reason".into(), reason.description().into())),
            Record::StepFailed { disposition, .. } => {
                let disposition = match disposition {
                    FailureDisposition::Failed => "failed",
                    FailureDisposition::Tolerated => "tolerated",
                    FailureDisposition::Handled => "handled",
                };
                more.insert("disposition".into(), disposition.into());
            }
            _ => {}
        }
        if record.ends_step() || matches!(record, Record::AttemptFailed { .. }) {
            more.extend(self.earlier.logged.remove(instance).map(|count| ("logLines".to_string(), count.into())));
        }
    }

    /// One `approval.required` per gate, with its token. A gate of a child also names the child and its path.
    pub fn gates(&self, gates: &[OpenGate], now: u64) -> Vec<Value> {
        let event = |open: &OpenGate| {
            let mut more = Map::new();
            more.insert("resumeToken".into(), open.token.as_str().into());
            more.insert("prompt".into(), open.gate.prompt.as_str().into());
            let mut event = self.event("approval.required", Some(&open.step), now, more);
            if let (Value::Map(map), Some(child)) = (&mut event, &open.child_id) {
                map.insert("executionId".into(), child.as_str().into());
                map.insert("path".into(), open.path.as_str().into());
            }
            event
        };
        gates.iter().map(event).collect()
    }

    /// `execution.finished`, also for an execution with nothing but open gates.
    pub fn finished(&self, state: &State, now: u64) -> Value {
        let mut more = Map::from([("status".to_string(), crate::envelope::status(state).into())]);
        if let Some(Ending::Cancelled { reason }) = &state.end.ending {
            more.insert("reason".into(), reason.as_str().into());
        }
        self.event("execution.finished", None, now, more)
    }

    /// `execution.resumed`.
    pub fn resumed(&self, now: u64) -> Value {
        self.event("execution.resumed", None, now, Map::new())
    }

    fn event(&self, kind: &str, step: Option<&str>, now: u64, mut map: Map) -> Value {
        map.insert("type".into(), kind.into());
        map.insert("executionId".into(), self.execution_id.into());
        if let Some(step) = step {
            map.insert("stepId".into(), step.into());
        }
        map.insert("ts".into(), rfc3339(now).into());
        Value::Map(map)
    }
}

/// The budgets of a notice of which a large part is used; `None` without one.
fn warned(notice: &Value) -> Option<Value> {
    let warns = |budget: &&Value| budget.get("warns").is_some();
    let warned: Vec<_> = notice.as_list()?.iter().filter(warns).cloned().collect();
    (!warned.is_empty()).then_some(Value::List(warned))
}

/// The number of the attempt that a record begins.
fn begun_attempt(record: &Record) -> Option<u32> {
    match record {
        Record::StepStarted { .. } => Some(1),
        Record::AttemptStarted { attempt, .. } => Some(*attempt),
        _ => None,
    }
}
