//! Documents: parsed values with the source position of each part, and the memory budget of the parsers.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};
use core::{fmt, mem::size_of};

use crate::{
    limits::{DOCUMENT_BYTES_FREE, DOCUMENT_BYTES_PER_BYTE, SHOWN_KEY_CHARS_MAX},
    value::Value,
};

/// A value with the source positions of its parts. A value that was not parsed from text has none.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The content, without positions.
    pub value: Value,
    /// Source positions, as a tree that matches the value.
    pub spot: Option<Spot>,
}

/// Source position of a value and of the parts inside it. Kept small, because a document has one for each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// Position of the first character of the value.
    pub place: Place,
    /// Positions inside a list or an object; `None` if it is empty, and for other kinds.
    inner: Option<Box<Inner>>,
}

/// The positions inside a value.
#[derive(Debug, Clone, PartialEq)]
enum Inner {
    /// Items of a list.
    List(Vec<Spot>),
    /// Fields of an object, sorted by key.
    Map(Vec<FieldSpot>),
}

/// Source positions of a field: its key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldSpot {
    key: String,
    key_place: Place,
    spot: Spot,
}

/// A position in a text. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Path of a part of a document, displayed as `steps[0].then[1].command`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path(Vec<Segment>);

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object. The key is shared, because the paths of all parts below the field repeat it.
    Key(Arc<str>),
    /// An item of a list, from 0.
    Index(usize),
}

impl Document {
    /// Creates a document without source positions.
    pub fn placeless(value: Value) -> Self {
        Self { value, spot: None }
    }

    /// Returns a field of the document with its source positions.
    pub fn field(&self, key: &str) -> Option<Document> {
        let value = self.value.get(key)?.clone();
        let spot = self.spot.as_ref().and_then(|spot| spot.inside(&Segment::Key(key.into()))).map(|(_, spot)| spot);
        Some(Document { value, spot: spot.cloned() })
    }

    /// Returns the value of a part.
    pub(crate) fn part(&self, path: &Path) -> Option<&Value> {
        path.0.iter().try_fold(&self.value, |value, segment| match (value, segment) {
            (Value::Map(map), Segment::Key(key)) => map.get(&**key),
            (Value::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Returns the position of a part, or of the nearest part around it if it does not exist.
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.nearest(path).map(|(_, spot)| spot.place)
    }

    /// Returns the position of a part's key, or of the part if it has no key.
    pub fn key_place(&self, path: &Path) -> Option<Place> {
        self.nearest(path).map(|(key_place, spot)| key_place.unwrap_or(spot.place))
    }

    /// Returns the positions of the key and the value at the end of a path, or as far as the path exists. Items of
    /// lists have no key.
    fn nearest(&self, path: &Path) -> Option<(Option<Place>, &Spot)> {
        let mut found = (None, self.spot.as_ref()?);
        for segment in &path.0 {
            match found.1.inside(segment) {
                Some(inner) => found = inner,
                None => break,
            }
        }
        Some(found)
    }
}

impl Spot {
    /// Creates the position of a value without inner parts.
    pub(crate) fn leaf(place: Place) -> Self {
        Self { place, inner: None }
    }

    pub(crate) fn list(place: Place, mut items: Vec<Spot>) -> Self {
        items.shrink_to_fit();
        Self { place, inner: (!items.is_empty()).then(|| Box::new(Inner::List(items))) }
    }

    /// Creates the position of an object. The fields may be in any order; keys must be unique.
    pub(crate) fn map(place: Place, mut fields: Vec<FieldSpot>) -> Self {
        fields.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        fields.shrink_to_fit();
        Self { place, inner: (!fields.is_empty()).then(|| Box::new(Inner::Map(fields))) }
    }

    /// Returns the positions of a part: of its key, if it is a field, and of its value.
    pub fn inside(&self, segment: &Segment) -> Option<(Option<Place>, &Spot)> {
        match (self.inner.as_deref()?, segment) {
            (Inner::Map(fields), Segment::Key(key)) => {
                let at = fields.binary_search_by(|field| field.key.as_str().cmp(key)).ok()?;
                Some((Some(fields[at].key_place), &fields[at].spot))
            }
            (Inner::List(items), Segment::Index(index)) => items.get(*index).map(|spot| (None, spot)),
            _ => None,
        }
    }
}

impl FieldSpot {
    pub(crate) fn new(key: String, key_place: Place, spot: Spot) -> Self {
        Self { key, key_place, spot }
    }
}

impl Path {
    /// The path of the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Appends a field.
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.into()))
    }

