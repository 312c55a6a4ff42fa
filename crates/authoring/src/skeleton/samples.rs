//! Values that stand for real ones: results of effects, and values that match a schema.

use mainspring_kernel::{
    plan::VariableType,
    value::{Map, Value},
};

/// Maximum nesting of a sample. A schema may refer to itself.
const DEPTH_MAX: usize = 8;

/// Maximum length of a word of a function, and of all words, that are tried as values.
const WORD_BYTES_MAX: usize = 40;
const WORDS_MAX: usize = 20;

/// The text that stands for an unknown one.
pub(super) const TEXT: &str = "text";

/// Returns values that functions and comparisons often distinguish.
pub(super) fn candidates() -> Vec<Value> {
    let texts = ["1", "0", "100", "1000000", "-1", "", "{}", "[]", "[1]", "true", "false", "yes", "no", "a\nb\n"];
    let texts = texts.into_iter().map(Value::from);
    texts.chain([1u64.into(), 0u64.into(), 1_000_000u64.into(), true.into(), false.into(), Value::Null]).collect()
}

/// Returns the result of an effect.
pub(super) fn result(effect: &str, id: &str) -> Value {
    match effect {
        "bash" => Value::map([("stdout", format!("{id} output").into()), ("exitCode", 0u64.into())]),
        "http" => Value::map([("status", 200u64.into()), ("body", Map::new().into())]),
        _ => Map::new().into(),
    }
}

/// Returns the result of an effect with the fields of a sample of its schema, which need not describe all of them.
pub(super) fn with_sample(result: Value, sample: Option<Value>) -> Value {
    match (result, sample) {
        (Value::Map(mut fields), Some(Value::Map(sample))) => {
            fields.extend(sample);
            Value::Map(fields)
        }
        (result, sample) => sample.unwrap_or(result),
    }
}

/// Returns a value that matches a schema, for schemas of the common forms.
pub(super) fn of_schema(schema: &Value) -> Value {
    sample(schema, DEPTH_MAX)
}

fn sample(schema: &Value, depth: usize) -> Value {
    let list = |key: &str| schema.get(key).and_then(Value::as_list).and_then(<[Value]>::first);
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(value) = list("examples").or_else(|| list("enum")) {
        return value.clone();
    }
    if let Some(part) = ["anyOf", "oneOf", "allOf"].into_iter().find_map(list) {
        return if depth == 0 { Value::Null } else { sample(part, depth - 1) };
    }
    let kind = match schema.get("type") {
        Some(Value::List(kinds)) => kinds.first().and_then(Value::as_text),
        Some(kind) => kind.as_text(),
        None if schema.get("properties").is_some() => Some("object"),
        None => None,
    };
    let number = || schema.get("minimum").cloned().unwrap_or_else(|| 1u64.into());
    match kind {
        _ if depth == 0 => Value::Null,
        Some("object") => object(schema, depth),
        Some("array") => vec![schema.get("items").map_or_else(|| TEXT.into(), |items| sample(items, depth - 1))].into(),
        Some("integer" | "number") => number(),
        Some("boolean") => true.into(),
        Some("null") => Value::Null,
        _ => text(schema),
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let properties = schema.get("properties").and_then(Value::as_map).cloned().unwrap_or_default();
    properties.into_iter().map(|(name, property)| (name, sample(&property, depth - 1))).collect::<Map>().into()
}

fn text(schema: &Value) -> Value {
    match schema.get("format").and_then(Value::as_text) {
        Some("date-time") => "2026-01-01T00:00:00Z".into(),
        Some("date") => "2026-01-01".into(),
        Some("uri") => "https://example.org/".into(),
        Some("email") => "ann@example.org".into(),
        _ => {
            let length = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(1_000) as usize;
            let text = if TEXT.len() < length { "x".repeat(length) } else { TEXT.into() };
            Value::from(text)
        }
    }
}

/// Returns a value of a variable's type.
pub(super) fn of_variable(kind: VariableType) -> Value {
    match kind {
        VariableType::Number | VariableType::Integer => 1u64.into(),
        VariableType::Boolean => true.into(),
        VariableType::Object => Map::new().into(),
        VariableType::Array => vec![Value::from(TEXT)].into(),
        _ => TEXT.into(),
    }
}

/// Returns the answer of a model.
pub(super) fn answer() -> Value {
    let usage = [("inputTokens", 10u64.into()), ("outputTokens", 5u64.into())];
    Value::map([("text", TEXT.into()), ("usage", Value::map(usage))])
}

/// Returns the words between quotes and in regular expressions of a function: the texts that it distinguishes.
pub(super) fn words_of(source: &str) -> Vec<Value> {
    let is_word = |part: &&str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ' ');
        !part.trim().is_empty() && part.len() <= WORD_BYTES_MAX && part.chars().all(is_letter)
    };
    let mut words: Vec<&str> = source.split(['"', '\'', '`', '/', '|']).filter(is_word).collect();
    words.truncate(WORDS_MAX);
    words.into_iter().map(Value::from).collect()
}

/// True if a value has the type that a schema declares, and is among its words.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let words = schema.get("enum").and_then(Value::as_list);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::Text(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    };
    let is_kind = match schema.get("type").and_then(Value::as_text) {
        Some("integer") => kind == "number",
        Some(declared) => kind == declared,
        None => true,
    };
    is_kind && words.is_none_or(|words| words.contains(value))
}
