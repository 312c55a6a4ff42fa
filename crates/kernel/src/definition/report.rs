//! What was found so far, and the questions about fields that every part of the compiler asks in the same words.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};
use core::ops::RangeInclusive;

use super::{
    inspector::Inspector,
    mends,
    nearest::{meant, nearest, write_instead},
};
use crate::{
    diagnostic::{self, Diagnostic, Severity, plain, quoted},
    document::{Document, Path},
    json,
    limits::{FINDINGS_BYTES_MAX, FINDINGS_MAX, WAIT_MAX_MS},
    value::{Map, Value},
};

/// The findings of one compilation.
pub(super) struct Report<'a> {
    document: &'a Document,
    inspector: &'a dyn Inspector,
    found: Vec<Diagnostic>,
    /// Bytes of the texts and ways of what was found.
    found_bytes: usize,
    /// Findings that are counted and not kept: there are too many.
    untold: Untold,
    /// The ways to keys that were missed.
    missed: BTreeSet<Path>,
    /// The ways to keys that are meant by unknown ones.
    meant: BTreeSet<Path>,
    /// Searches made so far among an author's own names for what was meant.
    searches: usize,
    /// Steps looked at so far in search of a way from one to another.
    pub visits: usize,
}

/// How many findings are not told one by one.
#[derive(Debug, Default)]
struct Untold {
    errors: usize,
    warnings: usize,
}

/// Mistakes for which an author's own names are searched for what was meant; each search reads all of them, and a
/// definition may have as many mistakes as names.
const SEARCHES_MAX: usize = 50;

impl core::fmt::Debug for Report<'_> {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.debug_tuple("Report").field(&self.found).finish()
    }
}

