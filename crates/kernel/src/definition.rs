//! From a definition, as someone wrote it, to a plan: every mistake at once, each with its place and its mend.
//!
//! Two looks. The first numbers the steps and learns their names ([`outline`]); the second reads each step by itself
//! against that outline ([`steps`] and what it uses). Both put what they find into one [`report`]. Nothing unknown is
//! ignored: a key that nobody reads would be a promise that nobody keeps.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path, Place, Segment},
    hash::Hash,
    json,
    limits::{DEFINITION_BYTES_MAX, DEPTH_MAX, EXECUTION_STEPS_MAX, PARALLEL_MAX, PLAN_DEPTH_MAX, WAIT_MAX_MS},
    plan::{Constraints, Plan},
    value::Value,
    yaml,
};
use outline::Outline;
use report::{Fields, Report, has_inexact_numbers};

mod conditions;
mod kinds;
mod nearest;
mod outline;
pub(crate) mod references;
mod report;
mod retry;
mod shell;
mod steps;
mod work;

/// A definition that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// What runs.
    pub plan: Plan,
    /// The definition with its step ids assigned where they were missing: what is hashed, and what is kept.
    pub normalised: Value,
    /// The hash over the canonical JSON of the normalised definition.
    pub workflow_hash: Hash,
    /// What its author should know all the same.
    pub warnings: Vec<Diagnostic>,
}

/// How a text is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
    /// As JSON if it begins with a brace, else as YAML.
    Guess,
}

/// How deep the values of a definition may nest. The stored form of its plan is a few levels deeper, and everything that
/// reads values stops at [`DEPTH_MAX`].
pub const DEFINITION_DEPTH_MAX: usize = 90;

const _: () = assert!(DEFINITION_DEPTH_MAX + 8 <= DEPTH_MAX, "the stored form of a plan must be readable");
const _: () = assert!(PLAN_DEPTH_MAX * 2 + 8 < DEFINITION_DEPTH_MAX, "the deepest plan must have room for its data");

/// The keys of a definition in the sequence notation.
const ROOT_KEYS: [&str; 5] = ["steps", "name", "description", "version", "constraints"];

/// Keys of definitions that are part of the language and not of this build.
const LATER_ROOT_KEYS: [&str; 7] =
    ["variables", "inputSchema", "input", "order", "policy", "defaultContext", "outputSchema"];

const CONSTRAINT_KEYS: [&str; 4] = ["allowSelfModification", "maxSteps", "maxParallel", "timeoutMs"];

/// Reads a definition's text. There is one diagnostic at most: what cannot be read has no parts to look at.
pub fn read(text: &[u8], syntax: Syntax) -> Result<Document, Diagnostic> {
    if text.len() > DEFINITION_BYTES_MAX {
        let message = format!("the definition has {} bytes, more than {DEFINITION_BYTES_MAX}", text.len());
        let place = Some(Place { line: 1, column: 1 });
        let (severity, code, path) = (Severity::Error, diagnostic::TOO_LARGE, Path::root());
        return Err(Diagnostic { severity, code, path, place, message, mend: "split the workflow".into() });
    }
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = match syntax {
        Syntax::Json => true,
        Syntax::Yaml => false,
        Syntax::Guess => first == Some(&b'{'),
    };
    Ok(if is_json { json::read(text)? } else { yaml::read(text)? })
}

/// Compiles a definition, or gives every diagnostic there is, warnings included, in the order of the document.
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    let mut report = Report::new(document);
    let compiled = definition(document, &mut report);
    let has_errors = report.has_errors();
    let found = report.into_sorted();
    match compiled {
        Some((plan, normalised)) if !has_errors => {
            Ok(Compiled { workflow_hash: plan.workflow_hash, plan, normalised, warnings: found })
        }
        _ => Err(found),
    }
}

