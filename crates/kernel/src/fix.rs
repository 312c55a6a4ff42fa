//! Changes that correct a definition, as a JSON Patch (RFC 6902).
//!
//! A diagnostic has a fix only if its help names one change. Nothing applies a fix by itself: an editor or a program
//! does, when its user asks for it. A fix is made for the definition as it was read: its `test` operations fail where
//! another fix has changed what it was made for.

use alloc::{
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    document::{Document, Path, Segment},
    value::{Map, Value},
};

/// The changes that a diagnostic suggests, in the order in which they are applied. Empty if there is no single one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fix(pub Box<[Change]>);

/// One operation of a JSON Patch.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sets a field that is missing, or inserts an item into a list. An empty object or list is added only where there
    /// is none yet, so that the fixes of several diagnostics can share it.
    Add {
        /// The new part.
        path: Path,
        /// Any JSON value.
        value: Value,
    },
    /// Removes a part.
    Remove {
        /// The part.
        path: Path,
    },
    /// Replaces a part.
    Replace {
        /// The part.
        path: Path,
        /// Its new value.
        value: Value,
    },
    /// Moves a part. A key is renamed by a move within its object.
    Move {
        /// The part.
        from: Path,
        /// The place where it belongs.
        path: Path,
    },
    /// Requires that a part is as it was read, so that a fix that no longer fits changes nothing.
    Test {
        /// The part.
        path: Path,
        /// The value that the part must have.
        value: Value,
    },
}

/// The maximum size of a value that is tested whole, in bytes. A larger object is tested by its name alone.
const TESTED_BYTES_MAX: usize = 256;

/// The maximum number of elements in a tested value, so that its size is cheap to find.
const TESTED_ELEMENTS_MAX: usize = 16;

impl Fix {
    /// Renames the key at a path.
    pub(crate) fn rename(path: &Path, key: &str) -> Self {
        Self::moved(path, path.parent().key(key))
    }

    /// Moves a part.
    pub(crate) fn moved(from: &Path, path: Path) -> Self {
        Self([Change::Move { from: from.clone(), path }].into())
    }

    /// Replaces the value at a path.
    pub(crate) fn replace(path: &Path, value: impl Into<Value>) -> Self {
        Self([Change::Replace { path: path.clone(), value: value.into() }].into())
    }

    /// Adds a field or an item.
    pub(crate) fn add(path: Path, value: impl Into<Value>) -> Self {
        Self([Change::Add { path, value: value.into() }].into())
    }

    /// Removes a part.
    pub(crate) fn remove(path: &Path) -> Self {
        Self([Change::Remove { path: path.clone() }].into())
    }

    /// Applies another fix after this one.
    pub(crate) fn and(self, next: Self) -> Self {
        Self(self.0.into_iter().chain(next.0).collect())
    }

    /// Leaves out objects and lists that the definition has, which RFC 6902 would replace. A fix that writes over a key is empty.
    pub(crate) fn within(self, document: &Document) -> Self {
        let is_needed = |change: &Change| match change {
            Change::Add { path, value } => !document.part(path).is_some_and(|given| holds(given, value)),
            _ => true,
        };
        let changes: Box<[Change]> = self.0.into_iter().filter(is_needed).collect();
        let (mut written, mut gone): (Vec<&Path>, Vec<&Path>) = (Vec::new(), Vec::new());
        for change in &changes {
            let to = match change {
                Change::Add { path, .. } => path,
                Change::Move { from, path } => {
                    gone.push(from);
                    path
                }
                Change::Remove { path } => {
                    gone.push(path);
                    continue;
                }
                Change::Replace { .. } | Change::Test { .. } => continue,
            };
            let is_taken = document.part(to).is_some() && !gone.contains(&to);
            if matches!(to.segments().last(), Some(Segment::Key(_))) && (is_taken || written.contains(&to)) {
                return Self::default();
            }
            written.push(to);
        }
        Self(tests(&changes, document).into_iter().chain(changes).collect())
    }

