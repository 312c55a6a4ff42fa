//! A case from a journal: recorded results become the effects, recorded inputs the inbox.

use std::collections::BTreeMap;

use mainspring_kernel::{
    failure::Class,
    frame::Frame,
    history::{AttemptHistory, History},
    instance::Instance,
    json,
    plan::{Plan, Work},
    record::{Record, StopReason},
    state::Status,
    value::{Map, Value},
};

use super::{
    case::{Case, Observed, expectations, leave_out_missed},
    world,
};

/// An execution as a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recorded {
    /// The fields of the case except `name`, `definition` and `expect`.
    pub fields: Map,
    /// The calls of steps that the author has written, in order: the tool or the kind of the effect, and the arguments.
    pub calls: Vec<(String, Value)>,
    /// Parts of the journal that no scenario can express.
    pub notes: Vec<String>,
}

/// The parts of a case that are collected from a journal.
#[derive(Default)]
struct Collector {
    start: u64,
    fields: Map,
    inbox: Vec<Value>,
    notes: Vec<String>,
}

/// Makes a case from the frames of an execution.
pub fn recorded(plan: &Plan, frames: &[Frame]) -> Recorded {
    let (mut history, mut collector) = (History::default(), Collector::default());
    for frame in frames {
        history.add(plan, frame);
        for record in &frame.records {
            collector.record(plan, frame.now, record);
        }
    }
    let mut effects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let (mut workflows, mut calls) = (Map::new(), Vec::new());
    for attempt in history.attempts.iter().filter(|attempt| attempt.attempt > 0) {
        let Some(instance) = Instance::parse(&attempt.step, plan) else { continue };
        match &plan.step(instance.step).work {
            // No executor performs a message to a conversation.
            _ if plan.conversation_of_message(instance.step).is_some() => {}
            Work::Effect { effect, .. } => {
                effects.entry(attempt.step.clone()).or_default().push(result(attempt));
                if plan.agent_part(instance.step).is_none() {
                    calls.push(call(effect, &attempt.input));
                }
            }
            Work::Subworkflow { workflow, .. } => collector.child(workflow, attempt, &mut workflows),
            _ => {}
        }
    }
    let Collector { mut fields, inbox, notes, .. } = collector;
    let effects: Map = effects.into_iter().map(|(name, results)| (name, single(results))).collect();
    for (key, map) in [("effects", effects), ("workflows", workflows)] {
        if !map.is_empty() {
            fields.insert(key.into(), map.into());
        }
    }
    if !inbox.is_empty() {
        fields.insert("inbox".into(), inbox.into());
    }
    if let Some(prices) = world::prices(plan) {
        fields.insert("prices".into(), prices);
    }
    Recorded { fields, calls, notes }
}

/// Makes the case of a recorded execution. `observed` is the result of a run of it. The second value describes the
/// difference between the run and the recording; the recorded calls are then the expectation, so that the case fails.
pub fn case_of(name: &str, recorded: &Recorded, observed: &Observed) -> (Case, Option<String>) {
    let mut expect = expectations(observed);
    let mut left = observed.calls.clone();
    let missing = recorded.calls.iter().find(|call| match left.iter().position(|made| made == *call) {
        Some(at) => {
            left.remove(at);
            false
        }
        None => true,
    });
    let difference = missing.map(|(tool, arguments)| {
        let arguments = json::compact(arguments);
        format!("the recorded call {tool} {arguments} is not made with these arguments any more")
    });
    let calls = if difference.is_some() { &recorded.calls } else { &observed.calls };
    let calls: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| Value::map([("tool", tool.as_str().into()), ("args", arguments.clone())]))
        .collect();
    expect.insert("calls".into(), calls.into());
    // A gate that the policy of the installation has opened does not exist in a test.
    let mut fields = recorded.fields.clone();
    leave_out_missed(&mut fields, observed);
    (Case { name: name.into(), fields, expect }, difference)
}

fn call(effect: &str, input: &Value) -> (String, Value) {
    match input.get("tool").and_then(Value::as_text).filter(|_| effect == "tool") {
        Some(tool) => (tool.into(), input.get("arguments").cloned().unwrap_or_default()),
        None => (effect.into(), input.clone()),
    }
}