fn definition<'a>(document: &'a Document, report: &mut Report<'a>) -> Option<(Plan, Value)> {
    if is_deeper(&document.value, DEFINITION_DEPTH_MAX) {
        let message = format!("values nested more than {DEFINITION_DEPTH_MAX} deep");
        report.error(diagnostic::TOO_LARGE, &Path::root(), message, "flatten them");
        return None;
    }
    let Some(map) = document.value.as_map() else {
        let message = format!("a definition must be an object, not {}", document.value.kind());
        report.error(diagnostic::WRONG_KIND, &Path::root(), message, "write {steps: […]}");
        return None;
    };
    let fields = Fields { map, path: Path::root() };
    if has_inexact_numbers(&document.value) {
        report.inexact_numbers(&document.value, &Path::root());
    }
    if let Some((key, notation)) = other_notation(&fields) {
        let message = format!("this is a definition in the {notation} notation, which is not in this build yet");
        let mend = "write it as a sequence: {steps: [{type: …}]}";
        report.error_at_key(diagnostic::NOT_IN_BUILD, &Path::root().key(key), message, mend);
        return None;
    }
    let constraints = root_keys(&fields, report);
    let outline = Outline::read(steps_of(&fields, report), report);
    let steps = steps::read(&outline, report);
    if report.has_errors() {
        return None;
    }
    let normalised = normalised(&document.value, &outline);
    let plan = Plan {
        name: text_of(&fields, "name"),
        version: text_of(&fields, "version"),
        workflow_hash: Hash::of(json::canonical(&normalised).as_bytes()),
        constraints,
        blocks: outline.blocks,
        steps,
    };
    Some((plan, normalised))
}

/// The notation that a definition is written in, if it is another one, and the key that tells.
fn other_notation(fields: &Fields<'_>) -> Option<(&'static str, &'static str)> {
    if fields.has("nodes") {
        return Some(("nodes", "graph"));
    }
    let steps = fields.get("steps").and_then(Value::as_list).unwrap_or_default();
    let has = |key| steps.iter().any(|step| step.get(key).is_some());
    (has("action") && !has("type")).then_some(("steps", "dataflow"))
}

fn root_keys(fields: &Fields<'_>, report: &mut Report<'_>) -> Constraints {
    for key in fields.map.keys().map(String::as_str) {
        if LATER_ROOT_KEYS.contains(&key) {
            report.later_key(&fields.path, key);
        } else if !ROOT_KEYS.contains(&key) {
            report.unknown_key(&fields.path, key, ROOT_KEYS.into_iter());
        }
    }
    for key in ["name", "description", "version"] {
        report.text(fields, key);
    }
    let Some(fields) = report.object(fields, "constraints") else { return Constraints::default() };
    report.known_keys(&fields, &CONSTRAINT_KEYS);
    Constraints {
        max_steps: report.whole_32(&fields, "maxSteps", 1..=EXECUTION_STEPS_MAX),
        max_parallel: report.whole_32(&fields, "maxParallel", 1..=PARALLEL_MAX),
        timeout_ms: report.whole(&fields, "timeoutMs", 1..=WAIT_MAX_MS),
        allow_self_modification: report.bool(&fields, "allowSelfModification").unwrap_or_default(),
    }
}

fn steps_of<'a>(fields: &Fields<'a>, report: &mut Report<'_>) -> &'a [Value] {
    if !fields.has("steps") {
        report.missing(fields, "steps", "write {steps: [{type: …}]}");
    }
    let Some(steps) = report.list(fields, "steps") else { return &[] };
    if steps.is_empty() {
        report.error(diagnostic::EMPTY, &fields.path.key("steps"), "`steps` is empty", "give it at least one step");
    }
    steps
}

/// The definition with ids assigned where they are missing, and nothing else changed: defaults are not written into it,
/// or a later build with other defaults would give another hash.
fn normalised(value: &Value, outline: &Outline<'_>) -> Value {
    let mut value = value.clone();
    for entry in outline.entries.iter().filter(|entry| !entry.has_own_id) {
        if let Some(Value::Map(step)) = part_mut(&mut value, &entry.fields.path) {
            step.insert("id".into(), entry.id.as_str().into());
        }
    }
    value
}

fn part_mut<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.segments().iter().try_fold(value, |value, segment| match (value, segment) {
        (Value::Map(map), Segment::Key(key)) => map.get_mut(key),
        (Value::List(items), Segment::Index(index)) => items.get_mut(*index),
        _ => None,
    })
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match (value, levels) {
        (Value::List(_) | Value::Map(_), 0) => true,
        (Value::List(items), _) => items.iter().any(|item| is_deeper(item, levels - 1)),
        (Value::Map(map), _) => map.values().any(|field| is_deeper(field, levels - 1)),
        _ => false,
    }
}

fn text_of(fields: &Fields<'_>, key: &str) -> Option<String> {
    fields.get(key).and_then(Value::as_text).map(ToString::to_string)
}
