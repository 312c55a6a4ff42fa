//! Checks references against declared schemas: a path that the schema rules out is an error at compile time, not at run
//! time.

use alloc::{
    format,
    string::{String, ToString},
};

use super::{
    agents::is_conversation,
    fields::Fields,
    help::Help,
    references::Reader,
    report::{Report, named},
    suggest::nearest::{known_here, meant},
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    fix::Fix,
    reference::{Part, Reference},
    value::{Map, Value},
};

/// The point at which a path leaves a schema.
struct Stray<'s> {
    /// The number of path parts before that point.
    at: usize,
    why: StrayWhy<'s>,
}

enum StrayWhy<'s> {
    /// The name is not a property, and the schema forbids additional properties.
    Closed(String, Option<&'s Map>),
    /// The name is not a listed property, and the schema allows additional ones.
    Unlisted(String, &'s Map),
    /// A value of this type has no such property or item.
    NothingBelow(String, &'s str),
}

impl Reader<'_, '_> {
    pub(super) fn check_input_path(&mut self, reference: &Reference, path: &Path) {
        if let Some(schema) = self.outline.declared.input_schema {
            self.check_path(reference, &reference.path, schema, "the input", path);
        }
    }

    pub(super) fn check_output_path(&mut self, reference: &Reference, target: u32, path: &Path) {
        let entry = &self.outline.entries[target as usize];
        let Some(schema) = entry.fields.get("outputSchema") else {
            return self.check_shape(reference, target, path);
        };
        // The schema of a `forEach` step describes one output, and the step's output is the list of them.
        let below = match (entry.is_loop(), reference.path.split_first()) {
            (false, _) => &reference.path[..],
            (true, Some((Part::Index(_), below))) => below,
            (true, _) => return self.check_shape(reference, target, path),
        };
        // The schema of an agent describes its answer, which is the `value` of its output.
        let is_agent = is_conversation(entry.kind, &entry.fields);
        let below = match below.split_first() {
            Some((Part::Name(name), below)) if is_agent && name == "value" => below,
            _ if is_agent => return self.check_shape(reference, target, path),
            _ => below,
        };
        let source = format!("the output of {}", named(&entry.id));
        self.check_path(reference, below, schema, &source, path);
    }

    fn check_path(&mut self, reference: &Reference, parts: &[Part], schema: &Value, source: &str, path: &Path) {
        let Some(Stray { at, why }) = stray(schema, schema, parts, 0, 0) else { return };
        // The reference as written up to that point, without the parts after it.
        let at_all = reference.path.len() - parts.len() + at;
        let holder = match at {
            0 => source.to_string(),
            _ => format!("`@{}`", reference.begin(at_all)),
        };
        let (message, help) = match why {
            StrayWhy::Unlisted(name, properties) => {
                let known = properties.keys().map(String::as_str);
                let Some(meant) = self.report.nearest_name(&name, known) else { return };
                let message = format!("`{reference}`: {} is not among the properties of {holder}", named(&name));
                let instead = self.with_part(reference, at_all, meant, path);
                let help = Help::new(format!("write {} if that is meant", named(meant)), instead);
                return self.report.warning(diagnostic::PATH_NOT_IN_SCHEMA, path, message, help);
            }
            StrayWhy::Closed(name, properties) => {
                let known = properties.into_iter().flat_map(Map::keys).map(String::as_str);
                let help = match self.report.nearest_name(&name, known.clone()) {
                    Some(meant) => {
                        Help::new(format!("write {}", named(meant)), self.with_part(reference, at_all, meant, path))
                    }
                    None => known_here(known).into(),
                };
                (format!("`{reference}`: {holder} has no property {}", named(&name)), help)
            }
            StrayWhy::NothingBelow(part, kind) => {
                let message = format!("`{reference}`: {holder} is of type {kind}, and has no {}", named(&part));
                let help = match kind {
                    "array" => "name an item by its place, as `[0]`, or go through the list with `forEach`",
                    _ => "end the reference before it",
                };
                let fix = self.report.reworded(path, &reference.text, reference.begin(at_all));
                (message, Help::new(help, fix))
            }
        };
        self.report.error(diagnostic::PATH_NOT_IN_SCHEMA, path, message, help);
    }

    /// Returns the fix that writes another name for one part of a reference.
    fn with_part(&self, reference: &Reference, at: usize, meant: &str, path: &Path) -> Fix {
        let (begin, end) = (reference.begin(at), reference.begin(at + 1));
        let rest = &reference.text[end.len().min(reference.text.len())..];
        self.report.reworded(path, &reference.text, &format!("{begin}.{meant}{rest}"))
    }

    /// Reports a reference to an undeclared variable: it cannot be given.
    pub(super) fn check_declared(&mut self, reference: &Reference, path: &Path) {
        let (Some(declared), Some(Part::Name(name))) = (self.outline.declared.variables, reference.path.first()) else {
            return;
        };
        if declared.contains_key(name) {
            return;
        }
        let message = format!("`{reference}`: {} is none of the variables that are declared", named(name));
        let meant = self.report.nearest_name(name, declared.keys().map(String::as_str));
        let help = match meant {
            None => format!("declare it: variables: {{{name}: {{type: string}}}}").into(),
            Some(meant) => Help::new(format!("write `@vars.{meant}`"), self.with_part(reference, 0, meant, path)),
        };
        self.report.error(diagnostic::UNKNOWN_REFERENCE, path, message, help);
    }
}

/// The maximum number of `$ref` that are followed.
const FOLLOWED_MAX: usize = 32;

/// Returns the point at which a path leaves a schema for certain. Paths that the schema does not describe are accepted.
fn stray<'s>(root: &'s Value, schema: &'s Value, parts: &[Part], at: usize, followed: usize) -> Option<Stray<'s>> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_text) {
        let inner = target.strip_prefix("#/").and_then(|pointer| pointed(root, pointer))?;
        return if followed < FOLLOWED_MAX { stray(root, inner, parts, at, followed + 1) } else { None };
    }
    let (part, below) = parts.split_first()?;
    let kind = schema.get("type").and_then(Value::as_text);
    let says_more = ["anyOf", "oneOf", "allOf", "if", "patternProperties", "propertyNames"];
    if says_more.iter().any(|key| schema.get(key).is_some()) {
        return None;
    }
    let why = match (part, kind) {
        (Part::Name(name), Some("object")) => {
            let properties = schema.get("properties").and_then(Value::as_map);
            if let Some(inner) = properties.and_then(|properties| properties.get(name)) {
                return stray(root, inner, below, at + 1, followed);
            }
            if schema.get("additionalProperties").and_then(Value::as_bool) == Some(false) {
                StrayWhy::Closed(name.clone(), properties)
            } else {
                StrayWhy::Unlisted(name.clone(), properties?)
            }
        }
        (Part::Index(_), Some("array")) => return stray(root, schema.get("items")?, below, at + 1, followed),
        (Part::Index(_), Some("object")) | (_, None) => return None,
        (Part::Name(name), Some(kind)) => StrayWhy::NothingBelow(name.clone(), kind),
        (Part::Index(index), Some(kind)) => StrayWhy::NothingBelow(format!("[{index}]"), kind),
    };
    Some(Stray { at, why })
}

fn pointed<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    pointer.split('/').try_fold(root, |value, part| value.get(&part.replace("~1", "/").replace("~0", "~")))
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Reads an optional JSON Schema. The [`Inspector`](super::Inspector) checks the rules that need a validator.
pub(super) fn schema<'a>(fields: &Fields<'a>, key: &str, report: &mut Report<'_>) -> Option<&'a Value> {
    let schema = fields.get(key)?;
    let path = fields.path.key(key);
    check_types(schema, &path, report);
    if schema.as_bool().is_none() && schema.as_map().is_none() {
        return None;
    }
    report.check_schema(schema, &path);
    Some(schema)
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
