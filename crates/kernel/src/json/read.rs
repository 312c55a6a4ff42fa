//! Parses JSON (RFC 8259) strictly. Duplicate keys, lone surrogates and numbers out of range, on which other parsers
//! disagree, are errors.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    diagnostic::quoted,
    document::{Document, FieldSpot, Full, Place, ReadError, Room, Ruler, Spot},
    limits::{DEPTH_MAX, DOCUMENT_NODES_MAX, VALUE_MEMORY_BYTES_MAX},
    value::{Map, Number, Value},
    value_size,
};

/// Parses a definition, with source positions. Memory is limited by the length of the text: see
/// [`DOCUMENT_BYTES_PER_BYTE`](crate::limits::DOCUMENT_BYTES_PER_BYTE).
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    let (value, spot) = read_with(bytes, |length| Some(Room::of(length)), u64::MAX)?;
    Ok(Document { value, spot: Some(spot) })
}

/// Parses data without source positions. The memory of the value is not limited separately; it is at most a hundred
/// times the text, for a list of objects with one field each.
pub fn value(bytes: &[u8]) -> Result<Value, ReadError> {
    Ok(read_with(bytes, |_| None, u64::MAX)?.0)
}

/// Parses untrusted data of a request or a response, without source positions. The value takes at most
/// [`VALUE_MEMORY_BYTES_MAX`] bytes of memory, checked before they are allocated.
pub fn data(bytes: &[u8]) -> Result<Value, ReadError> {
    Ok(read_with(bytes, |_| None, VALUE_MEMORY_BYTES_MAX)?.0)
}

fn read_with(
    bytes: &[u8],
    room: impl FnOnce(usize) -> Option<Room>,
    memory_bytes: u64,
) -> Result<(Value, Spot), ReadError> {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(not_utf8(bytes, error.valid_up_to())),
    };
    let mut reader = Reader { text, at: 0, nodes: 0, ruler: Ruler::new(text), room: room(text.len()), memory_bytes };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip_space();
    let read = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.error("text after the end of the value", "a document holds one value; remove what follows"));
    }
    Ok(read)
}

pub(crate) fn not_utf8(bytes: &[u8], valid: usize) -> ReadError {
    let text = core::str::from_utf8(&bytes[..valid]).unwrap_or_default();
    ReadError {
        place: Ruler::new(text).place(text.len()),
        message: format!("byte {valid} is not UTF-8"),
        help: "save the text as UTF-8".into(),
    }
}

const WITHOUT_COMMENTS: &str = "JSON has no comments: take it out, or write YAML, in which `#` begins one";

