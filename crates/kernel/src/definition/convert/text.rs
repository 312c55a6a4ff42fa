//! Formats definitions as JSON or YAML for human readers: keys in a fixed reading order, YAML with few quotes.
//!
//! Parsing the output gives the same value, for every value.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    json,
    value::{Map, Value},
};

/// Keys that are written first, in this order. Keys in neither list follow in alphabetical order.
const FIRST: [&str; 30] = [
    "id",
    "name",
    "version",
    "type",
    "action",
    "tool",
    "workflow",
    "description",
    "from",
    "to",
    "needs",
    "when",
    "forEach",
    "while",
    "until",
    "maxRounds",
    "condition",
    "ref",
    "maxAttempts",
    "backoff",
    "method",
    "url",
    "signal",
    "prompt",
    "goal",
    "content",
    "command",
    "code",
    "input",
    "arguments",
];

/// Keys that are written last, in this order: long values, and settings of the step as a whole.
const LAST: [&str; 14] = [
    "retry",
    "retryPolicy",
    "timeoutMs",
    "onError",
    "onInterrupted",
    "outputSchema",
    "outputVariable",
    "order",
    "then",
    "else",
    "steps",
    "nodes",
    "edges",
    "output",
];

/// Keys of lists of steps. Each step is written in block style, even a short one.
const STEPS: [&str; 4] = ["then", "else", "steps", "nodes"];

/// Key of the list of edges. Each edge is written on its own line.
const EDGES: &str = "edges";

/// Maximum length of a list or object that is written on one line, in bytes.
const LINE_COLUMNS_MAX: usize = 80;

/// Plain scalars that some YAML parsers read as a boolean or null; `n` is handled in [`scalar`].
const WORDS: [&str; 8] = ["null", "true", "false", "yes", "no", "on", "off", "y"];

/// Formats a definition as JSON that ends with a newline.
pub fn json(definition: &Value) -> String {
    let mut out = String::new();
    write_json(definition, 0, &mut out);
    out.push('\n');
    out
}

/// Formats a definition as YAML that ends with a newline.
pub fn yaml(definition: &Value) -> String {
    let mut out = String::new();
    write_block(definition, 0, false, &mut out);
    out
}

/// Returns the fields of an object in reading order.
fn ordered(map: &Map) -> Vec<(&String, &Value)> {
    let rank = |key: &str| {
        let last = || LAST.iter().position(|last| *last == key).map(|at| FIRST.len() + 1 + at);
        FIRST.iter().position(|first| *first == key).or_else(last).unwrap_or(FIRST.len())
    };
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_by_key(|(key, _)| rank(key));
    fields
}

fn write_json(value: &Value, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    let (open, close, count) = match value {
        Value::List(items) => ('[', ']', items.len()),
        Value::Map(map) => ('{', '}', map.len()),
        scalar => return out.push_str(&json::compact(scalar)),
    };
    out.push(open);
    let mut inner = |at: usize, key: Option<&String>, value: &Value| {
        out.push_str(if at > 0 { "," } else { "" });
        line(depth + 1, out);
        if let Some(key) = key {
            out.push_str(&format!("{}: ", json::compact(&Value::text(key.as_str()))));
        }
        write_json(value, depth + 1, out);
    };
    match value {
        Value::List(items) => items.iter().enumerate().for_each(|(at, item)| inner(at, None, item)),
        Value::Map(map) => {
            ordered(map).into_iter().enumerate().for_each(|(at, (key, item))| inner(at, Some(key), item))
        }
        _ => {}
    }
    if count > 0 {
        line(depth, out);
    }
    out.push(close);
}

/// Writes a value in block style; every line ends with a newline.
fn write_block(value: &Value, depth: usize, mut is_after_dash: bool, out: &mut String) {
    let indent = |is_after_dash: &mut bool, out: &mut String| {
        if !core::mem::take(is_after_dash) {
            out.push_str(&"  ".repeat(depth));
        }
    };
    match value {
        Value::List(items) if !items.is_empty() => {
            for item in items {
                indent(&mut is_after_dash, out);
                out.push_str("- ");
                write_item(item, depth, out);
            }
        }
        Value::Map(map) if !map.is_empty() => {
            for (key, field) in ordered(map) {
                indent(&mut is_after_dash, out);
                out.push_str(&format!("{}:", scalar(&Value::text(key.as_str()))));
                write_field(key, field, depth, out);
            }
        }
        other => out.push_str(&format!("{}\n", flow(other))),
    }
}