fn single(mut results: Vec<Value>) -> Value {
    match results.len() {
        1 => results.remove(0),
        _ => results.into(),
    }
}

/// Returns the result of an attempt as a scenario writes it, with its duration.
fn result(attempt: &AttemptHistory) -> Value {
    let mut result = Map::new();
    match (&attempt.failure, attempt.status) {
        (Some(failure), _) => {
            let error = [
                ("class", failure.class.name().into()),
                ("code", failure.code.as_str().into()),
                ("message", failure.message.as_str().into()),
            ];
            result.insert("error".into(), Value::map(error));
        }
        (None, Status::Completed) => {
            result.insert("return".into(), attempt.output.clone());
        }
        (None, _) => {
            result.insert("hang".into(), true.into());
            return result.into();
        }
    }
    let took_ms = attempt.ended_at.map_or(0, |ended| ended.saturating_sub(attempt.started_at));
    if took_ms > 0 {
        result.insert("after".into(), format!("{took_ms}ms").into());
    }
    result.into()
}

impl Collector {
    fn record(&mut self, plan: &Plan, now: u64, record: &Record) {
        match record {
            Record::Started { input, variables, execution_id, .. } => {
                self.start = now;
                self.fields.insert("execution_id".into(), execution_id.as_str().into());
                for (key, payload) in [("input", input), ("variables", variables)] {
                    let value = payload.value();
                    if *value != Value::Null && value.as_map().is_none_or(|map| !map.is_empty()) {
                        self.fields.insert(key.into(), value.clone());
                    }
                }
            }
            Record::GateDecided { instance, decision, by: Some(by), .. } => {
                let at = Value::map([("waiting", instance.name(plan).into())]);
                let entry = [("at", at), ("decide", decision.name().into()), ("by", by.as_str().into())];
                self.inbox.push(Value::map(entry));
            }
            Record::GateDecided { by: None, .. } => {
                self.inbox.push(Value::map([("at", self.time(now)), ("tick", true.into())]));
            }
            Record::SignalKept { name, payload, .. } => {
                let signal = Value::map([("name", name.as_str().into()), ("payload", payload.value().clone())]);
                self.inbox.push(Value::map([("at", self.time(now)), ("signal", signal)]));
            }
            Record::MessageKept { conversation, by: Some(by), content, .. } => {
                let message = [("conversation", conversation.as_str().into()), ("content", content.value().clone())];
                let by = ("by", by.as_str().into());
                self.inbox.push(Value::map([("at", self.time(now)), ("message", Value::map(message)), by]));
            }
            Record::AttemptStopping { instance, reason: StopReason::Message, .. } => {
                let name = instance.name(plan);
                self.notes.push(format!("a message interrupted {name}; the case has its effect as a failed attempt"));
            }
            Record::CancelRequested { reason, by } => {
                let entry = [("at", self.time(now)), ("cancel", reason.as_str().into()), ("by", by.as_str().into())];
                self.inbox.push(Value::map(entry));
            }
            Record::AttemptFailed { instance, fault, .. }
                if fault.class == Class::Unavailable && fault.code == "interrupted" =>
            {
                let name = instance.name(plan);
                self.notes.push(format!("an attempt of {name} was interrupted; the case has it as a failed attempt"));
            }
            _ => {}
        }
    }

    fn time(&self, now: u64) -> Value {
        Value::map([("time", format!("{}ms", now.saturating_sub(self.start)).into())])
    }

    /// Replaces a child workflow by one that returns the recorded output.
    fn child(&mut self, workflow: &str, attempt: &AttemptHistory, workflows: &mut Map) {
        if attempt.failure.is_some() {
            self.notes.push(format!("the child {workflow} failed; give its definition in `workflows`"));
            return;
        }
        let end = Value::map([("type", "return".into()), ("input", attempt.output.clone())]);
        let stub = Value::map([("steps", vec![end].into())]);
        match workflows.get(workflow) {
            Some(other) if *other != stub => {
                self.notes.push(format!("{workflow} was started several times; the case has its first output"));
            }
            _ => {
                workflows.insert(workflow.into(), stub);
            }
        }
    }
}
