//! Parses the request of `run` from standard input (first specification, 6.5). Unknown fields are errors.

use mainspring_kernel::{
    definition,
    document::Document,
    json,
    limits::{EXECUTION_STEPS_MAX, OUTPUT_BYTES_MAX, PARALLEL_MAX, WAIT_MAX_MS},
    plan::Constraints,
    value::{Map, Value},
};

use crate::error::CliError;

/// A parsed request.
pub(super) struct Payload {
    pub(super) workflow: Document,
    /// The trigger: its type and metadata.
    pub(super) trigger: Value,
    /// The value of `@vars`.
    pub(super) variables: Map,
    /// The value of `@input`.
    pub(super) input: Value,
    /// The number of the dispatch, as the caller counts.
    pub(super) attempt: u32,
    /// The caller's idempotency key, unique within the workflow.
    pub(super) idempotency_key: Option<String>,
    /// Limits of the request.
    pub(super) bounds: Constraints,
}

pub(super) fn read(bytes: &[u8]) -> Result<Payload, CliError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(refused("standard input is empty; `run` reads its request there, as JSON"));
    }
    let document = json::read(bytes).map_err(|error| refused(format!("standard input is not JSON: {error}")))?;
    let root = object(&document.value, "the request")?;
    known(root, "", &["workflow", "trigger", "variables", "input", "runtime"])?;
    let workflow = document.field("workflow").filter(|workflow| workflow.value.as_map().is_some());
    let workflow =
        workflow.ok_or_else(|| refused("the request has no `workflow`: put the definition there, as an object"))?;
    let runtime = part(root, "runtime")?;
    known(&runtime, "runtime.", &["attempt", "idempotencyKey", "policy"])?;
    let policy = part(&runtime, "policy")?;
    known(&policy, "runtime.policy.", &["timeoutMs", "maxSteps", "maxParallel", "maxOutputBytes"])?;
    let small = |number: Option<u64>| number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    Ok(Payload {
        workflow,
        trigger: trigger(root)?,
        variables: part(root, "variables")?,
        input: root.get("input").cloned().unwrap_or_default(),
        attempt: small(number(&runtime, "runtime.", "attempt", 1, u64::from(u32::MAX))?).unwrap_or(1),
        idempotency_key: text(&runtime, "runtime.", "idempotencyKey")?,
        bounds: Constraints {
            max_steps: small(number(&policy, "runtime.policy.", "maxSteps", 1, u64::from(EXECUTION_STEPS_MAX))?),
            max_parallel: small(number(&policy, "runtime.policy.", "maxParallel", 1, u64::from(PARALLEL_MAX))?),
            max_calls: None,
            max_executions: None,
            max_output_bytes: small(number(&policy, "runtime.policy.", "maxOutputBytes", 1, OUTPUT_BYTES_MAX as u64)?),
            timeout_ms: number(&policy, "runtime.policy.", "timeoutMs", 1, WAIT_MAX_MS)?,
            budget: None,
            allow_self_modification: false,
        },
    })
}

/// Parses the request of `propose`, which is the present definition alone.
pub(super) fn read_workflow(bytes: &[u8]) -> Result<Document, CliError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        let message =
            "standard input is empty; `propose` reads `{\"workflow\": {…}}` there, with the current definition";
        return Err(refused(message));
    }
    let document = json::read(bytes).map_err(|error| refused(format!("standard input is not JSON: {error}")))?;
    known(object(&document.value, "the request")?, "", &["workflow"])?;
    let workflow = document.field("workflow").filter(|workflow| workflow.value.as_map().is_some());
    workflow.ok_or_else(|| refused("the request has no `workflow`: put the current definition there, as an object"))
}

/// Parses the definition for `validate`.
pub(super) fn definition(bytes: &[u8]) -> Result<Document, mainspring_kernel::diagnostic::Diagnostic> {
    definition::read(bytes, definition::Syntax::Guess)
}

fn trigger(root: &Map) -> Result<Value, CliError> {
    let mut trigger = part(root, "trigger")?;
    known(&trigger, "trigger.", &["type", "metadata"])?;
    let kind = text(&trigger, "trigger.", "type")?.unwrap_or_else(|| "manual".into());
    if !["manual", "webhook", "schedule"].contains(&kind.as_str()) {
        return Err(refused(format!("`trigger.type` is manual, webhook or schedule, not {kind:?}")));
    }
    trigger.insert("type".into(), kind.into());
    Ok(Value::Map(trigger))
}

/// A nested object; an empty one if it is absent.
fn part(map: &Map, key: &str) -> Result<Map, CliError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(value) => object(value, &format!("`{key}`")).cloned(),
    }
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map, CliError> {
    value.as_map().ok_or_else(|| refused(format!("{what} must be an object, not {}", value.kind())))
}

fn text(map: &Map, place: &str, key: &str) -> Result<Option<String>, CliError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.clone())),
        Some(value) => Err(refused(format!("`{place}{key}` is to be text, not {}", value.kind()))),
    }
}

fn number(map: &Map, place: &str, key: &str, least: u64, most: u64) -> Result<Option<u64>, CliError> {
    let Some(value) = map.get(key).filter(|value| **value != Value::Null) else { return Ok(None) };
    let number = value.as_u64().filter(|number| (least..=most).contains(number));
    let message =
        || format!("`{place}{key}` is to be a whole number from {least} to {most}, not {}", json::compact(value));
    number.map(Some).ok_or_else(|| refused(message()))
}

fn known(map: &Map, place: &str, keys: &[&str]) -> Result<(), CliError> {
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(refused(format!("`{place}{key}` is unknown; known here: {}", keys.join(", ")))),
    }
}

fn refused(message: impl Into<String>) -> CliError {
    CliError::bad_input("bad_request", message)
}
