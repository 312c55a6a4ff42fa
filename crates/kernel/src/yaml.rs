//! Parses YAML into the same values as JSON, with the same limits and errors.
//!
//! Plain scalars follow the core schema of YAML 1.2, so `yes` and `on` are text. Anchors and aliases are supported
//! within the limits of documents. Tags other than `!!str`, several documents in one text, and keys that are not text
//! are rejected.
//!
//! Memory is limited by the length of the text (see [`Room`]). An alias is charged before its value is copied, and so
//! is the copy kept for an anchor. The tokens that the parser reads ahead are limited by [`ahead::Ahead`].

use alloc::{
    borrow::Cow,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::{
    diagnostic::quoted,
    document::{Document, FieldSpot, Full, Place, ReadError, Room, Spot},
    json,
    limits::{DEPTH_MAX, DOCUMENT_NODES_MAX},
    value::{Map, Number, Value},
};
use ahead::{Ahead, Metered};

mod ahead;

/// The key of YAML 1.1 that takes the entries of another object. YAML 1.2 has no such key.
const MERGE_KEY: &str = "<<";

/// Parses one YAML document with source positions.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    let text = core::str::from_utf8(bytes).map_err(|error| json::not_utf8(bytes, error.valid_up_to()))?;
    // JSON is valid YAML, and the JSON parser needs no lookahead.
    if text.trim_start().starts_with('{')
        && let Ok(document) = json::read(bytes)
    {
        return Ok(document);
    }
    let ahead = Ahead::of(text.len());
    let parser = Parser::new(Metered::new(text, ahead.clone()));
    let mut reader = Reader { text, parser, ahead, anchors: BTreeMap::new(), nodes: 0, room: Room::of(text.len()) };
    let node = reader.document()?;
    Ok(Document { value: node.value, spot: Some(node.spot) })
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, Metered<'a>>,
    ahead: Ahead,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    room: Room,
}

#[derive(Clone)]
struct Node {
    value: Value,
    spot: Spot,
    /// Number of values in it, itself included.
    nodes: usize,
    /// Bytes of memory, as [`Room`] counts them.
    bytes: usize,
    depth: usize,
}

/// Bytes of memory of an anchor in this module and in the parser, without its value.
const ANCHOR_BYTES: usize = 400;

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, ReadError> {
        let node = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::StreamEnd | Event::DocumentEnd, span) => {
                    return Err(error(span, "the document is empty", "write a definition"));
                }
                (event, span) => break self.node(event, span, 0)?,
            }
        };
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(node),
                (Event::DocumentStart(_), span) => {
                    return Err(error(span, "a second document begins here", "keep one document in a file"));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, ReadError> {
        if depth > DEPTH_MAX {
            return Err(error(span, format!("nested more than {DEPTH_MAX} deep"), "flatten it"));
        }
        let (nodes, taken) = (self.nodes, self.room.taken());
        self.count(1, 2 * Room::ITEM, span)?;
        let (anchor, mut node) = match event {
            Event::Alias(id) => (0, self.alias(id, span, depth)?),
            Event::Scalar(text, style, anchor, tag) => {
                let kept = self.room.take_text(&text);
                self.refuse_full(kept, span)?;
                (anchor, leaf(scalar(text, style, tag.as_deref(), span)?, span))
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                (anchor, self.list(span, depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                (anchor, self.map(span, depth)?)
            }
            _ => return Err(error(span, "a value should be here", "complete the document")),
        };
        node.nodes = self.nodes - nodes;
        node.bytes = self.room.taken() - taken;
        if anchor > 0 {
            let kept = self.room.take(node.bytes + ANCHOR_BYTES);
            self.refuse_full(kept, span)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Returns a copy of the value of an alias. The copy is charged before it is made.
    fn alias(&mut self, id: usize, span: Span, depth: usize) -> Result<Node, ReadError> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(error(span, "an alias of what is not complete", "an anchor cannot hold an alias of itself"));
        };
        let (nodes, bytes) = (node.nodes, node.bytes);
        if depth + node.depth > DEPTH_MAX {
            return Err(error(span, format!("nested more than {DEPTH_MAX} deep"), "flatten it"));
        }
        self.count(nodes, bytes, span)?;
        let mut node = self.anchors[&id].clone();
        node.spot.place = place(span.start);
        Ok(node)
    }

    fn list(&mut self, span: Span, depth: usize) -> Result<Node, ReadError> {
        let (mut list, mut spots, mut inner_depth) = (Vec::new(), Vec::new(), 0);
        self.count(0, Room::CONTAINER, span)?;
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                (event, span) => {
                    let node = self.node(event, span, depth + 1)?;
                    inner_depth = inner_depth.max(node.depth + 1);
                    list.push(node.value);
                    spots.push(node.spot);
                }
            }
        }
        list.shrink_to_fit();
        self.room.give_back(list.len() * Room::ITEM);
        let spot = Spot::list(place(span.start), spots);
        Ok(Node { value: Value::List(list), spot, nodes: 0, bytes: 0, depth: inner_depth })
    }

    fn map(&mut self, span: Span, depth: usize) -> Result<Node, ReadError> {
        let (mut map, mut spots, mut inner_depth) = (Map::new(), Vec::new(), 0);
        self.count(0, Room::CONTAINER, span)?;
        loop {
            let (key, key_span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(key, ScalarStyle::Plain, ..), span) if key == MERGE_KEY => {
                    return Err(error(span, "merge keys are not supported", "write the entries out in place of `<<`"));
                }
                (Event::Scalar(key, ..), span) => (key.into_owned(), span),
                (_, span) => {
                    let help = match rest_at(self.text, place(span.start)).starts_with('{') {
                        true => "put the text in quotes; a reference is written as \"@name.path\", without braces",
                        false => "write `key: value`",
                    };
                    return Err(error(span, "a key that is not text", help));
                }
            };
            if map.contains_key(&key) {
                return Err(error(key_span, format!("the key {} stands here twice", quoted(&key)), "keep one of them"));
            }
            let kept = self.room.take_field(&key, map.len());
            self.refuse_full(kept, key_span)?;
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            inner_depth = inner_depth.max(node.depth + 1);
            spots.push(FieldSpot::new(key.clone(), place(key_span.start), node.spot));
            map.insert(key, node.value);
        }
        let spot = Spot::map(place(span.start), spots);
        Ok(Node { value: Value::Map(map), spot, nodes: 0, bytes: 0, depth: inner_depth })
    }

    /// Counts values and charges their memory.
    fn count(&mut self, nodes: usize, bytes: usize, span: Span) -> Result<(), ReadError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > DOCUMENT_NODES_MAX {
            let message = format!("more than {DOCUMENT_NODES_MAX} values, aliases followed");
            return Err(error(span, message, "split the document"));
        }
        let kept = self.room.take(bytes);
        self.refuse_full(kept, span)
    }

    fn refuse_full(&self, kept: Result<(), Full>, span: Span) -> Result<(), ReadError> {
        kept.map_err(|Full| error(span, Full::MESSAGE, Full::HELP))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), ReadError> {
        self.ahead.begin();
        let event = self.parser.next_event();
        if self.ahead.is_exceeded() {
            let span = event.and_then(Result::ok).map(|(_, span)| span).unwrap_or_default();
            let help = "write it in lines of its own, each item after `- `, or write the whole document as JSON";
            return Err(error(span, "a collection in brackets is too long to be read as YAML", help));
        }
        match event {
            Some(Ok(event)) => Ok(event),
            Some(Err(scan)) => Err(scan_error(&scan, self.text)),
            None => Err(error(Span::default(), "the document ends too early", "complete it")),
        }
    }
}

