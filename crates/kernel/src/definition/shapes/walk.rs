//! Follows a path through shapes.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Fixed, Schema, Shape, Shapes};
use crate::{
    reference::{Part, Reference, Root},
    value::{Map, Value},
};

/// The maximum number of `$ref` that are followed in one place.
const FOLLOWED_MAX: usize = 32;

/// The maximum number of shapes that one part of a path looks at. Branches in branches have many ends; beyond this number
/// nothing is known.
const LOOKED_AT_MAX: u32 = 64;

/// The keys of a schema that say more about an object than this module reads.
const UNREAD: [&str; 11] = [
    "allOf",
    "if",
    "not",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
];

/// The point at which a path leaves a shape.
pub(super) struct Astray<'s> {
    /// The number of parts of the reference before that point.
    pub(super) at: usize,
    pub(super) why: Why<'s>,
}

/// The reason for which a path leaves a shape.
pub(super) enum Why<'s> {
    /// The object has other fields. `is_certain` is false if the fields are a claim.
    NoField { name: String, known: Known<'s>, is_certain: bool },
    /// The name is not among the listed properties, and the schema does not say whether there are others.
    Unlisted { name: String, known: Known<'s> },
    /// The name is not among the listed properties, and the schema allows others.
    Additional { name: String, known: Known<'s> },
    /// A value of this JSON type has no such part.
    Nothing { part: String, kind: &'s str, is_certain: bool },
}

/// The names that an object has.
#[derive(Clone, Copy)]
pub(super) enum Known<'s> {
    Fields(Fixed),
    Steps(&'s [u32]),
    Properties(Option<&'s Map>),
}

impl Why<'_> {
    fn is_certain(&self) -> bool {
        match self {
            Self::NoField { is_certain, .. } | Self::Nothing { is_certain, .. } => *is_certain,
            Self::Unlisted { .. } | Self::Additional { .. } => false,
        }
    }

    fn made_uncertain(mut self) -> Self {
        if let Self::NoField { is_certain, .. } | Self::Nothing { is_certain, .. } = &mut self {
            *is_certain = false;
        }
        self
    }

    fn is_of_null(&self) -> bool {
        matches!(self, Self::Nothing { kind: "null", .. })
    }
}

impl<'s> Shapes<'s> {
    /// Returns the shape at the end of a reference in a step. Calls `visit` with the shape before each part, and the place of
    /// the part.
    pub(super) fn follow(
        self,
        reference: &Reference,
        reader: u32,
        visit: &mut dyn FnMut(usize, &Shape<'s>),
    ) -> Result<Shape<'s>, Astray<'s>> {
        let (mut shape, begin) = self.start(reference, reader);
        for (at, part) in reference.path.iter().enumerate().skip(begin) {
            visit(at, &shape);
            shape = self.below(&shape, part, &mut 0).map_err(|why| Astray { at, why })?;
        }
        Ok(shape)
    }

    /// Returns the shape at the end of a reference; `None` if the path leads nowhere.
    pub(super) fn end(self, reference: &Reference, reader: u32) -> Option<Shape<'s>> {
        self.follow(reference, reader, &mut |_, _| ()).ok()
    }

    /// Returns the shape at which a reference starts, and the number of its parts that select it.
    fn start(self, reference: &Reference, reader: u32) -> (Shape<'s>, usize) {
        match (reference.root, reference.path.first()) {
            (Root::Variables, Some(Part::Name(name))) => (self.variable(name), 1),
            (Root::Variables, _) => (Shape::Any, reference.path.len()),
            (root, _) => (self.root(root, reader), 0),
        }
    }

    /// Returns the shape of a variable by its declared type.
    pub(super) fn variable(self, name: &str) -> Shape<'s> {
        let declared = self.outline.declared.variables.and_then(|declared| declared.get(name));
        match declared.and_then(|declared| declared.get("type")).and_then(Value::as_text) {
            None | Some("any") => Shape::Any,
            Some(kind) => Shape::Kind(kind_of(kind)),
        }
    }

    /// Returns the shape of a part of a value. A union is left only if all of its members are.
    pub(super) fn below(self, shape: &Shape<'s>, part: &Part, looked_at: &mut u32) -> Result<Shape<'s>, Why<'s>> {
        *looked_at += 1;
        if *looked_at > LOOKED_AT_MAX {
            return Ok(Shape::Any);
        }
        match shape {
            Shape::Any => Ok(Shape::Any),
            Shape::Kind(kind) => match (*kind, part) {
                ("" | "object", _) | ("array", Part::Index(_)) => Ok(Shape::Any),
                (kind, part) => Err(nothing(part, kind, true)),
            },
            Shape::Fixed(fields) => in_fields(fields, part),
            Shape::Step(step) => self.below(&self.step(*step), part, looked_at).or_else(|why| match why {
                // A schema may list some of the fields that an output has by the type of its step.
                Why::Unlisted { .. } | Why::Additional { .. } => match self.by_type(*step) {
                    Shape::Any => Err(why),
                    shape => self.below(&shape, part, looked_at).map_err(|_| why),
                },
                why => Err(why),
            }),
            Shape::Branches(block) => {
                let (steps, name) = (&self.outline.blocks[*block as usize].steps, part_text(part));
                let step = steps.iter().find(|step| self.outline.entries[**step as usize].id == name);
                let none = || Why::NoField { name: name.clone(), known: Known::Steps(steps), is_certain: true };
                step.map(|step| Shape::Step(*step)).ok_or_else(none)
            }
            Shape::Rounds(step) => match part {
                Part::Index(_) => Ok(Shape::Step(*step)),
                Part::Name(_) => Err(nothing(part, "array", true)),
            },
            Shape::Answer(schema, fields) => match part {
                Part::Name(name) if name == "value" => Ok(Shape::Schema(Schema::of(schema, true))),
                _ => in_fields(fields, part),
            },
            Shape::Schema(schema) => match self.expanded(*schema) {
                Shape::Schema(schema) => in_schema(schema, part),
                other => self.below(&other, part, looked_at),
            },
            Shape::OneOf(shapes) => self.below_one(shapes, part, looked_at),
        }
    }

    fn below_one(self, shapes: &[Shape<'s>], part: &Part, looked_at: &mut u32) -> Result<Shape<'s>, Why<'s>> {
        let (mut found, mut left): (Vec<Shape<'s>>, Option<Why<'s>>) = (Vec::new(), None);
        for shape in shapes {
            match self.below(shape, part, looked_at) {
                Ok(Shape::Any) => return Ok(Shape::Any),
                Ok(shape) => found.push(shape),
                Err(why) => {
                    let is_certain = left.as_ref().is_none_or(Why::is_certain) && why.is_certain();
                    // Nothing is below null, which says less than the fields of another member.
                    let kept = left.filter(|left| !left.is_of_null()).unwrap_or(why);
                    left = Some(if is_certain { kept } else { kept.made_uncertain() });
                }
            }
        }
        match (found.pop(), left) {
            (Some(only), _) if found.is_empty() => Ok(only),
            (Some(last), _) => {
                found.push(last);
                Ok(Shape::OneOf(found))
            }
            (None, Some(why)) => Err(why),
            (None, None) => Ok(Shape::Any),
        }
    }

    /// Returns the shape of the items of a list.
    pub(super) fn of_items(self, list: Shape<'s>) -> Shape<'s> {
        // Every index has the same shape, unless a schema lists the first items.
        let is_tuple = |schema: &Schema<'_>| schema.at.get("prefixItems").is_some();
        match &list {
            Shape::Schema(schema) if matches!(self.expanded(*schema), Shape::Schema(schema) if is_tuple(&schema)) => {
                Shape::Any
            }
            list => self.below(list, &Part::Index(0), &mut 0).unwrap_or(Shape::Any),
        }
    }

    /// Follows `$ref` and splits `anyOf` and `oneOf`. The result is a schema only if it has neither.
    pub(super) fn expanded(self, mut schema: Schema<'s>) -> Shape<'s> {
        for _ in 0..FOLLOWED_MAX {
            if let Some(target) = schema.at.get("$ref") {
                let inner = target.as_text().and_then(|target| target.strip_prefix('#'));
                let Some(at) = inner.and_then(|pointer| pointed(schema.root, pointer)) else { return Shape::Any };
                schema.at = at;
                continue;
            }
            let Some(map) = schema.at.as_map() else { return Shape::Any };
            if UNREAD.iter().any(|key| map.contains_key(*key)) {
                return Shape::Any;
            }
            let one = ["anyOf", "oneOf"].into_iter().filter_map(|key| map.get(key)).collect::<Vec<_>>();
            return match (one.as_slice(), map.contains_key("properties")) {
                ([], _) => Shape::Schema(schema),
                ([Value::List(members)], false) if !members.is_empty() => {
                    Shape::OneOf(members.iter().map(|at| Shape::Schema(Schema { at, ..schema })).collect())
                }
                _ => Shape::Any,
            };
        }
        Shape::Any
    }
}

fn in_fields<'s>(fields: Fixed, part: &Part) -> Result<Shape<'s>, Why<'s>> {
    let name = part_text(part);
    match fields.iter().find(|(field, _)| *field == name) {
        Some((_, "")) => Ok(Shape::Any),
        Some((_, kind)) => Ok(Shape::Kind(kind)),
        None => Err(Why::NoField { name, known: Known::Fields(fields), is_certain: true }),
    }
}

/// Returns the shape of a part of a value with a schema that has neither `$ref` nor alternatives.
fn in_schema<'s>(schema: Schema<'s>, part: &Part) -> Result<Shape<'s>, Why<'s>> {
    let Schema { at, is_enforced, .. } = schema;
    let inner = |at: &'s Value| Shape::Schema(Schema { at, ..schema });
    let kinds: Vec<&'s str> = kinds_of(at);
    let properties = at.get("properties").and_then(Value::as_map).filter(|properties| !properties.is_empty());
    let is_object = kinds.contains(&"object") || kinds.is_empty() && properties.is_some();
    match part {
        Part::Index(place) if kinds.contains(&"array") => {
            let first = at.get("prefixItems").or_else(|| at.get("items").filter(|items| items.as_list().is_some()));
            let listed = first.and_then(Value::as_list).and_then(|items| items.get(*place as usize));
            let rest = at.get("items").filter(|_| first.is_none());
            Ok(listed.or(rest).map_or(Shape::Any, inner))
        }
        Part::Index(_) if is_object || kinds.is_empty() => Ok(Shape::Any),
        Part::Name(name) if is_object => {
            if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                return Ok(inner(property));
            }
            let (name, known) = (name.clone(), Known::Properties(properties));
            let is_required = |required: &Value| {
                required.as_list().is_some_and(|names| names.iter().any(|known| known.as_text() == Some(&name)))
            };
            match at.get("additionalProperties") {
                _ if at.get("required").is_some_and(is_required) => Ok(Shape::Any),
                Some(Value::Bool(false)) => Err(Why::NoField { name, known, is_certain: is_enforced }),
                Some(Value::Map(_)) if properties.is_none() => {
                    Ok(at.get("additionalProperties").map_or(Shape::Any, inner))
                }
                Some(_) => Err(Why::Additional { name, known }),
                None if properties.is_some() => Err(Why::Unlisted { name, known }),
                None => Ok(Shape::Any),
            }
        }
        Part::Name(_) if kinds.is_empty() => Ok(Shape::Any),
        part => {
            let kind = kinds.iter().find(|kind| **kind != "null").unwrap_or(&"null");
            Err(nothing(part, kind, is_enforced))
        }
    }
}

/// Returns the types that a schema names; empty if it names none.
pub(super) fn kinds_of(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::List(kinds)) => kinds.iter().filter_map(Value::as_text).collect(),
        Some(Value::Text(kind)) => [kind.as_str()].into(),
        _ => Vec::new(),
    }
}

/// Returns the name of a JSON type that lives as long as the program; empty for another text.
pub(super) fn kind_of(kind: &str) -> &'static str {
    let known = ["string", "number", "integer", "boolean", "object", "array", "null"];
    known.into_iter().find(|known| *known == kind).unwrap_or_default()
}

fn nothing<'s>(part: &Part, kind: &'s str, is_certain: bool) -> Why<'s> {
    let part = match part {
        Part::Name(name) => name.clone(),
        Part::Index(index) => format!("[{index}]"),
    };
    Why::Nothing { part, kind, is_certain }
}

pub(super) fn part_text(part: &Part) -> String {
    match part {
        Part::Name(name) => name.clone(),
        Part::Index(index) => index.to_string(),
    }
}

/// Follows a JSON Pointer, without the `#` before it.
fn pointed<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    let rest = pointer.strip_prefix('/').map_or_else(|| pointer.is_empty().then_some(""), Some)?;
    if pointer.is_empty() {
        return Some(root);
    }
    rest.split('/').try_fold(root, |value, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match value {
            Value::List(items) => items.get(part.parse::<usize>().ok()?),
            value => value.get(&part),
        }
    })
}
