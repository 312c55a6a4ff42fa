//! Deterministic CBOR (RFC 8949, 4.2.1): each value has exactly one encoding.
//!
//! Frames are hashed, so an update of another crate must not change a byte of them; that is why this module does not
//! use one. The reader accepts only what the writer writes.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use crate::{
    limits::DEPTH_MAX,
    value::{Map, Number, Value},
};

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const HALF: u8 = 0xf9;
const SINGLE: u8 = 0xfa;
const DOUBLE: u8 = 0xfb;

/// Returns the one encoding of a value.
pub fn encode(value: &Value) -> Vec<u8> {
    let count = byte_count(value);
    let mut writer = Writer::with_capacity(count);
    writer.value(value);
    debug_assert_eq!(writer.bytes.len(), count);
    writer.bytes
}

/// Returns the size of an encoded value in bytes, without encoding it.
pub fn byte_count(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 1,
        Value::Number(number) => number_byte_count(*number),
        Value::Text(text) => text_byte_count(text),
        Value::List(list) => head_byte_count(list.len() as u64) + list.iter().map(byte_count).sum::<usize>(),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| text_byte_count(key) + byte_count(value));
            head_byte_count(map.len() as u64) + entries.sum::<usize>()
        }
    }
}

fn number_byte_count(number: Number) -> usize {
    match number.as_whole() {
        Some(whole) if whole >= 0 => head_byte_count(whole as u64),
        Some(whole) => head_byte_count((-1 - whole) as u64),
        None => {
            let single = number.as_double() as f32;
            match f64::from(single) == number.as_double() {
                false => 9,
                true if half_of(single).is_some() => 3,
                true => 5,
            }
        }
    }
}

fn text_byte_count(text: &str) -> usize {
    head_byte_count(text.len() as u64) + text.len()
}

fn head_byte_count(argument: u64) -> usize {
    match argument {
        0..24 => 1,
        24..0x100 => 2,
        0x100..0x1_0000 => 3,
        0x1_0000..0x1_0000_0000 => 5,
        _ => 9,
    }
}

/// Decodes a value. Bytes after the value are an error.
pub fn decode(bytes: &[u8]) -> Result<Value, CborError> {
    let mut reader = Reader::new(bytes);
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// Writes items one after the other.
#[derive(Debug, Default)]
pub struct Writer {
    /// The bytes written so far.
    pub bytes: Vec<u8>,
}

/// The error for bytes that this module would not have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CborError {
    /// Offset of the byte at which reading failed.
    pub at: usize,
    /// The expected item, or the rule that is violated.
    pub message: &'static str,
}

impl fmt::Display for CborError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}: {}", self.at, self.message)
    }
}

impl Writer {
    /// Creates a writer with capacity for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// Writes an unsigned integer.
    pub fn unsigned(&mut self, number: u64) {
        self.head(UNSIGNED, number);
    }