fn leaf(value: Value, span: Span) -> Node {
    Node { value, spot: Spot::leaf(place(span.start)), nodes: 1, bytes: 0, depth: 0 }
}

/// Returns the value of a scalar: text if it is quoted, otherwise by the core schema of YAML 1.2.2, 10.3.2.
fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Value, ReadError> {
    let is_text_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    if !is_text_tag {
        refuse_tag(tag, span)?;
    }
    if is_text_tag || style != ScalarStyle::Plain {
        return Ok(Value::Text(owned(text)));
    }
    Ok(match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        other => match number(other) {
            NumberRead::Number(number) => Value::Number(number),
            NumberRead::Text => Value::Text(owned(text)),
            NumberRead::Beyond => {
                return Err(error(
                    span,
                    format!("{} is beyond the range of numbers", json::cut(other)),
                    "write it as text, in quotes",
                ));
            }
        },
    })
}

/// Takes ownership of a text and drops its spare capacity.
fn owned(text: Cow<'_, str>) -> String {
    let mut text = text.into_owned();
    text.shrink_to_fit();
    text
}

enum NumberRead {
    Number(Number),
    Text,
    Beyond,
}

/// Parses decimal numbers as in JSON, which may also have a leading plus, point or zeros, and hexadecimal and octal
/// integers.
fn number(text: &str) -> NumberRead {
    let radix = |digits: &str, radix: u32| match i128::from_str_radix(digits, radix).ok().and_then(Number::whole) {
        Some(number) => NumberRead::Number(number),
        None if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) => NumberRead::Beyond,
        None => NumberRead::Text,
    };
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| !digits.starts_with(['+', '-'])) {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| !digits.starts_with(['+', '-'])) {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return NumberRead::Beyond;
    }
    if !is_decimal(unsigned) {
        return NumberRead::Text;
    }
    json::number_of_literal(text.strip_prefix('+').unwrap_or(text)).map_or(NumberRead::Beyond, NumberRead::Number)
}

/// Checks for `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_holds = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_holds
}

fn refuse_tag(tag: Option<&Tag>, span: Span) -> Result<(), ReadError> {
    match tag {
        None => Ok(()),
        Some(tag) => {
            let tag = quoted(&format!("{}{}", tag.handle, tag.suffix));
            Err(error(span, format!("the tag {tag}"), "tags are not used here; remove it"))
        }
    }
}

fn place(marker: Marker) -> Place {
    json::place(marker.line(), marker.col() + 1)
}