/// The fields of an object and the way to it.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    pub map: &'a Map,
    pub path: Path,
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(document: &'a Document, inspector: &'a dyn Inspector) -> Self {
        Self {
            document,
            inspector,
            found: Vec::new(),
            found_bytes: 0,
            untold: Untold::default(),
            missed: BTreeSet::new(),
            meant: BTreeSet::new(),
            searches: 0,
            visits: 0,
        }
    }

    /// Whether an author's names may be searched once more for what was meant.
    pub(super) fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES_MAX
    }

    /// The one of an author's names that is nearest to another, as long as searches are left.
    pub(super) fn nearest_name<'k>(&mut self, name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
        if self.may_search() { nearest(name, known) } else { None }
    }

    /// Asks whether the source of a function can be read.
    pub(super) fn check_source(&mut self, source: &str, path: &Path) {
        if let Err(complaint) = self.inspector.source(source) {
            self.error(diagnostic::BAD_CODE, path, complaint.message, complaint.mend);
        }
    }

    /// Asks whether a schema can be read.
    pub(super) fn check_schema(&mut self, schema: &Value, path: &Path) {
        if let Err(complaint) = self.inspector.schema(schema) {
            self.error(diagnostic::BAD_SCHEMA, path, complaint.message, complaint.mend);
        }
    }

    /// Whether the definition is refused.
    pub(super) fn has_errors(&self) -> bool {
        self.untold.errors > 0 || self.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Everything found, in the order of the document; what has no place, in the order of the paths. A key that is
    /// missing because another one was written for it is one mistake, and is told where it was made.
    pub(super) fn into_sorted(mut self) -> Vec<Diagnostic> {
        let told: BTreeSet<_> = self.missed.intersection(&self.meant).collect();
        self.found.retain(|found| {
            let missed = missed_key(found).map(|key| found.path.key(key));
            missed.is_none_or(|missed| !told.contains(&missed))
        });
        self.found.sort_by(|a, b| (a.place, &a.path).cmp(&(b.place, &b.path)));
        self.found.extend(self.untold.diagnostic());
        self.found
    }

    /// A mistake in the value at a path.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) {
        self.push(Severity::Error, code, path, false, message.into(), mend.into());
    }

    /// A mistake in the presence of a key.
    pub(super) fn error_at_key(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) {
        self.push(Severity::Error, code, path, true, message.into(), mend.into());
    }

    /// What is taken as it is.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) {
        self.push(Severity::Warning, code, path, false, message.into(), mend.into());
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        path: &Path,
        at_key: bool,
        message: String,
        mend: String,
    ) {
        let untold = match severity {
            Severity::Error => &mut self.untold.errors,
            Severity::Warning => &mut self.untold.warnings,
        };
        if self.found.len() >= FINDINGS_MAX || self.found_bytes >= FINDINGS_BYTES_MAX {
            *untold += 1;
            return;
        }
        let place = if at_key { self.document.key_place(path) } else { self.document.place(path) };
        // Messages name what authors wrote, and what others said of it.
        let (message, mend) = (plain(&message), plain(&mend));
        self.found_bytes += message.len() + mend.len() + path.shown_bytes();
        self.found.push(Diagnostic { severity, code, path: path.clone(), place, message, mend });
    }

    /// Where a part stands, in words.
    pub(super) fn place_in_words(&self, path: &Path) -> String {
        self.document.place(path).map_or_else(|| format!("at {path}"), |place| format!("in line {}", place.line))
    }

    /// A key that has to be there.
    pub(super) fn missing(&mut self, fields: &Fields<'_>, key: &str, mend: impl Into<String>) {
        self.missed.insert(fields.path.key(key));
        self.error(diagnostic::MISSING_KEY, &fields.path, format!("`{key}`{IS_MISSING}"), mend);
    }

    /// A value of the wrong kind.
    pub(super) fn wrong_kind(&mut self, path: &Path, key: &str, wanted: &str, value: &Value) {
        let mend = mends::of_kind(key, wanted, value);
        self.error(diagnostic::WRONG_KIND, path, format!("`{key}` must be {wanted}, not {}", value.kind()), mend);
    }

    /// An item of the wrong kind in a list.
    pub(super) fn wrong_item(&mut self, path: &Path, key: &str, wanted: &str, item: &Value) {
        let message = format!("an item of `{key}` must be {wanted}, not {}", item.kind());
        self.error(diagnostic::WRONG_KIND, path, message, mends::of_kind(key, "text", item));
    }

    /// A field that is text, if it is there.
    pub(super) fn text<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v str> {
        let value = fields.get(key)?;
        if value.as_text().is_none() {
            self.wrong_kind(&fields.path.key(key), key, "text", value);
        }
        value.as_text()
    }

    /// A field that is text with something in it, if it is there.
    pub(super) fn filled_text<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v str> {
        let text = self.text(fields, key)?;
        if text.trim().is_empty() {
            self.error(diagnostic::EMPTY, &fields.path.key(key), format!("`{key}` is blank"), "give it a value");
            return None;
        }
        Some(text)
    }

    /// A field that is true or false, if it is there.
    pub(super) fn bool(&mut self, fields: &Fields<'_>, key: &str) -> Option<bool> {
        let value = fields.get(key)?;
        if value.as_bool().is_none() {
            self.wrong_kind(&fields.path.key(key), key, "true or false", value);
        }
        value.as_bool()
    }

    /// A field that is a whole number within bounds, if it is there.
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

    /// The same in 32 bits.
    pub(super) fn whole_32(&mut self, fields: &Fields<'_>, key: &str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let wide = u64::from(*bounds.start())..=u64::from(*bounds.end());
        self.whole(fields, key, wide).and_then(|number| u32::try_from(number).ok())
    }

    /// The whole numbers of 32 bits, below zero as well.
    pub(super) fn priority(&mut self, fields: &Fields<'_>, key: &str) -> Option<i32> {
        let value = fields.get(key)?;
        let number = value.as_number().and_then(|number| i32::try_from(number.as_whole()?).ok());
        if number.is_none() {
            self.wrong_kind(&fields.path.key(key), key, "a whole number", value);
        }
        number
    }

    /// The one of two keys that mean the same, if one is there.
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

    /// A field that is a list, if it is there.
    pub(super) fn list<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<&'v [Value]> {
        let value = fields.get(key)?;
        if value.as_list().is_none() {
            self.wrong_kind(&fields.path.key(key), key, "a list", value);
        }
        value.as_list()
    }

    /// A field that is an object, if it is there.
    pub(super) fn object<'v>(&mut self, fields: &Fields<'v>, key: &str) -> Option<Fields<'v>> {
        let value = fields.get(key)?;
        let path = fields.path.key(key);
        let Some(map) = value.as_map() else {
            self.wrong_kind(&path, key, "an object", value);
            return None;
        };
        Some(Fields { map, path })
    }

    /// A field that is one of some words, if it is there: the one of `all` with that name.
    pub(super) fn word<T: Copy>(&mut self, fields: &Fields<'_>, key: &str, all: &[(&str, T)]) -> Option<T> {
        let text = self.text(fields, key)?;
        let found = all.iter().find(|(name, _)| *name == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            self.unknown_word(&fields.path.key(key), key, text, all.iter().map(|(name, _)| *name));
        }
        found
    }

    /// A text that is none of the words allowed.
    pub(super) fn unknown_word<'k>(
        &mut self,
        path: &Path,
        key: &str,
        text: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) {
        let words = known.clone().collect::<Vec<_>>().join(", ");
        let message = format!("`{key}` must be one of {words}, not {}", quoted(text));
        let mend = match meant(text, known) {
            None if text.starts_with('@') => Some("write the word: it is settled before anything runs".into()),
            meant => meant.map(|word| format!("write {}", quoted(word))),
        };
        self.error(diagnostic::WRONG_VALUE, path, message, mend.unwrap_or_default());
    }

    /// Refuses every key but the known ones.
    pub(super) fn known_keys(&mut self, fields: &Fields<'_>, known: &[&str]) {
        for key in fields.map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.unknown_key(&fields.path, key, known.iter().copied());
        }
    }

    /// A key that means nothing.
    pub(super) fn unknown_key<'k>(&mut self, path: &Path, key: &str, known: impl Iterator<Item = &'k str> + Clone) {
        let message = format!("unknown key {}", quoted(key));
        let holder = HELD.iter().find(|(held, holder)| *held == key && known.clone().any(|known| known == *holder));
        let mend = match holder {
            Some((_, holder)) => format!("put it into `{holder}`"),
            None => write_instead(key, known.clone().filter(|known| !OTHER_NAMES.contains(known))),
        };
        let meant = meant(key, known).filter(|_| holder.is_none());
        self.meant.extend(meant.map(|meant| path.key(meant)));
        self.error_at_key(diagnostic::UNKNOWN_KEY, &path.key(key), message, mend);
    }

    /// A key that stands in for another one, which is therefore not missing.
    pub(super) fn stands_for(&mut self, path: &Path, key: &str) {
        self.meant.insert(path.key(key));
    }

    /// Warns of whole numbers that the hash sees rounded.
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

