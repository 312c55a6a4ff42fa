//! The events of a journal: its records under the names of the specifications' event bus, with ids that follow from their
//! positions. Events contain no payloads: clients with the permission read them through the API, and they can be
//! erased.

use std::sync::Arc;

use mainspring_engine::{
    EngineError,
    progress::{EarlierRecords, Events},
};
use mainspring_kernel::{
    journal::Fold,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::State,
    time::rfc3339,
    value::{Map, Value},
};

use crate::{app::App, http::problem::Result};

/// Fields of an event of the first specification that are sent. Prompts, messages and details of errors are not.
const FIELDS: [&str; 16] = [
    "amount",
    "attempt",
    "budgets",
    "by",
    "childExecutionId",
    "count",
    "disposition",
    "expiresAt",
    "reason",
    "retryAt",
    "status",
    "stepId",
    "stepType",
    "usage",
    "ts",
    "version",
];

/// One event, derived from a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JournalEvent {
    /// Its frame.
    pub sequence: u64,
    /// Its index among the events of the frame, from 0.
    pub index: u32,
    /// Its type, as `workflow.step.completed`.
    pub event_type: String,
    /// Its time, RFC 3339.
    pub time: String,
    /// Its data, without the facts that all events of the execution share.
    pub data: Map,
}

/// The events of a journal, derived as far as it was read.
#[derive(Default)]
pub(crate) struct JournalEvents {
    fold: Option<Fold>,
    earlier: EarlierRecords,
    /// All events so far, in their order.
    pub events: Vec<JournalEvent>,
    /// The size of the frames so far.
    pub bytes: usize,
    /// The [hops](super::hops) of the execution, once they were read.
    pub hops: Option<u32>,
}

/// A frame, as far as its events need it.
struct FrameRecords {
    sequence: u64,
    now: u64,
    /// The plan of the execution after the frame.
    plan: Arc<Plan>,
    records: Vec<Record>,
}

impl JournalEvents {
    /// The frame behind those that were read.
    pub(crate) fn next(&self) -> u64 {
        self.fold.as_ref().map_or(0, Fold::next_sequence)
    }

    /// The state after the frames that were read; `None` before.
    pub(crate) fn state(&self) -> Option<&State> {
        self.fold.as_ref().map(|fold| &fold.state)
    }

    /// Reads and verifies the frames that were committed since the last read. False if there is no journal. If the frames
    /// do not continue those of earlier reads, the whole journal is read again.
    pub(crate) fn read(&mut self, app: &App, execution: ExecutionKey) -> Result<bool> {
        let is_first = self.fold.is_none();
        match self.advance(app, execution) {
            Err(_) if !is_first => {
                *self = Self::default();
                self.advance(app, execution)
            }
            read => read,
        }
        .inspect_err(|_| *self = Self::default())
    }

    fn advance(&mut self, app: &App, execution: ExecutionKey) -> Result<bool> {
        let mut frames = Vec::new();
        let read = app.engine.loader().frames_after(execution, &mut self.fold, |state, frame| {
            let (plan, records) = (state.plan.clone(), frame.records.clone());
            frames.push(FrameRecords { sequence: frame.sequence, now: frame.now, plan, records });
        });
        let Some(bytes) = read.map_err(EngineError::from)? else { return Ok(false) };
        let Some(fold) = &self.fold else { return Ok(false) };
        let earlier = std::mem::take(&mut self.earlier);
        self.earlier = add_events(&frames, &fold.state, earlier, &mut self.events);
        self.bytes += bytes;
        Ok(true)
    }
}

/// Adds the events of further frames, with the state after the last one. Returns the facts that later events need.
fn add_events(
    frames: &[FrameRecords],
    state: &State,
    earlier: EarlierRecords,
    all: &mut Vec<JournalEvent>,
) -> EarlierRecords {
    let id = state.start.as_ref().map_or_else(|| state.key.to_string(), |start| start.execution_id.clone());
    let mut events = Events::after(&id, earlier);
    let last = frames.last().map(|frame| frame.sequence);
    for frame in frames {
        let is_queued = frame.records.iter().any(|record| matches!(record, Record::Queued { .. }));
        let mut found: Vec<Value> = Vec::new();
        for record in &frame.records {
            found.extend(match record {
                Record::GateOpened { .. } => Some(gate(&frame.plan, record, frame.now)),
                record => events.of_record(&frame.plan, record, frame.now),
            });
        }
        found.extend(events.cancel_requested(&frame.records, frame.now));
        let mut named: Vec<(String, Value)> = found.into_iter().flat_map(|event| named(event, is_queued)).collect();
        if let Some(ended_at) = state.end.ended_at.filter(|_| last == Some(frame.sequence)) {
            named.push(("workflow.execution.finished".into(), finished(&events, state, ended_at)));
        }
        let numbered = named.into_iter().zip(0..).map(|((event_type, event), index)| {
            let (time, data) = data_of(&event);
            JournalEvent { sequence: frame.sequence, index, event_type, time, data }
        });
        all.extend(numbered);
    }
    events.into_earlier()
}

