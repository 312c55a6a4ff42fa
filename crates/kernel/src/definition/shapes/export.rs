//! Shapes as JSON Schemas.

use alloc::{string::ToString, vec::Vec};

use super::{Fixed, Schema, Shape, Shapes, walk::kind_of};
use crate::{
    definition::{notation::Notation, outline::Entry},
    reference::is_whole,
    value::{Map, Value},
};

/// The maximum number of parts of an exported shape. Beyond it the shape is unknown.
const PARTS_MAX: usize = 10_000;

/// The maximum number of alternatives of an output.
const ALTERNATIVES_MAX: usize = 16;

impl<'s> Shapes<'s> {
    /// Returns a shape as a JSON Schema; `true` if nothing is known. `parts` counts those of all shapes so far.
    pub(super) fn schema(self, shape: &Shape<'s>, parts: &mut usize) -> Value {
        *parts += 1;
        if *parts > PARTS_MAX {
            return true.into();
        }
        match shape {
            Shape::Any => true.into(),
            Shape::Kind(kind) => of_kind(kind),
            Shape::Fixed(fields) => closed(properties(fields)),
            Shape::Step(step) => self.schema(&self.step(*step), parts),
            Shape::Branches(block) => {
                let steps = self.outline.blocks[*block as usize].steps.iter();
                let of_step = |step: &u32| {
                    let id = self.outline.entries[*step as usize].id.clone();
                    (id, self.schema(&Shape::Step(*step), parts))
                };
                closed(steps.map(of_step).collect())
            }
            Shape::Rounds(step) => list(self.schema(&Shape::Step(*step), parts)),
            Shape::Answer(schema, fields) => {
                let mut properties = properties(fields);
                properties.insert("value".to_string(), (*schema).clone());
                closed(properties)
            }
            Shape::Schema(Schema { root, at, .. }) if core::ptr::eq(*root, *at) => (*at).clone(),
            // A part of a schema loses the definitions that its `$ref` name.
            Shape::Schema(Schema { at, .. }) if has_pointer(at) => true.into(),
            Shape::Schema(Schema { at, .. }) => (*at).clone(),
            Shape::OneOf(shapes) => any_of(shapes.iter().map(|shape| self.schema(shape, parts)).collect()),
        }
    }

    /// Returns the shape of the output of an execution as a JSON Schema.
    pub(super) fn output(self, definition: &Map, parts: &mut usize) -> Value {
        let mut all = Vec::new();
        for (number, entry) in self.outline.entries.iter().enumerate().filter(|(_, entry)| entry.is_first()) {
            if all.len() > ALTERNATIVES_MAX {
                return true.into();
            }
            if entry.kind.is_some_and(|kind| kind.name == "return") {
                let output = entry.fields.get("input").unwrap_or(&Value::Null);
                all.push(self.template(output, number as u32, parts));
            }
            if entry.fields.has("bail") {
                all.push(self.schema(&Shape::Step(number as u32), parts));
            }
        }
        all.push(match definition.get("output") {
            Some(output) => self.template(output, 0, parts),
            None if self.outline.notation == Notation::Sequence => self.variables(parts),
            None => true.into(),
        });
        any_of(all)
    }

    /// Returns the object of the output variables. A variable whose step did not run is left out.
    fn variables(self, parts: &mut usize) -> Value {
        let mut properties = Map::new();
        for (name, first) in &self.outline.outputs {
            let writes = |entry: &&Entry<'_>| entry.fields.get("outputVariable").and_then(Value::as_text) == Some(name);
            let writers = self.outline.entries.iter().filter(|entry| entry.is_first()).filter(writes).count();
            let schema = if writers == 1 { self.schema(&Shape::Step(*first), parts) } else { true.into() };
            properties.insert((*name).to_string(), schema);
        }
        closed(properties)
    }

    /// Returns the shape of data with references.
    fn template(self, value: &Value, reader: u32, parts: &mut usize) -> Value {
        *parts += 1;
        if *parts > PARTS_MAX {
            return true.into();
        }
        match value {
            Value::Text(text) if is_whole(value) => {
                let shape = self.outline.reference(reader, text).and_then(|reference| self.end(&reference, reader));
                shape.map_or(true.into(), |shape| self.schema(&shape, parts))
            }
            Value::Text(_) => of_kind("string"),
            Value::Null => of_kind("null"),
            Value::Bool(_) => of_kind("boolean"),
            Value::Number(_) => of_kind("number"),
            Value::List(items) => list(any_of(items.iter().map(|item| self.template(item, reader, parts)).collect())),
            Value::Map(map) => {
                closed(map.iter().map(|(key, field)| (key.clone(), self.template(field, reader, parts))).collect())
            }
        }
    }
}

/// Returns a schema of which one of several holds.
fn any_of(mut all: Vec<Value>) -> Value {
    let mut seen: Vec<Value> = Vec::new();
    all.retain(|schema| {
        let is_new = !seen.contains(schema);
        if is_new {
            seen.push(schema.clone());
        }
        is_new
    });
    match all.len() {
        0 => true.into(),
        _ if all.contains(&Value::Bool(true)) => true.into(),
        1 => all.swap_remove(0),
        _ => Value::map([("anyOf", Value::List(all))]),
    }
}

fn has_pointer(schema: &Value) -> bool {
    match schema {
        Value::Map(map) => map.contains_key("$ref") || map.values().any(has_pointer),
        Value::List(items) => items.iter().any(has_pointer),
        _ => false,
    }
}

fn of_kind(kind: &str) -> Value {
    match kind_of(kind) {
        "" => true.into(),
        kind => Value::map([("type", kind.into())]),
    }
}

fn list(items: Value) -> Value {
    Value::map([("type", "array".into()), ("items", items)])
}

fn properties(fields: Fixed) -> Map {
    fields.iter().map(|(name, kind)| ((*name).to_string(), of_kind(kind))).collect()
}

fn closed(properties: Map) -> Value {
    let fields = [("type", "object".into()), ("properties", properties.into())];
    Value::map(fields.into_iter().chain([("additionalProperties", false.into())]))
}