    /// Returns the paths of the holders that the fix adds, empty objects into which it puts something.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|change| match change {
            Change::Add { path, value: Value::Map(map) } if map.is_empty() => Some(path),
            _ => None,
        })
    }

    /// Does what both fixes do. Empty if they do not go together: one of them writes or takes what the other one does.
    pub(crate) fn together(&self, other: &Self) -> Self {
        let (of_tests, of_changes): (Vec<&Change>, Vec<&Change>) =
            self.0.iter().chain(other.0.iter()).partition(|change| matches!(change, Change::Test { .. }));
        let mut all: Vec<Change> = Vec::new();
        for change in of_tests.into_iter().chain(of_changes) {
            let is_holder = matches!(change, Change::Add { value: Value::Map(map), .. } if map.is_empty());
            let is_same = |given: &Change| {
                given.path() == change.path() || given.from().is_some_and(|from| Some(from) == change.from())
            };
            match all.iter().any(|given| given == change) {
                true if is_holder || matches!(change, Change::Test { .. }) => {}
                false if matches!(change, Change::Test { .. }) || !all.iter().any(is_same) => all.push(change.clone()),
                _ => return Self::default(),
            }
        }
        Self(all.into())
    }

    /// Returns the paths of the parts that the fix adds.
    pub(crate) fn added(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|change| match change {
            Change::Add { path, .. } | Change::Move { path, .. } => Some(path),
            Change::Remove { .. } | Change::Replace { .. } | Change::Test { .. } => None,
        })
    }

    /// True if no change is suggested.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies the changes to a definition. Returns `None` if it has no such parts, as after another fix.
    pub fn apply(&self, definition: &Value) -> Option<Value> {
        let mut value = definition.clone();
        for change in self.0.iter() {
            change.apply(&mut value)?;
        }
        Some(value)
    }

    /// Returns the operations in the form of a JSON Patch.
    pub fn to_value(&self) -> Value {
        Value::List(self.0.iter().map(Change::to_value).collect())
    }

    /// Returns the approximate size of the fix in output, in bytes.
    pub(crate) fn shown_bytes(&self) -> usize {
        let bytes = |change: &Change| match change {
            Change::Add { path, value } | Change::Replace { path, value } | Change::Test { path, value } => {
                path.shown_bytes() + crate::json::compact(value).len()
            }
            Change::Remove { path } => path.shown_bytes(),
            Change::Move { from, path } => from.shown_bytes() + path.shown_bytes(),
        };
        self.0.iter().map(bytes).sum()
    }
}

impl Change {
    /// The part that is written, removed or tested.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Add { path, .. } | Self::Remove { path } | Self::Replace { path, .. } | Self::Move { path, .. } => {
                Some(path)
            }
            Self::Test { .. } => None,
        }
    }

    /// The part that is taken away from its place.
    fn from(&self) -> Option<&Path> {
        match self {
            Self::Move { from, .. } | Self::Remove { path: from } => Some(from),
            _ => None,
        }
    }

    fn apply(&self, root: &mut Value) -> Option<()> {
        match self {
            Self::Add { path, value } => match part(root, path) {
                Some(given) if holds(given, value) => Some(()),
                _ => insert(root, path, value.clone()),
            },
            Self::Remove { path } => take(root, path).map(drop),
            Self::Replace { path, value } => {
                *part(root, path)? = value.clone();
                Some(())
            }
            Self::Move { from, path } => {
                let value = take(root, from)?;
                insert(root, path, value)
            }
            Self::Test { path, value } => (part(root, path)? == value).then_some(()),
        }
    }

    fn to_value(&self) -> Value {
        let (word, path) = match self {
            Self::Add { path, .. } => ("add", path),
            Self::Remove { path } => ("remove", path),
            Self::Replace { path, .. } => ("replace", path),
            Self::Move { path, .. } => ("move", path),
            Self::Test { path, .. } => ("test", path),
        };
        let mut operation = Map::new();
        operation.insert("op".into(), word.into());
        operation.insert("path".into(), path.pointer().into());
        match self {
            Self::Add { value, .. } | Self::Replace { value, .. } | Self::Test { value, .. } => {
                operation.insert("value".into(), value.clone());
            }
            Self::Move { from, .. } => {
                operation.insert("from".into(), from.pointer().into());
            }
            Self::Remove { .. } => {}
        }
        Value::Map(operation)
    }
}

/// Returns the tests that belong before some changes: each part that is replaced, removed or moved is as it was read, and
/// an item of a list into which something is added is the same one.
fn tests(changes: &[Change], document: &Document) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    for change in changes {
        let test = match change {
            Change::Remove { path } | Change::Replace { path, .. } | Change::Move { from: path, .. } => {
                tested(path, document)
            }
            Change::Add { path, .. } => named_item(path, document),
            Change::Test { .. } => None,
        };
        found.extend(test.filter(|test| !found.contains(test)));
    }
    found
}

/// Returns the test of a part: of its whole value, or of its name if it is large.
fn tested(path: &Path, document: &Document) -> Option<Change> {
    let value = document.part(path)?;
    if elements(value) <= TESTED_ELEMENTS_MAX && crate::json::compact(value).len() <= TESTED_BYTES_MAX {
        return Some(Change::Test { path: path.clone(), value: value.clone() });
    }
    test_of_name(path, document).or_else(|| named_item(path, document))
}

