//! `allow`: the codes of warnings that an author accepts, for the whole definition or for one step and the steps inside it.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::ToString,
    vec::Vec,
};

use super::{
    fields::Fields,
    outline::Outline,
    report::{Report, named},
    suggest::nearest::nearest,
};
use crate::{
    diagnostic::{self, Diagnostic, Severity, WARNINGS, quoted},
    document::{Path, Segment},
    value::Value,
};

/// The keys whose lists hold steps. A step has such a list around it, so `allow` in other data is never read.
const STEP_LISTS: [&str; 5] = ["steps", "nodes", "then", "else", "finally"];

/// The accepted codes with the paths of the objects that accept them.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    holders: BTreeMap<&'static str, BTreeSet<Path>>,
}

impl Allowed {
    /// Reads `allow` at the root and at each step.
    pub(super) fn read(root: &Fields<'_>, outline: &Outline<'_>, report: &mut Report<'_>) -> Self {
        let mut allowed = Self::default();
        allowed.add(root, report);
        for entry in outline.entries.iter().filter(|entry| entry.is_first()) {
            allowed.add(&entry.fields, report);
        }
        allowed
    }

    fn add(&mut self, fields: &Fields<'_>, report: &mut Report<'_>) {
        let path = fields.path.key("allow");
        for (at, item) in report.list(fields, "allow").unwrap_or_default().iter().enumerate() {
            let path = path.index(at);
            let Some(word) = item.as_text() else {
                report.wrong_item(&path, "allow", "the code of a warning", item);
                continue;
            };
            match WARNINGS.into_iter().find(|code| *code == word) {
                None => refuse(word, &path, report),
                Some(code) => {
                    if !self.holders.entry(code).or_default().insert(fields.path.clone()) {
                        let message = format!("{} stands in `allow` twice", named(word));
                        report.error(diagnostic::WRONG_VALUE, &path, message, "keep one of them");
                    }
                }
            }
        }
    }

    /// Removes the accepted warnings from `found`, and returns each entry of `allow` that accepted none.
    pub(super) fn apply(&self, found: &mut Vec<Diagnostic>) -> Vec<(Path, &'static str)> {
        if self.holders.is_empty() {
            return Vec::new();
        }
        let mut used: BTreeSet<(Path, &'static str)> = BTreeSet::new();
        found.retain(|warning| {
            let holders = self.holders.get(warning.code).filter(|_| warning.severity == Severity::Warning);
            let holder = holders.and_then(|holders| ways_up(&warning.path).find(|path| holders.contains(path)));
            used.extend(holder.clone().map(|holder| (holder, warning.code)));
            holder.is_none()
        });
        // A server knows more than the compiler, so an entry for one of its warnings may be used there.
        let own = self.holders.iter().filter(|(code, _)| !diagnostic::OF_SERVERS.contains(code));
        let all = own.flat_map(|(code, holders)| holders.iter().map(|holder| (holder.clone(), *code)));
        all.filter(|entry| !used.contains(entry)).collect()
    }
}

/// Returns a path and the paths above it, innermost first.
fn ways_up(path: &Path) -> impl Iterator<Item = Path> {
    let segments = path.segments();
    (0..=segments.len()).rev().map(|length| {
        segments[..length].iter().fold(Path::root(), |path, segment| match segment {
            Segment::Key(key) => path.key(key),
            Segment::Index(index) => path.index(*index),
        })
    })
}

fn refuse(word: &str, path: &Path, report: &mut Report<'_>) {
    let is_error = diagnostic::CODES.contains(&word);
    let message = match is_error {
        true => format!("{} is the code of an error, which a definition cannot allow", quoted(word)),
        false => format!("`allow` takes codes of warnings, not {}", quoted(word)),
    };
    let help = match nearest(word, WARNINGS.into_iter()).filter(|_| !is_error) {
        Some(code) => format!("write {}", quoted(code)),
        None if is_error => "take it out, and correct the mistake".to_string(),
        None => format!("the codes of warnings are: {}", WARNINGS.join(", ")),
    };
    report.error(diagnostic::WRONG_VALUE, path, message, help);
}

/// True if the definition accepts a warning at a path, at its root or at a step around the path. For checks outside of the
/// compiler.
pub fn is_allowed(definition: &Value, path: &Path, code: &str) -> bool {
    let holds = |object: &Value| {
        let codes = object.get("allow").and_then(Value::as_list).unwrap_or_default();
        codes.iter().any(|item| item.as_text() == Some(code))
    };
    let (mut value, mut key) = (definition, "");
    if holds(value) {
        return true;
    }
    for segment in path.segments() {
        let (inner, is_step) = match segment {
            Segment::Key(name) => {
                key = name;
                (value.get(name), false)
            }
            Segment::Index(at) => (value.as_list().and_then(|items| items.get(*at)), STEP_LISTS.contains(&key)),
        };
        let Some(inner) = inner else { return false };
        if is_step && holds(inner) {
            return true;
        }
        value = inner;
    }
    false
}
