//! Collects the diagnostics of a compilation, and reads fields with one wording of messages for the whole compiler.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};
use core::ops::RangeInclusive;

use super::{
    allowed::Allowed,
    fields::Fields,
    inspector::Inspector,
    suggest::{
        nearest::{meant, nearest, write_instead},
        values,
    },
};
use crate::{
    diagnostic::{self, Diagnostic, Severity, plain, quoted},
    document::{Document, Path},
    json,
    limits::{FINDINGS_BYTES_MAX, FINDINGS_MAX, WAIT_MAX_MS},
    value::Value,
};

/// The diagnostics of one compilation.
pub(super) struct Report<'a> {
    document: &'a Document,
    inspector: &'a dyn Inspector,
    found: Vec<Diagnostic>,
    /// Size of the messages and paths in `found`, in bytes.
    found_bytes: usize,
    /// Diagnostics beyond the limits, which are only counted.
    omitted: Omitted,
    /// Paths of keys that were reported as missing.
    missed: BTreeSet<Path>,
    /// Paths of known keys that an unknown key was probably meant to be.
    meant: BTreeSet<Path>,
    /// Similarity searches so far over names that the author chose.
    searches: usize,
    /// Steps visited so far in reachability searches.
    pub visits: usize,
    /// The warnings that the definition accepts.
    pub allowed: Allowed,
}

/// The number of diagnostics that are not listed.
#[derive(Debug, Default)]
struct Omitted {
    errors: usize,
    warnings: usize,
}

/// The maximum number of similarity searches. Each one reads all names of the definition, and a definition may have as
/// many mistakes as names.
const SEARCHES_MAX: usize = 50;

