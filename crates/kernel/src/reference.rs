//! References: `@name` and the way into its value. One grammar and one reading for everything that refers.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::value::{Map, Value};

/// A reference whose name is known to its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// What it begins at.
    pub root: Root,
    /// The way from there.
    pub path: Vec<Part>,
    /// As it was written, without the `@`: what messages name.
    pub text: String,
}

/// What a reference begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The execution's input.
    Input,
    /// The execution's variables.
    Variables,
    /// `executionId`, `attempt` and `now`.
    Context,
    /// The item of the innermost loop.
    Item,
    /// The place of that item in its list, from 0.
    Index,
    /// The output of a step, by its number in the plan.
    Step(u32),
}

/// One step of the way into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A field of an object.
    Name(String),
    /// An item of a list from 0, or the field of an object with this number as its name.
    Index(u32),
}

/// The properties of `@ctx`.
pub const CONTEXT_PROPERTIES: [&str; 3] = ["executionId", "attempt", "now"];

/// Words that mean something in references and are no names of steps.
pub const RESERVED_NAMES: [&str; 5] = ["input", "vars", "ctx", "item", "index"];

/// How long the reference is that begins at the start of a text (which begins after the `@`): the bytes of its name and
/// the bytes of all of it; `None` if none begins there. What is not of the grammar is text, so that an `@` in prose and
/// the full stop after a reference stay what they are.
pub fn length(text: &str) -> Option<(usize, usize)> {
    let name = name_length(text)?;
    let mut at = name;
    while let Some(part) = part_length(&text[at..]) {
        at += part;
    }
    Some((name, at))
}

/// Whether a text can be the name of a step or a variable: a letter or `_`, then letters, digits, `_` and `-`.
pub fn is_name(text: &str) -> bool {
    name_length(text) == Some(text.len())
}

fn name_length(text: &str) -> Option<usize> {
    let first = text.bytes().next()?;
    if !(first.is_ascii_alphabetic() || first == b'_') {
        return None;
    }
    Some(text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count())
}

/// `.name`, `.0` or `[0]`.
fn part_length(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(|byte| byte.is_ascii_digit()).count();
    if let Some(rest) = text.strip_prefix('.') {
        return match name_length(rest) {
            Some(name) => Some(1 + name),
            None => Some(1 + digits(rest)).filter(|length| *length > 1),
        };
    }
    let rest = text.strip_prefix('[')?;
    let count = digits(rest);
    (count > 0 && rest[count..].starts_with(']')).then_some(count + 2)
}

impl Reference {
    /// Reads a reference that [`length`] has measured; `None` where its name is not known.
    pub fn read(text: &str, root_of: &dyn Fn(&str) -> Option<Root>) -> Option<Self> {
        let (name, _) = length(text)?;
        let root = root_of(&text[..name])?;
        let mut path = Vec::new();
        let mut rest = &text[name..];
        while let Some(length) = part_length(rest) {
            path.push(Part::read(rest[..length].trim_matches(['.', '[', ']'])));
            rest = &rest[length..];
        }
        Some(Self { root, path, text: text.to_string() })
    }

    /// The text of the reference up to the first parts of its path, without the `@`.
    pub fn begin(&self, parts: usize) -> &str {
        let mut at = name_length(&self.text).unwrap_or_default();
        for _ in 0..parts {
            at += part_length(&self.text[at..]).unwrap_or_default();
        }
        &self.text[..at]
    }

    /// The value that the path leads to, or `None` if it leads nowhere. Paths read data only: no letters of a text, no
    /// length of a list, nothing below null.
    pub fn follow<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(value, |value, part| part.of(value))
    }
}

