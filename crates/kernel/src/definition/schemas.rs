//! Reads JSON Schemas.

use alloc::{format, string::String};

use super::{
    fields::Fields,
    help::Help,
    report::{Report, named},
    schema_fit::{Misfit, misfit},
    schema_words,
    suggest::nearest::meant,
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    fix::Fix,
    json,
    value::Value,
};

pub(super) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// The maximum number of schemas in one whose defaults are checked.
const DEFAULTS_MAX: usize = 2_000;

/// Reads an optional JSON Schema. The [`Inspector`](super::Inspector) checks the rules that need a validator.
pub(super) fn schema<'a>(fields: &Fields<'a>, key: &str, report: &mut Report<'_>) -> Option<&'a Value> {
    let schema = fields.get(key)?;
    let path = fields.path.key(key);
    check_types(schema, &path, report);
    if schema.as_bool().is_none() && schema.as_map().is_none() {
        return None;
    }
    report.check_schema(schema, &path);
    schema_words::check(schema, &path, report);
    Some(schema)
}

/// Warns about the defaults of an input schema that the schema itself refuses: an input without the property then fails.
pub(super) fn check_defaults(root: &Value, report: &mut Report<'_>) {
    let (path, mut left) = (Path::root().key("inputSchema"), DEFAULTS_MAX);
    defaults(root, root, &path, &mut left, report);
}

fn defaults(root: &Value, schema: &Value, path: &Path, left: &mut usize, report: &mut Report<'_>) {
    let Some(rest) = left.checked_sub(1) else { return };
    *left = rest;
    let path = path.key("properties");
    for (name, property) in schema.get("properties").and_then(Value::as_map).into_iter().flatten() {
        let path = path.key(name);
        if let Some(default) = property.get("default")
            && let Some(Misfit { at, why }) = misfit(default, (root, property), true, &|_| false)
        {
            let part = if at.is_empty() { String::new() } else { format!("{at} ") };
            let message = format!("the default of {} does not match its own schema: {part}{why}", named(name));
            let at = path.key("default");
            let read = default.as_text().and_then(|text| json::value(text.as_bytes()).ok());
            let read = read.filter(|value| misfit(value, (root, property), true, &|_| false).is_none());
            let help = match read {
                Some(value) => Help::value(&at, value),
                None => "write a default that the schema accepts, or leave it out".into(),
            };
            report.warning(diagnostic::VALUE_NOT_IN_SCHEMA, &at, message, help);
        }
        defaults(root, property, &path, left, report);
    }
}

/// Reports unknown values of `type`, the most common mistake; the messages of validators about it are poor.
fn check_types(schema: &Value, path: &Path, report: &mut Report<'_>) {
    let Some(map) = schema.as_map() else {
        if schema.as_bool().is_none() {
            let message = format!("a schema is an object, or true or false, not {}", schema.kind());
            let kind = schema
                .as_text()
                .and_then(|word| meant(word, TYPES).or_else(|| TYPES.into_iter().find(|kind| *kind == word)));
            let help = kind.map_or_else(
                || "write {type: …}".into(),
                |kind| {
                    let fix = Fix::replace(path, Value::map([("type", kind.into())]));
                    Help::new(format!("write {{type: {kind}}}"), fix)
                },
            );
            report.error(diagnostic::BAD_SCHEMA, path, message, help);
        }
        return;
    };
    let words = match map.get("type") {
        Some(Value::List(words)) => &words[..],
        Some(word) => core::slice::from_ref(word),
        None => &[],
    };
    for word in words {
        if let Some(text) = word.as_text().filter(|text| !TYPES.contains(text)) {
            let message = format!("{} is no type of JSON Schema: {}", quoted(text), TYPES.join(", "));
            let at = path.key("type");
            let is_one = map.get("type").is_some_and(|kind| kind.as_text().is_some());
            let help = meant(text, TYPES).map_or_else(Help::default, |meant| match is_one {
                true => Help::value(&at, meant),
                false => format!("write {}", quoted(meant)).into(),
            });
            report.error(diagnostic::BAD_SCHEMA, &at, message, help);
        }
    }
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions" | "patternProperties", Value::Map(inner)) => {
                inner.iter().for_each(|(name, schema)| check_types(schema, &path.key(key).key(name), report));
            }
            ("items" | "additionalProperties" | "not", inner) => check_types(inner, &path.key(key), report),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::List(inner)) => {
                inner.iter().enumerate().for_each(|(at, schema)| check_types(schema, &path.key(key).index(at), report));
            }
            _ => {}
        }
    }
}
