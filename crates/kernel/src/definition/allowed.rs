//! The codes of warnings that a definition accepts, and the places at which it does.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use crate::{
    diagnostic::{self, Diagnostic, Severity},
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
    /// Adds a code that the object at a path accepts. False if it was added before.
    pub(super) fn add(&mut self, code: &'static str, holder: &Path) -> bool {
        self.holders.entry(code).or_default().insert(holder.clone())
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
        // Another place knows other names, and a server more than the compiler: an entry for one of their warnings may be
        // used there.
        let is_of_elsewhere =
            |code: &&str| diagnostic::OF_SERVERS.contains(code) || diagnostic::OF_PLACES.contains(code);
        let own = self.holders.iter().filter(|(code, _)| !is_of_elsewhere(code));
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
