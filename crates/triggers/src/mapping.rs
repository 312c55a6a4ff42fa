//! Variable mappings: paths into the event of a trigger, and the variables of the execution that they give.
//!
//! A path is a plain dotted path such as `$.items.0.id`, in which a number is a key of an object or an index of a list,
//! or a JSONPath query (RFC 9535). A query for one value gives that value, every other query the list of all values that
//! it finds. A path that finds no value gives no variable, and is reported.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use crate::limits::{DESCENDANTS_MAX, FILTERS_MAX, PATH_BYTES_MAX, PATH_NESTING_MAX};

/// A mapping of variables.
#[derive(Debug, Clone)]
pub struct Mapping(BTreeMap<String, Path>);

#[derive(Debug, Clone)]
struct Path {
    text: String,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// The segments of a dotted path.
    Dotted(Vec<String>),
    /// A query for at most one value.
    Singular(JsonPath),
    Query(JsonPath),
}

/// A refused path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingError {
    /// The name in the execution.
    pub variable: String,
    /// The path, as written.
    pub path: String,
    /// The byte of the path at which the error was found, if it is known.
    pub position: Option<usize>,
    /// The error and a remedy.
    pub message: String,
}

impl fmt::Display for MappingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "variable `{}`, path `{}`", self.variable, self.path)?;
        if let Some(position) = self.position {
            write!(out, ", column {}", position + 1)?;
        }
        write!(out, ": {}", self.message)
    }
}

impl std::error::Error for MappingError {}

/// The variables that a mapping gives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mapped {
    /// The variables whose path has a value, also `null`.
    pub variables: Map<String, Value>,
    /// The variables whose path has none.
    pub missing: Vec<Missing>,
}

/// A variable without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The name in the execution.
    pub variable: String,
    /// The path, as written.
    pub path: String,
    /// The place at which the path ends in the event.
    pub reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "variable `{}`, path `{}`: {}", self.variable, self.path, self.reason)
    }
}

impl Mapping {
    /// Parses a mapping from variables to paths, or returns the errors of all paths.
    pub fn parse(paths: &BTreeMap<String, String>) -> Result<Self, Vec<MappingError>> {
        let (mut parsed, mut errors) = (BTreeMap::new(), Vec::new());
        for (variable, text) in paths {
            match parse(text) {
                Ok(form) => drop(parsed.insert(variable.clone(), Path { text: text.clone(), form })),
                Err((position, message)) => {
                    errors.push(MappingError { variable: variable.clone(), path: text.clone(), position, message });
                }
            }
        }
        if errors.is_empty() { Ok(Self(parsed)) } else { Err(errors) }
    }

    /// Applies the mapping to an event.
    pub fn apply(&self, event: &Value) -> Mapped {
        let mut mapped = Mapped::default();
        for (variable, path) in &self.0 {
            match path.find(event) {
                Ok(value) => drop(mapped.variables.insert(variable.clone(), value)),
                Err(reason) => {
                    mapped.missing.push(Missing { variable: variable.clone(), path: path.text.clone(), reason });
                }
            }
        }
        mapped
    }
}

impl Path {
    fn find(&self, event: &Value) -> Result<Value, String> {
        match &self.form {
            Form::Dotted(segments) => dotted(segments, event).cloned(),
            Form::Singular(query) => {
                query.query(event).first().cloned().ok_or_else(|| "the event has no value there".to_owned())
            }
            Form::Query(query) => Ok(query.query(event).all().into_iter().cloned().collect()),
        }
    }
}

fn dotted<'a>(segments: &[String], event: &'a Value) -> Result<&'a Value, String> {
    let (mut value, mut place) = (event, "$".to_owned());
    for segment in segments {
        let next = match value {
            Value::Object(map) => map.get(segment).ok_or_else(|| format!("`{place}` has no key `{segment}`")),
            Value::Array(list) => index(segment)
                .and_then(|index| list.get(index))
                .ok_or_else(|| format!("`{place}` is a list of {} values and has no `{segment}`", list.len())),
            other => Err(format!("`{place}` is {} and has no parts", kind(other))),
        };
        value = next?;
        place.push('.');
        place.push_str(segment);
    }
    Ok(value)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Parses an index without leading zeros.
