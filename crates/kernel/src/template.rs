//! Templates: values with references in their texts. They are parsed at compile time and resolved once per step
//! instance.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    json,
    reference::{self, CONTEXT_PROPERTIES, Lookup, Miss, Part, Reference, Root, resolve},
    value::{Map, Value},
};

/// A value whose texts may contain references. Keys of objects are never resolved, and a resolved value is not parsed
/// again.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// A value without references.
    Literal(Value),
    /// A text that consists of one reference. It resolves to the value itself, of any kind.
    Whole(Reference),
    /// A text that contains references. It resolves to text.
    Text(Vec<Piece>),
    /// A list with references in some item.
    List(Vec<Template>),
    /// An object with references in some field.
    Map(Vec<(String, Template)>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Literal text.
    Plain(String),
    /// A reference, replaced by the text form of its value.
    Reference(Reference),
}

/// A reference that is not valid in its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadReference {
    /// Path of the text within the template.
    pub path: crate::document::Path,
    /// The text of the reference without the `@`.
    pub reference: String,
    /// Reason for the rejection.
    pub why: Why,
}

/// Reason for which a reference is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The text is one reference, and the plan has no such name.
    UnknownName,
    /// `@ctx` has no such property.
    UnknownContext,
}

impl Template {
    /// Returns the normal form: a part without references becomes a literal. Text with `@@` has no references left after
    /// parsing.
    pub fn normalized(self) -> Self {
        match self {
            Self::Text(pieces) => match pieces.as_slice() {
                [] => Self::Literal(Value::text("")),
                [Piece::Plain(plain)] => Self::Literal(Value::text(plain.as_str())),
                _ => Self::Text(pieces),
            },
            Self::List(items) => {
                let items: Vec<_> = items.into_iter().map(Self::normalized).collect();
                if items.iter().all(Self::is_literal) {
                    return Self::Literal(items.into_iter().filter_map(Self::into_literal).collect::<Vec<_>>().into());
                }
                Self::List(items)
            }
            Self::Map(fields) => {
                let fields: Vec<_> = fields.into_iter().map(|(key, field)| (key, field.normalized())).collect();
                if fields.iter().all(|(_, field)| field.is_literal()) {
                    let values = fields.into_iter().filter_map(|(key, field)| Some((key, field.into_literal()?)));
                    return Self::Literal(values.collect::<Map>().into());
                }
                Self::Map(fields)
            }
            other => other,
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    fn into_literal(self) -> Option<Value> {
        match self {
            Self::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// Parses a value. Invalid references are added to `bad`; the result is meaningful only if there are none.
    pub fn read(value: &Value, root_of: &dyn Fn(&str) -> Option<Root>, bad: &mut Vec<BadReference>) -> Self {
        Reader { root_of, bad }.value(value, &crate::document::Path::root())
    }

    /// Resolves all references.
    pub fn resolve(&self, lookup: &dyn Lookup) -> Result<Value, Miss> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Whole(reference) => resolve(reference, lookup)?,
            Self::Text(pieces) => Value::Text(text_of(pieces, lookup)?),
            Self::List(items) => Value::List(items.iter().map(|item| item.resolve(lookup)).collect::<Result<_, _>>()?),
            Self::Map(fields) => {
                let resolved = fields.iter().map(|(key, field)| Ok((key.clone(), field.resolve(lookup)?)));
                Value::Map(resolved.collect::<Result<_, _>>()?)
            }
        })
    }

    /// Adds all references, in order of occurrence.
    pub fn references<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Self::Literal(_) => {}
            Self::Whole(reference) => found.push(reference),
            Self::Text(pieces) => found.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Reference(reference) => Some(reference),
                Piece::Plain(_) => None,
            })),
            Self::List(items) => items.iter().for_each(|item| item.references(found)),
            Self::Map(fields) => fields.iter().for_each(|(_, field)| field.references(found)),
        }
    }
}

