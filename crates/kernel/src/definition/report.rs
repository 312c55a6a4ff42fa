//! Collects the diagnostics of a compilation, and reads fields with one wording of messages for the whole compiler.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use core::ops::RangeInclusive;

use super::{
    allowed::Allowed,
    fields::Fields,
    help::Help,
    inspector::{Complaint, Inspector},
    keys,
    notation::Notation,
    step_types::{KINDS, MODIFIERS},
    suggest::{
        adapt::{fits, renamed},
        foreign,
        nearest::{known_here, meant, nearest},
        rewrite_keys,
        synonyms::synonym,
        values,
    },
};
use crate::{
    diagnostic::{self, Diagnostic, Severity, plain, quoted},
    document::{Document, Path, Segment},
    fix::{Change, Fix},
    json,
    limits::{FINDINGS_BYTES_MAX, FINDINGS_MAX, WAIT_MAX_MS},
    value::{Map, Value},
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
    /// Words of texts so far that were compared with all names.
    compared: usize,
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

/// The maximum number of fixes that are combined into one: an object has few keys.
const SHARED_MAX: usize = 32;

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
            compared: 0,
            visits: 0,
            allowed: Allowed::default(),
        }
    }

    /// Counts a similarity search; false if the limit is reached.
    pub(super) fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= SEARCHES_MAX
    }

    /// Counts a comparison of a word in a text with all names; false if the limit is reached.
    pub(super) fn may_compare(&mut self) -> bool {
        self.compared += 1;
        self.compared <= SEARCHES_MAX
    }

    /// Returns the most similar of the author's names, or `None` if no search is left.
    pub(super) fn nearest_name<'k>(&mut self, name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
        if self.may_search() { nearest(name, known) } else { None }
    }

    pub(super) fn inspector(&self) -> &'a dyn Inspector {
        self.inspector
    }

    /// Returns the value at a path of the definition.
    pub(super) fn part(&self, path: &Path) -> Option<&'a Value> {
        self.document.part(path)
    }

    /// Reports a mistake in the source of a function.
    pub(super) fn refuse_source(&mut self, source: &str, complaint: &Complaint, path: &Path) {
        {
            let wrapped = [format!("export default {source}"), format!("export default (input) => {{ {source} }}")];
            let is_function =
                source.contains("=>") || source.trim_start().starts_with("function") || source.contains("async");
            let wrapped = match (is_function, source.trim_start().starts_with("return ")) {
                (true, false) => Some(&wrapped[0]),
                (_, true) => Some(&wrapped[1]),
                _ => None,
            };
            let fixed = wrapped
                .filter(|source| !source.contains("export default export") && self.inspector.source(source).is_ok());
            let fix = fixed.map(|source| Fix::replace(path, source.as_str())).unwrap_or_default();
            self.error(diagnostic::BAD_CODE, path, complaint.message.as_str(), Help::new(complaint.help.as_str(), fix));
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
        share_holders(&mut self.found);
        self.found.extend(self.omitted.diagnostic());
        self.found
    }

    /// Reports a mistake in the value at a path.
    pub(super) fn error(&mut self, code: &'static str, path: &Path, message: impl Into<String>, help: impl Into<Help>) {
        self.push(Severity::Error, code, path, false, message.into(), help.into());
    }

    /// Reports a key that must not be there, at the position of the key.
    pub(super) fn error_at_key(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        help: impl Into<Help>,
    ) {
        self.push(Severity::Error, code, path, true, message.into(), help.into());
    }

    /// Reports a warning about the value at a path.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        help: impl Into<Help>,
    ) {
        self.push(Severity::Warning, code, path, false, message.into(), help.into());
    }

    fn push(&mut self, severity: Severity, code: &'static str, path: &Path, at_key: bool, message: String, help: Help) {
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
        let (message, text, fix) = (plain(&message), plain(&help.text), help.fix.within(self.document));
        self.found_bytes += message.len() + text.len() + path.shown_bytes() + fix.shown_bytes();
        self.found.push(Diagnostic { severity, code, path: path.clone(), place, message, help: text, fix });
    }

    /// Describes the position of a part for a message.
    pub(super) fn place_in_words(&self, path: &Path) -> String {
        self.document.place(path).map_or_else(|| format!("at {path}"), |place| format!("in line {}", place.line))
    }

    /// Reports a missing key.
    pub(super) fn missing(&mut self, fields: &Fields<'_>, key: &str, help: impl Into<Help>) {
        self.missed.insert(fields.path.key(key));
        self.error(diagnostic::MISSING_KEY, &fields.path, format!("`{key}`{IS_MISSING}"), help);
    }

    /// Reports a value of the wrong type.
    pub(super) fn wrong_kind(&mut self, path: &Path, key: &str, wanted: &str, value: &Value) {
        let help = values::of_kind(path, key, wanted, value);
        self.error(diagnostic::WRONG_KIND, path, format!("`{key}` must be {wanted}, not {}", value.kind()), help);
    }

    /// Reports a list item of the wrong type.
    pub(super) fn wrong_item(&mut self, path: &Path, key: &str, wanted: &str, item: &Value) {
        let message = format!("an item of `{key}` must be {wanted}, not {}", item.kind());
        self.error(diagnostic::WRONG_KIND, path, message, values::of_kind(path, key, "text", item));
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
            let help = self.instead_of_blank(fields, key);
            self.error(diagnostic::EMPTY, &fields.path.key(key), format!("`{key}` is blank"), help);
            return None;
        }
        Some(text)
    }

    /// Returns the help for a blank text: an id can be left out in a sequence, other keys need a value.
    fn instead_of_blank(&self, fields: &Fields<'_>, key: &str) -> Help {
        let path = fields.path.key(key);
        let is_optional = key == "id" && self.document.value.get("nodes").is_none() || key == "cwd" || key == "prompt";
        match is_optional {
            true => Help::new("leave it out, or give it a value", Fix::remove(&path)),
            false => "give it a value".into(),
        }
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
            let path = fields.path.key(key);
            let given = value.as_number().map_or(0.0, crate::value::Number::as_double);
            let bound = if given < *least as f64 { least } else { most };
            let help = match super::suggest::adapt::adapted(key, key, value).at_value(&path) {
                Some(help) => help,
                None => format!("write `{bound}` if the bound is meant").into(),
            };
            self.error(diagnostic::WRONG_VALUE, &path, message, help);
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
            None if key == "onError" => Some("write `continue` if the steps after it run all the same".into()),
            None if text.starts_with('@') => Some("write the word: it is settled before anything runs".into()),
            meant => meant.map(|word| Help::value(path, word)),
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
        let help = self.instead_of(path, key, known);
        self.error_at_key(diagnostic::UNKNOWN_KEY, &path.key(key), message, help);
    }

    /// Returns the help for an unknown key, and records the key that it probably was meant to be.
    fn instead_of<'k>(&mut self, path: &Path, key: &str, known: impl Iterator<Item = &'k str> + Clone) -> Help {
        let (at, document) = (path.key(key), self.document);
        let value = document.part(&at).unwrap_or(&Value::Null);
        let listed = known.clone().filter(|known| !OTHER_NAMES.contains(known));
        if rewrite_keys::concerns(key)
            && self.may_search()
            && let Some(help) = rewrite_keys::of_key(path, key, value, document)
        {
            self.meant.extend(help.fix.added().cloned());
            return help;
        }
        if let Some(holder) = foreign::holder(key, known.clone()) {
            // `retries: {maxAttempts: 3}` is the object itself under another name.
            let is_policy = holder == ("retry", "maxAttempts") && key != "maxAttempts" && value.as_map().is_some();
            if is_policy && document.part(&path.key("retry")).is_none() {
                self.meant.insert(path.key("retry"));
                return renamed(&at, key, path, "retry", value);
            }
            let inside = document.part(&path.key("config")).filter(|_| known.clone().any(|known| known == "config"));
            return self.held(path, key, foreign::holder_of_attempts(holder, inside), value);
        }
        let is_free = |meant: &&str| document.part(&path.key(meant)).is_none() && fits(meant, value);
        let synonym = synonym(key, listed.clone()).or_else(|| synonym(key, known.clone()));
        let same = synonym.filter(is_free);
        if let (None, Some(unmatched)) = (same, foreign::unmatched(key)) {
            let fix = if unmatched.is_idle { Fix::remove(&at) } else { Fix::default() };
            return Help::new(unmatched.help, fix);
        }
        let Some(meant) = same.or(synonym).or_else(|| nearest(key, listed.clone())).or_else(|| nearest(key, known))
        else {
            let Some((help, target)) = elsewhere(path, &at, key, document) else { return known_here(listed).into() };
            self.meant.insert(target);
            return help;
        };
        self.meant.insert(path.key(meant));
        let help = renamed(&at, key, path, meant, value);
        if is_free(&meant) { help } else { help.text.into() }
    }

    /// Returns the help for a key that belongs in another object.
    fn held(&mut self, path: &Path, key: &str, (holder, held): (&str, &str), value: &Value) -> Help {
        let inside = path.key(holder);
        let given = self.document.part(&inside);
        let is_free = foreign::can_hold(given) && given.is_none_or(|given| given.get(held).is_none());
        let moved = renamed(&path.key(key), key, &inside, held, value);
        let text = match (&*moved.fix.0, key == held) {
            ([Change::Move { .. }], true) => format!("put it into `{holder}`"),
            ([Change::Move { .. }], false) => format!("put it into `{holder}`, as `{held}`"),
            (_, _) if given.is_none() => {
                moved.text.replacen('`', &format!("`{holder}: {{"), 1).replacen("` ", "}` ", 1)
            }
            _ => format!("put it into `{holder}`: {}", moved.text),
        };
        let text =
            if text.ends_with('`') && text.contains(": {") { format!("{}}}`", &text[..text.len() - 1]) } else { text };
        match moved.fix.is_empty() || !is_free {
            true => text.into(),
            false => Help::new(text, Fix::add(inside, Map::new()).and(moved.fix)),
        }
    }

    /// The definition.
    pub(super) fn document(&self) -> &'a Document {
        self.document
    }

    /// Returns the fix that writes another reference into the text at a path; empty if the text does not contain the
    /// reference once.
    pub(super) fn reworded(&self, path: &Path, reference: &str, meant: &str) -> Fix {
        let (written, meant) = (format!("@{reference}"), format!("@{meant}"));
        match self.document.part(path).and_then(Value::as_text) {
            Some(text) if text.matches(written.as_str()).count() == 1 => {
                Fix::replace(path, text.replace(written.as_str(), &meant).as_str())
            }
            // A condition may leave the `@` out.
            Some(text) if text == reference => Fix::replace(path, meant.as_str()),
            _ => Fix::default(),
        }
    }

    /// True if an unknown key was probably meant to be `key`.
    pub(super) fn is_meant(&self, path: &Path, key: &str) -> bool {
        self.meant.contains(&path.key(key))
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
        let (code, fix) = (diagnostic::TOO_LARGE, Fix::default());
        Some(Diagnostic { severity, code, path, place: None, message, help, fix })
    }
}

