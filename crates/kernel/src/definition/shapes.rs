//! The shapes of step outputs: the fields that the output of a step has by its type, and by those of the steps inside it.
//!
//! A step with `outputSchema` has the shape of its schema (see `schemas`), and one with a `transform` has a shape that only its
//! function knows. A shape says what a path may lead to; a skipped step or a tolerated failure still reads as null.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    agents::is_conversation,
    help::Help,
    messages::conversations,
    outline::{Entry, Outline, Role},
    references::Reader,
    report::named,
    step_work::is_shell_tool,
    suggest::{
        foreign,
        nearest::{known_here, only_near},
    },
};
use crate::{
    diagnostic,
    document::Path,
    plan::{Loop, Over, Plan, Work},
    reference::{Part, Reference, Root},
    value::{Map, Value},
};

/// The fields of an output, each with its JSON type; empty for any type.
type Fixed = &'static [(&'static str, &'static str)];

/// The field of an output that a text usually means, by the kind of its step.
const IN_TEXT: [(&str, &str); 4] = [("bash", "stdout"), ("http", "body"), ("agent", "text"), ("approval", "decision")];

/// The output of a script. The lengths are there only if a stream was cut.
const SCRIPT: Fixed = &[
    ("exitCode", "integer"),
    ("stdout", "string"),
    ("stderr", "string"),
    ("durationMs", "integer"),
    ("truncated", "boolean"),
    ("stdoutBytes", "integer"),
    ("stderrBytes", "integer"),
    ("stillRunning", "boolean"),
];

/// The output of a request.
const RESPONSE: Fixed = &[
    ("status", "integer"),
    ("headers", "object"),
    ("body", ""),
    ("url", "string"),
    ("durationMs", "integer"),
    ("redirects", "integer"),
    ("truncated", "boolean"),
];

/// The output of an agent with turns.
const ANSWER: Fixed =
    &[("text", "string"), ("value", ""), ("usage", "object"), ("turns", ""), ("stopReason", "string")];

/// The output of a message to a conversation. The response is a text, or null.
const SENT: Fixed = &[("conversation", "string"), ("response", "")];

/// The output of an approval.
const DECISION: Fixed = &[("decision", "string"), ("by", "array"), ("at", "string")];

/// The output of a subworkflow that is not waited for.
const DETACHED: Fixed = &[("executionId", "string")];

/// The output of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    /// It is not known.
    Any,
    /// An object with these fields.
    Fixed(Fixed),
    /// Always null.
    Null,
}

/// The point at which a path leaves a shape.
struct Astray {
    /// The number of parts before that point.
    at: usize,
    why: Why,
}

enum Why {
    /// The object has other fields.
    NoField { name: String, known: Vec<String> },
    /// A value of this JSON type has no such part.
    Nothing { part: String, kind: &'static str },
}

impl Reader<'_, '_> {
    /// Warns about the whole output of a step inside of a text, where it becomes JSON.
    pub(super) fn check_whole_in_text(&mut self, reference: &Reference, path: &Path) {
        let (Root::Step(target), true) = (reference.root, reference.path.is_empty()) else { return };
        let entry = &self.outline.entries[target as usize];
        let has_own = ["transform", "outputSchema"].iter().any(|key| entry.fields.has(key)) || entry.is_loop();
        let is_shell = |kind| is_shell_tool(self.outline.notation, kind, &entry.fields);
        let kind = entry.kind.map(|kind| if is_shell(kind) { "bash" } else { kind.name });
        let Some((_, field)) = IN_TEXT.into_iter().find(|(name, _)| kind == Some(*name) && !has_own) else { return };
        if kind == Some("agent") && !is_conversation(entry.kind, &entry.fields) {
            return;
        }
        let message = format!("`{reference}` is the whole result of {}, put into text here as JSON", named(&entry.id));
        let help = format!("write `{reference}.{field}`");
        self.report.warning(diagnostic::WHOLE_RESULT_IN_TEXT, path, message, help);
    }