struct Reader<'a> {
    text: &'a str,
    at: usize,
    nodes: usize,
    ruler: Ruler<'a>,
    /// Remaining memory budget; `None` if source positions are not kept.
    room: Option<Room>,
    /// Bytes of memory that the value may still take.
    memory_bytes: u64,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<(Value, Spot), ReadError> {
        self.nodes += 1;
        if self.nodes > DOCUMENT_NODES_MAX {
            return Err(self.error(format!("more than {DOCUMENT_NODES_MAX} values"), "split the document"));
        }
        if depth > DEPTH_MAX {
            return Err(self.error(format!("nested more than {DEPTH_MAX} deep"), "flatten it"));
        }
        let place = self.place();
        self.take_memory(value_size::VALUE_BYTES)?;
        self.take(|room| room.take(2 * Room::ITEM))?;
        let value = match self.peek() {
            Some(b'{') => return self.map(place, depth),
            Some(b'[') => return self.list(place, depth),
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            Some(_) => return Err(self.no_value()),
            None => return Err(self.error("the text ends where a value should be", "complete it")),
        };
        if let Value::Text(text) = &value {
            self.take_memory(text.len() as u64)?;
            self.take(|room| room.take_text(text))?;
        }
        Ok((value, Spot::leaf(place)))
    }

    /// Returns the current position; zeros if source positions are not kept.
    fn place(&mut self) -> Place {
        if self.room.is_some() { self.ruler.place(self.at) } else { place(0, 0) }
    }

    fn take_memory(&mut self, bytes: u64) -> Result<(), ReadError> {
        match self.memory_bytes.checked_sub(bytes) {
            Some(left) => {
                self.memory_bytes = left;
                Ok(())
            }
            None => {
                let message = format!("the value takes more than {VALUE_MEMORY_BYTES_MAX} bytes of memory");
                Err(self.error(
                    message,
                    "write the data to a file and give its name, or split it; many small objects take the most",
                ))
            }
        }
    }

    fn take(&mut self, take: impl FnOnce(&mut Room) -> Result<(), Full>) -> Result<(), ReadError> {
        match self.room.as_mut().map(take) {
            Some(Err(Full)) => Err(self.error(Full::MESSAGE, Full::HELP)),
            _ => Ok(()),
        }
    }

    fn map(&mut self, place: Place, depth: usize) -> Result<(Value, Spot), ReadError> {
        let (mut map, mut spots) = (Map::new(), Vec::new());
        self.take(|room| room.take(Room::CONTAINER))?;
        self.at += 1;
        self.skip_space();
        if self.take_byte(b'}') {
            return Ok((Value::Map(map), Spot::map(place, spots)));
        }
        loop {
            let (key_place, key_at) = (self.place(), self.at);
            if self.peek() != Some(b'"') {
                return Err(self.no_key());
            }
            let key = self.string()?;
            if map.contains_key(&key) {
                let message = format!("the key {} stands here twice", quoted(&key));
                let place = Ruler::new(self.text).place(key_at);
                return Err(ReadError { place, message, help: "keep one of them".into() });
            }
            self.take_memory(value_size::of_field(&key, map.len()))?;
            self.take(|room| room.take_field(&key, map.len()))?;
            self.skip_space();
            self.expect(b':', "a colon should be between key and value")?;
            self.skip_space();
            let (value, spot) = self.value(depth + 1)?;
            if self.room.is_some() {
                spots.push(FieldSpot::new(key.clone(), key_place, spot));
            }
            map.insert(key, value);
            self.skip_space();
            if self.take_byte(b'}') {
                return Ok((Value::Map(map), Spot::map(place, spots)));
            }
            self.expect(b',', "a comma or the closing brace should be here")?;
            self.skip_space();
        }
    }

    /// Returns the error for a key that is malformed, with help text for common mistakes.
    fn no_key(&mut self) -> ReadError {
        let help = match self.peek() {
            Some(b'}') => "take the comma before the closing brace away",
            Some(b'\'') => "write keys and texts in double quotes, not in single ones",
            Some(b'/' | b'#') => WITHOUT_COMMENTS,
            _ => "write {\"key\": value}",
        };
        self.error("a key in double quotes should be here", help)
    }

    fn no_value(&mut self) -> ReadError {
        let rest = &self.text[self.at..];
        let help = match self.peek() {
            Some(b']' | b'}') => "take the comma before the closing bracket away, or complete the value",
            Some(b'\'') => "write texts in double quotes, not in single ones",
            Some(b'/' | b'#') => WITHOUT_COMMENTS,
            _ if rest.starts_with("True") => "write true",
            _ if rest.starts_with("False") => "write false",
            _ if ["None", "NaN", "undefined"].iter().any(|word| rest.starts_with(word)) => "write null",
            _ => "write text in double quotes",
        };
        self.error("no JSON value begins like this", help)
    }

    fn list(&mut self, place: Place, depth: usize) -> Result<(Value, Spot), ReadError> {
        let (mut list, mut spots) = (Vec::new(), Vec::new());
        self.take(|room| room.take(Room::CONTAINER))?;
        self.at += 1;
        self.skip_space();
        let mut is_end = self.take_byte(b']');
        while !is_end {
            let (value, spot) = self.value(depth + 1)?;
            list.push(value);
            if self.room.is_some() {
                spots.push(spot);
            }
            self.skip_space();
            is_end = self.take_byte(b']');
            if !is_end {
                self.expect(b',', "a comma or the closing bracket should be here")?;
                self.skip_space();
            }
        }
        list.shrink_to_fit();
        if let Some(room) = &mut self.room {
            room.give_back(list.len() * Room::ITEM);
        }
        Ok((Value::List(list), Spot::list(place, spots)))
    }

    fn string(&mut self) -> Result<String, ReadError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|letter: char| letter == '"' || letter == '\\' || letter < ' ').unwrap_or(rest.len());
            string.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => return Err(self.error("a control character inside text", "write it as \\n, \\t or \\u00XX")),
                None => return Err(self.error("the text ends inside a string", "close it with a double quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ReadError> {
        let letter = self.text[self.at + 1..].chars().next();
        let plain = match letter {
            Some(letter @ ('"' | '\\' | '/')) => letter,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode_escape(),
            _ => {
                return Err(self.error("an unknown escape", "JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX"));
            }
        };
        self.at += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, ReadError> {
        let half = |reader: &Self, at: usize| -> Option<u32> {
            let digits = reader.text.get(at..at + 6)?.strip_prefix("\\u")?;
            if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                u32::from_str_radix(digits, 16).ok()
            } else {
                None
            }
        };
        let Some(first) = half(self, self.at) else {
            return Err(self.error("\\u needs four hexadecimal digits", "write \\u00e9, for example"));
        };
        let (code, length) = match first {
            0xd800..=0xdbff => match half(self, self.at + 6) {
                Some(second @ 0xdc00..=0xdfff) => (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12),
                _ => (first, 6),
            },
            _ => (first, 6),
        };
        let Some(letter) = char::from_u32(code) else {
            return Err(self.error("half of a surrogate pair", "write both halves, or the character itself"));
        };
        self.at += length;
        Ok(letter)
    }

    fn number(&mut self) -> Result<Number, ReadError> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = number_length(rest);
        let Some(length) = length else {
            return Err(self.error("not a JSON number", "write it as 12, -1.5 or 2e10"));
        };
        let literal = &self.text[self.at..self.at + length];
        let number = number_of_literal(literal);
        let Some(number) = number else {
            return Err(self.error(format!("{} is beyond the range of numbers", cut(literal)), "write it as text"));
        };
        self.at += length;
        Ok(number)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ReadError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("an unknown word", "JSON knows true, false and null; write text in double quotes"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take_byte(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.at += usize::from(here);
        here
    }

    fn expect(&mut self, byte: u8, message: &str) -> Result<(), ReadError> {
        if self.take_byte(byte) { Ok(()) } else { Err(self.error(message, format!("add `{}`", char::from(byte)))) }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error(&mut self, message: impl ToString, help: impl ToString) -> ReadError {
        ReadError { place: self.ruler.place(self.at), message: message.to_string(), help: help.to_string() }
    }
}

/// Truncates a number literal for a message.
pub(crate) fn cut(literal: &str) -> &str {
    literal.get(..60).unwrap_or(literal)
}

/// Measures the number at the start of a text, by the grammar of RFC 8259; `None` if no number starts there.
pub(crate) fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    match text.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at += digits(at),
        _ => return None,
    }
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    // `01` and `1x` are malformed as a whole; they are not a number followed by something else.
    match text.get(at) {
        Some(byte) if byte.is_ascii_alphanumeric() || *byte == b'.' => None,
        _ => Some(at),
    }
}