fn index(segment: &str) -> Option<usize> {
    let is_canonical = segment == "0" || !segment.starts_with('0');
    let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
    segment.parse().ok().filter(|_| is_number && is_canonical)
}

fn parse(text: &str) -> Result<Form, (Option<usize>, String)> {
    if text.len() > PATH_BYTES_MAX {
        let message = format!("the path has {} bytes, and at most {PATH_BYTES_MAX} are allowed", text.len());
        return Err((None, message));
    }
    if let Some(segments) = dotted_segments(text) {
        return Ok(Form::Dotted(segments));
    }
    if !text.starts_with('$') {
        let message = "the path is neither a dotted path nor JSONPath; write `a.b.0`, `$.a.b` or `$['a b']`";
        return Err((Some(0), message.into()));
    }
    let signs = Signs::of(text);
    if signs.nesting > PATH_NESTING_MAX {
        let message =
            format!("the path has more than {PATH_NESTING_MAX} brackets within each other; shorten its filter");
        return Err((None, message));
    }
    // Counts within each other multiply the size of the compiled expression, and it is compiled for each value.
    if text.contains('{') && ["match(", "search("].iter().any(|function| text.contains(function)) {
        return Err((None, "a regular expression with a count (`{`) is not allowed; repeat its parts".into()));
    }
    let query = JsonPath::parse(text).map_err(|error| {
        let message = format!("{}; see RFC 9535 for the syntax of JSONPath", error.message());
        (Some(error.position()), message)
    })?;
    if signs.descendants > DESCENDANTS_MAX {
        let message = format!("the path has more than {DESCENDANTS_MAX} `..`; name the keys between them");
        return Err((None, message));
    }
    if signs.filters > FILTERS_MAX {
        return Err((None, format!("the path has more than {FILTERS_MAX} filters; filter in a step of the workflow")));
    }
    Ok(if signs.is_singular() { Form::Singular(query) } else { Form::Query(query) })
}

/// Returns the segments of a path of letters, digits, `_`, `-` and dots, with or without `$.` before it.
fn dotted_segments(text: &str) -> Option<Vec<String>> {
    if text == "$" {
        return Some(Vec::new());
    }
    let path = text.strip_prefix("$.").unwrap_or(text);
    let is_plain = |character: char| character.is_alphanumeric() || "_-".contains(character);
    let segments: Vec<String> = path.split('.').map(str::to_owned).collect();
    segments.iter().all(|segment| !segment.is_empty() && segment.chars().all(is_plain)).then_some(segments)
}

/// The signs of a query outside of its quoted names, which tell how many values it can find.
#[derive(Default)]
struct Signs {
    descendants: usize,
    filters: usize,
    /// Wildcards, slices, and lists of selectors.
    others: usize,
    /// The largest number of brackets and parentheses within each other.
    nesting: usize,
}

impl Signs {
    fn of(query: &str) -> Self {
        let mut signs = Self::default();
        let (mut quote, mut before, mut open) = (None, ' ', 0_usize);
        let mut characters = query.chars();
        while let Some(character) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => drop(characters.next()),
                (Some(end), character) if end == character => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(character),
                (None, '.') if before == '.' => signs.descendants += 1,
                (None, '[' | '(') => {
                    open += 1;
                    signs.nesting = signs.nesting.max(open);
                }
                (None, ']' | ')') => open = open.saturating_sub(1),
                (None, '?') => signs.filters += 1,
                (None, '*' | ':' | ',') => signs.others += 1,
                (None, _) => {}
            }
            before = character;
        }
        signs
    }

    fn is_singular(&self) -> bool {
        self.descendants + self.filters + self.others == 0
    }
}
