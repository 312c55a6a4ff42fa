//! Reads the root of a definition: everything but the steps.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    budget::budget,
    edges::Edges,
    fields::Fields,
    help::Help,
    keys,
    notation::{Notation, OrderWord},
    outline::Outline,
    references::Reader,
    report::{Report, named},
    schemas::{check_defaults, schema},
    suggest::adapt::flow,
};
use crate::{
    diagnostic::{self, quoted},
    fix::Fix,
    json,
    limits::{EXECUTION_STEPS_MAX, EXECUTIONS_MAX, OUTPUT_BYTES_MAX, PARALLEL_MAX, WAIT_MAX_MS},
    plan::{Constraints, FailurePolicy, Output, VARIABLE_TYPES, Variable, VariableType, VerdictRules},
    reference::is_name,
    value::{Map, Value},
};

/// The maximum of failure bounds: an execution runs at most that many steps.
const FAILURES_MAX: u32 = EXECUTION_STEPS_MAX;

/// The root of a definition.
#[derive(Debug)]
pub(super) struct Root {
    pub name: Option<String>,
    pub version: Option<String>,
    pub order: OrderWord,
    pub constraints: Constraints,
    pub policy: FailurePolicy,
    pub effect_rules: VerdictRules,
    pub input_schema: Option<Value>,
    pub variables: Option<Vec<Variable>>,
    pub default_context: Map,
    notation: Notation,
}

impl Root {
    pub(super) fn read(notation: Notation, fields: &Fields<'_>, report: &mut Report<'_>) -> Self {
        known_keys(notation, fields, report);
        report.text(fields, "description");
        let name = match notation {
            Notation::Graph => report.one_of(fields, "name", "workflowId").unwrap_or("name"),
            Notation::Sequence | Notation::Dataflow => "name",
        };
        let order = report.word(fields, "order", &OrderWord::ALL).unwrap_or(notation.default_order());
        Self {
            name: report.text(fields, name).map(ToString::to_string),
            version: version(notation, fields, report),
            order,
            constraints: constraints(fields, report),
            policy: policy(fields, report),
            effect_rules: effect_rules(fields, report),
            input_schema: input_schema(fields, report),
            variables: variables(fields, report),
            default_context: report
                .object(fields, "defaultContext")
                .map(|fields| fields.map.clone())
                .unwrap_or_default(),
            notation,
        }
    }
}

fn input_schema(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Value> {
    let schema = schema(fields, "inputSchema", report)?;
    check_defaults(schema, report);
    Some(schema.clone())
}

fn known_keys(notation: Notation, fields: &Fields<'_>, report: &mut Report<'_>) {
    let known = keys::root(notation);
    for key in fields.map.keys().filter(|key| !known.contains(&key.as_str())) {
        if notation == Notation::Graph && key == "steps" {
            let message = "`nodes` and `steps` stand in one definition";
            let help = "keep `nodes`, and put all steps there";
            report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &fields.path.key(key), message, help);
        } else {
            report.unknown_key(&fields.path, key, known.iter().copied());
        }
    }
}

/// Reads the version. In the graph notation it may be a number.
fn version(notation: Notation, fields: &Fields<'_>, report: &mut Report<'_>) -> Option<String> {
    let key = match notation {
        Notation::Graph => report.one_of(fields, "version", "planVersion").unwrap_or("version"),
        Notation::Sequence | Notation::Dataflow => "version",
    };
    match fields.get(key) {
        Some(number @ Value::Number(_)) if key == "planVersion" => Some(json::compact(number)),
        _ => report.text(fields, key).map(ToString::to_string),
    }
}

fn constraints(fields: &Fields<'_>, report: &mut Report<'_>) -> Constraints {
    let Some(fields) = report.object(fields, "constraints") else { return Constraints::default() };
    report.known_keys(&fields, &keys::CONSTRAINTS);
    Constraints {
        max_steps: report.whole_32(&fields, "maxSteps", 1..=EXECUTION_STEPS_MAX),
        max_parallel: report.whole_32(&fields, "maxParallel", 1..=PARALLEL_MAX),
        max_calls: report.whole_32(&fields, "maxCalls", 1..=EXECUTION_STEPS_MAX),
        max_executions: report.whole_32(&fields, "maxExecutions", 1..=EXECUTIONS_MAX),
        max_output_bytes: report.whole_32(&fields, "maxOutputBytes", 1..=OUTPUT_BYTES_MAX as u32),
        timeout_ms: report.whole(&fields, "timeoutMs", 1..=WAIT_MAX_MS),
        budget: budget(&fields, report),
        allow_self_modification: report.bool(&fields, "allowSelfModification").unwrap_or_default(),
    }
}

