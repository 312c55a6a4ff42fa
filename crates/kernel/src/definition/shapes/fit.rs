//! Shapes that do not fit where they are used: an `outputSchema` that describes another value than the step makes, and a
//! `forEach` over no list.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Fixed, Schema, Shape, tables::RESPONSE, walk::kinds_of};
use crate::{
    definition::{
        agents::{is_conversation, is_runner},
        help::Help,
        references::Reader,
        report::named,
        suggest::adapt::flow,
    },
    diagnostic,
    document::Path,
    fix::Fix,
    reference::Reference,
    value::{Map, Value},
};

/// Fields that a script or a request has in every case, so that a schema must allow them.
const CERTAIN: [&str; 4] = ["exitCode", "stdout", "status", "body"];

impl Reader<'_, '_> {
    /// Warns about an `outputSchema` that the output of the step never matches.
    pub(in crate::definition) fn check_output_schema(&mut self) {
        let (shapes, entry) = (self.shapes(), self.entry());
        let Some(schema) = entry.fields.get("outputSchema").filter(|schema| schema.as_map().is_some()) else { return };
        if is_conversation(entry.kind, &entry.fields) || is_runner(entry.kind, &entry.fields) {
            return;
        }
        let Shape::Schema(wanted) = shapes.expanded(Schema::of(schema, true)) else { return };
        let (misfit, fields) = match shapes.by_type(self.number) {
            Shape::Fixed(fields) => (of_fields(fields, wanted.at), Some(fields)),
            Shape::Schema(claimed) => match shapes.expanded(claimed) {
                Shape::Schema(claimed) => (of_claim(claimed.at, wanted.at), None),
                _ => return,
            },
            _ => return,
        };
        let Some(misfit) = misfit else { return };
        let (id, path) = (named(&entry.id), entry.fields.path.key("outputSchema"));
        let message = format!("the output of {id} never matches this schema: {misfit}");
        let help = match fields {
            Some(fields) if fields == RESPONSE => {
                let inner = [("type", "object".into()), ("properties", Value::map([("body", schema.clone())]))];
                Help::new("put it under `body`, where the parsed answer is", Fix::replace(&path, Value::map(inner)))
            }
            Some(_) if !entry.fields.has("transform") => {
                "the output of a script has its text in `stdout`: write `transform: \"export default (output) => \
                 JSON.parse(output.stdout)\"`, and the schema is for its result"
                    .into()
            }
            _ => Help::from("correct the schema, or what the function returns"),
        };
        self.report.warning(diagnostic::VALUE_NOT_IN_SCHEMA, &path, message, help);
    }

    /// Warns about a loop over a value that is no list.
    pub(in crate::definition) fn check_is_list(&mut self, list: &Reference, path: &Path) {
        let shapes = self.shapes();
        let Some(shape) = shapes.end(list, self.number) else { return };
        let kinds = shapes.in_words(&shape);
        let words: Vec<&str> = kinds.split(" or ").filter(|kind| !kind.is_empty()).collect();
        if words.is_empty() || words.contains(&"array") {
            return;
        }
        let message = format!("`{list}` is of type {kinds}, and a loop goes through a list");
        let help: String = match words.contains(&"string") {
            true => {
                let split = "export default (text) => text.trim().split(\"\\n\")";
                let step = [("type", "code".into()), ("code", split.into()), ("input", list.to_string().into())];
                format!("make a list of it in a step before, as `{}`, and refer to that step", flow(&Value::map(step)))
            }
            false => "refer to a list in it, or make one in a `code` step before".to_string(),
        };
        self.report.warning(diagnostic::LOOP_OVER_NO_LIST, path, message, help);
    }
}

/// True if no value has both types.
fn are_apart(kinds: &[&str], others: &[&str]) -> bool {
    let is_number = |kind: &str| matches!(kind, "number" | "integer");
    let meet = |kind: &&str| others.iter().any(|other| *kind == *other || is_number(kind) && is_number(other));
    !kinds.is_empty() && !others.is_empty() && !kinds.iter().any(meet)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_map).into_iter().flat_map(Map::iter)
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_text)
}

/// Returns the reason for which an object with the fields of a table never matches a schema.
fn of_fields(fields: Fixed, schema: &Value) -> Option<String> {
    let names = || fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let kinds = kinds_of(schema);
    if are_apart(&kinds, &["object"]) {
        return Some(format!("it is an object with {}", names()));
    }
    let kind_of = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, kind)| *kind);
    if let Some(missing) = required(schema).find(|name| kind_of(name).is_none()) {
        return Some(format!("it has no {}, only {}", named(missing), names()));
    }
    for (name, property) in properties(schema) {
        let kind = kind_of(name).filter(|kind| !kind.is_empty());
        if let Some(kind) = kind.filter(|kind| are_apart(&kinds_of(property), &[kind])) {
            return Some(format!("its {} is of type {kind}", named(name)));
        }
    }
    let is_closed = schema.get("additionalProperties").and_then(Value::as_bool) == Some(false);
    let is_listed = |name: &str| properties(schema).any(|(listed, _)| listed == name);
    let unlisted = CERTAIN.into_iter().find(|name| kind_of(name).is_some() && !is_listed(name));
    unlisted.filter(|_| is_closed).map(|name| format!("it has {}, which the schema does not allow", named(name)))
}

/// Returns the reason for which a value of one schema, as the types of a function say it, never matches another one.
fn of_claim(claimed: &Value, schema: &Value) -> Option<String> {
    let (kinds, wanted) = (kinds_of(claimed), kinds_of(schema));
    if are_apart(&wanted, &kinds) {
        return Some(format!("the function returns {}", kinds.join(" or ")));
    }
    if kinds != ["object"] {
        return None;
    }
    let claim_of = |name: &str| claimed.get("properties").and_then(|properties| properties.get(name));
    for (name, property) in properties(schema) {
        let claim = claim_of(name).map(kinds_of).unwrap_or_default();
        if are_apart(&kinds_of(property), &claim) && required(claimed).any(|required| required == name) {
            return Some(format!("the function returns {} of type {}", named(name), claim.join(" or ")));
        }
    }
    let is_closed = claimed.get("additionalProperties").and_then(Value::as_bool) == Some(false);
    let missing = required(schema).find(|name| claim_of(name).is_none()).filter(|_| is_closed)?;
    Some(format!("the function returns no {}", named(missing)))
}
