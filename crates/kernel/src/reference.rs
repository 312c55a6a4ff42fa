//! References: `@name` followed by a path into the value. All templates, conditions and scripts use this one grammar.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::value::{Map, Value};

/// A reference whose root is known in its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The value at which the path starts.
    pub root: Root,
    /// The path into that value.
    pub path: Vec<Part>,
    /// The text of the reference without the `@`, for messages.
    pub text: String,
}

/// The value at which a reference starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// Input of the execution.
    Input,
    /// Variables of the execution.
    Variables,
    /// An object with `executionId`, `attempt` and `now`.
    Context,
    /// Current item of the innermost loop over a list.
    Item,
    /// Index of the current round of the innermost loop, from 0.
    Index,
    /// Output of a step, by step number in the plan.
    Step(u32),
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A field of an object.
    Name(String),
    /// An item of a list, from 0; in an object, the field whose name is this number.
    Index(u32),
}

/// Properties of `@ctx`.
pub const CONTEXT_PROPERTIES: [&str; 4] = ["executionId", "attempt", "now", OUTCOME];

/// The property of `@ctx` that only the steps of `finally` have.
pub const OUTCOME: &str = "outcome";

/// The values of `@ctx.outcome`.
pub const OUTCOMES: [&str; 6] = ["completed", "with_failures", "failed", "timed_out", "denied", "cancelled"];

/// Names that have a fixed meaning in references and cannot be step names.
pub const RESERVED_NAMES: [&str; 5] = ["input", "vars", "ctx", "item", "index"];

/// Measures the reference at the start of `text`, which begins after the `@`. Returns the length of its name and its
/// total length in bytes; `None` if no reference starts there. Characters outside the grammar end the reference, so an
/// `@` in prose and a period after a reference remain text.
pub fn length(text: &str) -> Option<(usize, usize)> {
    let name = name_length(text)?;
    let mut at = name;
    while let Some(part) = part_length(&text[at..]) {
        at += part;
    }
    Some((name, at))
}

/// True if a value is one whole reference, known or not.
pub fn is_whole(value: &Value) -> bool {
    let body = value.as_text().and_then(|text| text.strip_prefix('@'));
    body.is_some_and(|body| length(body).is_some_and(|(_, all)| all == body.len()))
}

/// True if `text` can be the name of a step or a variable: a letter or `_`, then letters, digits, `_` and `-`.
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

/// Measures a path segment: `.name`, `.0` or `[0]`.
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
    /// Parses a reference that [`length`] has measured; `None` if its name is not known.
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

    /// Returns the text of the reference, without the `@`, up to the given number of path segments.
    pub fn begin(&self, parts: usize) -> &str {
        let mut at = name_length(&self.text).unwrap_or_default();
        for _ in 0..parts {
            at += part_length(&self.text[at..]).unwrap_or_default();
        }
        &self.text[..at]
    }

    /// Follows the path; `None` if it leads nowhere. Paths reach only fields and items: there are no characters of a
    /// text, no length of a list, and nothing below null.
    pub fn follow<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(value, |value, part| part.of(value))
    }
}

impl Part {
    fn read(text: &str) -> Self {
        // A number with leading zeros (`007`) is a name, because only one spelling may denote an index.
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

/// The value of a root at the time of resolution.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a> {
    /// A stored value.
    Kept(&'a Value),
    /// A computed value.
    Made(Value),
    /// The output of a step that was skipped or is in a branch not taken. All paths into it give null.
    Skipped,
    /// The value does not exist.
    Missing,
}

/// The source of the values of roots.
pub trait Lookup {
    /// Returns the value of a root.
    fn root(&self, root: Root) -> Found<'_>;

    /// Returns the variable of this name. A variable whose value is null exists.
    fn variable(&self, name: &str) -> Option<&Value>;

    /// Returns the output variable of this name.
    fn output(&self, name: &str) -> Option<&Value>;

    /// True if a path below a skipped step exists, as in journals of older releases.
    fn finds_below_skipped(&self) -> bool {
        false
    }
}

/// The error for a reference that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The text of the reference without the `@`.
    pub reference: String,
}

/// Resolves a reference to a copy of its value.
pub fn resolve(reference: &Reference, lookup: &dyn Lookup) -> Result<Value, Miss> {
    let miss = || Miss { reference: reference.text.clone() };
    match lookup.root(reference.root) {
        Found::Kept(value) => reference.follow(value).cloned().ok_or_else(miss),
        Found::Made(value) => reference.follow(&value).cloned().ok_or_else(miss),
        Found::Skipped => Ok(Value::Null),
        Found::Missing => Err(miss()),
    }
}

/// Builds the value of `@ctx`. The outcome is there only while `finally` runs.
pub fn context(execution_id: &str, attempt: u32, now_ms: u64, outcome: Option<&str>) -> Value {
    let values = [Some(execution_id.into()), Some(attempt.into()), Some(crate::time::rfc3339(now_ms).into())];
    let values = values.into_iter().chain([outcome.map(Value::from)]);
    let fields = CONTEXT_PROPERTIES.iter().zip(values).filter_map(|(name, value)| Some((name.to_string(), value?)));
    Value::Map(fields.collect::<Map>())
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
    fn a_reference_starts_with_a_root() {
        let reference = Reference::read("input.a[0].b", &|_| Some(Root::Input)).unwrap();
        for (parts, expected) in
            [(0, "input"), (1, "input.a"), (2, "input.a[0]"), (3, "input.a[0].b"), (9, "input.a[0].b")]
        {
            assert_eq!(reference.begin(parts), expected);
        }
    }

    #[test]
    fn a_path_continues_a_reference() {
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
