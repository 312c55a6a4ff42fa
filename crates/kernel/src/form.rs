//! Forms that tool servers ask people to fill in: flat schemas of primitive values, and answers to them.
//!
//! The schema is that of `elicitation/create` of MCP. `pattern` is left to the server.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    diagnostic::{is_obeyed, quoted},
    json,
    limits::{FORM_ANSWER_BYTES_MAX, FORM_BYTES_MAX, FORM_FIELDS_MAX},
    value::{Map, Number, Value},
};

/// The maximum length of a text in an example.
const SAMPLE_CHARS_MAX: usize = 200;

/// A form that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The fields, sorted by name.
    pub fields: Vec<Field>,
}

/// A field of a form. Its texts are the server's.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The key in the content.
    pub name: String,
    /// True if the content must have it.
    pub is_required: bool,
    /// The values that it accepts.
    pub kind: FieldKind,
}

/// The values that a field accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A string within bounds on its length.
    Text {
        /// The least number of characters.
        min: u64,
        /// The greatest number of characters.
        max: Option<u64>,
        /// The form of the text.
        format: Option<TextFormat>,
    },
    /// A finite number within bounds.
    Number {
        /// True if it has no fraction.
        is_integer: bool,
        /// The least value.
        min: Option<f64>,
        /// The greatest value.
        max: Option<f64>,
    },
    /// True or false.
    Boolean,
    /// One of several texts.
    Choice(Vec<String>),
    /// A list of different texts out of several.
    Choices {
        /// The texts.
        of: Vec<String>,
        /// The least number.
        min: u64,
        /// The greatest number.
        max: Option<u64>,
    },
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// An address such as `ann@example.com`.
    Email,
    /// A URI with a scheme.
    Uri,
    /// A date such as `2026-07-28`.
    Date,
    /// A time such as `2026-07-28T12:00:00Z`.
    DateTime,
}

impl Form {
    /// Reads the schema of a form. The error is a clause about the form.
    pub fn of_schema(schema: &Value) -> Result<Self, String> {
        let bytes = json::compact(schema).len();
        if bytes > FORM_BYTES_MAX {
            return Err(format!("it has {bytes} bytes, more than {FORM_BYTES_MAX}"));
        }
        if schema.get("type").and_then(Value::as_text) != Some("object") {
            return Err("its schema is not that of an object".into());
        }
        let none = Map::new();
        let properties = match schema.get("properties") {
            None => &none,
            Some(properties) => properties.as_map().ok_or("its `properties` are not an object")?,
        };
        if properties.len() > FORM_FIELDS_MAX {
            return Err(format!("it has {} fields, more than {FORM_FIELDS_MAX}", properties.len()));
        }
        let required = texts(schema.get("required"));
        if let Some(unknown) = required.iter().find(|name| !properties.contains_key(name.as_str())) {
            return Err(format!("it requires the field {}, which it does not have", quoted(unknown)));
        }
        let field = |(name, schema): (&String, &Value)| {
            let wrong = |why: String| format!("its field {} {why}", quoted(name));
            let kind = FieldKind::of(schema).map_err(wrong)?;
            check_shown(name, schema, &kind).map_err(wrong)?;
            Ok(Field { name: name.clone(), is_required: required.contains(name), kind })
        };
        Ok(Self { fields: properties.iter().map(field).collect::<Result<_, String>>()? })
    }

    /// Returns a content that the form accepts, as an example: all required fields, or all if none is required.
    pub fn sample(&self) -> Value {
        let has_required = self.fields.iter().any(|field| field.is_required);
        let fields = self.fields.iter().filter(|field| field.is_required || !has_required);
        Value::Map(fields.map(|field| (field.name.clone(), field.kind.sample())).collect())
    }