fn policy(fields: &Fields<'_>, report: &mut Report<'_>) -> FailurePolicy {
    let Some(fields) = report.object(fields, "policy") else { return FailurePolicy::default() };
    report.known_keys(&fields, &keys::POLICY);
    FailurePolicy {
        fail_open: report.bool(&fields, "failOpen").unwrap_or_default(),
        max_node_failures: report.whole_32(&fields, "maxNodeFailures", 1..=FAILURES_MAX),
        max_retries_exhausted: report.whole_32(&fields, "maxRetriesExhausted", 1..=FAILURES_MAX),
    }
}

/// Reads `policy.effects`: a map from classes and names of calls to verdicts.
fn effect_rules(fields: &Fields<'_>, report: &mut Report<'_>) -> VerdictRules {
    let path = fields.path.key("policy").key("effects");
    let Some(value) = fields.get("policy").and_then(|policy| policy.get("effects")) else {
        return VerdictRules::default();
    };
    if value.as_map().is_none() {
        report.wrong_kind(&path, "effects", "an object", value);
        return VerdictRules::default();
    }
    VerdictRules::read("", value).unwrap_or_else(|errors| {
        for error in errors {
            let path = error.path.strip_prefix('.').map_or_else(|| path.clone(), |key| path.key(key));
            report.error(diagnostic::WRONG_VALUE, &path, error.message, error.help);
        }
        VerdictRules::default()
    })
}

/// Reads `variables`. If it is there, the names in `defaultContext` count as declared too; otherwise any variable may
/// be given.
fn variables(root: &Fields<'_>, report: &mut Report<'_>) -> Option<Vec<Variable>> {
    let declared = report.object(root, "variables")?;
    let context = report.object(root, "defaultContext");
    let mut variables = Vec::new();
    for name in declared.map.keys() {
        if !is_name(name) {
            let message = format!("{} is no name of a variable", quoted(name));
            let help = "write a letter or `_`, then letters, digits, `_` and `-`";
            report.error_at_key(diagnostic::BAD_NAME, &declared.path.key(name), message, help);
        }
        variables.extend(variable(name, &declared, report));
    }
    for (name, default) in context.iter().flat_map(|fields| fields.map) {
        if declared.has(name) {
            let message = format!("{} is declared in `variables` as well", named(name));
            let path = root.path.key("defaultContext").key(name);
            let help = format!("write its default at {}", declared.path.key(name));
            report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &path, message, help);
        }
        let (kind, default) = (VariableType::Any, Some(default.clone()));
        variables.push(Variable { name: name.clone(), kind, is_required: false, is_private: false, default });
    }
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    Some(variables)
}

