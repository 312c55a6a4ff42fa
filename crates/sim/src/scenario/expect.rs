//! The expectations of a case.

use std::collections::BTreeMap;

use mainspring_kernel::{
    diagnostic,
    state::{ExecutionStatus, Status},
    value::Value,
};

use super::reader::{Part, Reader};

/// The expectations of a case. `None` or empty means that nothing is checked, unless noted otherwise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expect {
    /// The expected acceptance of the definition; `None` means that it must be accepted.
    pub accepted: Option<bool>,
    /// Texts that must appear in the diagnostics.
    pub diagnostics_contain: Vec<String>,
    /// The final status of the execution.
    pub status: Option<End>,
    /// The outcome; `Some(None)` for a plain one.
    pub outcome: Option<Option<String>>,
    /// The exact output.
    pub output: Option<Value>,
    /// A part of the output.
    pub output_contains: Option<Value>,
    /// Texts that must appear in the execution's error.
    pub error_contains: Vec<String>,
    /// The expectations of step instances.
    pub steps: BTreeMap<String, StepExpect>,
    /// Step instances that must not start.
    pub absent_steps: Vec<String>,
    /// All calls, in order.
    pub calls: Option<Vec<CallExpect>>,
    /// The number of calls.
    pub call_count: Option<u64>,
    /// The sets of step instances whose calls one turn dispatched, in the order of the turns.
    pub waves: Option<Vec<Vec<String>>>,
    /// The milliseconds between attempts.
    pub delays_ms: Option<Vec<u64>>,
    /// Milliseconds from the start to the end.
    pub duration_ms: Option<u64>,
}

/// The expectations of a step instance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepExpect {
    /// The final status of the step instance.
    pub status: Option<Status>,
    /// The number of its last attempt.
    pub attempts: Option<u64>,
    /// Its exact output.
    pub output: Option<Value>,
    /// A part of its output.
    pub output_contains: Option<Value>,
    /// A part of its resolved parameters: the script and the environment of a `bash` step, the arguments of a tool.
    pub input_contains: Option<Value>,
    /// Texts that must appear in its error.
    pub error_contains: Vec<String>,
}

/// A call that must have been made.
#[derive(Debug, Clone, PartialEq)]
pub struct CallExpect {
    /// The tool, or the kind of another effect.
    pub tool: String,
    /// The arguments, if they are checked.
    pub arguments: Option<Value>,
}

/// The status of an execution at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It waits, at least for an approval.
    WaitingApproval,
    /// It waits, but not for an approval.
    Waiting,
}

impl End {
    /// All statuses with their names in scenarios.
    pub const ALL: [(&'static str, Self); 5] = [
        ("completed", Self::Completed),
        ("failed", Self::Failed),
        ("cancelled", Self::Cancelled),
        ("waiting_approval", Self::WaitingApproval),
        ("waiting", Self::Waiting),
    ];

    /// Returns the name in scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, end)| *end == self).map_or("", |(name, _)| name)
    }

    /// Returns the status of an execution at the end of a run.
    pub fn of(status: ExecutionStatus, waits_for_people: bool) -> Self {
        match status {
            ExecutionStatus::Completed => Self::Completed,
            ExecutionStatus::Failed => Self::Failed,
            ExecutionStatus::Cancelled => Self::Cancelled,
            _ if waits_for_people => Self::WaitingApproval,
            _ => Self::Waiting,
        }
    }
}

const STATUSES: [Status; 9] = [
    Status::Pending,
    Status::Running,
    Status::Retrying,
    Status::Waiting,
    Status::WaitingApproval,
    Status::Completed,
    Status::Failed,
    Status::Skipped,
    Status::Cancelled,
];

const KEYS: [&str; 14] = [
    "accepted",
    "diagnostics_contain",
    "status",
    "outcome",
    "output",
    "output_contains",
    "error_contains",
    "steps",
    "absent_steps",
    "calls",
    "call_count",
    "waves",
    "delays",
    "duration",
];