/// Returns the number of a JSON literal: exact for integers in the range of [`Number`], otherwise the nearest double,
/// as other parsers do. `None` beyond the range of doubles.
pub(crate) fn number_of_literal(literal: &str) -> Option<Number> {
    if let Some(whole) = literal.parse::<i128>().ok().and_then(Number::whole) {
        return Some(whole);
    }
    literal.parse::<f64>().ok().and_then(Number::double)
}

/// Creates a position from a parser's own counts.
pub(crate) fn place(line: usize, column: usize) -> Place {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: small(line), column: small(column) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document::Path, json::canonical};
    use alloc::string::ToString;

    fn check(text: &str, canonically: &str) {
        let document = read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(canonical(&document.value), canonically, "{text}");
    }

    fn check_refused(text: &str, message: &str) {
        let error = read(text.as_bytes()).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }

    #[test]
    fn accepted() {
        check(" {\"b\" : [1, 2.50, -0, 1e3 ] , \"a\":null}\n", r#"{"a":null,"b":[1,2.5,0,1000]}"#);
        check(r#""\u00e9\ud83d\ude00\n\/""#, "\"é😀\\n/\"");
        check("\u{feff}true", "true");
        check("9007199254740993", "9007199254740992");
        check("1E400e".trim_end_matches('e').replace("400", "30").as_str(), "1e+30");
        check("[]", "[]");
        check("{}", "{}");
    }

    #[test]
    fn refused() {
        for (text, message) in [
            ("", "ends where a value"),
            ("{\"a\":1,\"a\":2}", "line 1, column 8: the key \"a\" stands here twice"),
            ("[1,]", "no JSON value"),
            ("{\"a\" 1}", "colon"),
            ("{a:1}", "double quotes"),
            ("[1 2]", "comma or the closing bracket"),
            ("\"\\ud83d\"", "surrogate"),
            ("\"\\u12\"", "four hexadecimal"),
            ("\"\\u+123\"", "four hexadecimal"),
            ("\"\\x\"", "unknown escape"),
            ("\"a\nb\"", "control character"),
            ("\"abc", "inside a string"),
            ("01", "not a JSON number"),
            ("1.", "not a JSON number"),
            ("-", "not a JSON number"),
            ("1e", "not a JSON number"),
            ("1e999", "beyond the range"),
            ("tru", "unknown word"),
            ("1 2", "after the end"),
            ("NaN", "no JSON value"),
        ] {
            check_refused(text, message);
        }
        check_refused(&"[".repeat(10_000), "nested more than");
        assert!(read(b"\"\xff\"").unwrap_err().to_string().contains("byte 1 is not UTF-8"));
    }

    #[test]
    fn places() {
        let document = read("{\n  \"steps\": [\n    {\"é\": 1, \"id\": 2}\n  ]\n}".as_bytes()).unwrap();
        let step = Path::root().key("steps").index(0);
        let at = |path: &Path| document.place(path).unwrap().to_string();
        assert_eq!(at(&step), "3:5");
        assert_eq!(at(&step.key("id")), "3:20");
        assert_eq!(document.key_place(&step.key("id")).unwrap().to_string(), "3:14");
        assert_eq!(at(&step.key("missing")), "3:5");
        assert_eq!(document.field("steps").unwrap().place(&Path::root().index(0)).unwrap().to_string(), "3:5");
    }

    #[test]
    fn exact_whole_numbers_survive() {
        let Value::Number(number) = read(b"9007199254740993").unwrap().value else { panic!() };
        assert_eq!(number.as_whole(), Some(9_007_199_254_740_993));
        assert!(!number.is_exact_double());
    }
}