    /// Reports a path that leaves the shape of a step's output.
    pub(super) fn check_shape(&mut self, reference: &Reference, target: u32, path: &Path) {
        let Some(Astray { at, why }) = astray(self.outline, target, &reference.path, 0) else { return };
        let entry = &self.outline.entries[target as usize];
        let holder = match at {
            0 => format!("the output of {}", named(&entry.id)),
            _ => format!("`@{}`", reference.begin(at)),
        };
        let (message, help) = match why {
            Why::NoField { name, known } => {
                let names = known.iter().map(String::as_str);
                let meant = field_in_other_words(&name, reference.path.get(at + 1), &known)
                    .or_else(|| self.report.nearest_name(&name, names.clone()))
                    .or_else(|| only_near(&name, names.clone()));
                let (begin, end) = (reference.begin(at), reference.begin(at + 1));
                let rest = &reference.text[end.len().min(reference.text.len())..];
                let help = match meant {
                    Some("") => {
                        let fix = self.report.reworded(path, &reference.text, &format!("{begin}{rest}"));
                        Help::new(format!("write `@{begin}{rest}`: a step's name stands for its output"), fix)
                    }
                    Some(meant) => {
                        let fix = self.report.reworded(path, &reference.text, &format!("{begin}.{meant}{rest}"));
                        Help::new(format!("write {}", named(meant)), fix)
                    }
                    None => known_here(names).into(),
                };
                (format!("`{reference}`: {holder} has no field {}", named(&name)), help)
            }
            Why::Nothing { part, kind } => {
                let (begin, text) = (reference.begin(at), &reference.text);
                let help = match kind {
                    "array" => "name an item by its place, as `[0]`, or go through the list with `forEach`",
                    "string" => "end the reference before it, or read the text in a `code` step, as `JSON.parse`",
                    _ => "end the reference before it",
                };
                (
                    format!("`{reference}`: {holder} is of type {kind}, and has no {}", named(&part)),
                    Help::new(help, self.report.reworded(path, text, begin)),
                )
            }
        };
        self.report.error(diagnostic::PATH_NOT_IN_SCHEMA, path, message, help);
    }
}

/// Fields of outputs in other languages, with the field that means the same.
const FIELDS: [(&str, &str); 14] = [
    ("output", "stdout"),
    ("result", "stdout"),
    ("out", "stdout"),
    ("code", "exitCode"),
    ("returncode", "exitCode"),
    ("rc", "exitCode"),
    ("statusCode", "status"),
    ("json", "body"),
    ("data", "body"),
    ("response", "body"),
    ("content", "text"),
    ("message", "text"),
    ("approved", "decision"),
    ("approver", "by"),
];

/// Returns the field that a word of another language means. It is empty for a word such as `output` before a field of the
/// output, where nothing stands here.
fn field_in_other_words<'k>(name: &str, next: Option<&Part>, known: &'k [String]) -> Option<&'k str> {
    let is_known = |field: &str| known.iter().any(|known| known == field);
    let is_holder = ["output", "outputs", "result", "data"].contains(&name);
    if is_holder && next.is_some_and(|next| is_known(&part_text(next))) {
        return Some("");
    }
    let rows = FIELDS.iter().filter(|(word, _)| foreign::same(word, name));
    rows.filter_map(|(_, field)| known.iter().find(|known| known == field)).map(String::as_str).next()
}

/// Returns the point at which a path certainly leaves the output of a step. Follows one part at a time, so the cost does not
/// depend on the size of the plan.
fn astray(outline: &Outline<'_>, step: u32, parts: &[Part], at: usize) -> Option<Astray> {
    let (first, below) = parts.split_first()?;
    let entry = outline.entries.get(step as usize)?;
    if entry.role == Role::Each {
        return match first {
            Part::Index(_) => astray(outline, step + 1, below, at + 1),
            Part::Name(name) => Some(nothing(at, name.clone(), "array")),
        };
    }
    if has_own_shape(entry) {
        return None;
    }
    let last = |key: &str| {
        let block = entry.branches.iter().find(|(name, _)| *name == key).map(|(_, block)| *block)?;
        outline.blocks[block as usize].steps.last().copied()
    };
    match entry.kind?.name {
        "parallel" => in_parallel(outline, entry, first, below, at),
        "loop" if entry.fields.has("forEach") => match first {
            Part::Index(_) => astray(outline, last("steps")?, below, at + 1),
            Part::Name(name) => Some(nothing(at, name.clone(), "array")),
        },
        "loop" => astray(outline, last("steps")?, parts, at),
        "conditional" => {
            let ends: Vec<u32> = ["then", "else"].into_iter().filter_map(last).collect();
            let mut astray: Vec<Option<Astray>> = ends.iter().map(|end| astray(outline, *end, parts, at)).collect();
            if astray.is_empty() || astray.iter().any(Option::is_none) { None } else { astray.swap_remove(0) }
        }
        _ => match leaf(outline, entry) {
            Leaf::Any => None,
            Leaf::Null => Some(nothing(at, part_text(first), "null")),
            Leaf::Fixed(fields) => in_fields(fields, first, below, at),
        },
    }
}

