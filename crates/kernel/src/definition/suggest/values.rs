//! Help texts for values of the wrong type.

use alloc::{
    format,
    string::{String, ToString},
};

use super::{
    adapt::{adapted, as_text},
    synonyms::synonym,
};
use crate::{
    definition::{fields::Fields, help::Help},
    diagnostic::quoted,
    document::Path,
    fix::Fix,
    json,
    limits::WAIT_MAX_MS,
    reference::is_whole,
    value::{Number, Value},
};

/// Examples of the objects of the language, by key.
const OBJECTS: [(&str, &str); 13] = [
    ("retry", "{maxAttempts: 3}"),
    ("retryPolicy", "{maxAttempts: 3}"),
    ("config", "{maxAttempts: 3}"),
    ("constraints", "{maxSteps: 100}"),
    ("policy", "{failOpen: true}"),
    ("effects", "{payment: deny}"),
    ("variables", "{name: {type: string}}"),
    ("defaultContext", "{name: value}"),
    ("env", "{NAME: value}"),
    ("arguments", "{name: value}"),
    ("input", "{name: value}"),
    ("query", "{name: value}"),
    ("headers", "{name: value}"),
];

/// Returns the help text for a value of the wrong type, or an empty text. `wanted` is the expected type in the words of
/// the message.
pub(in crate::definition) fn of_kind(path: &Path, key: &str, wanted: &str, value: &Value) -> Help {
    if matches!(value, Value::Null) {
        return match key {
            "steps" | "nodes" => "as in: write `[{id: a, type: bash, command: ls}]`".into(),
            "command" => "give it a value, as in: write `ls`; in quotes if it has a `#`, which begins a comment".into(),
            _ => "give it a value, or leave the key out".into(),
        };
    }
    if let Some(status) = value.get("status").filter(|_| key == "expect") {
        let list = if status.as_list().is_some() { status.clone() } else { alloc::vec![status.clone()].into() };
        return Help::value(path, list);
    }
    if let Some(help) = adapted(key, key, value).at_value(path) {
        let is_time =
            wanted.starts_with("a whole number") && value.as_text().is_some_and(|text| milliseconds(text).is_some());
        return if is_time { Help::new(format!("{}: it is in milliseconds", help.text), help.fix) } else { help };
    }
    match wanted {
        "text" if as_text(value).is_some() => {
            Help::new("put it in quotes", as_text(value).map(|text| Fix::replace(path, text)).unwrap_or_default())
        }
        "true or false" => of_truth(path, value),
        _ if wanted.starts_with("a whole number") || wanted == "a number" => of_number(path, value),
        _ => in_words(key, wanted, value).into(),
    }
}

fn in_words(key: &str, wanted: &str, value: &Value) -> String {
    match wanted {
        "text" => of_text(key, value),
        _ if wanted.starts_with("a list") => of_list(key, value),
        _ if wanted.starts_with("an object") => of_object(key, wanted, value),
        _ => String::new(),
    }
}

fn of_text(key: &str, value: &Value) -> String {
    match value {
        Value::List(_) if key == "ref" => {
            "refer to a list: one that is written out belongs into the input or the default of a variable".into()
        }
        _ => String::new(),
    }
}

fn of_truth(path: &Path, value: &Value) -> Help {
    let is_one_of = |words: &[&str]| match value {
        Value::Text(text) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        _ => false,
    };
    if is_whole(value) {
        return "write it out: it is settled before anything runs".into();
    }
    match value.as_u64() {
        Some(1) => Help::value(path, true),
        Some(0) => Help::value(path, false),
        _ if is_one_of(&["true", "yes", "on", "y"]) => {
            Help::new("write true, without quotes", Fix::replace(path, true))
        }
        _ if is_one_of(&["false", "no", "off", "n"]) => {
            Help::new("write false, without quotes", Fix::replace(path, false))
        }
        _ => Help::default(),
    }
}

fn of_number(path: &Path, value: &Value) -> Help {
    let Some(text) = value.as_text() else { return Help::default() };
    if is_whole(value) {
        return "leave it out, and the default applies, or write the number: it is settled before anything runs".into();
    }
    match json::value(text.trim().as_bytes()) {
        Ok(number @ Value::Number(_)) => {
            let text = format!("write {}, without quotes", json::compact(&number));
            Help::new(text, Fix::replace(path, number))
        }
        _ if path.to_string().ends_with("priority") => "the greater number goes first: write `10`".into(),
        _ => Help::default(),
    }
}

/// Units of time that authors write, in milliseconds.
const UNITS: [(&[&str], u32); 5] = [
    (&["ms", "msec", "millisecond", "milliseconds"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];

/// Parses a duration with a unit, such as `30s` or `5 min`.
pub(in crate::definition) fn milliseconds(text: &str) -> Option<Number> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim();
    let (_, factor) = UNITS.iter().find(|(words, _)| words.iter().any(|word| word.eq_ignore_ascii_case(unit)))?;
    let milliseconds = number.checked_mul(u64::from(*factor)).filter(|milliseconds| *milliseconds <= WAIT_MAX_MS)?;
    Number::whole(i128::from(milliseconds))
}

fn of_list(key: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => format!("write [{}]", quoted(text)),
        Value::Number(_) => format!("write [{}]", json::compact(value)),
        Value::Map(_) if key == "nodes" || key == "steps" => {
            "write a list: each step begins with `- `, and a name of its own stands inside it".into()
        }
        Value::Map(_) => "write a list: each item begins with `- `".into(),
        _ => String::new(),
    }
}

fn of_object(key: &str, wanted: &str, value: &Value) -> String {
    match (key, value) {
        ("forEach", _) => {
            return "write {ref: \"@step.list\"}: a list that is written out belongs into the input or the default of a \
                    variable"
                .into();
        }
        ("variables", _) if wanted != "an object" => return "write {name: value}".into(),
        _ => {}
    }
    let example = OBJECTS.iter().find(|(object, _)| *object == key);
    example.map_or_else(String::new, |(_, example)| format!("write {example}"))
}

/// Returns the help text for a step type that means "for each" in other languages. Here `forEach` is a key of any step.
pub(in crate::definition) fn of_each(name: &str, fields: &Fields<'_>) -> Option<Help> {
    const LIST: &str = "forEach: {ref: \"@step.list\"}";
    synonym(name, ["forEach"])?;
    let is_body = |key: &String| key == "steps" || synonym(key, ["steps"]).is_some();
    let has_list = fields.get("forEach").is_some_and(|list| list.as_map().is_some());
    Some(match (fields.map.keys().any(is_body), has_list) {
        (true, true) => Help::value(&fields.path.key("type"), "loop"),
        (true, false) => format!("write \"loop\", and beside its `steps` {LIST}").into(),
        (false, true) => "write the type of what is done for each item: `forEach` stands beside it".into(),
        (false, false) => format!("write the type of what is done for each item, and beside it {LIST}").into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_notations_of_times_are_suggested() {
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("5 min", Some(300_000)),
            ("500MS", Some(500)),
            ("1h", Some(3_600_000)),
            ("2 days", Some(172_800_000)),
            ("s", None),
            ("3 moons", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
            ("", None),
        ] {
            assert_eq!(milliseconds(text), expected.and_then(Number::whole), "{text}");
        }
    }
}
