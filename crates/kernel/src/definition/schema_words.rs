//! Keywords of JSON Schema that a validator ignores: misspelled ones, properties that are outside of `properties`, and
//! required properties that the schema does not list.
//!
//! JSON Schema allows any further keyword as a remark. A keyword is reported only if it is similar to one that takes such a
//! value, or if its value is a schema and no part refers to it.

use alloc::{format, string::String, vec::Vec};

use super::{
    help::Help,
    report::{Report, named},
    schemas::TYPES,
    suggest::{
        adapt::{adapted, flow},
        nearest::nearest,
    },
};
use crate::{
    diagnostic,
    document::Path,
    fix::Fix,
    json,
    value::{Map, Value},
};

/// The form of the value that a keyword takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Number,
    Truth,
    Text,
    Names,
    List,
    Type,
    Schema,
    Schemas,
    Properties,
    Any,
}

/// The keywords of the drafts, with the value that each takes. A short word is near to too many others, so those of
/// [`Takes::Any`] are compared only if they are long.
const KEYWORDS: &[(&str, Takes)] = &[
    ("type", Takes::Type),
    ("properties", Takes::Properties),
    ("required", Takes::Names),
    ("items", Takes::Schema),
    ("additionalProperties", Takes::Schema),
    ("enum", Takes::List),
    ("const", Takes::Any),
    ("default", Takes::Any),
    ("minimum", Takes::Number),
    ("maximum", Takes::Number),
    ("exclusiveMinimum", Takes::Number),
    ("exclusiveMaximum", Takes::Number),
    ("multipleOf", Takes::Number),
    ("minLength", Takes::Number),
    ("maxLength", Takes::Number),
    ("minItems", Takes::Number),
    ("maxItems", Takes::Number),
    ("minProperties", Takes::Number),
    ("maxProperties", Takes::Number),
    ("minContains", Takes::Number),
    ("maxContains", Takes::Number),
    ("uniqueItems", Takes::Truth),
    ("pattern", Takes::Text),
    ("format", Takes::Text),
    ("prefixItems", Takes::Schemas),
    ("allOf", Takes::Schemas),
    ("anyOf", Takes::Schemas),
    ("oneOf", Takes::Schemas),
    ("patternProperties", Takes::Properties),
    ("propertyNames", Takes::Schema),
    ("unevaluatedProperties", Takes::Schema),
    ("unevaluatedItems", Takes::Schema),
    ("dependentRequired", Takes::Properties),
    ("dependentSchemas", Takes::Properties),
    ("contains", Takes::Schema),
    ("definitions", Takes::Properties),
];

/// Keywords that are never suggested: too short to be compared, remarks, and words of other dialects.
const FURTHER: [&str; 39] = [
    "not",
    "if",
    "then",
    "else",
    "title",
    "description",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "discriminator",
    "xml",
    "externalDocs",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependencies",
    "additionalItems",
    "id",
    "divisibleBy",
    "extends",
    "disallow",
    "enumNames",
    "enumDescriptions",
    "enumTitles",
    "errorMessage",
    "markdownDescription",
    "defaultSnippets",
    "options",
    "order",
    "propertyOrder",
    "comment",
    "name",
    "label",
    "placeholder",
    "unit",
    "choices",
];

/// Short forms of a keyword.
const SHORT: [(&str, &str); 2] = [("min", "minimum"), ("max", "maximum")];

/// The maximum number of parts of one schema that are visited.
const VISITED_MAX: usize = 2_000;

/// The maximum size of a schema that is searched for references to its own parts, in bytes.
const SEARCHED_BYTES_MAX: usize = 65_536;

/// Warns about the ignored keywords of a schema.
pub(super) fn check(schema: &Value, path: &Path, report: &mut Report<'_>) {
    let is_of_input = path.segments().len() == 1;
    let text = json::compact(schema);
    let pointers = if text.len() <= SEARCHED_BYTES_MAX { text } else { return };
    Words { pointers, is_of_input, left: VISITED_MAX }.visit(schema, path, true, report);
}

