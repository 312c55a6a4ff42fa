//! Shapes: what is known about a value before anything runs.
//!
//! The output of a step has a shape by its type (`tables`), by the steps inside it, by a schema, or by the types of its
//! function. `walk` follows a path through shapes one part at a time, so its cost does not depend on the size of the plan.
//! `check` reports references that leave a shape, `comparisons` conditions that no value of a shape meets, `presence` values
//! that may be null or missing. `export` writes shapes as JSON Schemas, and `query` answers editors.
//!
//! A shape says what a path may lead to; a skipped step still reads as null. An unknown value is [`Shape::Any`], and causes no
//! diagnostic.

use alloc::vec::Vec;

use super::{
    agents::{is_conversation, is_runner},
    inspector::FunctionTypes,
    messages::conversations,
    outline::{Entry, Outline, Role},
    step_work::is_shell_tool,
};
use crate::{reference::Root, value::Value};
use tables::{ANSWER, CONTEXT, DECISION, DETACHED, Fixed, RESPONSE, RUN, SCRIPT, SENT};

mod check;
mod comparisons;
mod export;
mod failures;
mod fit;
mod presence;
mod query;
mod tables;
mod walk;

pub(super) use presence::Asks;
pub use query::{DefinitionShapes, Field, fields, shapes};