    /// Checks the content of an answer. The error is a sentence.
    pub fn check(&self, content: &Value) -> Result<(), String> {
        let Some(entries) = content.as_map() else {
            return Err(format!("the content of the form is {} and no object: write {{field: value}}", content.kind()));
        };
        let bytes = json::compact(content).len();
        if bytes > FORM_ANSWER_BYTES_MAX {
            return Err(format!("the content of the form has {bytes} bytes, more than {FORM_ANSWER_BYTES_MAX}"));
        }
        if let Some(unknown) = entries.keys().find(|name| !self.fields.iter().any(|field| field.name == **name)) {
            return Err(format!("the form has no field {}; it has {}", quoted(unknown), self.names()));
        }
        for field in &self.fields {
            match entries.get(&field.name) {
                None if field.is_required => {
                    return Err(format!("the field {} is required: add it to the content", quoted(&field.name)));
                }
                None => {}
                Some(value) => field
                    .kind
                    .check(value)
                    .map_err(|expected| format!("the field {} must be {expected}", quoted(&field.name)))?,
            }
        }
        Ok(())
    }

    fn names(&self) -> String {
        match self.fields.as_slice() {
            [] => "none".into(),
            fields => fields.iter().map(|field| quoted(&field.name)).collect::<Vec<_>>().join(", "),
        }
    }
}

impl FieldKind {
    /// Reads the schema of a field. The error is a clause whose subject is the field.
    fn of(schema: &Value) -> Result<Self, String> {
        let number = |key: &str| schema.get(key).and_then(Value::as_number).map(Number::as_double);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        if let Some(choices) = choices(schema)? {
            return Ok(Self::Choice(choices));
        }
        match schema.get("type").and_then(Value::as_text) {
            Some("string") => Ok(Self::Text {
                min: count("minLength").unwrap_or(0),
                max: count("maxLength"),
                format: schema.get("format").and_then(Value::as_text).and_then(TextFormat::of),
            }),
            Some(kind @ ("number" | "integer")) => {
                Ok(Self::Number { is_integer: kind == "integer", min: number("minimum"), max: number("maximum") })
            }
            Some("boolean") => Ok(Self::Boolean),
            Some("array") => {
                let of = schema.get("items").map(choices).transpose()?.flatten();
                let of = of.ok_or("is a list of anything but given texts")?;
                Ok(Self::Choices { of, min: count("minItems").unwrap_or(0), max: count("maxItems") })
            }
            Some(other) => {
                Err(format!("has the type {}; fields are texts, numbers, booleans and choices", quoted(other)))
            }
            None => Err("has no type".into()),
        }
    }

    /// Checks a value. The error describes the expected value.
    fn check(&self, value: &Value) -> Result<(), String> {
        let is_valid = match (self, value) {
            (Self::Text { min, max, format }, Value::Text(text)) => {
                let count = text.chars().count() as u64;
                let is_formed = format.is_none_or(|format| format.accepts(text));
                count >= *min && max.is_none_or(|max| count <= max) && is_formed
            }
            (Self::Number { is_integer, min, max }, value) => {
                value.as_number().map(Number::as_double).is_some_and(|number| {
                    let is_whole = number % 1.0 == 0.0;
                    (!is_integer || is_whole)
                        && min.is_none_or(|min| number >= min)
                        && max.is_none_or(|max| number <= max)
                })
            }
            (Self::Boolean, Value::Bool(_)) => true,
            (Self::Choice(of), Value::Text(text)) => of.contains(text),
            (Self::Choices { of, min, max }, Value::List(items)) => {
                let count = items.len() as u64;
                let is_known = |item: &Value| item.as_text().is_some_and(|text| of.iter().any(|known| known == text));
                let is_single = |(place, item): (usize, &Value)| !items[..place].contains(item);
                count >= *min
                    && max.is_none_or(|max| count <= max)
                    && items.iter().all(is_known)
                    && items.iter().enumerate().all(is_single)
            }
            _ => false,
        };
        if is_valid { Ok(()) } else { Err(self.expected()) }
    }

