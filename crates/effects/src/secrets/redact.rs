//! Removes the values of secrets from outcomes.
//!
//! A text is searched as it is, and with percent encoding, HTML references, backslash escapes and doubled quotes decoded. Each view leaves
//! out white space, so that line breaks inside of an encoded value do not hide it. The needles are the value, its longer
//! lines, its hexadecimal and HTML forms, and the parts of its base64 forms that do not depend on the bytes around it. A value that
//! a program transforms in another way is not found.

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use mainspring_kernel::{
    effect::{Outcome, Report},
    failure::{Class, Failure},
    json,
    value::{Map, Value},
};

use super::{
    SecretValue,
    limits::{CUT_BYTES_MIN, LINE_BYTES_MIN},
};

/// The text that replaces a value. It is shorter than any value, so an outcome within a bound stays within it.
const REPLACEMENT: &str = "***";

/// Encodings inside of each other that are decoded: JSON in a text of JSON in a log line, an address in the query of another.
const ESCAPES_NESTED_MAX: usize = 4;

/// Bytes of the longest escape: two halves of a character in JSON, with the backslashes of all nested texts.
const ESCAPE_BYTES_MAX: usize = 2 * (5 + (1 << (ESCAPES_NESTED_MAX - 1)));

/// Removes values of secrets. Its `Debug` form does not show them.
#[derive(Clone, Default)]
pub struct Redactor {
    needles: Vec<Vec<u8>>,
    /// The values without white space, for beginnings at the end of a text.
    values: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Redactor({} values)", self.values.len())
    }
}

impl Redactor {
    /// Makes a redactor of values.
    pub fn new(values: impl IntoIterator<Item = SecretValue>) -> Self {
        let mut redactor = Self::default();
        for value in values {
            let text = value.expose();
            redactor.values.push(compact(text.as_bytes()));
            redactor.needles.extend(needles(text));
        }
        // The longest first, so that a value is replaced as a whole.
        redactor.needles.sort_by_key(|needle| std::cmp::Reverse(needle.len()));
        redactor.needles.dedup();
        redactor
    }

    /// True if there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// Removes the values from an outcome.
    pub fn outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            _ if self.is_empty() => outcome,
            Outcome::Done(value) => Outcome::Done(self.value(value)),
            Outcome::Failed(failure) => Outcome::Failed(self.failure(failure)),
            Outcome::Stopped(value) => Outcome::Stopped(self.value(value)),
            Outcome::Reported(report) => self.report(*report),
            other => other,
        }
    }

    /// Removes the values from a form. The way to continue a call must stay as it is, so one with a value is a failure.
    fn report(&self, report: Report) -> Outcome {
        if let Report::Continued(handle) | Report::Asked { handle, .. } = &report
            && self.value(handle.clone()) != *handle
        {
            let message = "the tool server repeats a secret in what continues its call, and no journal may keep it";
            return Outcome::Failed(Failure::new(Class::Invalid, "tool_answer_invalid", message));
        }
        Outcome::Reported(Box::new(match report {
            Report::Asked { question, handle } => Report::Asked { question: self.value(question), handle },
            other => other,
        }))
    }

    /// Removes the values from the message and the details of a failure.
    pub fn failure(&self, failure: Failure) -> Failure {
        let Failure { code, class, message, details } = failure;
        Failure { code, class, message: self.text(message), details: self.value(details) }
    }

    /// Removes the values from texts, keys and numbers.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::Text(text) => Value::Text(self.text(text)),
            Value::List(items) => Value::List(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Map(map) => {
                Value::Map(map.into_iter().map(|(key, value)| (self.text(key), self.value(value))).collect::<Map>())
            }
            Value::Number(_) => {
                let shown = json::compact(&value);
                let redacted = self.text(shown.clone());
                if redacted == shown { value } else { Value::Text(redacted) }
            }
            other => other,
        }
    }

    /// Removes the values from a text.
    pub fn text(&self, text: String) -> String {
        let mut found = Vec::new();
        each_view(&text, &mut |view| self.search(view, &mut found));
        if found.is_empty() { text } else { replaced(&text, found) }
    }

    /// Returns the number of bytes at the beginning of a text that stay the same, and are not part of a value, however the
    /// text continues. The text begins where a value can begin: at its real beginning, or at the end of a part that was
    /// returned here.
    pub fn settled(&self, text: &str) -> usize {
        if self.is_empty() {
            return text.len();
        }
        // An escape at the end may be incomplete, so the text before it is searched as well.
        let tail = text.floor_char_boundary(text.len().saturating_sub(ESCAPE_BYTES_MAX));
        let escape = text[tail..].find(['%', '\\', '&', '+', '\'', '"']).map_or(text.len(), |at| tail + at);
        let (mut settled, mut found) = (escape, Vec::new());
        for part in [text, &text[..escape]] {
            each_view(part, &mut |view| {
                settled = settled.min(self.begun(view));
                self.search(view, &mut found);
            });
        }
        // A whole value is returned at once, or not yet. A range may start before one that was already processed.
        found.sort_unstable_by_key(|(start, _)| std::cmp::Reverse(*start));
        loop {
            let before = settled;
            for (start, end) in &found {
                if *start < settled && settled < *end {
                    settled = *start;
                }
            }
            if settled == before {
                return text.floor_char_boundary(settled);
            }
        }
    }

    /// Returns the place in the text at which a value may have begun that the view does not hold to its end.
    fn begun(&self, view: &View) -> usize {
        let bytes = &view.bytes[..];
        let places = self.needles.iter().filter_map(|needle| {
            let longest = bytes.len().min(needle.len().saturating_sub(1));
            let length = (1..=longest).rev().find(|length| bytes.ends_with(&needle[..*length]))?;
            Some(view.starts[bytes.len() - length])
        });
        places.min().unwrap_or(usize::MAX)
    }

    /// Adds the ranges of a text that hold a value or a part of one.
    fn search(&self, view: &View, found: &mut Vec<(usize, usize)>) {
        let bytes = &view.bytes[..];
        for needle in &self.needles {
            let mut from = 0;
            while let Some(at) = position(&bytes[from..], needle) {
                let (start, end) = (from + at, from + at + needle.len());
                found.push((view.starts[start], view.ends[end - 1]));
                from = end;
            }
        }
        // A bound marks the place with an ellipsis, or not at all.
        let bytes = bytes.strip_suffix("…".as_bytes()).unwrap_or(bytes);
        for value in &self.values {
            let longest = value.len().min(bytes.len());
            let cut = (CUT_BYTES_MIN..=longest).rev().find(|length| bytes.ends_with(&value[..*length]));
            if let Some(length) = cut {
                found.push((view.starts[bytes.len() - length], view.ends[bytes.len() - 1]));
            }
        }
    }
}

