//! Writes JSON: the canonical form of RFC 8785 for hashes, compact and pretty forms for output.

use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;

use crate::value::{Map, Number, Value};

/// Writes canonical JSON by RFC 8785: keys in the order of their UTF-16 code units, numbers as ECMAScript prints the
/// nearest double, the shortest escapes, no white space. Hashes are computed only from this form.
pub fn canonical(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), numbers: Numbers::AsDoubles, indent: None };
    writer.value(value, 0);
    writer.out
}

/// Writes compact JSON. Unlike [`canonical`], integers beyond 2⁵³ keep all digits, so it is the form for data.
pub fn compact(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), numbers: Numbers::Exact, indent: None };
    writer.value(value, 0);
    writer.out
}

/// Writes JSON for people, with two spaces per level.
pub fn pretty(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), numbers: Numbers::Exact, indent: Some(2) };
    writer.value(value, 0);
    writer.out
}

#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    AsDoubles,
    Exact,
}

struct Writer {
    out: String,
    numbers: Numbers,
    indent: Option<usize>,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.number(*number),
            Value::Text(text) => self.text(text),
            Value::List(list) => self.list(list, depth),
            Value::Map(map) => self.map(map, depth),
        }
    }

    fn list(&mut self, list: &[Value], depth: usize) {
        self.out.push('[');
        for (position, item) in list.iter().enumerate() {
            self.separate(position, depth + 1);
            self.value(item, depth + 1);
        }
        self.close(list.is_empty(), depth, ']');
    }

    fn map(&mut self, map: &Map, depth: usize) {
        let mut entries: Vec<_> = map.iter().collect();
        // The orders of UTF-8 and UTF-16 differ only if one key has a character above U+FFFF and another one above
        // U+DFFF.
        if entries.iter().any(|(key, _)| !key.is_ascii()) {
            entries.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        }
        self.out.push('{');
        for (position, (key, value)) in entries.into_iter().enumerate() {
            self.separate(position, depth + 1);
            self.text(key);
            self.out.push_str(if self.indent.is_some() { ": " } else { ":" });
            self.value(value, depth + 1);
        }
        self.close(map.is_empty(), depth, '}');
    }

    fn separate(&mut self, position: usize, depth: usize) {
        if position > 0 {
            self.out.push(',');
        }
        self.line(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.extend(core::iter::repeat_n(' ', indent * depth));
        }
    }

    fn number(&mut self, number: Number) {
        match number.as_whole() {
            Some(whole) if self.numbers == Numbers::Exact || number.is_exact_double() && whole.abs() < 1 << 53 => {
                // Writing to a String cannot fail.
                let _ = write!(self.out, "{whole}");
            }
            _ => self.out.push_str(ryu_js::Buffer::new().format_finite(number.as_double())),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                0x08 => "\\b",
                0x09 => "\\t",
                0x0a => "\\n",
                0x0c => "\\f",
                0x0d => "\\r",
                0x00..0x20 => "",
                _ => continue,
            };
            self.out.push_str(&text[plain..at]);
            if escape.is_empty() {
                self.out.push_str(&format!("\\u{byte:04x}"));
            } else {
                self.out.push_str(escape);
            }
            plain = at + 1;
        }
        self.out.push_str(&text[plain..]);
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;

    fn check(text: &str, canonically: &str) {
        assert_eq!(canonical(&read(text.as_bytes()).unwrap().value), canonically);
    }

    /// Examples of RFC 8785: 3.2.2, and the sorting example of 3.2.3.
    #[test]
    fn the_examples_of_the_standard() {
        check(
            r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#,
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
        );
        check(
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
        );
    }

    /// Numbers of RFC 8785, appendix B: the bits of the double and its text.
    #[test]
    fn numbers_of_the_standard() {
        for (bits, text) in [
            (0x0000000000000000u64, "0"),
            (0x8000000000000000, "0"),
            (0x0000000000000001, "5e-324"),
            (0x7fefffffffffffff, "1.7976931348623157e+308"),
            (0x4340000000000000, "9007199254740992"),
            (0xc340000000000000, "-9007199254740992"),
            (0x4430000000000000, "295147905179352830000"),
            (0x44b52d02c7e14af5, "9.999999999999997e+22"),
            (0x444b1ae4d6e2ef4e, "999999999999999700000"),
            (0x444b1ae4d6e2ef50, "1e+21"),
            (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
            (0x3eb0c6f7a0b5ed8d, "0.000001"),
            (0x41b3de4355555553, "333333333.3333332"),
            (0x43143ff3c1cb0959, "1424953923781206.2"),
        ] {
            let value = Value::Number(Number::double(f64::from_bits(bits)).unwrap());
            assert_eq!(canonical(&value), text);
        }
    }

    #[test]
    fn whole_numbers_keep_their_digits_in_data() {
        let value = read(b"[9007199254740993,18446744073709551615,-9223372036854775808]").unwrap().value;
        assert_eq!(compact(&value), "[9007199254740993,18446744073709551615,-9223372036854775808]");
        assert_eq!(canonical(&value), "[9007199254740992,18446744073709552000,-9223372036854776000]");
    }

    #[test]
    fn pretty_is_for_people() {
        let value = read(br#"{"a":[1,{}],"b":[]}"#).unwrap().value;
        assert_eq!(pretty(&value), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    }
}