    /// Returns a value that the field accepts, as an example.
    pub fn sample(&self) -> Value {
        match self {
            Self::Text { format: Some(format), .. } => format.sample().into(),
            Self::Text { min, max, format: None } => {
                let least = usize::try_from(*min).unwrap_or(usize::MAX).min(SAMPLE_CHARS_MAX);
                let most = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
                let text: String = "TEXT".chars().cycle().take(least.max(4).min(most)).collect();
                text.into()
            }
            Self::Number { is_integer, min, max } => {
                let above = min.filter(|min| *min > 0.0);
                let bound = above.or(max.filter(|max| *max < 0.0)).unwrap_or_default();
                let whole = bound as i64;
                let whole = match bound - whole as f64 {
                    rest if rest > 0.0 => whole.saturating_add(1),
                    rest if rest < 0.0 => whole.saturating_sub(1),
                    _ => whole,
                };
                let number = if *is_integer { whole as f64 } else { bound };
                Number::double(number).map(Value::Number).unwrap_or_default()
            }
            Self::Boolean => true.into(),
            Self::Choice(of) => of.first().map(|first| first.as_str()).unwrap_or_default().into(),
            Self::Choices { of, min, .. } => {
                let count = usize::try_from(*min).unwrap_or(usize::MAX).max(1);
                of.iter().take(count).map(|text| Value::from(text.as_str())).collect::<Vec<_>>().into()
            }
        }
    }

    /// Describes the accepted values as a phrase.
    pub fn expected(&self) -> String {
        let between = |min: Option<String>, max: Option<String>| match (min, max) {
            (None, None) => String::new(),
            (Some(min), None) => format!(" of at least {min}"),
            (None, Some(max)) => format!(" of at most {max}"),
            (Some(min), Some(max)) => format!(" of {min} to {max}"),
        };
        match self {
            Self::Text { min, max, format } => {
                let what = format.map_or("a text", TextFormat::words);
                let least = (*min > 0).then(|| min.to_string());
                let range = between(least, max.map(|max| max.to_string()));
                if range.is_empty() { what.into() } else { format!("{what}{range} characters") }
            }
            Self::Number { is_integer, min, max } => {
                let what = if *is_integer { "a whole number" } else { "a number" };
                format!("{what}{}", between(min.map(|min| min.to_string()), max.map(|max| max.to_string())))
            }
            Self::Boolean => "true or false".into(),
            Self::Choice(of) => format!("one of {}", list(of)),
            Self::Choices { of, min, max } => {
                let range = between((*min > 0).then(|| min.to_string()), max.map(|max| max.to_string()));
                format!("a list{range} of {}, each at most once", list(of))
            }
        }
    }
}

impl TextFormat {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "email" => Self::Email,
            "uri" => Self::Uri,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            _ => return None,
        })
    }

    fn sample(self) -> &'static str {
        match self {
            Self::Email => "ann@example.com",
            Self::Uri => "https://example.com",
            Self::Date => "2026-07-28",
            Self::DateTime => "2026-07-28T12:00:00Z",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Email => "an email address",
            Self::Uri => "a URI",
            Self::Date => "a date such as 2026-07-28",
            Self::DateTime => "a time such as 2026-07-28T12:00:00Z",
        }
    }

    fn accepts(self, text: &str) -> bool {
        let has_space = text.chars().any(|letter| letter.is_whitespace() || letter.is_control());
        match self {
            Self::Email => {
                let parts = text.rsplit_once('@');
                !has_space && parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
            }
            Self::Uri => {
                let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
                let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
                !has_space
                    && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                    && scheme.chars().all(is_scheme)
            }
            Self::Date => is_date(text),
            Self::DateTime => {
                let parts = text.split_once(['T', 't']);
                parts.is_some_and(|(date, time)| is_date(date) && is_time(time))
            }
        }
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    digits(year, 4).is_some()
        && digits(month, 2).is_some_and(|month| (1..=12).contains(&month))
        && digits(day, 2).is_some_and(|day| (1..=31).contains(&day))
}

