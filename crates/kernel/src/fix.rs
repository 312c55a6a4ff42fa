//! Changes that correct a definition, as a JSON Patch (RFC 6902).
//!
//! A diagnostic has a fix only if its help names one change. Nothing applies a fix by itself: an editor or a program
//! does, when its user asks for it.

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
}

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
                Change::Replace { .. } => continue,
            };
            let is_taken = document.part(to).is_some() && !gone.contains(&to);
            if matches!(to.segments().last(), Some(Segment::Key(_))) && (is_taken || written.contains(&to)) {
                return Self::default();
            }
            written.push(to);
        }
        Self(changes)
    }

    /// Returns the paths of the parts that the fix adds.
    pub(crate) fn added(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|change| match change {
            Change::Add { path, .. } | Change::Move { path, .. } => Some(path),
            Change::Remove { .. } | Change::Replace { .. } => None,
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
            Change::Add { path, value } | Change::Replace { path, value } => {
                path.shown_bytes() + crate::json::compact(value).len()
            }
            Change::Remove { path } => path.shown_bytes(),
            Change::Move { from, path } => from.shown_bytes() + path.shown_bytes(),
        };
        self.0.iter().map(bytes).sum()
    }
}

impl Change {
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
        }
    }

    fn to_value(&self) -> Value {
        let (word, path) = match self {
            Self::Add { path, .. } => ("add", path),
            Self::Remove { path } => ("remove", path),
            Self::Replace { path, .. } => ("replace", path),
            Self::Move { path, .. } => ("move", path),
        };
        let mut operation = Map::new();
        operation.insert("op".into(), word.into());
        operation.insert("path".into(), path.pointer().into());
        match self {
            Self::Add { value, .. } | Self::Replace { value, .. } => {
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
    fn a_holder_is_added_once() {
        let root = Path::root();
        let holder = root.key("constraints");
        let into = |key: &str| Fix::add(holder.clone(), Map::new()).and(Fix::moved(&root.key(key), holder.key(key)));
        let both = into("maxSteps").and(into("timeoutMs"));
        check(r#"{"maxSteps":1,"timeoutMs":2}"#, &both, Some(r#"{"constraints":{"maxSteps":1,"timeoutMs":2}}"#));
    }

    #[test]
    fn a_fix_keeps_what_the_definition_has() {
        let root = Path::root();
        let within = |text: &str, fix: Fix| {
            let document = Document::placeless(json::value(text.as_bytes()).expect("JSON"));
            json::compact(&fix.within(&document).to_value())
        };
        let holder = root.key("policy");
        let into = || Fix::add(holder.clone(), Map::new()).and(Fix::moved(&root.key("a"), holder.key("a")));
        // RFC 6902, 4.1: `add` replaces a member that exists.
        let moved = r#"[{"from":"/a","op":"move","path":"/policy/a"}]"#;
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
    fn the_form_is_a_json_patch() {
        let fix = Fix::rename(&Path::root().key("a/b").index(2).key("~"), "c");
        assert_eq!(json::compact(&fix.to_value()), r#"[{"from":"/a~1b/2/~0","op":"move","path":"/a~1b/2/c"}]"#);
    }
}