impl core::fmt::Debug for Report<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_tuple("Report").field(&self.found).finish()
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(document: &'a Document, inspector: &'a dyn Inspector) -> Self {
        Self {
            document,
            inspector,
            found: Vec::new(),
            found_bytes: 0,
            omitted: Omitted::default(),
            missed: BTreeSet::new(),
            meant: BTreeSet::new(),
            searches: 0,
            visits: 0,
            allowed: Allowed::default(),
        }
    }

    /// Counts a similarity search; false if the limit is reached.
    pub(super) fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES_MAX
    }

    /// Returns the most similar of the author's names, or `None` if no search is left.
    pub(super) fn nearest_name<'k>(&mut self, name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
        if self.may_search() { nearest(name, known) } else { None }
    }

    /// Checks the source of a function.
    pub(super) fn check_source(&mut self, source: &str, path: &Path) {
        if let Err(complaint) = self.inspector.source(source) {
            self.error(diagnostic::BAD_CODE, path, complaint.message, complaint.help);
        }
    }

    /// Reports the errors that the inspector finds in a JSON Schema.
    pub(super) fn check_schema(&mut self, schema: &Value, path: &Path) {
        if let Err(complaint) = self.inspector.schema(schema) {
            self.error(diagnostic::BAD_SCHEMA, path, complaint.message, complaint.help);
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.omitted.errors > 0 || self.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns all diagnostics in document order, or in path order if they have no position. If a key is missing
    /// because another key was written in its place, only the unknown key is reported. Accepted warnings are left out;
    /// if `is_whole` is true, all warnings were found, and an entry of `allow` that accepts none is one itself.
    pub(super) fn into_sorted(mut self, is_whole: bool) -> Vec<Diagnostic> {
        for (holder, code) in core::mem::take(&mut self.allowed).apply(&mut self.found) {
            if is_whole && self.omitted.warnings == 0 {
                let message = format!("nothing here causes the warning {}, which `allow` lists", named(code));
                let help = format!("take {} out of `allow`", named(code));
                self.warning(diagnostic::UNUSED_ALLOW, &holder.key("allow"), message, help);
            }
        }
        let listed: BTreeSet<_> = self.missed.intersection(&self.meant).collect();
        self.found.retain(|found| {
            let missed = missed_key(found).map(|key| found.path.key(key));
            missed.is_none_or(|missed| !listed.contains(&missed))
        });
        self.found.sort_by(|a, b| (a.place, &a.path).cmp(&(b.place, &b.path)));
        self.found.extend(self.omitted.diagnostic());
        self.found
    }

    /// Reports a mistake in the value at a path.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Error, code, path, false, message.into(), help.into());
    }

    /// Reports a key that must not be there, at the position of the key.
    pub(super) fn error_at_key(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Error, code, path, true, message.into(), help.into());
    }

    /// Reports a warning about the value at a path.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Warning, code, path, false, message.into(), help.into());
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        path: &Path,
        at_key: bool,
        message: String,
        help: String,
    ) {
        let omitted = match severity {
            Severity::Error => &mut self.omitted.errors,
            Severity::Warning => &mut self.omitted.warnings,
        };
        if self.found.len() >= FINDINGS_MAX || self.found_bytes >= FINDINGS_BYTES_MAX {
            *omitted += 1;
            return;
        }
        let place = if at_key { self.document.key_place(path) } else { self.document.place(path) };
        // Messages may quote text of the author or of the inspector, so control and invisible characters are escaped.
        let (message, help) = (plain(&message), plain(&help));
        self.found_bytes += message.len() + help.len() + path.shown_bytes();
        self.found.push(Diagnostic { severity, code, path: path.clone(), place, message, help });
    }

    /// Describes the position of a part for a message.
    pub(super) fn place_in_words(&self, path: &Path) -> String {
        self.document.place(path).map_or_else(|| format!("at {path}"), |place| format!("in line {}", place.line))
    }

    /// Reports a missing key.
    pub(super) fn missing(&mut self, fields: &Fields<'_>, key: &str, help: impl Into<String>) {
        self.missed.insert(fields.path.key(key));
        self.error(diagnostic::MISSING_KEY, &fields.path, format!("`{key}`{IS_MISSING}"), help);
    }

    /// Reports a value of the wrong type.
    pub(super) fn wrong_kind(&mut self, path: &Path, key: &str, wanted: &str, value: &Value) {
        let help = values::of_kind(key, wanted, value);
        self.error(diagnostic::WRONG_KIND, path, format!("`{key}` must be {wanted}, not {}", value.kind()), help);
    }

    /// Reports a list item of the wrong type.
    pub(super) fn wrong_item(&mut self, path: &Path, key: &str, wanted: &str, item: &Value) {
        let message = format!("an item of `{key}` must be {wanted}, not {}", item.kind());
        self.error(diagnostic::WRONG_KIND, path, message, values::of_kind(key, "text", item));
    }

    /// Reads an optional text field.
    pub(super) fn text<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v str> {
        let value = fields.get(key)?;
        if value.as_text().is_none() {
            self.wrong_kind(&fields.path.key(key), key, "text", value);
        }
        value.as_text()
    }

    /// Reads an optional text field that must not be blank.
    pub(super) fn filled_text<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v str> {
        let text = self.text(fields, key)?;
        if text.trim().is_empty() {
            self.error(diagnostic::EMPTY, &fields.path.key(key), format!("`{key}` is blank"), "give it a value");
            return None;
        }
        Some(text)
    }

    /// Reads an optional boolean field.
    pub(super) fn bool(&mut self, fields: &Fields<'_>, key: &str) -> Option<bool> {
        let value = fields.get(key)?;
        if value.as_bool().is_none() {
            self.wrong_kind(&fields.path.key(key), key, "true or false", value);
        }
        value.as_bool()
    }

    /// Reads an optional integer field within bounds.
    pub(super) fn whole(&mut self, fields: &Fields<'_>, key: &str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let value = fields.get(key)?;
        if !matches!(value, Value::Number(_)) {
            self.wrong_kind(&fields.path.key(key), key, "a whole number", value);
            return None;
        }
        let number = value.as_u64().filter(|number| bounds.contains(number));
        if number.is_none() {
            let in_words = if *bounds.end() == WAIT_MAX_MS { " (ten years in milliseconds)" } else { "" };
            let (least, most, given) = (bounds.start(), bounds.end(), json::compact(value));
            let message = format!("`{key}` must be a whole number from {least} to {most}{in_words}, not {given}");
            self.error(diagnostic::WRONG_VALUE, &fields.path.key(key), message, "");
        }
        number
    }

    /// Reads an optional 32-bit integer field within bounds.
    pub(super) fn whole_32(&mut self, fields: &Fields<'_>, key: &str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let wide = u64::from(*bounds.start())..=u64::from(*bounds.end());
        self.whole(fields, key, wide).and_then(|number| u32::try_from(number).ok())
    }

    /// Reads an optional signed 32-bit integer field.
    pub(super) fn priority(&mut self, fields: &Fields<'_>, key: &str) -> Option<i32> {
        let value = fields.get(key)?;
        let number = value.as_number().and_then(|number| i32::try_from(number.as_whole()?).ok());
        if number.is_none() {
            self.wrong_kind(&fields.path.key(key), key, "a whole number", value);
        }
        number
    }

    /// Returns whichever of two synonymous keys is present, and reports if both are.
    pub(super) fn one_of<'k>(&mut self, fields: &Fields<'_>, first: &'k str, second: &'k str) -> Option<&'k str> {
        match (fields.has(first), fields.has(second)) {
            (true, true) => {
                let message = format!("`{first}` and `{second}` mean the same");
                self.error_at_key(diagnostic::EXCLUSIVE_KEYS, &fields.path.key(second), message, "keep one of them");
                Some(first)
            }
            (true, false) => Some(first),
            (false, true) => Some(second),
            (false, false) => None,
        }
    }

    /// Reads an optional list field.
    pub(super) fn list<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v [Value]> {
        let value = fields.get(key)?;
        if value.as_list().is_none() {
            self.wrong_kind(&fields.path.key(key), key, "a list", value);
        }
        value.as_list()
    }

    /// Reads an optional object field.
    pub(super) fn object<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<Fields<'v>> {
        let value = fields.get(key)?;
        let path = fields.path.key(key);
        let Some(map) = value.as_map() else {
            self.wrong_kind(&path, key, "an object", value);
            return None;
        };
        Some(Fields { map, path })
    }

    /// Reads an optional field whose value is one of the names in `all`.
    pub(super) fn word<T: Copy>(&mut self, fields: &Fields<'_>, key: &str, all: &[(&str, T)]) -> Option<T> {
        let text = self.text(fields, key)?;
        let found = all.iter().find(|(name, _)| *name == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            self.unknown_word(&fields.path.key(key), key, text, all.iter().map(|(name, _)| *name));
        }
        found
    }

    /// Reports a text that is none of the allowed words.
    pub(super) fn unknown_word<'k>(
        &mut self,
        path: &Path,
        key: &str,
        text: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) {
        let words = known.clone().collect::<Vec<_>>().join(", ");
        let message = format!("`{key}` must be one of {words}, not {}", quoted(text));
        let help = match meant(text, known) {
            None if text.starts_with('@') => Some("write the word: it is settled before anything runs".into()),
            meant => meant.map(|word| format!("write {}", quoted(word))),
        };
        self.error(diagnostic::WRONG_VALUE, path, message, help.unwrap_or_default());
    }

    /// Reports all unknown keys of an object.
    pub(super) fn known_keys(&mut self, fields: &Fields<'_>, known: &[&str]) {
        for key in fields.map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.unknown_key(&fields.path, key, known.iter().copied());
        }
    }

    /// Reports an unknown key.
    pub(super) fn unknown_key<'k>(&mut self, path: &Path, key: &str, known: impl Iterator<Item = &'k str> + Clone) {
        let message = format!("unknown key {}", quoted(key));
        let holder = HELD.iter().find(|(held, holder)| *held == key && known.clone().any(|known| known == *holder));
        let help = match holder {
            Some((_, holder)) => format!("put it into `{holder}`"),
            None => write_instead(key, known.clone().filter(|known| !OTHER_NAMES.contains(known))),
        };
        let meant = meant(key, known).filter(|_| holder.is_none());
        self.meant.extend(meant.map(|meant| path.key(meant)));
        self.error_at_key(diagnostic::UNKNOWN_KEY, &path.key(key), message, help);
    }

    /// Records that a misplaced key was meant to be `key`, so that `key` is not reported as missing.
    pub(super) fn stands_for(&mut self, path: &Path, key: &str) {
        self.meant.insert(path.key(key));
    }

    /// Warns about integers that a double cannot represent: the hash sees them rounded.
    pub(super) fn inexact_numbers(&mut self, value: &Value, path: &Path) {
        match value {
            Value::Number(number) if !number.is_exact_double() => {
                let shown = crate::json::compact(value);
                let message = format!("{shown} is not exact as a double, and the definition's hash sees it rounded");
                self.warning(diagnostic::INEXACT_NUMBER, path, message, format!("write it as text: \"{shown}\""));
            }
            Value::List(items) => {
                items.iter().enumerate().for_each(|(at, item)| self.inexact_numbers(item, &path.index(at)));
            }
            Value::Map(map) => map.iter().for_each(|(key, field)| self.inexact_numbers(field, &path.key(key))),
            _ => {}
        }
    }
}

