//! A value together with where each part of it stands in its source text.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};
use core::{fmt, mem::size_of};

use crate::{
    limits::{DOCUMENT_BYTES_FREE, DOCUMENT_BYTES_PER_BYTE, SHOWN_KEY_CHARS_MAX},
    value::Value,
};

/// A value and the places of its parts. What was not read from text has no places.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value.
    pub value: Value,
    /// Where it stands, part by part.
    pub spot: Option<Spot>,
}

/// The place of one part, and of the parts inside it. Small, because a document has one for each of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// Where the value begins.
    pub place: Place,
    /// The places inside it; none for what has nothing inside.
    inner: Option<Box<Inner>>,
}

/// The places inside a value.
#[derive(Debug, Clone, PartialEq)]
enum Inner {
    /// The items of a list.
    List(Vec<Spot>),
    /// The fields of an object, sorted by key.
    Map(Vec<FieldSpot>),
}

/// The place of a field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldSpot {
    key: String,
    key_place: Place,
    spot: Spot,
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
    /// A field of an object. Shared, because the ways to all parts below it begin with it.
    Key(Arc<str>),
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
        let spot = self.spot.as_ref().and_then(|spot| spot.inside(&Segment::Key(key.into()))).map(|(_, spot)| spot);
        Some(Document { value, spot: spot.cloned() })
    }

    /// Where a part begins; where the nearest part around it begins, if it is not there.
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.nearest(path).map(|(_, spot)| spot.place)
    }

    /// Where a part's key begins, or the part itself where it has none.
    pub fn key_place(&self, path: &Path) -> Option<Place> {
        self.nearest(path).map(|(key_place, spot)| key_place.unwrap_or(spot.place))
    }

    /// The place of the part at the end of a path, with that of its key where it is a field.
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
    /// The place of a value that has nothing inside.
    pub(crate) fn leaf(place: Place) -> Self {
        Self { place, inner: None }
    }

    /// The place of a list.
    pub(crate) fn list(place: Place, mut items: Vec<Spot>) -> Self {
        items.shrink_to_fit();
        Self { place, inner: (!items.is_empty()).then(|| Box::new(Inner::List(items))) }
    }

    /// The place of an object; its fields in any order, each key once.
    pub(crate) fn map(place: Place, mut fields: Vec<FieldSpot>) -> Self {
        fields.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        fields.shrink_to_fit();
        Self { place, inner: (!fields.is_empty()).then(|| Box::new(Inner::Map(fields))) }
    }

    /// The place of a part inside, with that of its key where it is a field.
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
    /// The way to the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// The way on to a field.
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.into()))
    }

    /// The way on to an item.
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// The way on to a part of a part.
    pub(crate) fn join(&self, rest: &Path) -> Self {
        Self(self.0.iter().chain(&rest.0).cloned().collect())
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// About how many bytes it takes when it is shown.
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

/// A key between quotes, cut where it is long: a way is shown with each of the findings below it.
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

/// The memory that reading one text may take, counted before it is taken.
///
/// The numbers are those of the standard library's containers, rounded up: a vector holds twice what is in it while it
/// grows, a B-tree is made of nodes for eleven entries, of which half may be in use.
#[derive(Debug)]
pub(crate) struct Room {
    all: usize,
    left: usize,
}

/// There is no room left for what a text would become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Room {
    /// Bytes of one value and its place, as the item of a list that is complete.
    pub(crate) const ITEM: usize = size_of::<Value>() + size_of::<Spot>();

    /// Bytes of a list or an object beside its items.
    pub(crate) const CONTAINER: usize = size_of::<Inner>() + 16;

    /// Bytes of an object's first field: a node of the tree, which is made for eleven.
    const FIRST_FIELD: usize = 12 * (size_of::<String>() + size_of::<Value>());

    /// Bytes of every fifth further field: another node, and its share of those above.
    const FIFTH_FIELD: usize = Self::FIRST_FIELD + 128;

    /// The room of a text of so many bytes.
    pub(crate) fn of(text_bytes: usize) -> Self {
        let all = text_bytes.saturating_mul(DOCUMENT_BYTES_PER_BYTE).saturating_add(DOCUMENT_BYTES_FREE);
        Self { all, left: all }
    }

    /// Takes so many bytes, if they are there.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Full> {
        self.left = self.left.checked_sub(bytes).ok_or(Full)?;
        Ok(())
    }

    /// Takes the bytes of a text's letters.
    pub(crate) fn take_text(&mut self, text: &str) -> Result<(), Full> {
        self.take(text.len().saturating_add(16))
    }

    /// Takes the bytes of a field, given how many an object has already.
    pub(crate) fn take_field(&mut self, key: &str, fields: usize) -> Result<(), Full> {
        let node = match fields {
            0 => Self::FIRST_FIELD,
            more if more.is_multiple_of(5) => Self::FIFTH_FIELD,
            _ => 0,
        };
        self.take(node + 2 * size_of::<FieldSpot>() + 2 * key.len() + 32)
    }

    /// Gives bytes back that were taken for something which has become smaller.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes).min(self.all);
    }

    /// Bytes taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.all - self.left
    }
}

impl Full {
    pub(crate) const MESSAGE: &'static str =
        "the values are too many for so short a text, aliases followed and small objects counted in full";
    pub(crate) const MEND: &'static str = "use fewer aliases and anchors, or move the data out of the definition";
}
