//! Values in the forms of other languages, brought into the form that a key takes: times with units, one item instead of
//! a list, lists instead of objects.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    definition::{
        expression_hints::as_condition,
        help::Help,
        suggest::{foreign::same, values::milliseconds},
    },
    diagnostic::quoted,
    document::Path,
    fix::Fix,
    json,
    limits::{ATTEMPTS_MAX, WAIT_MAX_MS},
    plan::VARIABLE_TYPES,
    reference::{is_name, is_whole},
    value::{Map, Number, Value},
};

/// The result of bringing a value into another form.
#[derive(Debug, PartialEq)]
pub(in crate::definition) enum Adapted {
    /// The value fits already, or only the author can change it.
    Same,
    /// The same in the form of the key.
    As(Value),
    /// The same if the author meant it so: the value, and the condition in words.
    If(Value, String),
}

use Adapted::{As, If, Same};

/// Keys that hold a list of words.
const LISTS_OF_WORDS: [&str; 9] =
    ["in", "needs", "approvers", "retryOn", "neverOn", "expect", "tools", "allow", "retryableErrors"];

/// Keys that hold a list of steps.
const LISTS_OF_STEPS: [&str; 5] = ["steps", "nodes", "then", "else", "finally"];

/// False if a value is certainly of another form than the key takes, so that the key is not what the author meant.
pub(in crate::definition) fn fits(key: &str, value: &Value) -> bool {
    match key {
        "env" | "headers" => value.as_map().is_some() || adapted(key, key, value) != Same,
        "forEach" => value.as_map().is_some() || is_whole(value),
        "needs" => value.as_list().is_some() || adapted(key, key, value) != Same,
        "finally" | "steps" | "nodes" | "then" | "else" => value
            .as_list()
            .is_none_or(|steps| steps.iter().all(|step| step.as_map().is_some() || step.as_text().is_some())),
        _ => true,
    }
}

/// Brings a value under `word` into the form of `key`. `word` is the key that the author wrote.
pub(in crate::definition) fn adapted(word: &str, key: &str, value: &Value) -> Adapted {
    match key {
        // The time of all attempts together elsewhere, and of each attempt here.
        "timeoutMs" if same(word, "schedule_to_close_timeout") => match time(word, value) {
            As(value) => If(value, "if each attempt may take that long".into()),
            other => other,
        },
        _ if key.ends_with("Ms") || key.ends_with("_ms") => time(word, value),
        _ if LISTS_OF_WORDS.contains(&key) => list_of_words(key, value),
        _ if LISTS_OF_STEPS.contains(&key) => steps(key, value),
        "when" | "condition" | "bail" | "while" => condition(value),
        "variables" => declarations(value),
        "inputSchema" => input_schema(value),
        "all" | "any" => {
            if value.as_map().is_some() {
                As(list([value.clone()]))
            } else {
                Same
            }
        }
        "not" => value.as_list().filter(|parts| parts.len() == 1).map_or(Same, |parts| As(parts[0].clone())),
        "forEach" if is_whole(value) => As(Value::map([("ref", value.clone())])),
        "env" | "headers" => pairs(key, value),
        "command" => command(word, value),
        "retry" | "retryPolicy" => retry(value),
        "maxAttempts" if word != key => attempts(word, value),
        "continueOnError" => continues(value),
        "action" => value.as_text().map_or(Same, |name| As(Value::map([("toolName", name.into())]))),
        "id" if value.as_u64().is_some() => As(Value::text(format!("_{}", json::compact(value)))),
        "tool" | "toolName" | "workflow" | "signal" | "name" | "id" => name(value),
        "backoff" if value.as_map().is_some() => If(
            "exponential".into(),
            "if each delay is twice the one before, and the first delay as `initialDelayMs`".into(),
        ),
        "jitter" => percent(value),
        "until" => moment(value),
        _ => Same,
    }
}