impl Untold {
    /// One finding for all that are not told.
    fn diagnostic(&self) -> Option<Diagnostic> {
        let (severity, count) = match (self.errors, self.warnings) {
            (0, 0) => return None,
            (0, warnings) => (Severity::Warning, warnings),
            (errors, warnings) => (Severity::Error, errors + warnings),
        };
        let message = format!("{count} more findings are not listed");
        let (path, mend) = (Path::root(), "mend those that are listed, and validate again".into());
        Some(Diagnostic { severity, code: diagnostic::TOO_LARGE, path, place: None, message, mend })
    }
}

/// Keys that stand inside another key, which authors forget.
const HELD: [(&str, &str); 26] = [
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
    ("ref", "forEach"),
];

/// Keys that mean the same as others: known, but not what anybody is told to write.
const OTHER_NAMES: [&str; 5] = ["retryPolicy", "continueOnError", "config", "workflowId", "planVersion"];

const IS_MISSING: &str = " is missing";

/// The key of which a diagnostic says that it is missing.
fn missed_key(found: &Diagnostic) -> Option<&str> {
    let message = found.message.strip_prefix('`').filter(|_| found.code == diagnostic::MISSING_KEY)?;
    message.strip_suffix(IS_MISSING)?.strip_suffix('`')
}

/// Whether the search for inexact numbers, which makes a path for every part, would find any.
pub(super) fn has_inexact_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_exact_double(),
        Value::List(items) => items.iter().any(has_inexact_numbers),
        Value::Map(map) => map.values().any(has_inexact_numbers),
        _ => false,
    }
}

/// A name between backticks, cut where it is long.
pub(super) fn named(name: &str) -> String {
    format!("`{}`", quoted(name).trim_matches('"'))
}
