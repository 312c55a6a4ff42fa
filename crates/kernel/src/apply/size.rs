//! Counts the memory that a state takes and the bytes that its records take in the journal.
//!
//! The counts decide if an execution exceeds its limits, so they must be the same on every machine. They are computed
//! from constants and lengths and do not ask the allocator. The constants are those of a 64-bit build, rounded up;
//! `tests/memory.rs` compares them with a counting allocator.

use alloc::string::String;

use crate::{
    cbor,
    record::{Ending, Fault, Record},
    state::{Started, State, StepState},
    value::Value,
};

/// Bytes of a value, without the heap memory that it owns.
pub(crate) const VALUE_BYTES: u64 = 48;

/// Bytes of the entries that a map allocates with its first node.
const FIRST_ENTRY_BYTES: u64 = 11 * ENTRY_BYTES;

/// Bytes of a map entry, without the characters of its key and the heap memory of its value.
const ENTRY_BYTES: u64 = VALUE_BYTES + TEXT_BYTES;

/// Bytes of a string, without its characters.
const TEXT_BYTES: u64 = 24;

/// Bytes of a step instance without its values: key, state, and share of a node of the map.
const STEP_BYTES: u64 = 640;

/// Bytes of a running block, without its steps.
const SCOPE_BYTES: u64 = 320;

/// Bytes per step of a running block: its entries in the sets of pending, unsettled and decidable steps.
const PLACE_BYTES: u64 = 40;

/// Bytes of a running loop, without its outputs.
const LOOP_BYTES: u64 = 320;

/// Bytes of a signal's deduplication id, without its characters.
const IDENTITY_BYTES: u64 = 64;

/// Bytes of a record in the journal, without its payload.
pub(crate) const RECORD_BYTES: u64 = 32;

/// Bytes of memory of a value in a list or a field, its heap memory included.
pub(crate) fn of_value(value: &Value) -> u64 {
    VALUE_BYTES + of_heap(value)
}

fn of_heap(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::Text(text) => text.len() as u64,
        Value::List(list) => list.iter().map(of_value).sum(),
        Value::Map(map) if map.is_empty() => 0,
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| ENTRY_BYTES + key.len() as u64 + of_heap(value));
            FIRST_ENTRY_BYTES + entries.sum::<u64>()
        }
    }
}

/// Bytes of memory that another field adds to an object with `fields` fields, without the field's value.
pub(crate) fn of_field(key: &str, fields: usize) -> u64 {
    let first = if fields == 0 { FIRST_ENTRY_BYTES } else { 0 };
    first + TEXT_BYTES + key.len() as u64
}

/// Bytes of memory of the values that an execution started with.
pub(super) fn of_start(start: &Started) -> u64 {
    of_values(&start.input, &start.variables, &start.trigger)
}

/// The same before anything is decided.
pub(crate) fn of_values(input: &Value, variables: &Value, trigger: &Value) -> u64 {
    of_value(input) + of_value(variables) + of_value(trigger)
}

/// Bytes of memory of an output variable.
pub(super) fn of_variable(name: &str, value: &Value) -> u64 {
    ENTRY_BYTES + name.len() as u64 + of_heap(value)
}

/// Bytes of memory of a kept signal, with the deduplication id that remains after the signal is consumed.
pub(crate) fn of_signal(id: &str, name: &str, payload: &Value) -> u64 {
    of_identity(id) + of_value(payload) + 3 * TEXT_BYTES + (id.len() + name.len()) as u64
}

/// Bytes of memory of a signal's deduplication id.
pub(super) fn of_identity(id: &str) -> u64 {
    IDENTITY_BYTES + id.len() as u64
}

/// Bytes of memory of a running block with `step_count` steps.
pub(super) fn of_scope(step_count: usize) -> u64 {
    SCOPE_BYTES + PLACE_BYTES * step_count as u64
}

/// Bytes of memory of a loop that starts with `output_count` outputs.
pub(super) fn of_loop(output_count: usize) -> u64 {
    LOOP_BYTES + VALUE_BYTES * output_count as u64
}

/// Recounts a step instance if the record may have changed its values.
pub(super) fn count(state: &mut State, step: &mut StepState, record: &Record) {
    let changes_values = matches!(
        record,
        Record::StepStarted { .. }
            | Record::StepSkipped { .. }
            | Record::StepCompleted { .. }
            | Record::StepFailed { .. }
            | Record::StepCancelled { .. }
            | Record::AttemptFailed { .. }
            | Record::GateOpened { .. }
            | Record::GateDecided { .. }
    );
    if !changes_values {
        return;
    }
    let bytes = of_step(step);
    state.memory_bytes = state.memory_bytes + bytes - step.memory_bytes;
    step.memory_bytes = bytes;
}

fn of_step(step: &StepState) -> u64 {
    let failure = step.failure.as_ref().map_or(0, |failure| of_value(&failure.to_value()));
    let gate = step.gate.as_ref().map_or(0, |gate| {
        let texts = |texts: &[String]| texts.iter().map(|text| TEXT_BYTES + text.len() as u64).sum::<u64>();
        of_value(&gate.items) + gate.prompt.len() as u64 + texts(&gate.approvers) + texts(&gate.approved_by)
    });
    STEP_BYTES + of_heap(&step.input) + of_heap(&step.output) + failure + gate
}

/// Approximate bytes of a record in the journal.
pub(super) fn in_journal(record: &Record) -> u64 {
    let payload = match record {
        Record::StepStarted { input: payload, .. }
        | Record::StepCompleted { output: payload, .. }
        | Record::GateOpened { question: payload, .. }
        | Record::StepFailed { fault: Fault { text: payload, .. }, .. }
        | Record::AttemptFailed { fault: Fault { text: payload, .. }, .. }
        | Record::StepLogged { lines: payload, .. }
        | Record::SignalKept { payload, .. }
        | Record::EndingBegun { ending: Ending::Completed { output: payload } } => payload,
        _ => return RECORD_BYTES,
    };
    RECORD_BYTES + cbor::byte_count(payload.value()) as u64
}

/// Counts the whole state from scratch. Debug builds compare the result with the incremental count.
#[cfg(debug_assertions)]
pub(crate) fn recount(state: &State) -> u64 {
    let steps = state.steps.values().map(of_step).sum::<u64>();
    let scopes = state.scopes.keys().map(|scope| of_scope(state.plan.block(scope.block).steps.len()));
    let of_outputs = |outputs: &[Value]| outputs.iter().map(of_heap).sum::<u64>();
    let loops = state.loops.values().map(|rounds| of_loop(rounds.outputs.len()) + of_outputs(&rounds.outputs));
    let variables = state.outputs.iter().map(|(name, value)| of_variable(name, value));
    let kept =
        |signal: &crate::state::Signal| of_signal(&signal.id, &signal.name, &signal.payload) - of_identity(&signal.id);
    let signals = state.signals.iter().map(kept).sum::<u64>();
    let identities = state.signals_seen.iter().map(|id| of_identity(id)).sum::<u64>();
    let start = state.start.as_ref().map_or(0, of_start);
    steps + scopes.sum::<u64>() + loops.sum::<u64>() + variables.sum::<u64>() + signals + identities + start
}