/// Writes the part after a dash. An object starts on the same line.
fn write_item(item: &Value, depth: usize, out: &mut String) {
    match (item, literal(item, depth)) {
        (_, Some(text)) => out.push_str(&text),
        _ if is_short(item) => out.push_str(&format!("{}\n", flow(item))),
        _ => write_block(item, depth + 1, true, out),
    }
}

/// Writes the part after a key and its colon.
fn write_field(key: &str, field: &Value, depth: usize, out: &mut String) {
    if let Some(text) = literal(field, depth) {
        return out.push_str(&format!(" {text}"));
    }
    match field {
        Value::List(steps) if STEPS.contains(&key) && !steps.is_empty() => {
            out.push('\n');
            for step in steps {
                out.push_str(&format!("{}- ", "  ".repeat(depth + 1)));
                match step {
                    Value::Map(map) if !map.is_empty() => write_block(step, depth + 2, true, out),
                    other => write_item(other, depth + 1, out),
                }
            }
        }
        short if is_short(short) && (key != EDGES || short.as_list().is_none_or(<[_]>::is_empty)) => {
            out.push_str(&format!(" {}\n", flow(short)))
        }
        long => {
            out.push('\n');
            write_block(long, depth + 1, false, out);
        }
    }
}

/// Returns a multi-line text as a literal block scalar, or `None` if YAML would not read it back unchanged.
fn literal(value: &Value, depth: usize) -> Option<String> {
    let text = value.as_text()?;
    let (body, mark) = text.strip_suffix('\n').map_or((text, "|-"), |body| (body, "|"));
    let is_plain = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control() && is_printed(letter);
    let begins_well = body.starts_with(|letter: char| !letter.is_whitespace());
    if !body.contains('\n') || !begins_well || body.ends_with('\n') || !body.chars().all(is_plain) {
        return None;
    }
    let indent = "  ".repeat(depth + 1);
    let lines = body.split('\n').map(|line| if line.is_empty() { "\n".into() } else { format!("{indent}{line}\n") });
    Some(format!("{mark}\n{}", lines.collect::<String>()))
}

/// True if YAML allows the character in a plain scalar and does not read it as a line break.
fn is_printed(letter: char) -> bool {
    !matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// True for scalars, and for lists and objects that fit on one line.
fn is_short(value: &Value) -> bool {
    match value {
        Value::List(items) if !items.is_empty() => items.iter().all(is_leaf) && flow(value).len() <= LINE_COLUMNS_MAX,
        Value::Map(map) if !map.is_empty() => map.values().all(is_leaf) && flow(value).len() <= LINE_COLUMNS_MAX,
        _ => true,
    }
}

/// True for scalars, and for lists and objects that hold only scalars, such as a condition.
fn is_leaf(value: &Value) -> bool {
    match value {
        Value::List(items) => items.iter().all(|item| item.as_list().is_none() && item.as_map().is_none()),
        Value::Map(map) => map.values().all(|item| item.as_list().is_none() && item.as_map().is_none()),
        _ => true,
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let fields = ordered(map)
                .into_iter()
                .map(|(key, field)| format!("{}: {}", scalar(&Value::text(key.as_str())), flow(field)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => scalar(other),
    }
}

/// Returns a scalar on one line. A text that might be read back differently is quoted as in JSON, which is also valid
/// YAML.
fn scalar(value: &Value) -> String {
    let Some(text) = value.as_text() else { return json::compact(value) };
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text)) || text.eq_ignore_ascii_case("n");
    let begins_well = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == '/');
    let is_plain = |letter: char| {
        letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | ' ' | '(' | ')' | '+' | '=')
    };
    if begins_well && !text.ends_with(' ') && !is_word && text.chars().all(is_plain) {
        return text.to_string();
    }
    let mut quoted = String::new();
    for letter in json::compact(value).chars() {
        // JSON leaves these characters unescaped, and YAML does not allow them.
        match letter {
            letter if letter.is_control() || !is_printed(letter) => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)))
            }
            letter => quoted.push(letter),
        }
    }
    quoted
}