/// Calls a function with every view of a text.
fn each_view(text: &str, see: &mut dyn FnMut(&View)) {
    let plain = View::plain(text);
    see(&plain);
    if plain.bytes.contains(&b'&') {
        see(&plain.decoded(reference));
    }
    if plain.bytes.contains(&b'\'') || plain.bytes.contains(&b'"') {
        see(&View::raw(text).decoded(quote));
    }
    each_address(plain, see);
    // White space counts here: a backslash before a line break belongs to the break.
    let mut escaped = View::raw(text);
    for _ in 0..ESCAPES_NESTED_MAX {
        if !escaped.bytes.contains(&b'\\') {
            break;
        }
        escaped = escaped.decoded(backslash);
        see(&escaped);
    }
}

/// Calls a function with a view whose percent encoding is decoded, once and again.
fn each_address(mut view: View, see: &mut dyn FnMut(&View)) {
    for _ in 0..ESCAPES_NESTED_MAX {
        if view.bytes.contains(&b'+') {
            see(&view.decoded(form));
        }
        if !view.bytes.contains(&b'%') {
            break;
        }
        view = view.decoded(percent);
        see(&view);
    }
}

/// The bytes of a text in one decoding without white space, each with its range in the text.
#[derive(Default)]
struct View {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    ends: Vec<usize>,
}

impl View {
    fn push(&mut self, byte: u8, start: usize, end: usize) {
        if !byte.is_ascii_whitespace() {
            self.bytes.push(byte);
            self.starts.push(start);
            self.ends.push(end);
        }
    }

    fn plain(text: &str) -> Self {
        let mut view = Self::default();
        text.bytes().enumerate().for_each(|(at, byte)| view.push(byte, at, at + 1));
        view
    }

    /// The bytes of a text with its white space, to be decoded.
    fn raw(text: &str) -> Self {
        Self { bytes: text.into(), starts: (0..text.len()).collect(), ends: (1..=text.len()).collect() }
    }

    /// Decodes the bytes of a view.
    fn decoded(&self, decode: Decode) -> Self {
        let (mut view, mut at) = (Self::default(), 0);
        while let Some(byte) = self.bytes.get(at) {
            let (decoded, length) = decode(&self.bytes[at..]).unwrap_or((Decoded::Byte(*byte), 1));
            let mut buffer = [0; 4];
            let bytes = match decoded {
                Decoded::Byte(byte) => &[byte],
                Decoded::Character(character) => character.encode_utf8(&mut buffer).as_bytes(),
            };
            bytes.iter().for_each(|byte| view.push(*byte, self.starts[at], self.ends[at + length - 1]));
            at += length;
        }
        view
    }
}

enum Decoded {
    Byte(u8),
    Character(char),
}

/// Decodes what bytes begin with, and returns its length. `None` stands for a byte that means itself.
type Decode = fn(&[u8]) -> Option<(Decoded, usize)>;

/// Decodes `%41`.
fn percent(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let [b'%', digits @ ..] = bytes else { return None };
    Some((Decoded::Byte(hex_byte(digits.get(..2)?)?), 3))
}

