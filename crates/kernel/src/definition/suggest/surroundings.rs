//! The place of a key in its definition: whether it is in a step or at the root, and the other steps.

use alloc::{string::String, vec::Vec};

use super::foreign::same;
use crate::{
    definition::step_types::Kind,
    document::{Document, Path, Segment},
    value::{Map, Value},
};

/// Keys whose lists hold steps.
const STEP_LISTS: [&str; 5] = ["steps", "nodes", "then", "else", "finally"];

/// The number of steps that one fix changes at most.
const CHANGED_STEPS_MAX: usize = 100;

/// A step in its list.
pub(super) struct Located<'d> {
    pub list: Path,
    /// One of [`STEP_LISTS`].
    pub list_key: String,
    /// The index of the step.
    pub at: usize,
    /// All items of the list.
    pub items: &'d [Value],
    /// The fields of the step.
    pub step: &'d Map,
}

impl<'d> Located<'d> {
    /// Returns the step at a path, or `None` if no step is there.
    pub(super) fn of(path: &Path, document: &'d Document) -> Option<Self> {
        let [.., Segment::Key(list_key), Segment::Index(at)] = path.segments() else { return None };
        let list = path.parent();
        let items = document.part(&list)?.as_list().filter(|_| STEP_LISTS.contains(&&**list_key))?;
        let step = items.get(*at)?.as_map()?;
        Some(Self { list, list_key: list_key.as_ref().into(), at: *at, items, step })
    }

    pub(super) fn path(&self) -> Path {
        self.list.index(self.at)
    }

    pub(super) fn id(&self) -> Option<&'d str> {
        self.step.get("id").and_then(Value::as_text)
    }

    /// True for a step of the outermost list.
    pub(super) fn is_outermost(&self) -> bool {
        self.list.segments().len() == 1 && self.list_key != "finally"
    }
}

/// True if the steps run in the order in which they are written.
pub(super) fn is_sequence(document: &Document) -> bool {
    let steps = document.value.get("steps").and_then(Value::as_list).unwrap_or_default();
    document.value.get("nodes").is_none()
        && ["edges", "order"].iter().all(|key| document.value.get(key).is_none())
        && steps.iter().all(|step| step.get("action").is_none())
}

/// Returns the paths of all steps that a test accepts, or `None` if there are none or too many for one fix.
pub(super) fn steps(document: &Document, accepts: impl Fn(&Map) -> bool) -> Option<Vec<Path>> {
    let mut found = Vec::new();
    let is_small = walk(&document.value, &Path::root(), &accepts, &mut found);
    (is_small && !found.is_empty()).then_some(found)
}

fn walk(holder: &Value, path: &Path, accepts: &impl Fn(&Map) -> bool, found: &mut Vec<Path>) -> bool {
    STEP_LISTS.iter().all(|key| {
        let steps = holder.get(key).and_then(Value::as_list).unwrap_or_default();
        steps.iter().enumerate().all(|(at, step)| {
            let path = path.key(key).index(at);
            if step.as_map().is_some_and(accepts) {
                found.push(path.clone());
            }
            found.len() <= CHANGED_STEPS_MAX && walk(step, &path, accepts, found)
        })
    })
}

/// True if the type of a step takes a key.
pub(super) fn takes(step: &Map, key: &str) -> bool {
    let kind = step.get("type").and_then(Value::as_text).and_then(Kind::of);
    kind.is_some_and(|kind| kind.takes(key) || kind.keys.contains(&key))
}

/// True if a word is one of some words in any spelling.
pub(super) fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| same(word, other))
}

/// Returns the items of a list, or one value as a list.
pub(super) fn one_or_more(value: &Value) -> &[Value] {
    value.as_list().unwrap_or(core::slice::from_ref(value))
}

/// Returns the texts of a list, or of one text. `None` if something else is among them.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    one_or_more(value).iter().map(Value::as_text).collect()
}