/// Returns the form of a value within text: nothing for null, text as it is, compact JSON for everything else.
pub fn text_form(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.clone(),
        other => json::compact(other),
    }
}

fn text_of(pieces: &[Piece], lookup: &dyn Lookup) -> Result<String, Miss> {
    pieces.iter().try_fold(String::new(), |mut text, piece| {
        match piece {
            Piece::Plain(plain) => text.push_str(plain),
            Piece::Reference(reference) => text.push_str(&text_form(&resolve(reference, lookup)?)),
        }
        Ok(text)
    })
}

struct Reader<'a> {
    root_of: &'a dyn Fn(&str) -> Option<Root>,
    bad: &'a mut Vec<BadReference>,
}

impl Reader<'_> {
    fn value(&mut self, value: &Value, path: &crate::document::Path) -> Template {
        match value {
            Value::Text(text) => self.text(text, path),
            Value::List(items) => {
                let read: Vec<_> =
                    items.iter().enumerate().map(|(at, item)| self.value(item, &path.index(at))).collect();
                if read.iter().all(Template::is_as_written) {
                    Template::Literal(value.clone())
                } else {
                    Template::List(read)
                }
            }
            Value::Map(map) => {
                let read: Vec<_> =
                    map.iter().map(|(key, field)| (key.clone(), self.value(field, &path.key(key)))).collect();
                let as_written = read.iter().all(|(_, field)| field.is_as_written());
                if as_written { Template::Literal(value.clone()) } else { Template::Map(read) }
            }
            other => Template::Literal(other.clone()),
        }
    }

    fn text(&mut self, text: &str, path: &crate::document::Path) -> Template {
        if let Some(body) = text.strip_prefix('@')
            && reference::length(body).is_some_and(|(_, all)| all == body.len())
        {
            return match self.reference(body, path) {
                Some(reference) => Template::Whole(reference),
                None => {
                    if !self.was_refused(path, body) {
                        self.refuse(path, body, Why::UnknownName);
                    }
                    Template::Literal(Value::text(text))
                }
            };
        }
        let pieces = self.pieces(text, path);
        match pieces.as_slice() {
            [] => Template::Literal(Value::text("")),
            [Piece::Plain(plain)] if plain == text => Template::Literal(Value::text(text)),
            _ => Template::Text(pieces),
        }
    }

    fn pieces(&mut self, text: &str, path: &crate::document::Path) -> Vec<Piece> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find('@') {
            plain.push_str(&rest[..at]);
            let body = &rest[at + 1..];
            let (piece, taken) = match reference::length(body) {
                _ if body.starts_with('@') => (None, 1),
                Some((_, all)) => (self.reference(&body[..all], path), all),
                None => (None, 0),
            };
            match piece {
                Some(reference) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Plain(core::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Reference(reference));
                }
                None if body.starts_with('@') => plain.push('@'),
                None => {
                    plain.push('@');
                    plain.push_str(&body[..taken]);
                }
            }
            rest = &body[taken..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        pieces
    }

    /// Parses a reference to a known name; returns `None` if it is plain text. A reference to an unknown property of
    /// `@ctx` is reported as well.
    fn reference(&mut self, body: &str, path: &crate::document::Path) -> Option<Reference> {
        let reference = Reference::read(body, self.root_of)?;
        if reference.root == Root::Context
            && let Some(first) = reference.path.first()
            && !matches!(first, Part::Name(name) if CONTEXT_PROPERTIES.contains(&name.as_str()))
        {
            self.refuse(path, body, Why::UnknownContext);
        }
        Some(reference)
    }

    fn refuse(&mut self, path: &crate::document::Path, reference: &str, why: Why) {
        self.bad.push(BadReference { path: path.clone(), reference: reference.to_string(), why });
    }

    fn was_refused(&self, path: &crate::document::Path, reference: &str) -> bool {
        self.bad.last().is_some_and(|bad| bad.path == *path && bad.reference == reference)
    }
}