fn is_time(text: &str) -> bool {
    let Some(zone) = text.find(['Z', 'z', '+', '-']) else { return false };
    let (time, zone) = text.split_at(zone);
    let time = time.split_once('.').map_or(time, |(time, _)| time);
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    let in_range = |text: &str, max: u32| digits(text, 2).is_some_and(|number| number <= max);
    let is_zone = match zone.get(1..).unwrap_or_default().split_once(':') {
        Some((hours, minutes)) => !zone.starts_with(['Z', 'z']) && in_range(hours, 23) && in_range(minutes, 59),
        None => matches!(zone, "Z" | "z"),
    };
    in_range(hour, 23) && in_range(minute, 59) && in_range(second, 60) && is_zone
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Ranges of characters, first and last, that are drawn as nothing or as a blank, besides those that a terminal obeys
/// (Unicode `Default_Ignorable_Code_Point`, and blank letters).
const BLANK: [(char, char); 12] = [
    ('\u{a0}', '\u{a0}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0080}', '\u{e0fff}'),
];

/// Most spaces in a row: more move what follows out of a field.
const SPACES_MAX: usize = 8;

/// True if people would not see all of a text in a form.
fn is_hidden_in(text: &str) -> bool {
    let is_blank = |letter: char| BLANK.iter().any(|(first, last)| (*first..=*last).contains(&letter));
    let mut spaces = 0;
    text.chars().any(|letter| {
        spaces = if letter == ' ' { spaces + 1 } else { 0 };
        spaces > SPACES_MAX || is_obeyed(letter) || is_blank(letter)
    })
}

/// Checks that people see what their answer would be: an answer repeats the name and a choice as they are, and a default
/// is in a field before anything is typed. The error is a clause whose subject is the field.
fn check_shown(name: &str, schema: &Value, kind: &FieldKind) -> Result<(), String> {
    if is_hidden_in(name) {
        return Err("has characters in its name that are not seen".into());
    }
    if let FieldKind::Choice(of) | FieldKind::Choices { of, .. } = kind {
        if let Some(choice) = of.iter().find(|choice| is_hidden_in(choice)) {
            return Err(format!("has the choice {}, with characters that are not seen", quoted(choice)));
        }
        if of.iter().enumerate().any(|(place, choice)| of[..place].contains(choice)) {
            return Err("has a choice twice".into());
        }
    }
    let Some(default) = schema.get("default").filter(|default| **default != Value::Null) else { return Ok(()) };
    if default.as_text().is_some_and(is_hidden_in) {
        return Err("has a default with characters that are not seen".into());
    }
    kind.check(default).map_err(|expected| format!("has a default that it does not accept: it must be {expected}"))
}

/// Returns the texts of `enum`, or the constants of `oneOf` and `anyOf`. `None` if the schema has no choices. The error is
/// a clause whose subject is the field.
fn choices(schema: &Value) -> Result<Option<Vec<String>>, String> {
    let (of, text): (&Value, fn(&Value) -> Option<&str>) = match (schema.get("enum"), schema.get("oneOf")) {
        (Some(of), _) => (of, Value::as_text),
        (None, Some(of)) => (of, |choice| choice.get("const")?.as_text()),
        (None, None) => match schema.get("anyOf") {
            Some(of) => (of, |choice| choice.get("const")?.as_text()),
            None => return Ok(None),
        },
    };
    let of = of.as_list().filter(|of| !of.is_empty()).ok_or("has no list of choices")?;
    let of = of.iter().map(|choice| text(choice).map(ToString::to_string)).collect::<Option<Vec<_>>>();
    of.map(Some).ok_or_else(|| "has choices that are no texts".into())
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_list).unwrap_or_default();
    items.iter().filter_map(Value::as_text).map(ToString::to_string).collect()
}

