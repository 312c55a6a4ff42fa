//! Variable mappings: paths into the event of a trigger, and the variables of the execution that they give.
//!
//! A path is a plain dotted path such as `$.items.0.id`, in which a number is a key of an object or an index of a list,
//! or a JSONPath query (RFC 9535). A query for one value gives that value, every other query the list of all values that
//! it finds. A path that finds no value gives no variable, and is reported.
//!
//! An event comes from outside, so a query is refused unless its time and its result are proportional to the event:
//! nested filters, several lists of selectors and regular expressions are not supported.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use crate::limits::{
    DESCENDANTS_MAX, FILTERS_MAX, FOUND_BYTES_MAX, PATH_BYTES_MAX, PATH_NESTING_MAX, SELECTOR_LISTS_MAX, SELECTORS_MAX,
    VARIABLES_BYTES_MAX,
};

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
    ///
    /// # Errors
    /// Fails if the variables have more than [`VARIABLES_BYTES_MAX`] bytes.
    pub fn apply(&self, event: &Value) -> Result<Mapped, TooLarge> {
        let (mut mapped, mut left) = (Mapped::default(), VARIABLES_BYTES_MAX);
        for (variable, path) in &self.0 {
            match path.find(event) {
                Ok(found) => {
                    let bytes = found.bytes(left).ok_or_else(|| TooLarge { variable: variable.clone() })?;
                    left = left.saturating_sub(bytes);
                    mapped.variables.insert(variable.clone(), found.copied());
                }
                Err(reason) => {
                    mapped.missing.push(Missing { variable: variable.clone(), path: path.text.clone(), reason });
                }
            }
        }
        Ok(mapped)
    }
}

/// Variables that are too large together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLarge {
    /// The first variable beyond the bound, in the order of names.
    pub variable: String,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable } = self;
        write!(out, "up to `{variable}` the variables have more than {VARIABLES_BYTES_MAX} bytes; use narrower paths")
    }
}

impl std::error::Error for TooLarge {}

/// The parts of an event that a path finds.
enum Found<'a> {
    One(&'a Value),
    List(Vec<&'a Value>),
}

impl Found<'_> {
    /// Returns the bytes of the value as JSON, about; `None` if it has more than `max`.
    fn bytes(&self, max: usize) -> Option<usize> {
        match self {
            Self::One(value) => size([*value], max),
            Self::List(values) => size(values.iter().copied(), max),
        }
    }

    fn copied(self) -> Value {
        match self {
            Self::One(value) => value.clone(),
            Self::List(values) => values.into_iter().cloned().collect(),
        }
    }
}