impl Template {
    /// True if the template resolves to the value that it was parsed from.
    fn is_as_written(&self) -> bool {
        matches!(self, Self::Literal(_))
    }
}

impl Why {
    /// Returns the message and the help text for a rejected reference.
    pub fn explain(self, reference: &str) -> (String, String) {
        let name = &reference[..reference::length(reference).map_or(0, |(name, _)| name)];
        match self {
            Self::UnknownName => (
                format!("`@{reference}` refers to `{name}`, which is no step or name that is known here"),
                format!("write `@@{reference}` if it is meant as text"),
            ),
            Self::UnknownContext => (
                format!("`@{reference}`: `@ctx` has no such property"),
                "it has executionId, attempt and now, and in `finally` outcome: completed, with_failures, failed, timed_out, denied or cancelled"
                    .to_string(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Found;

    struct Fixture(Value);

    impl Lookup for Fixture {
        fn root(&self, root: Root) -> Found<'_> {
            match root {
                Root::Input => Found::Kept(&self.0),
                Root::Step(0) => Found::Skipped,
                _ => Found::Missing,
            }
        }
        fn variable(&self, _: &str) -> Option<&Value> {
            None
        }
        fn output(&self, _: &str) -> Option<&Value> {
            None
        }
    }

    fn root_of(name: &str) -> Option<Root> {
        match name {
            "input" => Some(Root::Input),
            "ctx" => Some(Root::Context),
            "skipped" => Some(Root::Step(0)),
            "gone" => Some(Root::Step(1)),
            _ => None,
        }
    }

    fn check(text: &str, expected: &str) {
        let input = json::read(br#"{"name":"Ada","n":0,"z":null,"e":"","o":{"k":[1]}}"#).unwrap().value;
        let mut bad = Vec::new();
        let template = Template::read(&json::read(text.as_bytes()).unwrap().value, &root_of, &mut bad);
        assert_eq!(bad, [], "{text}");
        let resolved = match template.resolve(&Fixture(input)) {
            Ok(value) => json::compact(&value),
            Err(miss) => format!("miss {}", miss.reference),
        };
        assert_eq!(resolved, expected, "{text}");
    }

    #[test]
    fn resolving() {
        for (text, expected) in [
            (r#""@input""#, r#"{"e":"","n":0,"name":"Ada","o":{"k":[1]},"z":null}"#),
            (r#"["@input.n","@input.z","@input.e"]"#, r#"[0,null,""]"#),
            (r#""n=@input.n z=@input.z o=@input.o.""#, r#""n=0 z= o={\"k\":[1]}.""#),
            (r#""@input.name@input.n""#, r#""Ada0""#),
            (
                r#"["tail @","@ input","@1abc","me@example.com","@@input.n","a@@@input.n"]"#,
                r#"["tail @","@ input","@1abc","me@example.com","@input.n","a@0"]"#,
            ),
            (r#"{"@input.name":{"a":["@input.n"]}}"#, r#"{"@input.name":{"a":[0]}}"#),
            (r#"["@skipped.a.b","s@skipped.x"]"#, r#"[null,"s"]"#),
            (r#""@input.nobody""#, "miss input.nobody"),
            (r#""hi @input.nobody""#, "miss input.nobody"),
            (r#""@gone""#, "miss gone"),
            (r#""""#, r#""""#),
            (r#""x@nope.y""#, r#""x@nope.y""#),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn refused() {
        for (text, why) in [
            (r#"{"a":["@nope.data"]}"#, Why::UnknownName),
            (r#"{"a":["@ctx.user"]}"#, Why::UnknownContext),
            (r#"{"a":["by @ctx.user"]}"#, Why::UnknownContext),
        ] {
            let mut bad = Vec::new();
            Template::read(&json::read(text.as_bytes()).unwrap().value, &root_of, &mut bad);
            assert_eq!(bad.len(), 1, "{text}");
            assert_eq!((bad[0].path.to_string().as_str(), bad[0].why), ("a[0]", why), "{text}");
        }
    }
}
