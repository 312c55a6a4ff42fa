//! Shapes for editors and for the plan as data. They are read from definitions that need not be valid.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Shape, Shapes, walk::Known};
use crate::{
    definition::{
        cleanup,
        fields::Fields,
        inspector::Inspector,
        notation::Notation,
        outline::{Declared, Outline, Role},
        report::Report,
    },
    document::{Document, Path},
    reference::{Part, Root, is_name},
    value::{Map, Value},
};

/// The shapes of a definition as JSON Schemas. Values of which nothing is known are left out.
#[derive(Debug, Clone, Default)]
pub struct DefinitionShapes {
    /// The outputs of steps, by id.
    pub steps: Map,
    /// `@item` inside of loops over lists, by the id of the loop.
    pub items: Map,
    /// The output of an execution; `true` if nothing is known.
    pub output: Value,
}

/// A part of a value, for completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name after the `.`.
    pub name: String,
    /// The JSON types of its value; empty if they are not known.
    pub kind: String,
}

/// Returns the shapes of a definition.
pub fn shapes(document: &Document, inspector: &dyn Inspector) -> DefinitionShapes {
    with_shapes(document, inspector, |shapes, map| {
        let mut all = DefinitionShapes::default();
        let parts = &mut 0;
        for (number, entry) in shapes.outline.entries.iter().enumerate().filter(|(_, entry)| entry.is_first()) {
            let number = number as u32;
            if is_name(&entry.id) {
                put(&mut all.steps, &entry.id, shapes.schema(&Shape::Step(number), parts));
                if entry.is_loop() && entry.fields.has("forEach") {
                    put(&mut all.items, &entry.id, shapes.schema(&shapes.items(number), parts));
                }
            }
        }
        all.output = shapes.output(map, parts);
        all
    })
    .unwrap_or_default()
}

fn put(map: &mut Map, id: &str, schema: Value) {
    if schema != Value::Bool(true) {
        map.insert(id.to_string(), schema);
    }
}

/// Returns the parts of the value at which a reference in a step ends, such as `a` or `item.lines[0]`. `step` is the path of the
/// step in the definition.
pub fn fields(document: &Document, inspector: &dyn Inspector, step: &Path, reference: &str) -> Vec<Field> {
    let found = with_shapes(document, inspector, |shapes, _| {
        let entries = &shapes.outline.entries;
        let at = entries.iter().position(|entry| entry.fields.path == *step).unwrap_or_default();
        let is_each = entries.get(at).is_some_and(|entry| entry.role == Role::Each);
        // A step with `forEach` reads its item in the body, which follows the loop.
        let reader = if is_each { at + 1 } else { at } as u32;
        let reference = shapes.outline.reference(reader, &format!("@{reference}"))?;
        if reference.root == Root::Variables && reference.path.is_empty() {
            return Some(shapes.variables_fields());
        }
        let shape = shapes.end(&reference, reader)?;
        let mut names = Vec::new();
        shapes.names(&shape, &mut names, 8);
        let kind_of = |name: &str| match shapes.below(&shape, &Part::Name(name.to_string()), &mut 0) {
            Ok(below) => shapes.in_words(&below),
            Err(_) => String::new(),
        };
        Some(names.iter().map(|name| Field { name: (*name).to_string(), kind: kind_of(name) }).collect())
    });
    found.flatten().unwrap_or_default()
}

/// Reads the outline of a definition. Its mistakes are not reported here.
fn with_shapes<T>(
    document: &Document,
    inspector: &dyn Inspector,
    read: impl FnOnce(Shapes<'_>, &Map) -> T,
) -> Option<T> {
    let map = document.value.as_map()?;
    let fields = Fields { map, path: Path::root() };
    let mut report = Report::new(document, inspector);
    let notation = Notation::of(&document.value);
    let steps = fields.get(notation.list_key()).and_then(Value::as_list).unwrap_or_default();
    let finally = cleanup::steps_of(&fields, &mut report);
    let mut outline = Outline::read(notation, steps, finally, &mut report);
    outline.declared = Declared::of(&fields);
    Some(read(Shapes { outline: &outline }, map))
}

impl<'s> Shapes<'s> {
    /// Adds the names of the parts of a value.
    fn names(self, shape: &Shape<'s>, names: &mut Vec<&'s str>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let mut add = |known: Known<'s>| {
            for name in self.known(known) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        };
        match shape {
            Shape::Any | Shape::Kind(_) | Shape::Rounds(_) => {}
            Shape::Fixed(fields) => add(Known::Fields(fields)),
            Shape::Answer(_, fields) => add(Known::Fields(fields)),
            Shape::Branches(block) => add(Known::Steps(&self.outline.blocks[*block as usize].steps)),
            Shape::Step(step) => self.names(&self.step(*step), names, depth),
            Shape::OneOf(shapes) => shapes.iter().for_each(|shape| self.names(shape, names, depth)),
            Shape::Schema(schema) => match self.expanded(*schema) {
                Shape::Schema(schema) => add(Known::Properties(schema.at.get("properties").and_then(Value::as_map))),
                other => self.names(&other, names, depth),
            },
        }
    }

    fn variables_fields(self) -> Vec<Field> {
        let declared = self.outline.declared.variables;
        let field = |name: &String| Field { name: name.clone(), kind: self.in_words(&self.variable(name)) };
        declared.into_iter().flat_map(Map::keys).map(field).collect()
    }
}
