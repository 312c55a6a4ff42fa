//! Values that a JSON Schema refuses for certain. Only the keywords that need no validator are read; a schema with others
//! may still refuse the value, so silence says nothing.

use alloc::{
    format,
    string::{String, ToString},
};
use core::cmp::Ordering;

use super::schemas::TYPES;
use crate::{
    diagnostic::quoted,
    json,
    value::{Map, Number, Value},
};

/// The depth to which values and `$ref` are followed.
const DEPTH_MAX: usize = 32;

/// A part of a value that its schema refuses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// The path of the part inside the value, as `a.b[0]`; empty for the value itself.
    pub at: String,
    /// The reason, which continues a sentence about the part.
    pub why: String,
}

/// Values of which some parts are not known yet, and are filled in when they are read.
type IsOpen<'f> = &'f dyn Fn(&Value) -> bool;

/// Returns a part of a value that a schema refuses for certain. `is_open` is true for parts that are not known. Missing
/// properties with a `default` count as given if `fills_defaults`. The schema is a part of the one in which `$ref` points.
pub(super) fn misfit(
    value: &Value,
    (root, schema): (&Value, &Value),
    fills_defaults: bool,
    is_open: IsOpen<'_>,
) -> Option<Misfit> {
    let all = Fit { root, fills_defaults, is_open };
    all.part(value, schema, DEPTH_MAX).map(|(at, why)| Misfit { at: at.trim_start_matches('.').to_string(), why })
}

struct Fit<'f> {
    root: &'f Value,
    fills_defaults: bool,
    is_open: IsOpen<'f>,
}

type Refused = Option<(String, String)>;

impl<'f> Fit<'f> {
    fn part(&self, value: &Value, schema: &'f Value, depth: usize) -> Refused {
        let depth = depth.checked_sub(1)?;
        if (self.is_open)(value) {
            return None;
        }
        let map = match schema {
            Value::Bool(false) => return refused("is refused by the schema `false`".into()),
            schema => schema.as_map()?,
        };
        if let Some(target) = map.get("$ref") {
            let pointer = target.as_text()?.strip_prefix('#')?;
            return self.part(value, pointed(self.root, pointer)?, depth);
        }
        of_type(value, map)
            .or_else(|| of_listed(value, map))
            .or_else(|| of_bounds(value, map))
            .or_else(|| self.of_object(value, map, depth))
            .or_else(|| self.of_list(value, map, depth))
    }

    fn of_object(&self, value: &Value, schema: &'f Map, depth: usize) -> Refused {
        let object = value.as_map()?;
        let properties = schema.get("properties").and_then(Value::as_map);
        let property = |name: &str| properties.and_then(|properties| properties.get(name));
        let has_default =
            |name: &str| self.fills_defaults && property(name).is_some_and(|of| of.get("default").is_some());
        let required = schema.get("required").and_then(Value::as_list).unwrap_or_default();
        let mut names = required.iter().filter_map(Value::as_text);
        if let Some(missing) = names.find(|name| !object.contains_key(*name) && !has_default(name)) {
            return refused(format!("has no {}, which is required", quoted(missing)));
        }
        let is_closed = schema.get("additionalProperties").and_then(Value::as_bool) == Some(false)
            && !schema.contains_key("patternProperties");
        for (name, value) in object {
            match property(name) {
                Some(schema) => {
                    if let Some((at, why)) = self.part(value, schema, depth) {
                        return Some((format!(".{name}{at}"), why));
                    }
                }
                None if is_closed => return refused(format!("has {}, which the schema does not allow", quoted(name))),
                None => {}
            }
        }
        None
    }

    fn of_list(&self, value: &Value, schema: &'f Map, depth: usize) -> Refused {
        let items =
            schema.get("items").filter(|items| items.as_map().is_some() && !schema.contains_key("prefixItems"))?;
        let refused = |(at, value): (usize, &Value)| {
            self.part(value, items, depth).map(|(inner, why)| (format!("[{at}]{inner}"), why))
        };
        value.as_list()?.iter().enumerate().find_map(refused)
    }
}

fn refused(why: String) -> Refused {
    Some((String::new(), why))
}

fn of_type(value: &Value, schema: &Map) -> Refused {
    let kinds = match schema.get("type")? {
        Value::List(kinds) => kinds.as_slice(),
        kind => core::slice::from_ref(kind),
    };
    let mut words = kinds.iter().map(|kind| kind.as_text().filter(|kind| TYPES.contains(kind)));
    let may_be = words.any(|kind| kind.is_none_or(|kind| is_of(value, kind)));
    let names = || kinds.iter().filter_map(Value::as_text).collect::<alloc::vec::Vec<_>>().join(" or ");
    if may_be { None } else { refused(format!("is {}, and not of type {}", value.kind(), names())) }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match (value, kind) {
        (Value::Number(number), "integer") => is_whole(*number),
        (Value::Number(_), "number")
        | (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Text(_), "string")
        | (Value::List(_), "array")
        | (Value::Map(_), "object") => true,
        _ => false,
    }
}