/// Gives the diagnostics whose fixes add the same object one fix that does all of it: JSON Patch replaces an object that is
/// there, and each fix would undo the one before.
fn share_holders(found: &mut [Diagnostic]) {
    let mut adding: BTreeMap<Path, Vec<usize>> = BTreeMap::new();
    for (at, found) in found.iter().enumerate() {
        for holder in found.fix.holders() {
            adding.entry(holder.clone()).or_default().push(at);
        }
    }
    for several in adding.into_values().filter(|several| several.len() > 1) {
        let mut all = Fix::default();
        let mut fixes = several.iter().map(|at| &found[*at].fix);
        if several.len() <= SHARED_MAX
            && let Some(first) = fixes.next()
        {
            all = fixes
                .try_fold(first.clone(), |all, fix| Some(all.together(fix)).filter(|all| !all.is_empty()))
                .unwrap_or_default();
        }
        several.iter().for_each(|at| found[*at].fix = all.clone());
    }
}

/// Returns the help for a key of another object of the definition: of the step around it, or of the root.
fn elsewhere(holder: &Path, at: &Path, key: &str, document: &Document) -> Option<(Help, Path)> {
    let name = match holder.segments().last()? {
        Segment::Key(name) => name.as_ref(),
        Segment::Index(_) => "",
    };
    let (target, words) = match name {
        "constraints" if keys::POLICY.contains(&key) => (holder.parent().key("policy"), "put it into `policy`"),
        "policy" if keys::CONSTRAINTS.contains(&key) => {
            (holder.parent().key("constraints"), "put it into `constraints`")
        }
        "retry" | "retryPolicy" if MODIFIERS.contains(&key) => {
            (holder.parent(), "put it beside `retry`, into the step")
        }
        "config" if KINDS.iter().any(|kind| kind.keys.contains(&key)) => {
            (holder.parent(), "put it beside `config`, into the step")
        }
        "" if keys::root(Notation::Sequence).contains(&key) => (Path::root(), "put it at the root of the definition"),
        _ => return None,
    };
    let given = document.part(&target);
    if !foreign::can_hold(given) || given.is_some_and(|given| given.get(key).is_some()) {
        return Some((words.into(), target.key(key)));
    }
    let to = target.key(key);
    let moved = Fix::moved(at, to.clone());
    Some((Help::new(words, Fix::add(target, Map::new()).and(moved)), to))
}

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
