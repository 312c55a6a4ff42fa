//! References within a schema, and the detection of cycles.

use serde_json::Value;
use std::collections::HashMap;

/// Keywords whose subschemas apply to the same value as the schema itself.
const SAME_VALUE_ONE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_VALUE_MANY: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_VALUE_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Resolves a reference: a JSON pointer in a fragment, an `$anchor`, or the document itself.
pub(super) fn resolve<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return document.pointer(&percent_decoded(fragment)?);
    }
    anchored(document, fragment)
}

fn anchored<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(object) if object.get("$anchor").and_then(Value::as_str) == Some(name) => Some(schema),
        Value::Object(object) => object.values().find_map(|inner| anchored(inner, name)),
        Value::Array(list) => list.iter().find_map(|inner| anchored(inner, name)),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| (byte as char).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// Lists the schemas that apply to the same value as this one.
pub(super) fn same_value<'a>(document: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let Some(object) = schema.as_object() else { return Vec::new() };
    let reference = object.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(document, reference));
    let one = SAME_VALUE_ONE.iter().filter_map(|keyword| object.get(*keyword));
    let many = SAME_VALUE_MANY.iter().filter_map(|keyword| object.get(*keyword)?.as_array()).flatten();
    let named = SAME_VALUE_NAMED.iter().filter_map(|keyword| object.get(*keyword)?.as_object());
    reference.into_iter().chain(one).chain(many).chain(named.flat_map(|named| named.values())).collect()
}

/// Returns a schema that refers back to itself without descending into the value, as a JSON pointer.
pub(super) fn loops(document: &Value) -> Option<String> {
    let mut states = HashMap::new();
    search(document, document, String::new(), &mut states)
}

/// Searches from every schema of the document. `seen` marks visited schemas, so that each reference is followed once.
fn search<'a>(
    document: &'a Value,
    here: &'a Value,
    pointer: String,
    seen: &mut HashMap<*const Value, bool>,
) -> Option<String> {
    if is_in_ring(document, here, seen) {
        return Some(pointer);
    }
    let below = |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
    match here {
        Value::Object(object) => object.iter().find_map(|(name, inner)| search(document, inner, below(name), seen)),
        Value::Array(list) => {
            list.iter().enumerate().find_map(|(index, inner)| search(document, inner, below(&index.to_string()), seen))
        }
        _ => None,
    }
}

/// Returns whether a walk over schemas of the same value comes back to one that it is still in.
fn is_in_ring<'a>(document: &'a Value, schema: &'a Value, seen: &mut HashMap<*const Value, bool>) -> bool {
    match seen.get(&std::ptr::from_ref(schema)) {
        Some(still_in) => return *still_in,
        None => seen.insert(std::ptr::from_ref(schema), true),
    };
    let found = same_value(document, schema).into_iter().any(|next| is_in_ring(document, next, seen));
    seen.insert(std::ptr::from_ref(schema), found);
    found
}

#[cfg(test)]
mod tests {
    use super::{loops, resolve};
    use serde_json::json;

    #[test]
    fn references_resolve_within_the_document_only() {
        let document = json!({"$defs": {"a b": {"type": "null"}, "named": {"$anchor": "here", "type": "string"}}});
        let check = |reference: &str, expected: Option<&str>| {
            let found = resolve(&document, reference).and_then(|schema| schema["type"].as_str());
            assert_eq!(found, expected, "{reference}");
        };
        check("#/$defs/a%20b", Some("null"));
        check("#here", Some("string"));
        check("#there", None);
        check("#/%zz", None);
        check("https://example.com/schema", None);
        assert_eq!(resolve(&document, "#"), Some(&document));
    }

    #[test]
    fn cycles_are_references_that_stay_at_one_value() {
        let check = |document: serde_json::Value, expected: Option<&str>| {
            assert_eq!(loops(&document).as_deref(), expected, "{document}");
        };
        check(json!({"$ref": "#"}), Some(""));
        check(json!({"properties": {"a": {"allOf": [{"not": {"$ref": "#/properties/a"}}]}}}), Some("/properties/a"));
        check(
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [true, {"$ref": "#/$defs/a"}]}}}),
            Some("/$defs/a"),
        );
        check(json!({"properties": {"child": {"$ref": "#"}}, "items": {"$ref": "#"}}), None);
        check(
            json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object"}}}),
            None,
        );
        check(json!(true), None);
    }
}