/// Returns the test of the name of the innermost list item above a path.
fn named_item(path: &Path, document: &Document) -> Option<Change> {
    let above =
        core::iter::successors(Some(path.parent()), |path| (!path.segments().is_empty()).then(|| path.parent()));
    let item = above.into_iter().find(|path| matches!(path.segments().last(), Some(Segment::Index(_))))?;
    test_of_name(&item, document)
}

fn test_of_name(path: &Path, document: &Document) -> Option<Change> {
    let named = |key: &str| {
        let path = path.key(key);
        let value = document.part(&path)?.as_text().filter(|name| name.len() <= TESTED_BYTES_MAX)?;
        Some(Change::Test { value: value.into(), path })
    };
    ["id", "name"].into_iter().find_map(named)
}

/// Counts the elements of a value, and stops where the number is too large to be tested.
fn elements(value: &Value) -> usize {
    let all = |values: &mut dyn Iterator<Item = &Value>| {
        let mut count = 1;
        for value in values {
            count += elements(value);
            if count > TESTED_ELEMENTS_MAX {
                break;
            }
        }
        count
    };
    match value {
        Value::List(items) => all(&mut items.iter()),
        Value::Map(map) => all(&mut map.values()),
        _ => 1,
    }
}

/// True if a part is the object or the list that an empty one would make.
fn holds(given: &Value, empty: &Value) -> bool {
    match (given, empty) {
        (Value::Map(_), Value::Map(map)) => map.is_empty(),
        (Value::List(_), Value::List(items)) => items.is_empty(),
        _ => false,
    }
}

fn part<'v>(root: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.segments().iter().try_fold(root, |value, segment| match (value, segment) {
        (Value::Map(map), Segment::Key(key)) => map.get_mut(&**key),
        (Value::List(items), Segment::Index(index)) => items.get_mut(*index),
        _ => None,
    })
}

fn insert(root: &mut Value, path: &Path, value: Value) -> Option<()> {
    let Some(last) = path.segments().last() else {
        *root = value;
        return Some(());
    };
    match (part(root, &path.parent())?, last) {
        (Value::Map(map), Segment::Key(key)) => drop(map.insert(key.to_string(), value)),
        (Value::List(items), Segment::Index(index)) if *index <= items.len() => items.insert(*index, value),
        _ => return None,
    }
    Some(())
}

fn take(root: &mut Value, path: &Path) -> Option<Value> {
    let Some(last) = path.segments().last() else { return Some(core::mem::replace(root, Value::Null)) };
    match (part(root, &path.parent())?, last) {
        (Value::Map(map), Segment::Key(key)) => map.remove(&**key),
        (Value::List(items), Segment::Index(index)) if *index < items.len() => Some(items.remove(*index)),
        _ => None,
    }
}