fn list(texts: &[String]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::read(text.as_bytes()).unwrap().value
    }

    #[track_caller]
    fn check(field: &str, content: &str, expected: &str) {
        let schema = format!(r#"{{"type":"object","properties":{{"a":{field}}},"required":["a"]}}"#);
        let form = Form::of_schema(&value(&schema)).unwrap();
        let said = form.check(&value(content)).err().unwrap_or_default();
        assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
        assert!(said.contains(expected), "{said} does not contain {expected}");
    }

    #[test]
    fn each_kind_of_field_accepts_its_values_alone() {
        check(r#"{"type":"string"}"#, r#"{"a":"x"}"#, "");
        check(r#"{"type":"string"}"#, r#"{"a":1}"#, "must be a text");
        check(r#"{"type":"string"}"#, r#"{}"#, "required");
        check(r#"{"type":"string"}"#, r#"{"a":"x","b":1}"#, "no field \"b\"; it has \"a\"");
        check(r#"{"type":"string"}"#, "[]", "no object");
        check(r#"{"type":"string","minLength":2,"maxLength":3}"#, r#"{"a":"äöü"}"#, "");
        check(r#"{"type":"string","minLength":2,"maxLength":3}"#, r#"{"a":"x"}"#, "of 2 to 3 characters");
        check(r#"{"type":"string","minLength":2,"maxLength":3}"#, r#"{"a":"xxxx"}"#, "of 2 to 3 characters");
        for (format, good, bad) in [
            ("email", "a@b.c", "a@"),
            ("uri", "https://a.b/c", "//a.b"),
            ("date", "2026-07-28", "2026-13-01"),
            ("date-time", "2026-07-28T12:00:00.5+02:00", "2026-07-28 12:00:00Z"),
        ] {
            let field = format!(r#"{{"type":"string","format":"{format}"}}"#);
            check(&field, &format!(r#"{{"a":"{good}"}}"#), "");
            check(&field, &format!(r#"{{"a":"{bad}"}}"#), "must be a");
        }
        check(r#"{"type":"integer","minimum":1,"maximum":5}"#, r#"{"a":5}"#, "");
        check(r#"{"type":"integer","minimum":1,"maximum":5}"#, r#"{"a":6}"#, "a whole number of 1 to 5");
        check(r#"{"type":"integer"}"#, r#"{"a":1.5}"#, "a whole number");
        check(r#"{"type":"number"}"#, r#"{"a":1.5}"#, "");
        check(r#"{"type":"number"}"#, r#"{"a":"1"}"#, "a number");
        check(r#"{"type":"boolean"}"#, r#"{"a":false}"#, "");
        check(r#"{"type":"boolean"}"#, r#"{"a":"false"}"#, "true or false");
        check(r#"{"type":"string","enum":["x","y"],"enumNames":["X","Y"]}"#, r#"{"a":"y"}"#, "");
        check(r#"{"type":"string","enum":["x","y"]}"#, r#"{"a":"z"}"#, "one of \"x\", \"y\"");
        check(r#"{"type":"string","oneOf":[{"const":"x","title":"X"}]}"#, r#"{"a":"x"}"#, "");
        let several = r#"{"type":"array","minItems":1,"items":{"anyOf":[{"const":"x"},{"const":"y"}]}}"#;
        check(several, r#"{"a":["y","x"]}"#, "");
        check(several, r#"{"a":[]}"#, "of at least 1");
        check(several, r#"{"a":["x","x"]}"#, "at most once");
        check(several, r#"{"a":["z"]}"#, "\"x\", \"y\"");
    }

    #[test]
    fn a_form_that_is_not_flat_or_not_bounded_is_refused() {
        let check = |schema: &str, expected: &str| {
            let error = Form::of_schema(&value(schema)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(r#"{"type":"string"}"#, "not that of an object");
        check(r#"{"type":"object","properties":{"a":{"type":"object"}}}"#, "the type \"object\"");
        check(r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}}}"#, "given texts");
        check(r#"{"type":"object","properties":{"a":{}}}"#, "no type");
        check(r#"{"type":"object","properties":{},"required":["b"]}"#, "requires the field \"b\"");
        check(r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##, "no type");
        check(r#"{"type":"object","properties":{"a":{"enum":["x",1]}}}"#, "no texts");
        check(r#"{"type":"object","properties":{"a":{"enum":[]}}}"#, "no list of choices");
        check(r#"{"type":"object","properties":{"a":{"oneOf":[{"title":"x"}]}}}"#, "no texts");
        let many: Vec<String> =
            (0..=FORM_FIELDS_MAX).map(|number| format!(r#""f{number}":{{"type":"string"}}"#)).collect();
        check(&format!(r#"{{"type":"object","properties":{{{}}}}}"#, many.join(",")), "more than 64");
        let long = "x".repeat(FORM_BYTES_MAX);
        check(&format!(r#"{{"type":"object","description":"{long}"}}"#), "bytes, more than");
    }

    /// An answer is what people have seen.
    #[test]
    fn a_form_with_hidden_names_choices_or_defaults_is_refused() {
        let check = |fields: &str, expected: &str| {
            let schema = format!(r#"{{"type":"object","properties":{{{fields}}}}}"#);
            let error = Form::of_schema(&value(&schema)).err().unwrap_or_default();
            assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error}: {fields}");
        };
        check(r#""a\u202eb":{"type":"string"}"#, "in its name that are not seen");
        check(r#""a\u0007":{"type":"string"}"#, "in its name that are not seen");
        check(r#""a\u3164":{"type":"string"}"#, "in its name that are not seen");
        check(r#""a":{"type":"string","default":"x\u2800"}"#, "a default with characters that are not seen");
        check(r#""a":{"type":"string","default":"x            evil"}"#, "a default with characters that are not seen");
        check(r#""a":{"type":"string","enum":["x","x\u200b"]}"#, r#"the choice "x\u{200b}""#);
        check(r#""a":{"type":"array","items":{"enum":["x\u202e"]}}"#, "with characters that are not seen");
        check(r#""a":{"type":"string","enum":["x","x"]}"#, "a choice twice");
        check(r#""a":{"type":"string","default":"pay\u202e100"}"#, "a default with characters");
        check(r#""a":{"type":"string","default":1}"#, "does not accept: it must be a text");
        check(r#""a":{"type":"string","enum":["x"],"default":"y"}"#, r#"must be one of "x""#);
        check(r#""a":{"type":"integer","maximum":5,"default":6}"#, "a whole number of at most 5");
        check(r#""a":{"type":"boolean","default":"true"}"#, "true or false");
        for fine in [
            r#""a":{"type":"string","default":"Zoë"}"#,
            r#""a":{"type":"boolean","default":true}"#,
            r#""a":{"type":"array","items":{"enum":["x","y"]},"default":["y"]}"#,
            r#""__proto__":{"type":"string"},"constructor":{"type":"integer","default":null}"#,
        ] {
            check(fine, "");
        }
    }

    #[test]
    fn names_of_other_languages_built_in_members_are_plain_names() {
        let schema = r#"{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}"#;
        let form = Form::of_schema(&value(schema)).unwrap();
        assert_eq!(form.check(&value(r#"{"__proto__":"x"}"#)), Ok(()));
        assert!(form.check(&value(r#"{"__proto__":{"x":1}}"#)).is_err());
        assert!(form.check(&value("{}")).unwrap_err().contains("required"));
        assert!(form.check(&value(r#"{"__proto__":"x","toString":"y"}"#)).unwrap_err().contains("no field"));
    }

    #[test]
    fn a_large_answer_is_refused() {
        let form = Form::of_schema(&value(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#)).unwrap();
        let large = Value::map([("a", Value::Text("x".repeat(FORM_ANSWER_BYTES_MAX)))]);
        assert!(form.check(&large).unwrap_err().contains("bytes, more than"));
    }
}