fn variable(name: &str, fields: &Fields<'_>, report: &mut Report<'_>) -> Option<Variable> {
    let path = fields.path.key(name);
    let fields = match fields.get(name)? {
        Value::Map(map) => Fields { map, path },
        Value::Text(word) => {
            let message = format!("the declaration of {} must be an object, not text", named(name));
            let meant = VARIABLE_TYPES.iter().find(|(known, _)| known == word).map_or("any", |(known, _)| *known);
            let kind = Value::map([("type", meant.into())]);
            let default = Value::map([("default", word.as_str().into())]);
            let help = match meant {
                "any" => Help::from(format!("write `{}` if that is its default", flow(&default))),
                _ => Help::new(format!("write {}", flow(&kind)), Fix::replace(&path, kind)),
            };
            report.error(diagnostic::WRONG_KIND, &path, message, help);
            return None;
        }
        other => {
            let message = format!("the declaration of {} must be an object, not {}", named(name), other.kind());
            let default = Value::map([("default", other.clone())]);
            report.error(
                diagnostic::WRONG_KIND,
                &path,
                message,
                format!("write `{}` if that is its default", flow(&default)),
            );
            return None;
        }
    };
    report.known_keys(&fields, &keys::VARIABLE);
    report.text(&fields, "description");
    let kind = report.word(&fields, "type", &VARIABLE_TYPES).unwrap_or(VariableType::Any);
    let is_required = report.bool(&fields, "required").unwrap_or_default();
    let default = fields.get("default").cloned();
    if let Some(default) = default.as_ref().filter(|default| !kind.holds(default)) {
        let message = format!("the default of {} is {} and its type {}", named(name), default.kind(), kind.name());
        let path = fields.path.key("default");
        let read =
            default.as_text().and_then(|text| json::value(text.as_bytes()).ok()).filter(|value| kind.holds(value));
        let help = match read {
            Some(value) => Help::value(&path, value),
            None => format!("write a default of type {}, or another `type`", kind.name()).into(),
        };
        report.error(diagnostic::WRONG_VALUE, &path, message, help);
    }
    if is_required && default.is_some() {
        let message = format!("{} is required and has a default, which nothing would ever use", named(name));
        report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &fields.path.key("default"), message, "keep one of them");
    }
    let is_private = report.bool(&fields, "private").unwrap_or_default();
    Some(Variable { name: name.into(), kind, is_required, is_private, default })
}

/// Returns the help for a definition without its list of steps: the key that holds one, or the object around all keys.
fn instead_of_list(key: &str, fields: &Fields<'_>) -> Help {
    let has_steps = |value: &Value| {
        let steps = value.as_list().unwrap_or_default();
        !steps.is_empty() && steps.iter().all(|step| step.get("type").is_some() || step.get("action").is_some())
    };
    let inner = |value: &Value| ["steps", "nodes"].into_iter().find(|list| value.get(list).is_some_and(has_steps));
    if let Some((holder, value)) = fields.map.iter().find(|(_, value)| inner(value).is_some()) {
        let at = fields.path.key(holder);
        let keys = value.as_map().into_iter().flat_map(Map::keys).filter(|inner| !fields.has(inner));
        let moves = keys.map(|inner| Fix::moved(&at.key(inner), fields.path.key(inner)));
        let fix = moves.fold(Fix::default(), Fix::and).and(Fix::remove(&at));
        return Help::new(format!("take the keys out of {}: they stand at the root", named(holder)), fix);
    }
    if fields.has("type") {
        let step = Value::Map(fields.map.clone());
        let fix = Fix::replace(&fields.path, Value::map([(key, Value::List([step].into()))]));
        return Help::new(format!("put the step into a list: {key}: [{{type: …}}]"), fix);
    }
    format!("as in: write `{key}: [{{id: a, type: bash, command: ls}}]`").into()
}

/// Reads the list of outermost steps.
pub(super) fn steps_of<'a>(notation: Notation, fields: &Fields<'a>, report: &mut Report<'_>) -> &'a [Value] {
    let key = notation.list_key();
    if !fields.has(key) {
        report.missing(fields, key, instead_of_list(key, fields));
    }
    let Some(steps) = report.list(fields, key) else { return &[] };
    if steps.is_empty() {
        let help = "give it at least one step, as in: write `[{id: a, type: bash, command: ls}]`";
        report.error(diagnostic::EMPTY, &fields.path.key(key), format!("`{key}` is empty"), help);
    }
    steps
}

/// Reads the output of an execution that ends without a `return`; the default comes from the specification of the
/// notation.
pub(super) fn output<'a>(
    root: &Root,
    fields: &Fields<'a>,
    outline: &Outline<'a>,
    edges: Option<&Edges<'a>>,
    report: &mut Report<'a>,
) -> Output {
    let Some(output) = fields.get("output") else {
        return match root.notation {
            Notation::Sequence => Output::Variables,
            Notation::Dataflow | Notation::Graph => Output::Ends,
        };
    };
    if outline.entries.is_empty() {
        return Output::Variables;
    }
    let mut reader = Reader::new(outline, edges, 0, report);
    reader.at_end_of_all = true;
    Output::Given(reader.template(output, &fields.path.key("output")))
}