fn error(span: Span, message: impl ToString, help: impl Into<String>) -> ReadError {
    ReadError { place: place(span.start), message: message.to_string(), help: help.into() }
}

/// Converts a parser error: keeps its message and adds help text for common mistakes.
fn scan_error(scan: &ScanError, text: &str) -> ReadError {
    let (message, mut place) = (scan.info().to_string(), place(*scan.marker()));
    let rest = rest_at(text, place);
    let help = if message.contains("tab") {
        place = tab_from(text, place).unwrap_or(place);
        "YAML indents with spaces: replace the tab"
    } else if message.contains("mapping values") {
        "put the text in quotes, or write it after `|` on lines of its own: a plain text cannot contain `: `"
    } else if rest.starts_with("```") {
        "take the fence of backquotes away: the file holds YAML and nothing around it"
    } else if rest.starts_with('@') {
        "put the reference in quotes: a plain text cannot begin with `@`"
    } else if rest.starts_with(['`', '%', '*', '&']) {
        "put the text in quotes: a plain text cannot begin with this sign"
    } else {
        "check the indentation and the quotes here and on the line before"
    };
    ReadError { place, message, help: help.into() }
}

/// Returns the rest of the line from a position.
fn rest_at(text: &str, place: Place) -> &str {
    let line = text.lines().nth(place.line.saturating_sub(1) as usize).unwrap_or_default();
    let start = line.char_indices().nth(place.column.saturating_sub(1) as usize).map_or(line.len(), |(at, _)| at);
    &line[start..]
}

/// Finds the tab in the indentation of the line of a position or of the next line. The parser reports either of the
/// two.
fn tab_from(text: &str, from: Place) -> Option<Place> {
    let lines = text.lines().enumerate().skip(from.line.saturating_sub(1) as usize).take(2);
    lines.into_iter().find_map(|(line, letters)| {
        let mut indent = letters.chars().take_while(|letter| letter.is_whitespace());
        Some(json::place(line + 1, indent.position(|letter| letter == '\t')? + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document::Path, json::canonical};

    fn check(text: &str, canonically: &str) {
        let document = read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(canonical(&document.value), canonically, "{text}");
    }

    #[test]
    fn accepted() {
        check("a: 1\nb: [x, 'y', \"z\\n\"]\n", r#"{"a":1,"b":["x","y","z\n"]}"#);
        check(
            "- yes\n- on\n- ~\n- null\n- True\n- 1.5\n- +3\n- 0x1F\n- 0o17\n- 1e3\n- .5\n- 1_000\n",
            r#"["yes","on",null,null,true,1.5,3,31,15,1000,0.5,"1_000"]"#,
        );
        check("run: |\n  echo one\n  echo two\n", r#"{"run":"echo one\necho two\n"}"#);
        check("x: &a {k: [1]}\ny: *a\n", r#"{"x":{"k":[1]},"y":{"k":[1]}}"#);
        check("{\"json\": [1, true]}", r#"{"json":[1,true]}"#);
        check("a: !!str 12\n", r#"{"a":"12"}"#);
        check("a:\n", r#"{"a":null}"#);
        check("---\na: 1\n...\n", r#"{"a":1}"#);
        check("v: 1.2.3\nd: 2026-02-07\n", r#"{"d":"2026-02-07","v":"1.2.3"}"#);
    }

    #[test]
    fn refused() {
        for (text, message) in [
            ("", "empty"),
            ("a: 1\na: 2\n", "line 2, column 1: the key \"a\" stands here twice"),
            ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3, column 3: merge keys are not supported"),
            ("a: !thing 1\n", "tag"),
            ("--- 1\n--- 2\n", "second document"),
            ("? [a]\n: 1\n", "not text"),
            ("a: .inf\n", "beyond the range"),
            ("a: 1e999\n", "beyond the range"),
            ("a: b: c\n", "in quotes"),
            ("a:\n\t- b\n", "line 2, column 1"),
            ("a: x\n\tb: y\n", "line 2, column 1"),
            ("a: @b.c\n", "put the reference in quotes"),
            ("```yaml\na: 1\n```\n", "fence"),
            ("a: `b`\n", "begin with this sign"),
            ("a: [1, 2\n", "line 2"),
            ("x: &a [*a]\n", "alias"),
        ] {
            let error = read(text.as_bytes()).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let bomb: String = core::iter::once("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_string())
            .chain((1..9).map(|n| format!("a{n}: &a{n} [{}]\n", alloc::vec![format!("*a{}", n - 1); 10].join(","))))
            .collect();
        assert!(read(bomb.as_bytes()).unwrap_err().to_string().contains("too many for so short a text"));
        assert!(read("[".repeat(10_000).as_bytes()).is_err());
        assert!(read(b"a: \xff").unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn places() {
        let document = read(b"name: x\nsteps:\n  - id: a\n    type: bash\n").unwrap();
        let path = Path::root().key("steps").index(0).key("type");
        assert_eq!(document.place(&path).unwrap().to_string(), "4:11");
        assert_eq!(document.key_place(&path).unwrap().to_string(), "4:5");
    }
}
