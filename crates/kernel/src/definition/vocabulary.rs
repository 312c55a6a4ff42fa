//! Every key of the language, object by object: what the compiler takes, and what the JSON Schemas are made of.
//!
//! A key that is missing here is unknown everywhere, so that neither can know one that the other does not.

use alloc::vec::Vec;

use super::{
    kinds::{COMMON_KEYS, KINDS, Kind},
    notation::{ACTIONS, Notation, OrderWord},
};
use crate::condition::Operator;

/// `constraints` at the root.
pub const CONSTRAINTS: [&str; 7] =
    ["maxSteps", "maxParallel", "maxCalls", "maxExecutions", "maxOutputBytes", "timeoutMs", "allowSelfModification"];

/// `policy` at the root.
pub const POLICY: [&str; 3] = ["failOpen", "maxNodeFailures", "maxRetriesExhausted"];

/// What is declared of one variable.
pub const VARIABLE: [&str; 4] = ["type", "required", "default", "description"];

/// One of `edges`.
pub const EDGE: [&str; 4] = ["from", "to", "when", "condition"];

/// `action` of a step in a dataflow.
pub const ACTION: [&str; 4] = ["toolName", "transformCode", "code", "return"];

/// `config` of a step.
pub const CONFIG: [&str; 4] = ["maxAttempts", "backoffMs", "timeoutMs", "onError"];

/// `retry` of a step.
pub const RETRY: [&str; 8] =
    ["maxAttempts", "initialDelayMs", "maxDelayMs", "backoff", "jitter", "retryOn", "neverOn", "retryableErrors"];

/// `retryableErrors` of a retry policy, where it is no list.
pub const RETRYABLE_ERRORS: [&str; 2] = ["allow", "deny"];

/// `forEach` of a step.
pub const FOR_EACH: [&str; 2] = ["ref", "concurrency"];

/// What a shell step does, also where it is a tool of that name.
pub const SHELL: [&str; 3] = ["command", "cwd", "env"];

/// The words of `order` at the root.
pub fn orders() -> [&'static str; 3] {
    OrderWord::ALL.map(|(word, _)| word)
}

/// The methods of requests.
pub use super::http::METHODS;

/// The forms of a condition: what each is recognised by.
pub const CONDITION_FORMS: [&str; 5] = ["ref", "variable", "all", "any", "not"];

/// The keys of a condition of one form.
pub fn condition(form: &str) -> Vec<&'static str> {
    let form = CONDITION_FORMS.into_iter().find(|known| *known == form);
    let rest: Vec<&str> = match form {
        Some("ref") => Operator::ALL.into_iter().map(Operator::name).chain(["exists"]).collect(),
        Some("variable") => Vec::from(["equals"]),
        _ => Vec::new(),
    };
    form.into_iter().chain(rest).collect()
}

/// The keys at the root of a definition.
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
    ];
    own.iter().copied().chain(shared).collect()
}

/// The types of steps that this build runs.
pub fn step_types() -> impl Iterator<Item = &'static str> + Clone {
    KINDS.iter().filter(|kind| kind.runs).map(|kind| kind.name)
}

/// The keys of an action that say what the step does, each with the type of step that it stands for.
pub fn actions() -> [(&'static str, &'static str); 3] {
    ACTIONS
}

/// Every key of a step of a type, those of the type first; none for a type that nobody knows. `has_action` says that
/// the type is said by an `action`, which only a dataflow has.
pub fn step(notation: Notation, step_type: &str, has_action: bool) -> Vec<&'static str> {
    Kind::of(step_type).map(|kind| keys_of(kind, notation, has_action)).unwrap_or_default()
}

pub(super) fn keys_of(kind: &Kind, notation: Notation, has_action: bool) -> Vec<&'static str> {
    let own = if has_action { &["action", "input"] } else { kind.keys };
    let keys = own.iter().chain(kind.modifiers).chain(&COMMON_KEYS).copied();
    keys.filter(|key| match *key {
        // In a dataflow the name is the id.
        "id" => notation != Notation::Dataflow,
        "type" => !has_action,
        _ => true,
    })
    .collect()
}

/// The keys under which a step of a type has steps of its own.
pub fn branches(step_type: &str) -> Vec<&'static str> {
    Kind::of(step_type).map(|kind| kind.branches.iter().map(|(key, _)| *key).collect()).unwrap_or_default()
}
