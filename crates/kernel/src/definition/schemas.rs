//! What schemas say about references: a path that its source can never have is a mistake, not a surprise at night.

use alloc::{format, string::String};

use super::{
    nearest::nearest,
    references::Reader,
    report::{Fields, Report, named},
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    reference::{Part, Reference},
    value::{Map, Value},
};

/// What is declared at the root of a definition.
#[derive(Debug, Default)]
pub(super) struct Declared<'a> {
    /// What the input must fit.
    pub input_schema: Option<&'a Value>,
    /// The variables that may be given, if they are declared at all.
    pub variables: Option<&'a Map>,
}

/// Where a path leaves what a schema allows.
enum Stray {
    /// The name is none of the properties, and others are not allowed.
    Closed(String, Option<String>),
    /// The name is none of the properties, and looks like one of them.
    Typo(String, String),
    /// There is nothing below a value of this type.
    NothingBelow(String, String),
}

impl Reader<'_, '_> {
    pub(super) fn check_input_path(&mut self, reference: &Reference, path: &Path) {
        if let Some(schema) = self.outline.declared.input_schema {
            self.check_path(reference, &reference.path, schema, "the input", path);
        }
    }

    pub(super) fn check_output_path(&mut self, reference: &Reference, target: u32, path: &Path) {
        let entry = &self.outline.entries[target as usize];
        let Some(schema) = entry.fields.get("outputSchema") else { return };
        // Of a step that runs for each item the schema is that of one output, and the output is a list of them.
        let below = match (entry.is_loop(), reference.path.split_first()) {
            (false, _) => &reference.path[..],
            (true, Some((Part::Index(_), below))) => below,
            (true, _) => return,
        };
        let source = format!("the output of {}", named(&entry.id));
        self.check_path(reference, below, schema, &source, path);
    }

    fn check_path(&mut self, reference: &Reference, parts: &[Part], schema: &Value, source: &str, path: &Path) {
        let (message, mend) = match stray(schema, schema, parts, 0) {
            None => return,
            Some(Stray::Typo(name, meant)) => {
                let message = format!("`{reference}`: {} is not among the properties of {source}", named(&name));
                let mend = format!("write {} if that is meant", named(&meant));
                return self.report.warning(diagnostic::PATH_NOT_IN_SCHEMA, path, message, mend);
            }
            Some(Stray::Closed(name, meant)) => {
                let mend = meant.map_or_else(String::new, |meant| format!("write {}", named(&meant)));
                (format!("`{reference}`: {source} has no property {}", named(&name)), mend)
            }
            Some(Stray::NothingBelow(part, kind)) => {
                let message =
                    format!("`{reference}`: there is nothing at {} of {source}, which is of type {kind}", named(&part));
                (message, String::new())
            }
        };
        self.report.error(diagnostic::PATH_NOT_IN_SCHEMA, path, message, mend);
    }

    /// A variable that is not declared cannot be given.
    pub(super) fn check_declared(&mut self, reference: &Reference, path: &Path) {
        let (Some(declared), Some(Part::Name(name))) = (self.outline.declared.variables, reference.path.first()) else {
            return;
        };
        if declared.contains_key(name) {
            return;
        }
        let message = format!("`{reference}`: {} is none of the variables that are declared", named(name));
        let meant = nearest(name, declared.keys().map(String::as_str));
        let mend = meant.map_or_else(
            || format!("declare it: variables: {{{name}: {{type: string}}}}"),
            |meant| format!("write `@vars.{meant}`"),
        );
        self.report.error(diagnostic::UNKNOWN_REFERENCE, path, message, mend);
    }
}

/// How far schemas are followed through `$ref`.
const FOLLOWED_MAX: usize = 32;

/// Where a path leaves a schema, as far as that is certain. What is not said there is allowed.
fn stray(root: &Value, schema: &Value, parts: &[Part], followed: usize) -> Option<Stray> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_text) {
        let inner = target.strip_prefix("#/").and_then(|pointer| pointed(root, pointer))?;
        return if followed < FOLLOWED_MAX { stray(root, inner, parts, followed + 1) } else { None };
    }
    let (part, below) = parts.split_first()?;
    let kind = schema.get("type").and_then(Value::as_text);
    let says_more = ["anyOf", "oneOf", "allOf", "if", "patternProperties", "propertyNames"];
    if says_more.iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    match (part, kind) {
        (Part::Name(name), Some("object")) => {
            let nothing = Map::new();
            let properties = schema.get("properties").and_then(Value::as_map).unwrap_or(&nothing);
            if let Some(inner) = properties.get(name) {
                return stray(root, inner, below, followed);
            }
            let meant = nearest(name, properties.keys().map(String::as_str)).map(String::from);
            match (schema.get("additionalProperties").and_then(Value::as_bool), meant) {
                (Some(false), meant) => Some(Stray::Closed(name.clone(), meant)),
                (_, Some(meant)) => Some(Stray::Typo(name.clone(), meant)),
                (_, None) => None,
            }
        }
        (Part::Index(_), Some("array")) => schema.get("items").and_then(|items| stray(root, items, below, followed)),
        (Part::Index(_), Some("object")) | (_, None) => None,
        (Part::Name(name), Some(kind)) => Some(Stray::NothingBelow(name.clone(), kind.into())),
        (Part::Index(index), Some(kind)) => Some(Stray::NothingBelow(format!("{index}"), kind.into())),
    }
}

fn pointed<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    pointer.split('/').try_fold(root, |value, part| value.get(&part.replace("~1", "/").replace("~0", "~")))
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// A field that is a JSON Schema, if it is there. What only a validator can tell is asked of one elsewhere.
pub(super) fn schema<'a>(fields: &Fields<'a>, key: &str, report: &mut Report<'_>) -> Option<&'a Value> {
    let schema = fields.get(key)?;
    let path = fields.path.key(key);
    if schema.as_bool().is_none() && schema.as_map().is_none() {
        report.wrong_kind(&path, key, "a JSON Schema", schema);
        return None;
    }
    check_types(schema, &path, report);
    report.check_schema(schema, &path);
    Some(schema)
}

/// A misspelt type is the most common mistake, and validators tell it badly.
fn check_types(schema: &Value, path: &Path, report: &mut Report<'_>) {
    let Some(map) = schema.as_map() else { return };
    let words = match map.get("type") {
        Some(Value::List(words)) => &words[..],
        Some(word) => core::slice::from_ref(word),
        None => &[],
    };
    for word in words {
        if let Some(text) = word.as_text().filter(|text| !TYPES.contains(text)) {
            let message = format!("{} is no type of JSON Schema: {}", quoted(text), TYPES.join(", "));
            let mend = nearest(text, TYPES).map_or_else(String::new, |meant| format!("write {}", quoted(meant)));
            report.error(diagnostic::BAD_SCHEMA, &path.key("type"), message, mend);
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