/// A value, by what is known about it.
#[derive(Debug, Clone)]
enum Shape<'s> {
    /// Nothing is known.
    Any,
    /// A value of this JSON type. The parts of an object or a list are not known.
    Kind(&'static str),
    /// An object with the fields of a table.
    Fixed(Fixed),
    /// The output of a step.
    Step(u32),
    /// An object with the output of each step of a block, by id.
    Branches(u32),
    /// A list with an output of this step for each round.
    Rounds(u32),
    /// The output of an agent, whose answer has this schema.
    Answer(&'s Value, Fixed),
    /// A value that a JSON Schema describes.
    Schema(Schema<'s>),
    /// One of several.
    OneOf(Vec<Shape<'s>>),
}

/// A part of a JSON Schema.
#[derive(Debug, Clone, Copy)]
struct Schema<'s> {
    /// The whole schema, for `$ref`.
    root: &'s Value,
    at: &'s Value,
    /// True if the engine validates the value. Types of a function and the output of another workflow are claims: a value
    /// that differs from them causes no failure by itself.
    is_enforced: bool,
}

impl<'s> Schema<'s> {
    fn of(root: &'s Value, is_enforced: bool) -> Self {
        Self { root, at: root, is_enforced }
    }
}

/// The shapes of one definition.
#[derive(Debug, Clone, Copy)]
struct Shapes<'s> {
    outline: &'s Outline<'s>,
}

impl<'s> Shapes<'s> {
    /// Returns the shape of the value at which a reference in a step starts, below `@vars` that of the named variable.
    fn root(self, root: Root, reader: u32) -> Shape<'s> {
        match root {
            Root::Input => match self.outline.declared.input_schema {
                Some(schema) => Shape::Schema(Schema::of(schema, true)),
                None => Shape::Any,
            },
            Root::Variables => Shape::Any,
            Root::Context => Shape::Fixed(CONTEXT),
            Root::Index => Shape::Kind("integer"),
            Root::Item => self.item(reader),
            Root::Step(step) => Shape::Step(step),
        }
    }

    /// Returns the shape of the output of a step.
    fn step(self, step: u32) -> Shape<'s> {
        let Some(entry) = self.outline.entries.get(step as usize) else { return Shape::Any };
        match entry.role {
            Role::Each => return Shape::Rounds(step + 1),
            Role::Agent(_) => return Shape::Any,
            Role::Whole | Role::Body => {}
        }
        let Some(kind) = entry.kind.filter(|kind| kind.takes("outputSchema")) else { return self.by_type(step) };
        let is_answer = is_conversation(Some(kind), &entry.fields);
        match entry.fields.get("outputSchema") {
            Some(schema) if is_runner(Some(kind), &entry.fields) => Shape::Answer(schema, RUN),
            Some(schema) if is_answer => Shape::Answer(schema, ANSWER),
            Some(schema) => Shape::Schema(Schema::of(schema, true)),
            None => self.by_type(step),
        }
    }

    /// Returns the shape of the output of a step without its `outputSchema`.
    fn by_type(self, step: u32) -> Shape<'s> {
        let Some(entry) = self.outline.entries.get(step as usize) else { return Shape::Any };
        let Some(kind) = entry.kind else { return Shape::Any };
        let is_answer = is_conversation(Some(kind), &entry.fields);
        if entry.transforms() {
            return claimed(self.types(step, "transform").and_then(|types| types.result.as_ref()));
        }
        match kind.name {
            "bash" => Shape::Fixed(SCRIPT),
            "tool" if is_shell_tool(self.outline.notation, kind, &entry.fields) => Shape::Fixed(SCRIPT),
            "http" => Shape::Fixed(RESPONSE),
            "agent" if is_runner(Some(kind), &entry.fields) => Shape::Fixed(RUN),
            "agent" if is_answer => Shape::Fixed(ANSWER),
            "agent_message" if !conversations(self.outline).is_empty() => Shape::Fixed(SENT),
            "approval" => Shape::Fixed(DECISION),
            "code" => claimed(self.types(step, "code").and_then(|types| types.result.as_ref())),
            "subworkflow" if entry.fields.get("wait").and_then(Value::as_bool) == Some(false) => Shape::Fixed(DETACHED),
            "subworkflow" => claimed(self.outline.workflow(step)),
            "sleep" => Shape::Kind("null"),
            "parallel" => entry.branches.first().map_or(Shape::Any, |(_, block)| Shape::Branches(*block)),
            "loop" => match self.last(entry, "steps") {
                None => Shape::Any,
                Some(last) if entry.fields.has("forEach") => Shape::Rounds(last),
                Some(last) if entry.fields.has("while") => {
                    Shape::OneOf([Shape::Step(last), Shape::Kind("null")].into())
                }
                Some(last) => Shape::Step(last),
            },
            "conditional" => {
                let end = |key| self.last(entry, key).map_or(Shape::Kind("null"), Shape::Step);
                Shape::OneOf([end("then"), end("else")].into())
            }
            _ => Shape::Any,
        }
    }

    /// Returns the types that the source of a step's function declares.
    fn types(self, step: u32, key: &str) -> Option<&'s FunctionTypes> {
        self.outline.function(step, key)?.as_ref().ok()
    }

    /// Returns the last step of a branch.
    fn last(self, entry: &Entry<'_>, key: &str) -> Option<u32> {
        let (_, block) = entry.branches.iter().find(|(name, _)| *name == key)?;
        self.outline.blocks[*block as usize].steps.last().copied()
    }

    /// Returns the shape of `@item` in a step: that of an item of the list which the innermost loop over a list goes through.
    fn item(self, reader: u32) -> Shape<'s> {
        let owners = self.outline.way_up(reader).filter_map(|(block, _)| self.outline.blocks[block as usize].owner);
        let is_over_items = |owner: &u32| self.outline.entries[*owner as usize].fields.has("forEach");
        // The body of a step with `forEach` has the same fields as its loop, and is not the loop.
        let is_loop = |owner: &u32| self.outline.entries[*owner as usize].is_loop();
        match owners.filter(is_loop).find(is_over_items) {
            Some(around) => self.items(around),
            None => Shape::Any,
        }
    }

    /// Returns the shape of the items of the list that a loop goes through.
    fn items(self, of: u32) -> Shape<'s> {
        let entry = &self.outline.entries[of as usize];
        let list = entry.fields.get("forEach").and_then(|each| each.get("ref")).and_then(Value::as_text);
        let Some(list) = list.and_then(|text| self.outline.reference(of, text)) else { return Shape::Any };
        self.end(&list, of).map_or(Shape::Any, |shape| self.of_items(shape))
    }
}

/// Returns a shape that the engine does not validate.
fn claimed(schema: Option<&Value>) -> Shape<'_> {
    schema.map_or(Shape::Any, |schema| Shape::Schema(Schema::of(schema, false)))
}