impl Omitted {
    /// Returns one diagnostic that stands for all unlisted ones.
    fn diagnostic(&self) -> Option<Diagnostic> {
        let (severity, count) = match (self.errors, self.warnings) {
            (0, 0) => return None,
            (0, warnings) => (Severity::Warning, warnings),
            (errors, warnings) => (Severity::Error, errors + warnings),
        };
        let message = format!("{count} more findings are not listed");
        let (path, help) = (Path::root(), "correct the listed errors, and validate again".into());
        Some(Diagnostic { severity, code: diagnostic::TOO_LARGE, path, place: None, message, help })
    }
}

/// Keys that belong inside another key and are often written beside it.
const HELD: [(&str, &str); 27] = [
    ("concurrency", "forEach"),
    ("maxAttempts", "retry"),
    ("initialDelayMs", "retry"),
    ("maxDelayMs", "retry"),
    ("backoff", "retry"),
    ("jitter", "retry"),
    ("retryOn", "retry"),
    ("neverOn", "retry"),
    ("retryableErrors", "retry"),
    ("backoffMs", "config"),
    ("toolName", "action"),
    ("transformCode", "action"),
    ("return", "action"),
    ("tool", "action"),
    ("code", "action"),
    ("maxSteps", "constraints"),
    ("maxParallel", "constraints"),
    ("maxCalls", "constraints"),
    ("maxExecutions", "constraints"),
    ("maxOutputBytes", "constraints"),
    ("timeoutMs", "constraints"),
    ("allowSelfModification", "constraints"),
    ("failOpen", "policy"),
    ("maxNodeFailures", "policy"),
    ("maxRetriesExhausted", "policy"),
    ("effects", "policy"),
    ("ref", "forEach"),
];

/// Synonyms of other keys: accepted, but never suggested.
const OTHER_NAMES: [&str; 5] = ["retryPolicy", "continueOnError", "config", "workflowId", "planVersion"];

const IS_MISSING: &str = " is missing";

/// Returns the key that a diagnostic reports as missing.
fn missed_key(found: &Diagnostic) -> Option<&str> {
    let message = found.message.strip_prefix('`').filter(|_| found.code == diagnostic::MISSING_KEY)?;
    message.strip_suffix(IS_MISSING)?.strip_suffix('`')
}

/// Quick check for numbers that [`Report::inexact_numbers`] would report; that function builds a path for every part.
pub(super) fn has_inexact_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_exact_double(),
        Value::List(items) => items.iter().any(has_inexact_numbers),
        Value::Map(map) => map.values().any(has_inexact_numbers),
        _ => false,
    }
}

/// Quotes a name in backticks and shortens a long one.
pub(super) fn named(name: &str) -> String {
    format!("`{}`", quoted(name).trim_matches('"'))
}
