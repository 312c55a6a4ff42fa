//! Compiler from a definition to a plan. It reports all mistakes of a definition at once, each with its position and a
//! help text.
//!
//! Compilation has two passes. The first ([`outline`]) numbers the steps and collects their names. The second
//! ([`steps`] and the modules that it uses) reads each step against that outline. Both add diagnostics to one
//! [`report`]. An unknown key is an error: if it were ignored, the author would rely on a setting that has no effect.
//!
//! The text formats are parsed elsewhere (`json`, `yaml`), and plans are executed elsewhere (`decide`). The compiler
//! does not understand JavaScript or the finer rules of JSON Schema; it asks an [`Inspector`] about them.

use alloc::{format, vec::Vec};

use crate::{
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path, Place, Segment},
    fix::Fix,
    hash::Hash,
    json,
    limits::{DEFINITION_BYTES_MAX, DEPTH_MAX, PLAN_DEPTH_MAX},
    plan::Plan,
    value::Value,
    yaml,
};
use edges::Edges;
use fields::Fields;
use help::Help;
use outline::{Declared, Outline};
use report::{Report, has_inexact_numbers};
use root::Root;
use suggest::rewrite_types::steps_of_playbook;

mod agents;
mod allow;
mod allowed;
mod bounds;
mod budget;
mod cleanup;
mod comparison_forms;
mod comparisons;
mod conditions;
pub mod convert;
mod denied_calls;
pub mod edges;
mod expression_hints;
mod fields;
mod first_round;
mod flows;
mod foreign_templates;
mod help;
mod http;
mod inspector;
pub mod keys;
mod loops;
mod messages;
mod notation;
mod outline;
mod outside;
mod reachability;
pub(crate) mod references;
mod report;
mod retry;
mod root;
mod runners;
mod schema_fit;
mod schema_words;
mod schemas;
mod secrets;
mod shapes;
mod shell;
mod step_types;
mod step_work;
mod steps;
mod suggest;
mod text_references;
mod unreadable;
mod untyped;
mod warnings;

pub use allowed::is_allowed;
pub use denied_calls::denied_calls;
pub use flows::flow_warnings;
pub use inspector::{Complaint, FunctionTypes, Inspector, Missing, Outside, Unread};
pub use notation::Notation;
pub use shapes::{DefinitionShapes, Field, fields as fields_of, shapes};
pub use suggest::nearest::{meant, nearest};

/// The result of a successful compilation.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The executable form of the definition.
    pub plan: Plan,
    /// The definition with an id for each step that had none. This value is hashed and stored.
    pub normalised: Value,
    /// SHA-256 of the canonical JSON of `normalised`.
    pub workflow_hash: Hash,
    /// The path of each step in the definition, by step number. A plan has no paths, but callers that add diagnostics
    /// of their own need them.
    pub paths: Vec<Path>,
    /// Warnings only: a definition with errors is not compiled.
    pub warnings: Vec<Diagnostic>,
}

/// The text format of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// RFC 8259.
    Json,
    /// YAML 1.2, limited to the values of JSON.
    Yaml,
    /// JSON if the first character other than white space is a brace, otherwise YAML.
    Guess,
}

/// The maximum nesting of values in a definition, in levels. The stored form of the plan is a few levels deeper, and
/// all readers of values stop at [`DEPTH_MAX`].
pub const DEFINITION_DEPTH_MAX: usize = 90;

const _: () = assert!(DEFINITION_DEPTH_MAX + 8 <= DEPTH_MAX, "the stored form of a plan must be readable");
const _: () = assert!(PLAN_DEPTH_MAX * 2 + 8 < DEFINITION_DEPTH_MAX, "the deepest plan must have room for its data");