impl Adapted {
    /// Returns the value, if it is certain.
    pub(in crate::definition) fn certain(self) -> Option<Value> {
        if let As(value) = self { Some(value) } else { None }
    }

    /// Returns the help for a value at its own place, or `None` if there is nothing to suggest.
    pub(in crate::definition) fn at_value(self, path: &Path) -> Option<Help> {
        match self {
            Same => None,
            As(value) => Some(Help::new(format!("write {}", flow(&value)), Fix::replace(path, value))),
            If(value, when) => Some(format!("write `{}` {when}", flow(&value)).into()),
        }
    }
}

/// Returns a value in YAML flow style, as an author would write it.
pub(in crate::definition) fn flow(value: &Value) -> String {
    match value {
        Value::Map(map) => {
            let fields: Vec<_> = map.iter().map(|(key, value)| format!("{}: {}", plain(key), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Text(text) => plain(text),
        other => json::compact(other),
    }
}

/// Quotes a text that YAML would read as something else.
fn plain(text: &str) -> String {
    if is_name(text) && !["true", "false", "null"].contains(&text) { text.into() } else { quoted_whole(text) }
}

fn quoted_whole(text: &str) -> String {
    json::compact(&Value::text(text))
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().collect())
}

fn whole(number: u64) -> Option<Value> {
    Number::whole(i128::from(number)).map(Value::Number)
}

/// Units at the end of a key, in milliseconds.
const UNITS_OF_WORDS: [(&str, u64); 9] = [
    ("milliseconds", 1),
    ("millis", 1),
    ("seconds", 1_000),
    ("secs", 1_000),
    ("minutes", 60_000),
    ("mins", 60_000),
    ("hours", 3_600_000),
    ("days", 86_400_000),
    ("ms", 1),
];

fn time(word: &str, value: &Value) -> Adapted {
    if is_whole(value) {
        return Same;
    }
    if let Some(text) = value.as_text() {
        let text = text.trim();
        if let Some(number) = milliseconds(text).or_else(|| iso_duration(text)) {
            return As(Value::Number(number));
        }
        let digits = text.replace('_', "");
        return match digits.parse::<u64>().ok().and_then(whole) {
            Some(number) => match time(word, &number) {
                Same => As(number),
                other => other,
            },
            None => Same,
        };
    }
    let Some(number) = value.as_number() else { return Same };
    let word = word.to_ascii_lowercase();
    let unit = UNITS_OF_WORDS.iter().find(|(unit, _)| word.ends_with(unit)).map(|(_, factor)| *factor);
    let Some(given) = value.as_u64() else {
        let rounded = number.as_double();
        let is_time = unit == Some(1) && (0.0..=WAIT_MAX_MS as f64).contains(&rounded);
        return if is_time { whole(rounded as u64).map_or(Same, As) } else { Same };
    };
    let times = |factor: u64| given.checked_mul(factor).filter(|all| *all <= WAIT_MAX_MS).and_then(whole);
    match unit {
        Some(1) => Same,
        Some(factor) => times(factor).map_or(Same, As),
        None if given < 1_000 => times(1_000).map_or(Same, |value| If(value, format!("if {given} are seconds"))),
        None => If(value.clone(), format!("if {given} are milliseconds")),
    }
}

/// Reads a duration of ISO 8601 with one unit, such as `PT5M` or `P2D`.
fn iso_duration(text: &str) -> Option<Number> {
    let text = text.strip_prefix('P')?;
    let is_time = text.starts_with('T');
    let text = text.strip_prefix('T').unwrap_or(text);
    let unit = match (text.chars().last()?, is_time) {
        ('S', true) => "s",
        ('M', true) => "m",
        ('H', true) => "h",
        ('D', false) => "d",
        _ => return None,
    };
    milliseconds(&format!("{}{unit}", &text[..text.len() - 1]))
}

/// Reads steps that were written as one step, as an object by name, or as scripts.
fn steps(key: &str, value: &Value) -> Adapted {
    let script = |text: &Value| Value::map([("type", "bash".into()), ("command", text.clone())]);
    match value {
        Value::Map(map) if map.contains_key("type") || map.contains_key("action") => As(list([value.clone()])),
        Value::Map(map) if !map.is_empty() && map.values().all(|step| step.get("type").is_some()) => {
            let steps = map.iter().map(|(name, step)| {
                let mut step = step.as_map().cloned().unwrap_or_default();
                step.entry("id".into()).or_insert_with(|| name.as_str().into());
                Value::Map(step)
            });
            if key == "nodes" { As(list(steps)) } else { If(list(steps), "if that is their order".into()) }
        }
        Value::Text(_) => If(list([script(value)]), "if this is a script".into()),
        Value::List(items) if !items.is_empty() && items.iter().all(|item| item.as_text().is_some()) => {
            If(list(items.iter().map(script)), "if these are scripts".into())
        }
        _ => Same,
    }
}

/// Reads a condition that was written as an expression.
fn condition(value: &Value) -> Adapted {
    let meant = value.as_text().filter(|text| text.contains('@')).and_then(as_condition);
    let read = meant.and_then(|text| crate::yaml::read(text.as_bytes()).ok());
    read.map_or(Same, |document| As(document.value))
}

/// Reads variables that were declared as a list of names.
fn declarations(value: &Value) -> Adapted {
    let names = value.as_list().unwrap_or_default().iter().map(Value::as_text).collect::<Option<Vec<_>>>();
    match names.filter(|names| !names.is_empty() && names.iter().all(|name| is_name(name))) {
        Some(names) => As(Value::map(names.into_iter().map(|name| (name, Value::Map(Map::new()))))),
        None => Same,
    }
}

/// Reads inputs that were declared by name, as `{name: {type, required}}` or as a list of names.
fn input_schema(value: &Value) -> Adapted {
    const KEYS: [&str; 5] = ["type", "required", "default", "description", "enum"];
    let is_schema = |map: &Map| {
        ["type", "properties", "$schema", "$ref", "anyOf"]
            .iter()
            .any(|key| map.get(*key).is_some_and(|value| value.as_map().is_none() || *key == "properties"))
    };
    let mut properties = match (value, declarations(value)) {
        (_, As(Value::Map(names))) => names,
        (Value::Map(map), _) if !map.is_empty() && !is_schema(map) => map.clone(),
        _ => return Same,
    };
    let mut required = Vec::new();
    for (name, property) in &mut properties {
        match property {
            Value::Null => *property = Value::Map(Map::new()),
            Value::Text(kind) if VARIABLE_TYPES.iter().any(|(known, _)| known == kind) => {
                *property = Value::map([("type", kind.as_str().into())]);
            }
            Value::Map(map) if map.keys().all(|key| KEYS.contains(&key.as_str())) => {
                if map.remove("required").and_then(|required| required.as_bool()) == Some(true) {
                    required.push(Value::text(name.as_str()));
                }
            }
            _ => return Same,
        }
    }
    let mut schema = Map::from([("type".into(), "object".into()), ("properties".into(), properties.into())]);
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    As(Value::Map(schema))
}

fn list_of_words(key: &str, value: &Value) -> Adapted {
    match value {
        Value::Text(text) if key == "needs" && !is_name(text) => Same,
        Value::Text(text) if text.contains(',') => {
            let items = text.split(',').map(|item| Value::text(item.trim()));
            If(list(items), "if these are several".into())
        }
        Value::Text(_) | Value::Number(_) => As(list([value.clone()])),
        _ => Same,
    }
}

/// Reads variables and headers that were written as a list: `A=1`, `A: 1`, or `{name: A, value: 1}`.
fn pairs(key: &str, value: &Value) -> Adapted {
    let mut found = Map::new();
    let texts: Vec<&Value> = match value {
        Value::List(items) => items.iter().collect(),
        Value::Text(_) => [value].into(),
        _ => return Same,
    };
    for item in texts {
        let separator = if key == "headers" { ": " } else { "=" };
        let named = item.get("name").and_then(Value::as_text).zip(item.get("value"));
        let written = item.as_text().and_then(|text| text.split_once(separator));
        match (named, written, item.as_map()) {
            (Some((name, value)), ..) => drop(found.insert(name.into(), value.clone())),
            (_, Some((name, value)), _) => drop(found.insert(name.trim().into(), Value::text(value))),
            (_, _, Some(map)) if map.len() == 1 => found.extend(map.clone()),
            _ => return Same,
        }
    }
    if found.is_empty() { Same } else { As(Value::Map(found)) }
}

fn command(word: &str, value: &Value) -> Adapted {
    match value {
        Value::List(items) if !items.is_empty() => {
            let Some(parts) = items.iter().map(Value::as_text).collect::<Option<Vec<_>>>() else { return Same };
            let has_options = parts.iter().skip(1).any(|part| part.starts_with('-'));
            match (has_options, word) {
                (false, "script" | "commands" | "run") => As(Value::text(parts.join("\n"))),
                (false, _) => If(Value::text(parts.join("\n")), "if these are lines".into()),
                (true, _) => If(Value::text(parts.join(" ")), "if these are the words of one command".into()),
            }
        }
        Value::Number(_) | Value::Bool(_) => As(Value::text(json::compact(value))),
        Value::Map(map) if map.len() == 1 && map.values().all(|script| script.as_text().is_some()) => {
            map.values().next().cloned().map_or(Same, |script| If(script, "if that is the script".into()))
        }
        _ => Same,
    }
}

fn retry(value: &Value) -> Adapted {
    let policy = |attempts: u64| whole(attempts).map(|attempts| Value::map([("maxAttempts", attempts)]));
    match value.as_u64().filter(|count| *count < u64::from(ATTEMPTS_MAX)) {
        Some(count) => policy(count + 1)
            .map_or(Same, |policy| If(policy, format!("for {count} retries: the first attempt counts as well"))),
        None if value.as_bool() == Some(true) => {
            policy(3).map_or(Same, |policy| If(policy, "with the attempts that it may take".into()))
        }
        None => Same,
    }
}

/// Other tools count the retries, and `maxAttempts` the first attempt as well.
fn attempts(word: &str, value: &Value) -> Adapted {
    let counts_retries = word.to_ascii_lowercase().contains("retries");
    match value.as_u64().filter(|count| counts_retries && *count < u64::from(ATTEMPTS_MAX)) {
        Some(count) => whole(count + 1).map_or(Same, As),
        None => Same,
    }
}

fn continues(value: &Value) -> Adapted {
    let word = value.as_text().is_some_and(|word| ["continue", "ignore", "skip"].contains(&word));
    let on_failure = value.get("failed").and_then(Value::as_bool) == Some(true);
    if word || on_failure { As(true.into()) } else { Same }
}

fn name(value: &Value) -> Adapted {
    let named = value.get("name").filter(|_| value.as_map().is_some_and(|map| map.len() == 1));
    let only = value.as_list().filter(|items| items.len() == 1).map(|items| &items[0]);
    match named.or(only).filter(|name| name.as_text().is_some()) {
        Some(name) => As(name.clone()),
        None => Same,
    }
}

fn percent(value: &Value) -> Adapted {
    if value.as_bool() == Some(true) {
        return Number::double(0.2).map_or(Same, |fifth| If(Value::Number(fifth), "for up to a fifth more".into()));
    }
    let percent = value.as_text().and_then(|text| text.trim().strip_suffix('%')?.trim().parse::<f64>().ok());
    let fraction = percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
    fraction.and_then(Number::double).map_or(Same, |number| As(Value::Number(number)))
}

/// Completes a date, or a time without a time zone.
fn moment(value: &Value) -> Adapted {
    let Some(text) = value.as_text().map(str::trim) else { return Same };
    let completed = [format!("{text}T00:00:00Z"), format!("{}Z", text.replace(' ', "T"))];
    let time = completed.into_iter().find(|time| crate::time::parse_rfc3339(time).is_some());
    time.map_or(Same, |time| If(Value::text(time), "if UTC is meant".into()))
}

/// Returns the help for a key that belongs elsewhere under another name, with its value in the form of that key.
pub(in crate::definition) fn renamed(from: &Path, word: &str, holder: &Path, key: &str, value: &Value) -> Help {
    let to = holder.key(key);
    match adapted(word, key, value) {
        Same => Help::new(format!("write {}", quoted(key)), Fix::moved(from, to)),
        As(value) => {
            let text = format!("write `{key}: {}`", flow(&value));
            Help::new(text, Fix::remove(from).and(Fix::add(to, value)))
        }
        If(value, when) => format!("write `{key}: {}` {when}", flow(&value)).into(),
    }
}

/// Returns the text of a value that must be a text.
pub(in crate::definition) fn as_text(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) | Value::Bool(_) => Some(Value::text(json::compact(value).to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, key: &str, value: &str, expected: &str) {
        let value = json::value(value.as_bytes()).expect("JSON");
        let shown = match adapted(word, key, &value) {
            Same => "same".to_string(),
            As(value) => flow(&value),
            If(value, when) => format!("{} {when}", flow(&value)),
        };
        assert_eq!(shown, expected, "{word} {key}");
    }

    #[test]
    fn times_have_units() {
        check("timeout", "timeoutMs", r#""30s""#, "30000");
        check("timeout", "timeoutMs", "30", "30000 if 30 are seconds");
        check("timeout", "timeoutMs", "30000", "30000 if 30000 are milliseconds");
        check("timeout-minutes", "timeoutMs", "5", "300000");
        check("timeout_ms", "timeoutMs", "5", "same");
        check("timeoutMs", "timeoutMs", r#""60_000""#, "60000");
        check("timeoutMs", "timeoutMs", r#""PT5M""#, "300000");
        check("timeoutMs", "timeoutMs", r#""P1M""#, "same");
        check("timeoutMs", "timeoutMs", "1500.5", "1500");
        check("seconds", "durationMs", "99999999999999999", "same");
        check("durationMs", "durationMs", r#""@a.b""#, "same");
    }

    #[test]
    fn lists_and_objects() {
        check("needs", "needs", r#""a""#, "[a]");
        check("depends", "needs", r#""a.Failed""#, "same");
        check("approvers", "approvers", r#""ada, bob""#, "[ada, bob] if these are several");
        check("env", "env", r#"["A=1", "B=x=y"]"#, r#"{A: "1", B: "x=y"}"#);
        check("env", "env", r#"[{"name":"A","value":1}]"#, "{A: 1}");
        check("env", "env", r#"["A"]"#, "same");
        check("script", "command", r#"["a","b"]"#, r#""a\nb""#);
        check("command", "command", r#"["ls","-l"]"#, r#""ls -l" if these are the words of one command"#);
        check("retries", "maxAttempts", "2", "3");
        check("max", "maxAttempts", "2", "same");
        check("until", "until", r#""2030-01-01""#, r#""2030-01-01T00:00:00Z" if UTC is meant"#);
        check("jitter", "jitter", r#""20%""#, "0.2");
        check(
            "inputs",
            "inputSchema",
            r#"{"a":{"type":"string","required":true},"b":null}"#,
            "{properties: {a: {type: string}, b: {}}, required: [a], type: object}",
        );
        check("inputs", "inputSchema", r#"["a"]"#, "{properties: {a: {}}, type: object}");
        check("inputs", "inputSchema", r#"{"type":"object"}"#, "same");
        check("inputs", "inputSchema", r#"{"a":{"options":[1]}}"#, "same");
    }
}