impl Part {
    fn read(text: &str) -> Self {
        // A number that another text would also give (`007`) is a name, so that nothing has two readings.
        match text.parse::<u32>() {
            Ok(index) if index.to_string() == text => Self::Index(index),
            _ => Self::Name(text.to_string()),
        }
    }

    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match (self, value) {
            (Self::Name(name), Value::Map(map)) => map.get(name),
            (Self::Index(index), Value::List(list)) => list.get(*index as usize),
            (Self::Index(index), Value::Map(map)) => map.get(&index.to_string()),
            _ => None,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{}", self.text)
    }
}

/// What a root stands for at the moment of resolving.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a> {
    /// A value that is kept.
    Kept(&'a Value),
    /// A value that is made on the spot.
    Made(Value),
    /// A step that was skipped or stands in a branch that was not taken: null on every path.
    Skipped,
    /// Nothing is known of it.
    Missing,
}

/// Where roots are looked up.
pub trait Lookup {
    /// What a root stands for.
    fn root(&self, root: Root) -> Found<'_>;

    /// Whether a variable of this name is given, null included.
    fn variable(&self, name: &str) -> Option<&Value>;

    /// The output that a step stored under this name.
    fn output(&self, name: &str) -> Option<&Value>;
}

/// A reference that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// As it was written, without the `@`.
    pub reference: String,
}

/// The value of a reference.
pub fn resolve(reference: &Reference, lookup: &dyn Lookup) -> Result<Value, Miss> {
    let miss = || Miss { reference: reference.text.clone() };
    match lookup.root(reference.root) {
        Found::Kept(value) => reference.follow(value).cloned().ok_or_else(miss),
        Found::Made(value) => reference.follow(&value).cloned().ok_or_else(miss),
        Found::Skipped => Ok(Value::Null),
        Found::Missing => Err(miss()),
    }
}

/// The value of `@ctx`.
pub fn context(execution_id: &str, attempt: u32, now_ms: u64) -> Value {
    let values = [execution_id.into(), attempt.into(), crate::time::rfc3339(now_ms).into()];
    Value::Map(CONTEXT_PROPERTIES.iter().map(ToString::to_string).zip(values).collect::<Map>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar() {
        for (text, measured) in [
            ("a", Some((1, 1))),
            ("my-step.c", Some((7, 9))),
            ("a.b.0[1].c-d_e rest", Some((1, 14))),
            ("a.", Some((1, 1))),
            ("a.b.", Some((1, 3))),
            ("a[0", Some((1, 1))),
            ("a[]", Some((1, 1))),
            ("a[x]", Some((1, 1))),
            ("a..b", Some((1, 1))),
            ("a.é", Some((1, 1))),
            ("_x1", Some((3, 3))),
            ("1abc", None),
            (" input", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(length(text), measured, "{text}");
        }
    }

    #[test]
    fn beginnings() {
        let reference = Reference::read("input.a[0].b", &|_| Some(Root::Input)).unwrap();
        for (parts, expected) in
            [(0, "input"), (1, "input.a"), (2, "input.a[0]"), (3, "input.a[0].b"), (9, "input.a[0].b")]
        {
            assert_eq!(reference.begin(parts), expected);
        }
    }

    #[test]
    fn following() {
        let value =
            crate::json::read(br#"{"s":"txt","arr":[1,[2,3]],"o":{"0":"zero","007":"agent","k":null}}"#).unwrap().value;
        for (text, expected) in [
            ("input.arr[1].0", Some("2")),
            ("input.arr.length", None),
            ("input.s[0]", None),
            ("input.o.k", Some("null")),
            ("input.o.k.x", None),
            ("input.o.0", Some("\"zero\"")),
            ("input.o.007", Some("\"agent\"")),
            ("input.arr[01]", None),
            ("input.arr[2]", None),
            ("input.arr.99999999999", None),
        ] {
            let reference = Reference::read(text, &|name| (name == "input").then_some(Root::Input)).unwrap();
            assert_eq!(reference.follow(&value).map(crate::json::compact).as_deref(), expected, "{text}");
        }
        assert_eq!(Reference::read("nope.x", &|_| None), None);
    }
}