/// Parses the text of a definition. Reports one diagnostic at most, because a text that does not parse has no parts to
/// check.
pub fn read(text: &[u8], syntax: Syntax) -> Result<Document, Diagnostic> {
    if text.len() > DEFINITION_BYTES_MAX {
        let message = format!("the definition has {} bytes, more than {DEFINITION_BYTES_MAX}", text.len());
        let place = Some(Place { line: 1, column: 1 });
        let (severity, code, path) = (Severity::Error, diagnostic::TOO_LARGE, Path::root());
        let (help, fix) = ("split the workflow".into(), Fix::default());
        return Err(Diagnostic { severity, code, path, place, message, help, fix });
    }
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = match syntax {
        Syntax::Json => true,
        Syntax::Yaml => false,
        Syntax::Guess => first == Some(&b'{'),
    };
    let document = if is_json { json::read(text) } else { yaml::read(text) };
    document.map_err(|error| unreadable::with_line(error, text, is_json).into())
}

/// Compiles a definition. If it has errors, returns all diagnostics, warnings included, in document order. Embedded
/// functions and schemas are not checked; [`compile_with`] checks them.
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &Unread)
}

/// Compiles like [`compile`], and asks `inspector` to check functions and schemas.
pub fn compile_with(document: &Document, inspector: &dyn Inspector) -> Result<Compiled, Vec<Diagnostic>> {
    let mut report = Report::new(document, inspector);
    let compiled = definition(document, &mut report);
    let has_errors = report.has_errors();
    let is_whole = compiled.is_some() && !has_errors;
    let found = report.into_sorted(is_whole);
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
        let path = Path::root();
        let is_steps =
            document.value.as_list().is_some_and(|items| items.iter().all(|item| item.get("type").is_some()));
        let steps = if is_steps { Some(document.value.clone()) } else { steps_of_playbook(&document.value) };
        let help = match (steps, &document.value) {
            (Some(steps), _) => Help::new("write {steps: […]}", Fix::replace(&path, Value::map([("steps", steps)]))),
            (None, Value::Null) => {
                "the text has no definition: as in: write `{steps: [{id: a, type: bash, command: ls}]}`".into()
            }
            _ => "write {steps: […]}".into(),
        };
        report.error(diagnostic::WRONG_KIND, &path, message, help);
        return None;
    };
    let fields = Fields { map, path: Path::root() };
    if has_inexact_numbers(&document.value) {
        report.inexact_numbers(&document.value, &Path::root());
    }
    let notation = Notation::of(&document.value);
    let root = Root::read(notation, &fields, report);
    let steps = root::steps_of(notation, &fields, report);
    let mut outline = Outline::read(notation, steps, cleanup::steps_of(&fields, report), report);
    let finally = cleanup::read(&fields, &outline, report);
    outline.declared = Declared::of(&fields);
    report.allowed = allow::read(&fields, &outline, report);
    let edges = Edges::read(root.order, &fields, &outline, report);
    if edges.is_none() {
        edges::check_needs(&outline, report);
    }
    let steps = steps::read(&outline, edges.as_ref(), report);
    let output = root::output(&root, &fields, &outline, edges.as_ref(), report);
    // If some steps are unreadable, their edges are missing and only some of the cycles would be found.
    let is_whole = steps.len() == outline.entries.len();
    let graph = edges.as_ref().filter(|_| is_whole).and_then(|edges| edges::graph(edges, &outline, &steps, report));
    let trust = flows::trust(&outline, report);
    runners::check_budget(root.constraints.budget.is_some(), &outline, report);
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
        effect_rules: root.effect_rules,
        models: None,
        input_schema: root.input_schema,
        variables: root.variables,
        default_context: root.default_context,
        output,
        finally,
        blocks: edges::with_graph(core::mem::take(&mut outline.blocks), graph),
        steps,
        trust,
    };
    bounds::check(&plan, &paths, report);
    warnings::check(&plan, &outline, report);
    Some((plan, normalised, paths))
}

/// Adds the missing ids and changes nothing else. Defaults are not written into the definition, because a later build
/// with other defaults would then compute another hash.
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
