//! JSON Schema: checks schemas, validates values, and fills in defaults.
//!
//! Patterns are matched in time proportional to the text, so none can hang; look-around and back-references are
//! rejected. A reference may only refer to the same document.

mod defaults;
mod reference;

use crate::fault::{Fault, FaultKind, Mismatch};
use crate::limits::{ERRORS_SORTED_MAX, MESSAGE_BYTES_MAX, MISMATCHES_MAX, MISMATCHES_TOLD_MAX, PATTERN_BYTES_MAX};
use crate::text::shortened;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// A valid schema.
#[derive(Debug)]
pub(crate) struct Schema {
    document: Value,
    validator: Validator,
}

impl Schema {
    /// Parses a schema. The fault names the position of an error.
    pub(crate) fn read(text: &str) -> Result<Schema, Fault> {
        let document: Value = serde_json::from_str(text).map_err(|error| {
            let place = (error.line() as u32, error.column() as u32);
            Fault::new(FaultKind::SchemaInvalid, format!("The schema is no JSON: {error}.")).at(place.0, place.1)
        })?;
        if let Some(pointer) = reference::loops(&document) {
            let message = format!(
                "The schema at {pointer:?} leads back to itself without going into the value, so that no check of it \
                 would end. Put the reference below `properties` or `items`."
            );
            return Err(Fault::new(FaultKind::SchemaInvalid, message));
        }
        let validator = jsonschema::options()
            .with_pattern_options(
                PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX),
            )
            .should_validate_formats(true)
            .offline();
        // `$schema` selects the draft where it is given.
        let validator = match document.get("$schema") {
            Some(_) => validator.build(&document),
            None => validator.with_draft(Draft::Draft202012).build(&document),
        };
        let validator = validator.map_err(|error| invalid(&error))?;
        Ok(Schema { document, validator })
    }

    /// Validates a value and returns it as JSON text: the same text, unless defaults were filled in. The fault lists
    /// the mismatches.
    pub(crate) fn validate(&self, text: &str, fill_defaults: bool) -> Result<String, Fault> {
        let mut value: Value = serde_json::from_str(text)
            .map_err(|error| Fault::new(FaultKind::InputInvalid, format!("The value is no JSON: {error}.")))?;
        let filled = fill_defaults && defaults::fill(&self.document, &mut value).map_err(|_| endless())?;
        let mut errors = self.validator.iter_errors(&value);
        let mut found: Vec<ValidationError<'_>> = errors.by_ref().take(ERRORS_SORTED_MAX).collect();
        // The validator visits keywords in its own order; people read by location.
        found.sort_by_cached_key(|error| (place_of(error), error.kind().keyword().to_owned()));
        let mut mismatches: Vec<Mismatch> = found.iter().flat_map(mismatches).collect();
        let more = mismatches.len() > MISMATCHES_MAX || errors.next().is_some();
        mismatches.truncate(MISMATCHES_MAX);
        if mismatches.is_empty() {
            return Ok(if filled { value.to_string() } else { text.to_owned() });
        }
        Err(Fault::new(FaultKind::SchemaMismatch, format!("{}.", summary(&mismatches, more)))
            .with_mismatches(mismatches))
    }
}

fn endless() -> Fault {
    let message = "The defaults of the schema bring the same schema along again and never come to an end. Take the \
                   `default` out of a property that refers to a schema around it.";
    Fault::new(FaultKind::SchemaInvalid, message)
}

fn invalid(error: &ValidationError<'_>) -> Fault {
    let place = error.instance_path().as_str();
    let place = if place.is_empty() { String::new() } else { format!(" at {place:?}") };
    Fault::new(FaultKind::SchemaInvalid, format!("The schema cannot be used{place}: {error}"))
}

/// Returns a sentence about the first mismatches and their number; `more` means that there are others beyond the list.
fn summary(mismatches: &[Mismatch], more: bool) -> String {
    let place = |mismatch: &Mismatch, whole: &str| match mismatch.path.as_str() {
        "" => whole.to_owned(),
        path => format!("`{path}`"),
    };
    if let ([only], false) = (mismatches, more) {
        return format!("{} does not fit its schema: {}", place(only, "The value"), only.message);
    }
    let count = if more { format!("more than {}", mismatches.len()) } else { mismatches.len().to_string() };
    let told = mismatches.iter().take(MISMATCHES_TOLD_MAX);
    // Each mismatch has an equal share of the message.
    let bytes_max = MESSAGE_BYTES_MAX / 2 / mismatches.len().min(MISMATCHES_TOLD_MAX);
    let told = told.map(|told| format!("{}: {}", place(told, "as a whole"), shortened(&told.message, bytes_max)));
    let rest = if mismatches.len() > MISMATCHES_TOLD_MAX { "; and others" } else { "" };
    format!("The value does not fit its schema in {count} places: {}{rest}", told.collect::<Vec<_>>().join("; "))
}

/// Returns the sort key of an error's location: entries of a list by number, properties by name.
fn place_of(error: &ValidationError<'_>) -> Vec<(usize, String)> {
    let part = |segment: LocationSegment<'_>| match segment {
        LocationSegment::Index(index) => (index, String::new()),
        LocationSegment::Property(name) => (0, name.into_owned()),
    };
    error.instance_path().segments().map(part).collect()
}

/// Converts an error to mismatches. A choice without a matching branch is followed by the mismatches of the intended
/// branch.
fn mismatches(error: &ValidationError<'_>) -> Vec<Mismatch> {
    let location = error.instance_path();
    let branch = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            meant(error, context)
        }
        _ => None,
    };
    let mismatch = Mismatch {
        pointer: location.as_str().to_owned(),
        path: path_of(location),
        keyword: error.kind().keyword().to_owned(),
        message: shortened(&error.masked().to_string(), MESSAGE_BYTES_MAX / 4),
    };
    [mismatch].into_iter().chain(branch.into_iter().flatten().flat_map(mismatches)).collect()
}

/// Returns the intended branch of a choice: the only one whose type and constants match.
fn meant<'a>(
    choice: &ValidationError<'_>,
    branches: &'a [Vec<ValidationError<'static>>],
) -> Option<&'a Vec<ValidationError<'static>>> {
    let is_other = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => true,
        ValidationErrorKind::Type { .. } => error.instance_path() == choice.instance_path(),
        _ => false,
    };
    let mut meant = branches.iter().filter(|errors| !errors.iter().any(is_other));
    let first = meant.next();
    first.filter(|_| meant.next().is_none())
}

/// Formats a location as people write it: `items[0].name`, and `["a b"]` for keys that are no identifiers.
fn path_of(location: &Location) -> String {
    let mut path = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) if is_plain(&name) => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(&name);
            }
            LocationSegment::Property(name) => path.push_str(&format!("[{}]", Value::from(name.as_ref()))),
        }
    }
    path
}

fn is_plain(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$';
    name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'-')
}