/// The types of an event of the first specification. An execution that starts is enqueued, and also started unless it is
/// queued at a concurrency limit; then its admission is its start.
fn named(event: Value, is_queued: bool) -> Vec<(String, Value)> {
    let kind = event.get("type").and_then(Value::as_text).unwrap_or_default();
    let types: &[&str] = match kind {
        "execution.started" if is_queued => &["execution.enqueued"],
        "execution.started" => &["execution.enqueued", "execution.started"],
        "execution.admitted" => &["execution.started"],
        // The event that it is enqueued, without one that it is started, says this.
        "execution.queued" => &[],
        kind => &[kind],
    };
    types.iter().map(|name| (format!("workflow.{name}"), event.clone())).collect()
}

/// The event of an opened gate, without its question and token.
fn gate(plan: &Plan, record: &Record, now: u64) -> Value {
    let step = record.instance().map(|instance| instance.name(plan));
    let mut map = Map::from([("type".to_string(), "approval.required".into()), ("ts".into(), rfc3339(now).into())]);
    map.insert("stepId".into(), step.as_deref().into());
    if let Record::GateOpened { expires_at, count, .. } = record {
        map.insert("expiresAt".into(), rfc3339(*expires_at).into());
        map.insert("count".into(), (*count).into());
    }
    Value::Map(map)
}

/// The event of the end, with the status of the API.
fn finished(events: &Events<'_>, state: &State, ended_at: u64) -> Value {
    let mut event = events.finished(state, ended_at);
    if let Value::Map(map) = &mut event {
        map.insert("status".into(), state.status().name().into());
    }
    event
}

/// The time and the data of an event. An error is sent as its code and class alone.
fn data_of(event: &Value) -> (String, Map) {
    let mut data = Map::new();
    for (key, value) in event.as_map().into_iter().flatten() {
        if FIELDS.contains(&key.as_str()) {
            data.insert(key.clone(), value.clone());
        }
    }
    if let Some(error) = event.get("error") {
        let part = |key: &str| error.get(key).cloned().map(|value| (key.to_string(), value));
        data.insert("error".into(), Value::Map(["code", "class"].into_iter().filter_map(part).collect()));
    }
    let time = data.remove("ts").as_ref().and_then(Value::as_text).unwrap_or_default().to_string();
    (time, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(pairs: &[(&str, Value)]) -> Value {
        Value::map(pairs.iter().map(|(key, value)| (key.to_string(), value.clone())))
    }

    #[test]
    fn messages_details_and_unknown_fields_are_not_sent() {
        let error =
            event(&[("code", "bash_exit_code:3".into()), ("class", "failed".into()), ("message", "secret".into())]);
        let (time, data) = data_of(&event(&[
            ("type", "step.failed".into()),
            ("ts", "2026-02-25T10:00:00.000Z".into()),
            ("stepId", "build".into()),
            ("prompt", "secret".into()),
            ("resumeToken", "secret".into()),
            ("output", "secret".into()),
            ("error", error),
        ]));
        assert_eq!(time, "2026-02-25T10:00:00.000Z");
        let error = event(&[("code", "bash_exit_code:3".into()), ("class", "failed".into())]);
        assert_eq!(Value::Map(data), event(&[("stepId", "build".into()), ("error", error)]));
    }

    #[test]
    fn a_warning_of_a_period_names_its_budgets() {
        let budget = event(&[("period", "2026-02".into()), ("budget", "organization".into())]);
        let budgets = Value::List(vec![budget]);
        let warning = event(&[("type", "budget.warning".into()), ("budgets", budgets.clone())]);
        assert_eq!(Value::Map(data_of(&warning).1), event(&[("budgets", budgets)]));
    }

    #[test]
    fn an_execution_that_waits_for_a_limit_starts_when_it_is_admitted() {
        let types = |kind: &str, is_queued: bool| {
            let named = named(event(&[("type", kind.into())]), is_queued);
            named.into_iter().map(|(event_type, _)| event_type).collect::<Vec<_>>()
        };
        assert_eq!(types("execution.started", false), ["workflow.execution.enqueued", "workflow.execution.started"]);
        assert_eq!(types("execution.started", true), ["workflow.execution.enqueued"]);
        assert_eq!(types("execution.queued", true), Vec::<String>::new());
        assert_eq!(types("execution.admitted", false), ["workflow.execution.started"]);
        assert_eq!(types("step.completed", false), ["workflow.step.completed"]);
    }

    #[test]
    fn the_schema_describes_every_field() {
        let schema = include_bytes!("../../../../../schemas/event.schema.json");
        let schema: serde_json::Value = serde_json::from_slice(schema).unwrap();
        for field in FIELDS.iter().chain(&["error", "executionId", "workflowId"]).filter(|field| **field != "ts") {
            assert!(schema["properties"][field].is_object(), "{field}");
        }
    }
}