struct Words {
    /// The whole schema as text, in which a `$ref` to a part is found.
    pointers: String,
    /// True for the schema of the input, which lists what may be given.
    is_of_input: bool,
    /// Parts that may still be visited.
    left: usize,
}

impl Words {
    /// `is_alone` is false for a part that adds to another schema, which may have the properties.
    fn visit(&mut self, schema: &Value, path: &Path, is_alone: bool, report: &mut Report<'_>) {
        let (Some(map), Some(left)) = (schema.as_map(), self.left.checked_sub(1)) else { return };
        self.left = left;
        if self.is_short_form(map, path, report) {
            return;
        }
        for (key, value) in map.iter().filter(|(key, _)| !is_known(key)) {
            self.unknown(map, key, value, path, report);
        }
        if is_alone {
            check_required(map, self.is_of_input, path, report);
        }
        for (key, value) in map {
            match (key.as_str(), value) {
                (
                    "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                    Value::Map(inner),
                ) => {
                    for (name, schema) in inner {
                        self.visit(schema, &path.key(key).key(name), is_alone, report);
                    }
                }
                (
                    "items" | "additionalProperties" | "contains" | "unevaluatedItems" | "unevaluatedProperties",
                    inner,
                ) => {
                    self.visit(inner, &path.key(key), true, report);
                }
                ("not" | "if" | "then" | "else", inner) => self.visit(inner, &path.key(key), false, report),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::List(inner)) => {
                    for (at, schema) in inner.iter().enumerate() {
                        self.visit(schema, &path.key(key).index(at), false, report);
                    }
                }
                _ => {}
            }
        }
    }

    /// Reports a schema whose keys are all names of properties: `{who: string}`.
    fn is_short_form(&self, map: &Map, path: &Path, report: &mut Report<'_>) -> bool {
        let is_name = |(key, value): (&String, &Value)| !is_known(key) && is_property(value) && !self.refers_to(key);
        let is_keyword = map.len() == 1 && map.iter().all(|(key, value)| meant(key, value).is_some());
        if map.is_empty() || is_keyword || !map.iter().all(is_name) {
            return false;
        }
        let first = map.keys().next().map(String::as_str).unwrap_or_default();
        let message = format!("{} is no keyword of JSON Schema: the schema accepts any value", named(first));
        let properties = adapted("inputs", "inputSchema", &Value::Map(map.clone())).certain();
        let help = match properties {
            Some(schema) => Help::new(format!("write {}", flow(&schema)), Fix::replace(path, schema)),
            None => "write `{type: object, properties: {…}}`".into(),
        };
        report.warning(diagnostic::UNKNOWN_SCHEMA_KEYWORD, path, message, help);
        true
    }

    fn unknown(&self, map: &Map, key: &str, value: &Value, path: &Path, report: &mut Report<'_>) {
        let at = path.key(key);
        let message = format!("{} is no keyword of JSON Schema, and is ignored", named(key));
        if let Some(keyword) = meant(key, value) {
            let help = match (map.contains_key(keyword), keyword) {
                (false, "required") if value.as_bool().is_some() => {
                    "name the required properties in `required` of the schema around it".into()
                }
                (false, _) => Help::key(&at, keyword),
                (true, _) => format!("leave it out: {} is there already", named(keyword)).into(),
            };
            return report.warning(diagnostic::UNKNOWN_SCHEMA_KEYWORD, &at, message, help);
        }
        if !is_property(value) || self.refers_to(key) {
            return;
        }
        let properties = path.key("properties");
        let is_free =
            map.get("properties").is_none_or(|given| given.as_map().is_some_and(|given| !given.contains_key(key)));
        let fix = match value {
            Value::Map(_) if is_free => {
                Fix::add(properties.clone(), Map::new()).and(Fix::moved(&at, properties.key(key)))
            }
            _ => Fix::default(),
        };
        let help = format!("put it into `properties`, if {} is a property", named(key));
        report.warning(diagnostic::UNKNOWN_SCHEMA_KEYWORD, &at, message, Help::new(help, fix));
    }

    /// True if the schema may refer to the part by a pointer.
    fn refers_to(&self, key: &str) -> bool {
        self.pointers.contains(&format!("#/{key}")) || self.pointers.contains(&format!("/{key}/"))
    }
}

