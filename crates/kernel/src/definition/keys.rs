//! All keys of the language, by object. The compiler and the generated JSON Schemas both use this table.
//!
//! A key that is missing here is unknown to both, so the two cannot disagree.

use alloc::vec::Vec;

use super::{
    notation::{ACTIONS, Notation, OrderWord},
    step_types::{COMMON_KEYS, KINDS, Kind},
};
use crate::condition::Operator;

/// `constraints` at the root.
pub const CONSTRAINTS: [&str; 8] = [
    "maxSteps",
    "maxParallel",
    "maxCalls",
    "maxExecutions",
    "maxOutputBytes",
    "timeoutMs",
    "budget",
    "allowSelfModification",
];

/// `budget` of an agent, and in `constraints`.
pub const BUDGET: [&str; 7] = ["tokens", "cost", "modelCalls", "toolCalls", "timeMs", "onExceeded", "warnPercent"];

/// `policy` at the root.
pub const POLICY: [&str; 4] = ["failOpen", "maxNodeFailures", "maxRetriesExhausted", "effects"];

/// The declaration of a variable.
pub const VARIABLE: [&str; 5] = ["type", "required", "private", "default", "description"];

/// One of `edges`.
pub const EDGE: [&str; 4] = ["from", "to", "when", "condition"];

/// `action` of a step in the dataflow notation.
pub const ACTION: [&str; 4] = ["toolName", "transformCode", "code", "return"];

/// `config` of a step.
pub const CONFIG: [&str; 4] = ["maxAttempts", "backoffMs", "timeoutMs", "onError"];

/// `retry` of a step.
pub const RETRY: [&str; 8] =
    ["maxAttempts", "initialDelayMs", "maxDelayMs", "backoff", "jitter", "retryOn", "neverOn", "retryableErrors"];

/// `retryableErrors` of a retry policy, if it is an object.
pub const RETRYABLE_ERRORS: [&str; 2] = ["allow", "deny"];

/// `forEach` of a step.
pub const FOR_EACH: [&str; 2] = ["ref", "concurrency"];

/// The keys of a shell step, and the arguments of the tool `bash`.
pub const SHELL: [&str; 3] = ["command", "cwd", "env"];

/// Returns the values of `order` at the root.
pub fn orders() -> [&'static str; 3] {
    OrderWord::ALL.map(|(word, _)| word)
}

/// HTTP methods that a step may use.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The forms of a condition; each form is recognized by this key.
pub const CONDITION_FORMS: [&str; 5] = ["ref", "variable", "all", "any", "not"];

/// Returns the keys of one form of a condition.
pub fn condition(form: &str) -> Vec<&'static str> {
    let form = CONDITION_FORMS.into_iter().find(|known| *known == form);
    let rest: Vec<&str> = match form {
        Some("ref") => Operator::ALL.into_iter().map(Operator::name).chain(["exists"]).collect(),
        Some("variable") => Vec::from(["equals"]),
        _ => Vec::new(),
    };
    form.into_iter().chain(rest).collect()
}

/// Returns the keys at the root of a definition.
pub fn root(notation: Notation) -> Vec<&'static str> {
    let own: &[&str] = match notation {
        Notation::Sequence | Notation::Dataflow => &["steps"],
        Notation::Graph => &["nodes", "workflowId", "planVersion"],
    };
    let shared = [
        "edges",
        "order",
        "name",
        "description",
        "version",
        "inputSchema",
        "variables",
        "defaultContext",
        "output",
        "constraints",
        "policy",
        "finally",
        "finallyTimeoutMs",
        "allow",
    ];
    own.iter().copied().chain(shared).collect()
}

/// Returns the step types that this build runs.
pub fn step_types() -> impl Iterator<Item = &'static str> + Clone {
    KINDS.iter().filter(|kind| kind.runs).map(|kind| kind.name)
}

/// Returns the keys of an action that set the step type, each with that type.
pub fn actions() -> [(&'static str, &'static str); 3] {
    ACTIONS
}

/// Returns all keys of a step type, its own keys first; empty for an unknown type. `has_action` is true for a dataflow
/// step with an `action`.
pub fn step(notation: Notation, step_type: &str, has_action: bool) -> Vec<&'static str> {
    Kind::of(step_type).map(|kind| keys_of(kind, notation, has_action)).unwrap_or_default()
}

pub(super) fn keys_of(kind: &Kind, notation: Notation, has_action: bool) -> Vec<&'static str> {
    let own = if has_action { &["action", "input"] } else { kind.keys };
    let keys = own.iter().chain(kind.modifiers).chain(&COMMON_KEYS).copied();
    keys.filter(|key| match *key {
        // In a dataflow the `name` is the id.
        "id" => notation != Notation::Dataflow,
        "type" => !has_action,
        _ => true,
    })
    .collect()
}

/// Returns the keys under which a step type has inner steps.
pub fn branches(step_type: &str) -> Vec<&'static str> {
    Kind::of(step_type).map(|kind| kind.branches.iter().map(|(key, _)| *key).collect()).unwrap_or_default()
}