impl Path {
    fn find<'a>(&self, event: &'a Value) -> Result<Found<'a>, String> {
        match &self.form {
            Form::Dotted(segments) => dotted(segments, event).map(Found::One),
            Form::Singular(query) => {
                query.query(event).first().map(Found::One).ok_or_else(|| "the event has no value there".to_owned())
            }
            Form::Query(query) => {
                let found = query.query(event).all();
                match size(found.iter().copied(), FOUND_BYTES_MAX) {
                    Some(_) => Ok(Found::List(found)),
                    None => Err(format!("the values found have more than {FOUND_BYTES_MAX} bytes")),
                }
            }
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
    // Before the parser, which recurses.
    let signs = Signs::of(text);
    if signs.nesting > PATH_NESTING_MAX {
        let message =
            format!("the path has more than {PATH_NESTING_MAX} brackets within each other; shorten its filter");
        return Err((None, message));
    }
    let query = JsonPath::parse(text).map_err(|error| {
        let message = format!("{}; see RFC 9535 for the syntax of JSONPath", error.message());
        (Some(error.position()), message)
    })?;
    signs.check().map_err(|message| (None, message))?;
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

/// The signs of a query outside of its quoted names, which bound the number of values that it can find, and its time.
#[derive(Default)]
struct Signs {
    descendants: usize,
    filters: usize,
    /// Wildcards and slices.
    others: usize,
    /// Brackets with several selectors.
    lists: usize,
    /// The largest number of selectors in one bracket.
    selectors: usize,
    /// The largest number of brackets and parentheses within each other.
    nesting: usize,
    /// A refused part of the query.
    refused: Option<&'static str>,
}

/// An open bracket or parenthesis.
#[derive(Default)]
struct Open {
    is_bracket: bool,
    is_filter: bool,
    /// It has a wildcard, a slice or a filter.
    is_multiple: bool,
    commas: usize,
}

const FILTER_QUERY: &str = "a filter finds more than one value for an item (`*`, `..`, a slice or a list); name a key or \
    an index, as in `@.tags[0]`";
const NESTED_FILTER: &str = "a filter is within another; filter in a step of the workflow";
const ABSOLUTE_QUERY: &str = "a filter reads the whole event (`$`); compare parts of the item (`@`) with constants";
const MIXED_LIST: &str = "a list of selectors has a wildcard, a slice or a filter; list only names and indexes";
const REGULAR_EXPRESSION: &str =
    "the functions `match` and `search` are not supported; compare with `==`, or match in a step of the workflow";

impl Signs {
    fn of(query: &str) -> Self {
        let mut signs = Self::default();
        let (mut quote, mut before, mut open) = (None, ' ', Vec::new());
        let mut characters = query.char_indices();
        while let Some((at, character)) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => drop(characters.next()),
                (Some(end), character) if end == character => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(character),
                (None, '.') if before == '.' => {
                    signs.descendants += 1;
                    signs.refuse_in_filter(&open, FILTER_QUERY);
                }
                (None, '$') => signs.refuse_in_filter(&open, ABSOLUTE_QUERY),
                (None, '*' | ':') => {
                    signs.others += 1;
                    signs.refuse_in_filter(&open, FILTER_QUERY);
                    if let Some(open) = open.last_mut() {
                        open.is_multiple = true;
                    }
                }
                (None, '?') => signs.filter(&mut open),
                (None, ',') => signs.list(&mut open),
                (None, '[' | '(') => {
                    if character == '(' && is_after_expression_function(&query[..at]) {
                        signs.refuse(REGULAR_EXPRESSION);
                    }
                    open.push(Open { is_bracket: character == '[', ..Open::default() });
                    signs.nesting = signs.nesting.max(open.len());
                }
                (None, ']' | ')') => signs.close(open.pop().unwrap_or_default()),
                (None, _) => {}
            }
            before = character;
        }
        signs
    }

    fn refuse(&mut self, why: &'static str) {
        self.refused.get_or_insert(why);
    }

    fn refuse_in_filter(&mut self, open: &[Open], why: &'static str) {
        if open.iter().any(|open| open.is_filter) {
            self.refuse(why);
        }
    }

    fn filter(&mut self, open: &mut [Open]) {
        self.filters += 1;
        self.refuse_in_filter(&open[..open.len().saturating_sub(1)], NESTED_FILTER);
        if let Some(open) = open.last_mut() {
            (open.is_filter, open.is_multiple) = (true, true);
        }
    }

    /// Counts a comma, which separates selectors in a bracket and arguments in parentheses.
    fn list(&mut self, open: &mut [Open]) {
        let is_bracket = open.last().is_some_and(|open| open.is_bracket);
        if is_bracket {
            self.refuse_in_filter(&open[..open.len().saturating_sub(1)], FILTER_QUERY);
        }
        if let Some(open) = open.last_mut() {
            open.commas += usize::from(is_bracket);
        }
    }

    fn close(&mut self, closed: Open) {
        if closed.commas > 0 {
            self.lists += 1;
            self.selectors = self.selectors.max(closed.commas + 1);
            if closed.is_multiple {
                self.refuse(MIXED_LIST);
            }
        }
    }

    /// Checks that the values found are at most a few times those of the event, and that each takes a bounded time.
    fn check(&self) -> Result<(), String> {
        if let Some(why) = self.refused {
            return Err(why.into());
        }
        if self.descendants > DESCENDANTS_MAX {
            return Err(format!("the path has more than {DESCENDANTS_MAX} `..`; name the keys between them"));
        }
        if self.filters > FILTERS_MAX {
            return Err(format!("the path has more than {FILTERS_MAX} filters; filter in a step of the workflow"));
        }
        if self.lists > SELECTOR_LISTS_MAX {
            return Err(format!(
                "the path has more than {SELECTOR_LISTS_MAX} list of selectors; map a variable for each"
            ));
        }
        if self.selectors > SELECTORS_MAX {
            return Err(format!("a list has more than {SELECTORS_MAX} selectors; map a variable for each"));
        }
        Ok(())
    }

    fn is_singular(&self) -> bool {
        self.descendants + self.filters + self.others + self.lists == 0
    }
}

/// True before the parenthesis of a function with a regular expression. The library compiles the expression for each
/// value, and it may come from the event.
fn is_after_expression_function(before: &str) -> bool {
    let before = before.trim_end();
    ["match", "search"].iter().any(|name| before.ends_with(name))
}

/// Returns the bytes of values as JSON, about; `None` if they have more than `max`. The time is that of `max` bytes.
fn size<'a>(values: impl IntoIterator<Item = &'a Value>, max: usize) -> Option<usize> {
    let (mut bytes, mut open) = (0_usize, Vec::new());
    for value in values {
        open.push(value);
        while let Some(value) = open.pop() {
            bytes += 2;
            match value {
                Value::String(text) => bytes += text.len(),
                Value::Array(list) => open.extend(list.iter().take(max)),
                Value::Object(map) => {
                    bytes += map.keys().map(|key| key.len() + 3).sum::<usize>();
                    open.extend(map.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
            if bytes > max {
                return None;
            }
        }
    }
    Some(bytes)
}