/// Warns about a required property that the schema does not list, though it lists some. A schema
/// of an output may list a part of the properties, so there the name must be similar to a listed one.
fn check_required(map: &Map, is_of_input: bool, path: &Path, report: &mut Report<'_>) {
    const ELSEWHERE: [&str; 12] = [
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "$ref",
        "$dynamicRef",
        "patternProperties",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
        "propertyNames",
        "not",
    ];
    let Some(properties) = map.get("properties").and_then(Value::as_map).filter(|names| !names.is_empty()) else {
        return;
    };
    let others = map.get("additionalProperties");
    let is_open = others.is_some_and(|others| others.as_bool() != Some(false));
    if is_open || ELSEWHERE.iter().any(|key| map.contains_key(*key)) {
        return;
    }
    let required = map.get("required").and_then(Value::as_list).unwrap_or_default();
    let names = required.iter().enumerate().filter_map(|(at, name)| Some((at, name.as_text()?)));
    for (at, name) in names.filter(|(_, name)| !properties.contains_key(*name)) {
        let at = path.key("required").index(at);
        let message = format!("{} is required and is not among `properties`", named(name));
        let meant = report.nearest_name(name, properties.keys().map(String::as_str));
        let help = match meant.filter(|meant| !required.iter().any(|name| name.as_text() == Some(*meant))) {
            Some(meant) => Help::value(&at, meant),
            None if !is_of_input => continue,
            None => format!(
                "add it to `properties`, as in: write `{}`",
                flow(&Value::map([(name, Value::Map(Map::new()))]))
            )
            .into(),
        };
        report.warning(diagnostic::UNKNOWN_SCHEMA_KEYWORD, &at, message, help);
    }
}

fn is_known(key: &str) -> bool {
    KEYWORDS.iter().any(|(known, _)| *known == key)
        || FURTHER.contains(&key)
        || key.starts_with('$')
        || key.starts_with("x-")
        || key.starts_with('_')
}

/// True for a value that says what a property is: a type, or a schema with one.
fn is_property(value: &Value) -> bool {
    let is_type = |value: &Value| value.as_text().is_some_and(|word| TYPES.contains(&word));
    is_type(value) || value.get("type").is_some_and(is_type)
}

/// Returns the keyword that an author meant, if it takes such a value.
fn meant(key: &str, value: &Value) -> Option<&'static str> {
    let short = SHORT.iter().find(|(word, _)| *word == key).map(|(_, keyword)| *keyword);
    let long = KEYWORDS.iter().filter(|(word, takes)| *takes != Takes::Any || word.len() > 5).map(|(word, _)| *word);
    let is_near = |keyword: &&str| key.len().abs_diff(keyword.len()) <= 2 && key.len() > 2;
    let keyword = short.or_else(|| nearest(key, long).filter(is_near))?;
    let takes = KEYWORDS.iter().find(|(word, _)| *word == keyword).map(|(_, takes)| *takes)?;
    takes.fits(value).then_some(keyword)
}

impl Takes {
    fn fits(self, value: &Value) -> bool {
        let is_type = |value: &Value| value.as_text().is_some_and(|word| TYPES.contains(&word));
        let texts =
            |value: &Value| value.as_list().is_some_and(|items| items.iter().all(|item| item.as_text().is_some()));
        match self {
            Self::Number => value.as_number().is_some(),
            Self::Truth => value.as_bool().is_some(),
            Self::Text => value.as_text().is_some(),
            Self::Names => texts(value) || value.as_bool().is_some(),
            Self::List => value.as_list().is_some(),
            Self::Type => is_type(value) || value.as_list().is_some_and(|items| items.iter().all(is_type)),
            Self::Schema => value.as_map().is_some() || value.as_bool().is_some(),
            Self::Schemas => {
                let items: Vec<&Value> = value.as_list().unwrap_or_default().iter().collect();
                !items.is_empty() && items.iter().all(|item| item.as_map().is_some())
            }
            Self::Properties => value.as_map().is_some_and(|map| map.values().all(|value| value.as_map().is_some())),
            Self::Any => true,
        }
    }
}
