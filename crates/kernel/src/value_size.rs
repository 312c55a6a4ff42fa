//! Bytes of memory that values take.
//!
//! The counts decide if a document or an execution exceeds its limits, so they must be the same on every machine. They
//! are computed from constants and lengths and do not ask the allocator. The constants are those of a 64-bit build,
//! rounded up; `tests/memory.rs` compares them with a counting allocator.

use crate::value::Value;

/// Bytes of a value, without the heap memory that it owns.
pub(crate) const VALUE_BYTES: u64 = 48;

/// Bytes of the entries that a map allocates with its first node.
const FIRST_ENTRY_BYTES: u64 = 11 * ENTRY_BYTES;

/// Bytes of a map entry, without the characters of its key and the heap memory of its value.
const ENTRY_BYTES: u64 = VALUE_BYTES + TEXT_BYTES;

/// Bytes of a string, without its characters.
pub(crate) const TEXT_BYTES: u64 = 24;

/// Bytes of a signal's deduplication id, without its characters.
const IDENTITY_BYTES: u64 = 64;

/// Bytes of memory of a value in a list or a field, its heap memory included.
pub(crate) fn of_value(value: &Value) -> u64 {
    VALUE_BYTES + of_heap(value)
}

pub(crate) fn of_heap(value: &Value) -> u64 {
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

/// Bytes of memory of the values that an execution starts with.
pub(crate) fn of_values(input: &Value, variables: &Value, trigger: &Value) -> u64 {
    of_value(input) + of_value(variables) + of_value(trigger)
}

/// Bytes of memory of an output variable.
pub(crate) fn of_variable(name: &str, value: &Value) -> u64 {
    ENTRY_BYTES + name.len() as u64 + of_heap(value)
}

/// Bytes of memory of a kept signal, with the deduplication id that remains after the signal is consumed.
pub(crate) fn of_signal(id: &str, name: &str, payload: &Value) -> u64 {
    of_identity(id) + of_value(payload) + 3 * TEXT_BYTES + (id.len() + name.len()) as u64
}

/// Bytes of memory of a signal's deduplication id.
pub(crate) fn of_identity(id: &str) -> u64 {
    IDENTITY_BYTES + id.len() as u64
}