impl Path {
    /// Returns the path as a JSON Pointer (RFC 6901).
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for segment in self.segments() {
            out.push('/');
            match segment {
                Segment::Index(index) => out.push_str(&index.to_string()),
                Segment::Key(key) => out.push_str(&key.replace('~', "~0").replace('/', "~1")),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use alloc::format;

    fn check(before: &str, fix: &Fix, after: Option<&str>) {
        let before = json::value(before.as_bytes()).expect("JSON");
        assert_eq!(fix.apply(&before).map(|value| json::compact(&value)).as_deref(), after);
    }

    #[test]
    fn changes_are_applied_in_order() {
        let step = Path::root().key("steps").index(0);
        let definition = r#"{"steps":[{"run":"ls"},{"id":"b"}]}"#;
        check(
            definition,
            &Fix::rename(&step.key("run"), "command"),
            Some(r#"{"steps":[{"command":"ls"},{"id":"b"}]}"#),
        );
        check(definition, &Fix::replace(&step.key("run"), true), Some(r#"{"steps":[{"run":true},{"id":"b"}]}"#));
        check(definition, &Fix::remove(&step), Some(r#"{"steps":[{"id":"b"}]}"#));
        check(definition, &Fix::add(step.clone(), "x"), Some(r#"{"steps":["x",{"run":"ls"},{"id":"b"}]}"#));
        check(definition, &Fix::rename(&step.key("walk"), "command"), None);
        check(definition, &Fix::moved(&Path::root(), Path::root().key("a")), None);
    }

    #[test]
    fn a_missing_parent_is_added_once() {
        let root = Path::root();
        let holder = root.key("constraints");
        let into = |key: &str| Fix::add(holder.clone(), Map::new()).and(Fix::moved(&root.key(key), holder.key(key)));
        let both = into("maxSteps").and(into("timeoutMs"));
        check(r#"{"maxSteps":1,"timeoutMs":2}"#, &both, Some(r#"{"constraints":{"maxSteps":1,"timeoutMs":2}}"#));
    }

    #[test]
    fn a_fix_keeps_existing_content() {
        let root = Path::root();
        let within = |text: &str, fix: Fix| {
            let document = Document::placeless(json::value(text.as_bytes()).expect("JSON"));
            json::compact(&fix.within(&document).to_value())
        };
        let holder = root.key("policy");
        let into = || Fix::add(holder.clone(), Map::new()).and(Fix::moved(&root.key("a"), holder.key("a")));
        // RFC 6902, 4.1: `add` replaces a member that exists.
        let moved = r#"[{"op":"test","path":"/a","value":1},{"from":"/a","op":"move","path":"/policy/a"}]"#;
        assert_eq!(within(r#"{"a":1,"policy":{"b":2}}"#, into()), moved);
        assert_eq!(within(r#"{"a":1}"#, into()).matches("\"add\"").count(), 1);
        // Nothing is written over.
        assert_eq!(within(r#"{"a":1,"policy":{"a":2}}"#, into()), "[]");
        let renamed = |from: &str| Fix::rename(&root.key(from), "command");
        assert_eq!(within(r#"{"cmd":1,"command":2}"#, renamed("cmd")), "[]");
        assert_eq!(within(r#"{"cmd":1,"script":2}"#, renamed("cmd").and(renamed("script"))), "[]");
        let swapped = Fix::remove(&root.key("command")).and(renamed("cmd"));
        assert_ne!(within(r#"{"cmd":1,"command":2}"#, swapped), "[]", "it says that it removes the other");
        assert_ne!(within(r#"[1]"#, Fix::add(root.index(0), "x")), "[]", "an item is inserted before");
    }

    #[test]
    fn a_fix_for_another_definition_changes_nothing() {
        let steps = Path::root().key("steps");
        let within = |text: &str, fix: Fix| {
            let document = Document::placeless(json::value(text.as_bytes()).expect("JSON"));
            (fix.within(&document), document.value)
        };
        let text = r#"{"steps":[{"id":"a","cmd":1},{"id":"b","cmd":1}]}"#;
        let (renamed, _) = within(text, Fix::rename(&steps.index(1).key("cmd"), "command"));
        let (added, _) = within(text, Fix::add(steps.index(1).key("when"), true));
        let (moved, value) = within(text, Fix::moved(&steps.index(1), steps.index(0)));
        assert!(renamed.apply(&value).is_some() && added.apply(&value).is_some());
        let after = moved.apply(&value).expect("it fits");
        assert_eq!(json::compact(&after), r#"{"steps":[{"cmd":1,"id":"b"},{"cmd":1,"id":"a"}]}"#);
        assert_eq!((added.apply(&after), moved.apply(&after)), (None, None));
        let large =
            format!(r#"{{"steps":[{{"id":"a","cmd":1}},{{"id":"b","cmd":"{}"}}]}}"#, "x".repeat(TESTED_BYTES_MAX));
        let (renamed, value) = within(&large, Fix::rename(&steps.index(1).key("cmd"), "command"));
        assert!(json::compact(&renamed.to_value()).len() < TESTED_BYTES_MAX, "{renamed:?}");
        let after = moved.apply(&value);
        assert_eq!(after, None, "the step is another one");
        assert!(renamed.apply(&value).is_some());
    }

    #[test]
    fn fixes_into_one_parent_are_combined() {
        let root = Path::root();
        let holder = root.key("retry");
        let into = |key: &str| Fix::add(holder.clone(), Map::new()).and(Fix::moved(&root.key(key), holder.key(key)));
        let both = into("a").together(&into("b"));
        check(r#"{"a":1,"b":2}"#, &both, Some(r#"{"retry":{"a":1,"b":2}}"#));
        let twice =
            into("a").together(&Fix::add(holder.clone(), Map::new()).and(Fix::moved(&root.key("b"), holder.key("a"))));
        assert!(twice.is_empty(), "{twice:?}");
        assert!(into("a").together(&Fix::remove(&root.key("a"))).is_empty());
    }

    #[test]
    fn the_form_is_a_json_patch() {
        let fix = Fix::rename(&Path::root().key("a/b").index(2).key("~"), "c");
        assert_eq!(json::compact(&fix.to_value()), r#"[{"from":"/a~1b/2/~0","op":"move","path":"/a~1b/2/c"}]"#);
    }
}