fn is_whole(number: Number) -> bool {
    // Every double of this size is whole.
    const LARGE: f64 = 9.0e15;
    let double = number.as_double();
    number.as_whole().is_some() || !(-LARGE..LARGE).contains(&double) || double == (double as i64) as f64
}

fn of_listed(value: &Value, schema: &Map) -> Refused {
    let listed = match (schema.get("const"), schema.get("enum").and_then(Value::as_list)) {
        (Some(only), _) => core::slice::from_ref(only),
        (None, listed) => listed?,
    };
    let shown = || listed.iter().take(8).map(json::compact).collect::<alloc::vec::Vec<_>>().join(", ");
    if listed.contains(value) { None } else { refused(format!("is none of {}", shown())) }
}

fn of_bounds(value: &Value, schema: &Map) -> Refused {
    use Ordering::{Equal, Greater, Less};
    let size = match value {
        Value::Text(text) => Some((text.chars().count(), "minLength", "maxLength")),
        Value::List(items) => Some((items.len(), "minItems", "maxItems")),
        Value::Map(map) => Some((map.len(), "minProperties", "maxProperties")),
        _ => None,
    };
    if let Some((size, least, most)) = size {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let size = size as u64;
        return match (bound(least), bound(most)) {
            (Some(bound), _) if size < bound => refused(format!("is shorter than `{least}`, {bound}")),
            (_, Some(bound)) if size > bound => refused(format!("is longer than `{most}`, {bound}")),
            _ => None,
        };
    }
    let number = value.as_number()?;
    let bounds: [(&str, &[Ordering]); 4] = [
        ("minimum", &[Less]),
        ("maximum", &[Greater]),
        ("exclusiveMinimum", &[Less, Equal]),
        ("exclusiveMaximum", &[Greater, Equal]),
    ];
    bounds.into_iter().find_map(|(key, outside)| {
        let bound = schema.get(key)?.as_number()?;
        let is_outside = outside.contains(&number.cmp(&bound));
        if is_outside {
            refused(format!("is out of its `{key}`, {}", json::compact(&Value::Number(bound))))
        } else {
            None
        }
    })
}

/// Follows a JSON Pointer, without the `#` before it.
fn pointed<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    if pointer.is_empty() {
        return Some(root);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(root, |value, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match value {
            Value::List(items) => items.get(part.parse::<usize>().ok()?),
            value => value.get(&part),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, schema: &str, expected: Option<&str>) {
        let read = |text: &str| json::value(text.as_bytes()).expect("JSON");
        let found = misfit(&read(value), (&read(schema), &read(schema)), true, &|value| value.as_text() == Some("@"));
        let shown = found.map(|found| format!("{} {}", found.at, found.why));
        assert_eq!(shown.as_deref(), expected, "{value} {schema}");
    }

    #[test]
    fn mismatches_are_described() {
        check(r#""5""#, r#"{"type":"integer"}"#, Some(" is text, and not of type integer"));
        check("5.0", r#"{"type":"integer"}"#, None);
        check("5.5", r#"{"type":["integer","string"]}"#, Some(" is a number, and not of type integer or string"));
        check("1", r#"{"enum":[2,3]}"#, Some(" is none of 2, 3"));
        check("1", r#"{"const":1,"enum":[2]}"#, None);
        check("1", r#"{"minimum":2}"#, Some(" is out of its `minimum`, 2"));
        check("1", r#"{"exclusiveMaximum":1}"#, Some(" is out of its `exclusiveMaximum`, 1"));
        check(r#""é""#, r#"{"maxLength":1}"#, None);
        check("[]", r#"{"minItems":1}"#, Some(" is shorter than `minItems`, 1"));
        check(
            r#"{"a":[1,"x"]}"#,
            r##"{"properties":{"a":{"items":{"$ref":"#/$defs/n"}}},"$defs":{"n":{"type":"number"}}}"##,
            Some("a[1] is text, and not of type number"),
        );
        check("{}", r#"{"required":["a"]}"#, Some(r#" has no "a", which is required"#));
        check("{}", r#"{"required":["a"],"properties":{"a":{"default":1}}}"#, None);
        check(r#"{"a":1}"#, r#"{"additionalProperties":false}"#, Some(r#" has "a", which the schema does not allow"#));
        check(r#"{"a":"@"}"#, r#"{"properties":{"a":{"type":"number"}}}"#, None);
        check("1", r#"{"anyOf":[{"type":"string"}]}"#, None);
        check("1", r##"{"$ref":"#"}"##, None);
        check("1", "false", Some(" is refused by the schema `false`"));
    }
}