    /// Writes a byte string.
    pub fn byte_string(&mut self, bytes: &[u8]) {
        self.head(BYTES, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a text string.
    pub fn text(&mut self, text: &str) {
        self.head(TEXT, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Writes the head of an array; the caller writes its items.
    pub fn array(&mut self, items: usize) {
        self.head(ARRAY, items as u64);
    }

    /// Writes a boolean.
    pub fn bool(&mut self, bool: bool) {
        self.bytes.push(if bool { TRUE } else { FALSE });
    }

    /// Writes null.
    pub fn null(&mut self) {
        self.bytes.push(NULL);
    }

    /// Writes a value of any kind.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(bool) => self.bool(*bool),
            Value::Number(number) => self.number(*number),
            Value::Text(text) => self.text(text),
            Value::List(list) => {
                self.array(list.len());
                list.iter().for_each(|item| self.value(item));
            }
            Value::Map(map) => self.map(map),
        }
    }

    fn map(&mut self, map: &Map) {
        self.head(MAP, map.len() as u64);
        let mut entries: Vec<_> = map.iter().collect();
        // Keys sort by their encoded bytes. The head encodes the length, so shorter keys come first.
        entries.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        for (key, value) in entries {
            self.text(key);
            self.value(value);
        }
    }

    fn number(&mut self, number: Number) {
        match number.as_whole() {
            Some(whole) if whole >= 0 => self.head(UNSIGNED, whole as u64),
            Some(whole) => self.head(NEGATIVE, (-1 - whole) as u64),
            None => self.double(number.as_double()),
        }
    }

    /// Writes the shortest of the three floating-point forms that represents the number exactly.
    fn double(&mut self, number: f64) {
        let single = number as f32;
        if f64::from(single) != number {
            self.bytes.push(DOUBLE);
            self.bytes.extend_from_slice(&number.to_be_bytes());
        } else if let Some(half) = half_of(single) {
            self.bytes.push(HALF);
            self.bytes.extend_from_slice(&half.to_be_bytes());
        } else {
            self.bytes.push(SINGLE);
            self.bytes.extend_from_slice(&single.to_be_bytes());
        }
    }

    fn head(&mut self, major: u8, argument: u64) {
        let major = major << 5;
        match argument {
            0..24 => self.bytes.push(major | argument as u8),
            24..0x100 => self.bytes.extend_from_slice(&[major | 24, argument as u8]),
            0x100..0x1_0000 => {
                self.bytes.push(major | 25);
                self.bytes.extend_from_slice(&(argument as u16).to_be_bytes());
            }
            0x1_0000..0x1_0000_0000 => {
                self.bytes.push(major | 26);
                self.bytes.extend_from_slice(&(argument as u32).to_be_bytes());
            }
            _ => {
                self.bytes.push(major | 27);
                self.bytes.extend_from_slice(&argument.to_be_bytes());
            }
        }
    }
}

/// Reads items one after the other.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns an error unless all bytes were read.
    pub fn end(&self) -> Result<(), CborError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.error("bytes after the end")) }
    }

    /// Reads an unsigned integer.
    pub fn unsigned(&mut self) -> Result<u64, CborError> {
        self.head_of(UNSIGNED, "a whole number should be here")
    }

    /// Reads an unsigned integer that fits into 32 bits.
    pub fn unsigned_32(&mut self) -> Result<u32, CborError> {
        u32::try_from(self.unsigned()?).map_err(|_| self.error("a whole number below 2^32 should be here"))
    }

    /// Reads a byte string.
    pub fn byte_string(&mut self) -> Result<&'a [u8], CborError> {
        let length = self.head_of(BYTES, "a byte string should be here")?;
        self.take(length)
    }

    /// Reads a byte string of length `N`.
    pub fn byte_array<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        let bytes = self.byte_string()?;
        bytes.try_into().map_err(|_| self.error("a byte string of another length should be here"))
    }

    /// Reads a text string.
    pub fn text(&mut self) -> Result<&'a str, CborError> {
        let length = self.head_of(TEXT, "a text should be here")?;
        let bytes = self.take(length)?;
        core::str::from_utf8(bytes).map_err(|_| self.error("a text that is not UTF-8"))
    }

    /// Reads the head of an array and returns the number of its items.
    pub fn array(&mut self) -> Result<usize, CborError> {
        let items = self.head_of(ARRAY, "an array should be here")?;
        self.bounded(items)
    }

    /// Reads a boolean.
    pub fn bool(&mut self) -> Result<bool, CborError> {
        let bool = match self.peek() {
            Some(FALSE) => false,
            Some(TRUE) => true,
            _ => return Err(self.error("a boolean should be here")),
        };
        self.at += 1;
        Ok(bool)
    }

    /// True if the next item is a boolean.
    pub fn is_bool(&self) -> bool {
        matches!(self.peek(), Some(FALSE | TRUE))
    }

    /// Skips the next item if it is null, and returns true if it was.
    pub fn null(&mut self) -> bool {
        let here = self.peek() == Some(NULL);
        self.at += usize::from(here);
        here
    }

    /// Reads a value of any kind.
    pub fn value(&mut self) -> Result<Value, CborError> {
        self.value_at(0)
    }

    /// Skips one item of any kind, and returns its bytes.
    pub fn raw(&mut self) -> Result<&'a [u8], CborError> {
        let from = self.at;
        self.skip()?;
        Ok(&self.bytes[from..self.at])
    }

    /// Skips one item of any kind, with everything nested in it.
    pub fn skip(&mut self) -> Result<(), CborError> {
        let mut items = 1u64;
        while items > 0 {
            items -= 1;
            match self.peek().map(|first| first >> 5) {
                Some(major @ (UNSIGNED | NEGATIVE)) => drop(self.head_of(major, "")?),
                Some(major @ (BYTES | TEXT)) => {
                    let length = self.head_of(major, "")?;
                    self.take(length)?;
                }
                Some(ARRAY) => items += self.array()? as u64,
                Some(MAP) => {
                    let entries = self.head_of(MAP, "")?;
                    items += 2 * self.bounded(entries)? as u64;
                }
                _ => {
                    let length = match self.peek() {
                        Some(FALSE | TRUE | NULL) => 1,
                        Some(HALF) => 3,
                        Some(SINGLE) => 5,
                        Some(DOUBLE) => 9,
                        _ => return Err(self.error("an item should be here")),
                    };
                    self.take(length)?;
                }
            }
        }
        Ok(())
    }

    fn value_at(&mut self, depth: usize) -> Result<Value, CborError> {
        if depth > DEPTH_MAX {
            return Err(self.error("nested too deep"));
        }
        let Some(first) = self.peek() else { return Err(self.error("the bytes end where a value should be")) };
        match (first >> 5, first) {
            (UNSIGNED, _) => self.unsigned().map(Value::from),
            (NEGATIVE, _) => {
                let argument = self.head_of(NEGATIVE, "")?;
                Number::whole(-1 - i128::from(argument))
                    .map(Value::Number)
                    .ok_or_else(|| self.error("beyond the range of numbers"))
            }
            (TEXT, _) => self.text().map(Value::from),
            (ARRAY, _) => {
                let items = self.array()?;
                (0..items).map(|_| self.value_at(depth + 1)).collect::<Result<_, _>>().map(Value::List)
            }
            (MAP, _) => self.map(depth),
            (_, FALSE | TRUE) => self.bool().map(Value::Bool),
            (_, NULL) => {
                self.at += 1;
                Ok(Value::Null)
            }
            (_, HALF | SINGLE | DOUBLE) => self.double().map(Value::Number),
            _ => Err(self.error("no value of ours begins like this")),
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, CborError> {
        let entries = self.head_of(MAP, "")?;
        let entries = self.bounded(entries)?;
        let mut map = Map::new();
        let mut last: Option<String> = None;
        for _ in 0..entries {
            let key = self.text()?.to_string();
            if last.is_some_and(|last| (last.len(), &last) >= (key.len(), &key)) {
                return Err(self.error("keys out of order"));
            }
            last = Some(key.clone());
            map.insert(key, self.value_at(depth + 1)?);
        }
        Ok(Value::Map(map))
    }

    fn double(&mut self) -> Result<Number, CborError> {
        let start = self.at;
        let form = self.bytes[start];
        self.at += 1;
        let number = match form {
            HALF => single_of(u16::from_be_bytes(self.fixed()?)).into(),
            SINGLE => f32::from_be_bytes(self.fixed()?).into(),
            _ => f64::from_be_bytes(self.fixed()?),
        };
        let number = Number::double(number).ok_or_else(|| self.error("not a finite number"))?;
        let mut shortest = Writer::default();
        shortest.number(number);
        if shortest.bytes != self.bytes[start..self.at] {
            return Err(self.error("a number that has a shorter form"));
        }
        Ok(number)
    }

    fn head_of(&mut self, major: u8, message: &'static str) -> Result<u64, CborError> {
        let Some(first) = self.peek().filter(|first| first >> 5 == major) else { return Err(self.error(message)) };
        self.at += 1;
        let (argument, least) = match first & 31 {
            small @ 0..24 => (u64::from(small), 0),
            24 => (u64::from(u8::from_be_bytes(self.fixed()?)), 24),
            25 => (u64::from(u16::from_be_bytes(self.fixed()?)), 0x100),
            26 => (u64::from(u32::from_be_bytes(self.fixed()?)), 0x1_0000),
            27 => (u64::from_be_bytes(self.fixed()?), 0x1_0000_0000),
            _ => return Err(self.error("a length that is not given")),
        };
        if argument < least { Err(self.error("a number that has a shorter form")) } else { Ok(argument) }
    }

    /// Checks a number of items against the remaining bytes, since each item takes at least one. Memory is therefore
    /// never allocated for a length that the input only claims.
    fn bounded(&self, items: u64) -> Result<usize, CborError> {
        let left = self.bytes.len() - self.at;
        usize::try_from(items).ok().filter(|items| *items <= left).ok_or_else(|| self.error("more items than bytes"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], CborError> {
        let length = self.bounded(length)?;
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        let bytes = self.take(N as u64)?;
        bytes.try_into().map_err(|_| self.error("the bytes end inside a number"))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Creates an error at the current byte.
    pub fn error(&self, message: &'static str) -> CborError {
        CborError { at: self.at, message }
    }
}

/// Converts to the 16-bit form; `None` if that would change the number.
fn half_of(single: f32) -> Option<u16> {
    let bits = single.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let exponent = ((bits >> 23) & 0xff) as i32 - 127;
    let fraction = bits & 0x007f_ffff;
    let candidate = match exponent {
        -14..=15 => sign | (((exponent + 15) as u16) << 10) | (fraction >> 13) as u16,
        // Subnormal: the implicit leading bit becomes explicit, and the fraction shifts right.
        -24..=-15 => sign | ((fraction | 0x0080_0000) >> (-exponent - 1)) as u16,
        _ => return None,
    };
    (single_of(candidate) == single).then_some(candidate)
}

/// Converts from the 16-bit form.
fn single_of(half: u16) -> f32 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((half >> 10) & 0x1f);
    let fraction = f32::from(half & 0x03ff);
    let power = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    sign * match exponent {
        0 => fraction * power(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * power(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hash::hex, json};

    fn check(text: &str, bytes: &str) {
        let value = json::read(text.as_bytes()).unwrap().value;
        assert_eq!(hex(&encode(&value)), bytes, "{text}");
        assert_eq!(byte_count(&value) * 2, bytes.len(), "{text}");
        assert_eq!(decode(&encode(&value)).as_ref(), Ok(&value), "{text}");
        let encoded = encode(&value);
        let mut reader = Reader::new(&encoded);
        assert_eq!(reader.skip().and_then(|()| reader.end()), Ok(()), "{text}");
        for length in 0..encoded.len() {
            assert!(Reader::new(&encoded[..length]).skip().is_err(), "{text}, cut at {length}");
        }
    }

    /// `skip` accepts items that are not values.
    #[test]
    fn the_decoder_skips_any_item() {
        for (bytes, length) in [(&[0x82, 0x41, 7, 0xa1, 1, 0x40, 9][..], Some(6)), (&[0xc0, 0], None), (&[0xff], None)]
        {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.skip().ok().map(|()| reader.at), length, "{bytes:?}");
        }
        assert!(Reader::new(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).skip().is_err());
    }

    /// Examples of RFC 8949, appendix A, that JSON can represent.
    #[test]
    fn the_examples_of_the_standard() {
        for (text, bytes) in [
            ("0", "00"),
            ("23", "17"),
            ("24", "1818"),
            ("100", "1864"),
            ("1000", "1903e8"),
            ("1000000", "1a000f4240"),
            ("1000000000000", "1b000000e8d4a51000"),
            ("18446744073709551615", "1bffffffffffffffff"),
            ("-1", "20"),
            ("-1000", "3903e7"),
            ("1.1", "fb3ff199999999999a"),
            ("1.5", "f93e00"),
            ("3.4028234663852886e+38", "fa7f7fffff"),
            ("1.0e+300", "fb7e37e43c8800759c"),
            ("5.960464477539063e-8", "f90001"),
            ("0.00006103515625", "f90400"),
            ("-4.1", "fbc010666666666666"),
            ("\"\"", "60"),
            ("\"\\u00fc\"", "62c3bc"),
            ("\"\\ud800\\udd51\"", "64f0908591"),
            ("[1,[2,3],[4,5]]", "8301820203820405"),
            ("{\"a\":1,\"b\":[2,3]}", "a26161016162820203"),
            ("{}", "a0"),
            ("[false,true,null]", "83f4f5f6"),
        ] {
            check(text, bytes);
        }
        check("{\"bb\":1,\"c\":2,\"a\":3}", "a361610361630262626201");
    }

    #[test]
    fn only_the_canonical_encoding_is_accepted() {
        for (bytes, message) in [
            (&[0x18, 0x17][..], "shorter form"),
            (&[0xf9, 0x3c, 0x00], "shorter form"),
            (&[0xfa, 0x3f, 0xc0, 0, 0], "shorter form"),
            (&[0xf9, 0x7e, 0x00], "not a finite"),
            (&[0xa2, 0x61, b'b', 0, 0x61, b'a', 0], "out of order"),
            (&[0xa2, 0x61, b'a', 0, 0x61, b'a', 0], "out of order"),
            (&[0x9f, 0xff], "not given"),
            (&[0x00, 0x00], "after the end"),
            (&[0x62, 0xc3, 0x28], "not UTF-8"),
            (&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "more items than bytes"),
            (&[0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "beyond the range"),
            (&[0xc0, 0x00], "begins like this"),
            (&[], "bytes end"),
        ] {
            let error = decode(bytes).expect_err("refused");
            assert!(error.message.contains(message), "{bytes:x?}: {error}");
        }
        assert!(decode(&[0x81; 200]).is_err());
    }
}