const STEP_KEYS: [&str; 6] = ["status", "attempts", "output", "output_contains", "input_contains", "error_contains"];

pub(super) fn read<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Expect> {
    let map = reader.object(part, &KEYS)?;
    if map.is_empty() {
        let message = "a case that expects nothing cannot fail";
        reader.problem(diagnostic::EMPTY, &part.path, message, "write at least expect: {status: completed}");
    }
    let value = |key| part.field(key).map(|field| field.value.clone());
    let texts = |key, reader: &mut Reader<'a>| part.field(key).map(|field| reader.texts(&field)).unwrap_or_default();
    let expect = Expect {
        accepted: part.field("accepted").and_then(|field| reader.bool(&field)),
        diagnostics_contain: texts("diagnostics_contain", reader),
        status: part.field("status").and_then(|field| reader.word(&field, &End::ALL)),
        outcome: part.field("outcome").and_then(|field| outcome(&field, reader)),
        output: value("output"),
        output_contains: value("output_contains"),
        error_contains: texts("error_contains", reader),
        steps: part.field("steps").map(|field| steps(&field, reader)).unwrap_or_default(),
        absent_steps: texts("absent_steps", reader),
        calls: part.field("calls").map(|field| calls(&field, reader)),
        call_count: part.field("call_count").and_then(|field| reader.whole(&field)),
        waves: part.field("waves").map(|field| waves(&field, reader)),
        delays_ms: part.field("delays").map(|field| durations(&field, reader)),
        duration_ms: part.field("duration").and_then(|field| reader.duration_ms(&field)),
    };
    if expect.accepted == Some(false) {
        for key in map.keys().filter(|key| !matches!(key.as_str(), "accepted" | "diagnostics_contain")) {
            let message = format!("`{key}` cannot hold of a definition that is refused");
            reader.problem(diagnostic::MISPLACED_KEY, &part.path.key(key), message, "leave it out");
        }
    }
    Some(expect)
}

fn outcome<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Option<String>> {
    match part.value {
        Value::Null => Some(None),
        _ => reader.word(part, &[("with_failures", Some("with_failures".into()))]),
    }
}

fn steps<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> BTreeMap<String, StepExpect> {
    let Some(map) = part.value.as_map() else {
        reader.wrong_kind(part, "an object");
        return BTreeMap::new();
    };
    let steps = map.keys().filter_map(|name| Some((name.clone(), step(&part.field(name)?, reader)?)));
    steps.collect()
}

fn step<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<StepExpect> {
    let statuses = STATUSES.map(|status| (status.name(), status));
    if part.value.as_map().is_none() {
        let status = Some(reader.word(part, &statuses)?);
        return Some(StepExpect { status, ..StepExpect::default() });
    }
    reader.object(part, &STEP_KEYS)?;
    let value = |key| part.field(key).map(|field| field.value.clone());
    Some(StepExpect {
        status: part.field("status").and_then(|field| reader.word(&field, &statuses)),
        attempts: part.field("attempts").and_then(|field| reader.whole(&field)),
        output: value("output"),
        output_contains: value("output_contains"),
        input_contains: value("input_contains"),
        error_contains: part.field("error_contains").map(|field| reader.texts(&field)).unwrap_or_default(),
    })
}

fn calls<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Vec<CallExpect> {
    let items = reader.items(part);
    items.iter().filter_map(|item| call(item, reader)).collect()
}

fn call<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<CallExpect> {
    reader.object(part, &["tool", "args"])?;
    let Some(tool) = part.field("tool") else {
        reader.missing(part, "tool", "write {tool: GET_USER, args: {id: 1}}");
        return None;
    };
    let arguments = part.field("args").map(|arguments| arguments.value.clone());
    Some(CallExpect { tool: reader.text(&tool)?, arguments })
}

fn waves<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Vec<Vec<String>> {
    reader.items(part).iter().map(|wave| reader.texts(wave)).collect()
}

fn durations<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Vec<u64> {
    reader.items(part).iter().filter_map(|item| reader.duration_ms(item)).collect()
}
