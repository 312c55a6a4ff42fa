//! From a definition, as someone wrote it, to a plan: every mistake at once, each with its place and its mend.
//!
//! Two looks. The first numbers the steps and learns their names ([`outline`]); the second reads each step by itself
//! against that outline ([`steps`] and what it uses). Both put what they find into one [`report`]. Nothing unknown is
//! ignored: a key that nobody reads would be a promise that nobody keeps.

use alloc::{format, vec::Vec};

use crate::{
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path, Place, Segment},
    hash::Hash,
    json,
    limits::{DEFINITION_BYTES_MAX, DEPTH_MAX, PLAN_DEPTH_MAX},
    plan::Plan,
    value::Value,
    yaml,
};
use edges::Edges;
use outline::Outline;
use report::{Fields, Report, has_inexact_numbers};
use root::Root;

mod bounds;
mod conditions;
pub mod convert;
pub mod edges;
mod expressions;
mod frames;
mod http;
mod inspector;
mod kinds;
mod loops;
mod meant;
mod mends;
mod nearest;
mod notation;
mod outline;
pub(crate) mod references;
mod report;
mod retry;
mod root;
mod schemas;
mod shell;
mod steps;
mod synonyms;
pub mod vocabulary;
mod ways;
mod work;

pub use inspector::{Complaint, Inspector, Unread};
pub use notation::Notation;

/// A definition that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// What runs.
    pub plan: Plan,
    /// The definition with its step ids assigned where they were missing: what is hashed, and what is kept.
    pub normalised: Value,
    /// The hash over the canonical JSON of the normalised definition.
    pub workflow_hash: Hash,
    /// The way to each step, by its number: a plan does not keep it, and whoever adds a finding of their own needs it.
    pub paths: Vec<Path>,
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

/// Compiles a definition, or gives every diagnostic there is, warnings included, in the order of the document. What is
/// written in other languages is not looked into: see [`compile_with`].
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &Unread)
}

/// The same, with somebody who looks into functions and schemas.
pub fn compile_with(document: &Document, inspector: &dyn Inspector) -> Result<Compiled, Vec<Diagnostic>> {
    let mut report = Report::new(document, inspector);
    let compiled = definition(document, &mut report);
    let has_errors = report.has_errors();
    let found = report.into_sorted();
    match compiled {
        Some((plan, normalised, paths)) if !has_errors => {
            Ok(Compiled { workflow_hash: plan.workflow_hash, plan, normalised, paths, warnings: found })
        }
        _ => Err(found),
    }
}

fn definition<'a>(document: &'a Document, report: &mut Report<'a>) -> Option<(Plan, Value, Vec<Path>)> {
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
    let notation = Notation::of(&document.value);
    let root = Root::read(notation, &fields, report);
    let steps = root::steps_of(notation, &fields, report);
    let mut outline = Outline::read(notation, steps, report);
    outline.declared = root.declared(&fields);
    let edges = Edges::read(root.order, &fields, &outline, report);
    if edges.is_none() {
        edges::check_needs(&outline, report);
    }
    let steps = steps::read(&outline, edges.as_ref(), report);
    let output = root::output(&root, &fields, &outline, edges.as_ref(), report);
    // Edges between steps that could not be read would tell half of the circles.
    let is_whole = steps.len() == outline.entries.len();
    let graph = edges.as_ref().filter(|_| is_whole).and_then(|edges| edges::graph(edges, &outline, &steps, report));
    if report.has_errors() {
        return None;
    }
    let normalised = normalised(&document.value, &outline);
    let paths: Vec<Path> = outline.entries.iter().map(|entry| entry.fields.path.clone()).collect();
    let plan = Plan {
        name: root.name,
        version: root.version,
        workflow_hash: Hash::of(json::canonical(&normalised).as_bytes()),
        constraints: root.constraints,
        policy: root.policy,
        input_schema: root.input_schema,
        variables: root.variables,
        default_context: root.default_context,
        output,
        blocks: edges::with_graph(outline.blocks, graph),
        steps,
    };
    bounds::check(&plan, &paths, report);
    Some((plan, normalised, paths))
}

/// The definition with ids assigned where they are missing, and nothing else changed: defaults are not written into it,
/// or a later build with other defaults would give another hash.
fn normalised(value: &Value, outline: &Outline<'_>) -> Value {
    let mut value = value.clone();
    for entry in outline.entries.iter().filter(|entry| !entry.has_own_id) {
        if let Some(Value::Map(step)) = part_mut(&mut value, &entry.fields.path) {
            step.insert(outline.notation.id_key().into(), entry.id.as_str().into());
        }
    }
    value
}

fn part_mut<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.segments().iter().try_fold(value, |value, segment| match (value, segment) {
        (Value::Map(map), Segment::Key(key)) => map.get_mut(&**key),
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
