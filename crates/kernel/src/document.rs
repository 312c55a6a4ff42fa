//! A value together with where each part of it stands in its source text.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::value::Value;

/// A value and the places of its parts. What was not read from text has no places.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value.
    pub value: Value,
    /// Where it stands, part by part.
    pub spot: Option<Spot>,
}

/// The place of one part, and of the parts inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// Where the value begins.
    pub place: Place,
    /// Where its key begins, for a field of an object.
    pub key: Option<Place>,
    /// The parts inside.
    pub inner: Inner,
}

/// The places inside a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Inner {
    /// Nothing is inside.
    Leaf,
    /// The items of a list.
    List(Vec<Spot>),
    /// The fields of an object.
    Map(BTreeMap<String, Spot>),
}

/// A place in a text: both numbers count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// The way to a part of a document, written as `steps[0].then[1].command`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path(Vec<Segment>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
}

impl Document {
    /// A document that was not read from text.
    pub fn placeless(value: Value) -> Self {
        Self { value, spot: None }
    }

    /// The part of the document below one of its fields, with its places.
    pub fn field(&self, key: &str) -> Option<Document> {
        let value = self.value.get(key)?.clone();
        let spot = self.spot.as_ref().and_then(|spot| match &spot.inner {
            Inner::Map(fields) => fields.get(key).cloned(),
            _ => None,
        });
        Some(Document { value, spot })
    }

    /// Where a part begins; where the nearest part around it begins, if it is not there.
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.nearest(path).map(|spot| spot.place)
    }

    /// Where a part's key begins, or the part itself where it has none.
    pub fn key_place(&self, path: &Path) -> Option<Place> {
        self.nearest(path).map(|spot| spot.key.unwrap_or(spot.place))
    }

    fn nearest(&self, path: &Path) -> Option<&Spot> {
        let mut spot = self.spot.as_ref()?;
        for segment in &path.0 {
            let inner = match (&spot.inner, segment) {
                (Inner::Map(fields), Segment::Key(key)) => fields.get(key),
                (Inner::List(items), Segment::Index(index)) => items.get(*index),
                _ => None,
            };
            match inner {
                Some(found) => spot = found,
                None => break,
            }
        }
        Some(spot)
    }
}

impl Path {
    /// The way to the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// The way on to a field.
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_string()))
    }

    /// The way on to an item.
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(out, "[{index}]")?,
                Segment::Key(key) if !is_plain(key) => write!(out, "[{}]", quoted(key))?,
                Segment::Key(key) if position == 0 => out.write_str(key)?,
                Segment::Key(key) => write!(out, ".{key}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.line, self.column)
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}

fn quoted(key: &str) -> String {
    format!("{key:?}")
}

/// A text that could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub mend: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}; {}", self.place.line, self.place.column, self.message, self.mend)
    }
}

/// Finds lines and columns of rising byte offsets without counting from the start each time.
#[derive(Debug)]
pub(crate) struct Ruler<'a> {
    text: &'a str,
    offset: usize,
    place: Place,
}

impl<'a> Ruler<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, offset: 0, place: Place { line: 1, column: 1 } }
    }

    /// The place of a byte offset; offsets never fall from call to call.
    pub(crate) fn place(&mut self, offset: usize) -> Place {
        for letter in self.text[self.offset..offset].chars() {
            if letter == '\n' {
                self.place = Place { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        self.offset = offset;
        self.place
    }
}