/// Returns the JSON type of a field of a step's output, where the type of the step alone says it.
pub(super) fn type_of(outline: &Outline<'_>, step: u32, parts: &[Part]) -> Option<&'static str> {
    let (entry, [Part::Name(name)]) = (outline.entries.get(step as usize)?, parts) else { return None };
    if entry.is_loop() || entry.role == Role::Body || has_own_shape(entry) {
        return None;
    }
    let Leaf::Fixed(fields) = leaf(outline, entry) else { return None };
    fields.iter().find(|(field, kind)| field == name && !kind.is_empty()).map(|(_, kind)| *kind)
}

fn in_parallel(outline: &Outline<'_>, entry: &Entry<'_>, first: &Part, below: &[Part], at: usize) -> Option<Astray> {
    let (_, block) = entry.branches.first()?;
    let steps = &outline.blocks[*block as usize].steps;
    let name = part_text(first);
    match steps.iter().find(|step| outline.entries[**step as usize].id == name) {
        Some(step) => astray(outline, *step, below, at + 1),
        None => {
            let known = steps.iter().map(|step| outline.entries[*step as usize].id.clone()).collect();
            Some(Astray { at, why: Why::NoField { name, known } })
        }
    }
}

fn in_fields(fields: Fixed, first: &Part, below: &[Part], at: usize) -> Option<Astray> {
    let name = part_text(first);
    let Some((_, kind)) = fields.iter().find(|(field, _)| *field == name) else {
        let known = fields.iter().map(|(field, _)| (*field).to_string()).collect();
        return Some(Astray { at, why: Why::NoField { name, known } });
    };
    match (below.first()?, *kind) {
        (_, "" | "object") | (Part::Index(_), "array") => None,
        (part, kind) => Some(nothing(at + 1, part_text(part), kind)),
    }
}

fn nothing(at: usize, part: String, kind: &'static str) -> Astray {
    Astray { at, why: Why::Nothing { part, kind } }
}

fn part_text(part: &Part) -> String {
    match part {
        Part::Name(name) => name.clone(),
        Part::Index(index) => format!("{index}"),
    }
}

/// True for a step whose output has the shape of a schema, or one that only its function knows.
fn has_own_shape(entry: &Entry<'_>) -> bool {
    let fields = &entry.fields;
    let is_answer = is_conversation(entry.kind, fields);
    fields.has("transform")
        || fields.get("action").is_some_and(|action| action.get("transformCode").is_some())
        || fields.has("outputSchema") && !is_answer
}

fn leaf(outline: &Outline<'_>, entry: &Entry<'_>) -> Leaf {
    let Some(kind) = entry.kind else { return Leaf::Any };
    match kind.name {
        "bash" => Leaf::Fixed(SCRIPT),
        "tool" if is_shell_tool(outline.notation, kind, &entry.fields) => Leaf::Fixed(SCRIPT),
        "http" => Leaf::Fixed(RESPONSE),
        "agent" if is_conversation(Some(kind), &entry.fields) => Leaf::Fixed(ANSWER),
        "agent_message" if !conversations(outline).is_empty() => Leaf::Fixed(SENT),
        "approval" => Leaf::Fixed(DECISION),
        "subworkflow" if entry.fields.get("wait").and_then(Value::as_bool) == Some(false) => Leaf::Fixed(DETACHED),
        "sleep" => Leaf::Null,
        _ => Leaf::Any,
    }
}

/// Returns the shape of a step's output as a JSON Schema; `true` if nothing is known about it.
pub fn shape(plan: &Plan, step: u32) -> Value {
    let of = plan.step(step);
    if let Some(schema) = &of.output_schema {
        return schema.clone();
    }
    if of.transform.is_some() {
        return true.into();
    }
    let last = |block: u32| plan.block(block).steps.last().map_or_else(null, |last| shape(plan, *last));
    match &of.work {
        Work::Effect { effect, .. } => match effect.as_str() {
            "bash" => fixed(SCRIPT),
            "http" => fixed(RESPONSE),
            _ if plan.conversation_of_message(step).is_some() => fixed(SENT),
            _ => true.into(),
        },
        Work::Approval(_) => fixed(DECISION),
        Work::Subworkflow { waits: false, .. } => fixed(DETACHED),
        Work::Sleep { .. } | Work::SleepUntil { .. } => null(),
        Work::Parallel { block } => {
            let branches = plan.block(*block).steps.iter();
            object(branches.map(|step| (plan.id(*step).to_string(), shape(plan, *step))).collect())
        }
        Work::Conditional { then, otherwise, .. } => {
            let otherwise = otherwise.map_or_else(null, last);
            Value::map([("anyOf", Value::List([last(*then), otherwise].into()))])
        }
        Work::Loop(Loop { over: Over::Items(_), block, .. }) => list(last(*block)),
        Work::Loop(Loop { over: Over::While { .. } | Over::Until { .. }, block, .. }) => last(*block),
        Work::Loop(Loop { over: Over::Turns(_), .. }) => fixed(ANSWER),
        Work::Loop(Loop { over: Over::Calls, .. }) | Work::Code { .. } | Work::Signal { .. } => true.into(),
        Work::Subworkflow { waits: true, .. } | Work::Return { .. } => true.into(),
    }
}

fn null() -> Value {
    Value::map([("type", "null".into())])
}

fn list(items: Value) -> Value {
    Value::map([("type", "array".into()), ("items", items)])
}

fn fixed(fields: Fixed) -> Value {
    let of_type = |kind: &str| if kind.is_empty() { true.into() } else { Value::map([("type", kind.into())]) };
    object(fields.iter().map(|(name, kind)| ((*name).to_string(), of_type(kind))).collect())
}

fn object(properties: Map) -> Value {
    let fields = [("type", "object".into()), ("properties", properties.into())];
    Value::map(fields.into_iter().chain([("additionalProperties", false.into())]))
}