    /// Appends an item.
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// Returns the path without its last segment.
    pub(crate) fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    pub(crate) fn join(&self, rest: &Path) -> Self {
        Self(self.0.iter().chain(&rest.0).cloned().collect())
    }

    /// Returns the segments, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns the approximate length of the displayed path, in bytes.
    pub(crate) fn shown_bytes(&self) -> usize {
        let bytes = |segment: &Segment| match segment {
            Segment::Index(_) => 8,
            Segment::Key(key) => key.len().min(4 * SHOWN_KEY_CHARS_MAX) + 4,
        };
        self.0.iter().map(bytes).sum()
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

/// Quotes a key and truncates it if it is long, because every diagnostic below it shows the key.
fn quoted(key: &str) -> String {
    match key.char_indices().nth(SHOWN_KEY_CHARS_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &key[..end])),
        None => format!("{key:?}"),
    }
}

fn is_plain(key: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
    !key.is_empty() && key.len() <= SHOWN_KEY_CHARS_MAX && key.bytes().all(is_letter)
}

/// The error for a text that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Position of the error.
    pub place: Place,
    /// Description of the error.
    pub message: String,
    /// Help text: the suggested change.
    pub help: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}; {}", self.place.line, self.place.column, self.message, self.help)
    }
}

/// Converts ascending byte offsets to positions in one pass over the text.
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

    /// Returns the position of a byte offset. Offsets must not decrease between calls.
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

/// Memory budget for parsing one text, charged before memory is allocated.
///
/// The sizes are those of the containers of the standard library, rounded up: a growing vector has up to twice the
/// capacity that it needs, and a B-tree node has room for eleven entries, of which half may be unused.
#[derive(Debug)]
pub(crate) struct Room {
    all: usize,
    left: usize,
}

/// The error for an exhausted memory budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Room {
    /// Bytes of a value and its position, as an item of a complete list.
    pub(crate) const ITEM: usize = size_of::<Value>() + size_of::<Spot>();

    /// Bytes of a list or an object, without its items.
    pub(crate) const CONTAINER: usize = size_of::<Inner>() + 16;

    /// Bytes of an object's first field: a B-tree node, which has room for eleven entries.
    const FIRST_FIELD: usize = 12 * (size_of::<String>() + size_of::<Value>());

    /// Bytes of every fifth further field: another node, and its share of the nodes above.
    const FIFTH_FIELD: usize = Self::FIRST_FIELD + 128;

    /// Creates the budget for a text of the given length.
    pub(crate) fn of(text_bytes: usize) -> Self {
        let all = text_bytes.saturating_mul(DOCUMENT_BYTES_PER_BYTE).saturating_add(DOCUMENT_BYTES_FREE);
        Self { all, left: all }
    }

    /// Charges `bytes`; fails if they exceed the remaining budget.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Full> {
        self.left = self.left.checked_sub(bytes).ok_or(Full)?;
        Ok(())
    }

    /// Charges the characters of a text.
    pub(crate) fn take_text(&mut self, text: &str) -> Result<(), Full> {
        self.take(text.len().saturating_add(16))
    }

    /// Charges another field of an object that has `fields` fields.
    pub(crate) fn take_field(&mut self, key: &str, fields: usize) -> Result<(), Full> {
        let node = match fields {
            0 => Self::FIRST_FIELD,
            more if more.is_multiple_of(5) => Self::FIFTH_FIELD,
            _ => 0,
        };
        self.take(node + 2 * size_of::<FieldSpot>() + 2 * key.len() + 32)
    }

    /// Returns bytes to the budget after a container was shrunk.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes).min(self.all);
    }

    /// Returns the bytes charged so far.
    pub(crate) fn taken(&self) -> usize {
        self.all - self.left
    }
}

impl Full {
    pub(crate) const MESSAGE: &'static str =
        "the values are too many for so short a text, aliases followed and small objects counted in full";
    pub(crate) const HELP: &'static str = "use fewer aliases and anchors, or move the data out of the definition";
}