/// Decodes `%41`, and `+` as a space.
fn form(bytes: &[u8]) -> Option<(Decoded, usize)> {
    if bytes[0] == b'+' { Some((Decoded::Byte(b' '), 1)) } else { percent(bytes) }
}

/// Decodes a quote inside of quotes: `'\''` of shells, `''` of SQL and YAML, `""` of CSV.
fn quote(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let escapes: [(&[u8], u8); 3] = [(br"'\''", b'\''), (b"''", b'\''), (b"\"\"", b'"')];
    let (escape, byte) = escapes.into_iter().find(|(escape, _)| bytes.starts_with(escape))?;
    Some((Decoded::Byte(byte), escape.len()))
}

/// Decodes `&amp;`, `&#38;` and `&#x26;`.
fn reference(bytes: &[u8]) -> Option<(Decoded, usize)> {
    /// Bytes of the longest reference, `&#x10ffff;` with some zeros.
    const BYTES_MAX: usize = 16;
    let end = bytes.iter().take(BYTES_MAX).position(|byte| *byte == b';').filter(|_| bytes[0] == b'&')?;
    let name = std::str::from_utf8(&bytes[1..end]).ok()?;
    let character = match name.strip_prefix('#') {
        Some(code) => {
            let hex = code.strip_prefix(['x', 'X']);
            char::from_u32(hex.map_or_else(|| code.parse(), |hex| u32::from_str_radix(hex, 16)).ok()?)?
        }
        None => {
            let named =
                [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", ' '), ("plus", '+')];
            named.iter().find(|(known, _)| *known == name)?.1
        }
    };
    Some((Decoded::Character(character), end + 1))
}

/// Decodes the escapes of JSON, `\n`, `\"`, `\u0041` and `\ud83d\ude00`, and those of logs and shells, `\x41` and `\101`.
fn backslash(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let [b'\\', escaped, ..] = bytes else { return None };
    let octal = || u8::from_str_radix(std::str::from_utf8(bytes.get(1..4)?).ok()?, 8).ok();
    let byte = match escaped {
        b'x' => bytes.get(2..4).and_then(hex_byte),
        b'0'..=b'3' => octal(),
        _ => None,
    };
    if let Some(byte) = byte {
        return Some((Decoded::Byte(byte), 4));
    }
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        Some(u16::from_be_bytes([hex_byte(&digits[2..4])?, hex_byte(&digits[4..])?]))
    };
    let Some(first) = unit(0) else {
        let space = matches!(escaped, b'n' | b'r' | b't');
        return Some((Decoded::Byte(if space { b' ' } else { *escaped }), 2));
    };
    let units = [Some(first), unit(6)].into_iter().flatten();
    let character = char::decode_utf16(units).next()?.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((Decoded::Character(character), 6 * character.len_utf16()))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// Replaces ranges of a text. Overlapping ranges become one. They begin and end between characters, or are widened.
fn replaced(text: &str, mut ranges: Vec<(usize, usize)>) -> String {
    ranges.sort_unstable();
    let (mut out, mut kept_from) = (String::with_capacity(text.len()), 0);
    let mut ranges = ranges.into_iter().peekable();
    while let Some((start, mut end)) = ranges.next() {
        while let Some((_, next_end)) = ranges.next_if(|(next, _)| *next <= end) {
            end = end.max(next_end);
        }
        let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        out.push_str(&text[kept_from.min(start)..start]);
        out.push_str(REPLACEMENT);
        kept_from = end;
    }
    out.push_str(&text[kept_from..]);
    out
}

/// Returns the forms of a value, without white space.
fn needles(value: &str) -> Vec<Vec<u8>> {
    let mut forms: Vec<String> = vec![value.to_owned()];
    forms.extend(value.lines().filter(|line| line.trim().len() >= LINE_BYTES_MIN).map(str::to_owned));
    // Programs often drop the newline at the end of a value.
    for bytes in [value.as_bytes(), value.trim().as_bytes()] {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        forms.extend([hex.to_uppercase(), hex]);
        for before in 0..3 {
            let standard = base64_core(bytes, before);
            forms.extend([standard.replace('+', "-").replace('/', "_"), standard]);
        }
    }
    // For HTML inside of another encoding, such as `\u0026amp;`.
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    forms.extend([html.replace('\'', "&#39;"), html]);
    forms.into_iter().map(|form| compact(form.as_bytes())).collect()
}

/// Returns the characters of a base64 form that stand for these bytes alone, after a number of other bytes.
fn base64_core(bytes: &[u8], before: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    let encoded = BASE64_STANDARD_NO_PAD.encode(&padded);
    let (first, last) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    encoded[first..last].to_owned()
}

fn compact(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, rest) = needle.split_first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| byte == first) {
        let start = from + at;
        if bytes[start + 1..].starts_with(rest) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}
