//! The definition that an outline describes, for questions about shapes in text that does not parse.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{
    document::{Document, Path},
    json,
    value::{Map, Value},
};

use super::{
    objects::{is_step, steps},
    outline::Outline,
    references::references,
};

/// The lists of steps at the root.
const LISTS: [&str; 3] = ["steps", "nodes", "finally"];

/// Returns the part of the data of an outline that decides about the value of a reference at a byte, with the path of the
/// step there: of the outermost steps those around the byte, the one with the name at the start of the reference, and those
/// to which these refer in turn. A file may have thousands of steps.
pub(super) fn document_of(text: &str, outline: &Outline, offset: usize, reference: &str) -> (Document, Path) {
    let items = Items::of(outline);
    let kept = items.needed(text, outline, offset, reference);
    let is_kept = |at: usize| match items.of[at] {
        Some(item) => kept.contains(&item),
        None => true,
    };
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); outline.entries.len()];
    let mut outermost = Vec::new();
    for (at, entry) in outline.entries.iter().enumerate().filter(|(at, _)| is_kept(*at)) {
        match entry.parent {
            Some(parent) => inside[parent].push(at),
            None => outermost.push(at),
        }
    }
    let document = Document::placeless(holder(text, outline, &inside, &outermost));
    (document, step_path(outline, offset, &is_kept))
}

/// The outermost step of each entry.
struct Items {
    of: Vec<Option<usize>>,
}

impl Items {
    fn of(outline: &Outline) -> Self {
        let mut of: Vec<Option<usize>> = Vec::with_capacity(outline.entries.len());
        for (at, entry) in outline.entries.iter().enumerate() {
            // Entries follow their parents.
            of.push(entry.parent.and_then(|parent| match &outline.entries[parent] {
                list if list.parent.is_none() && list.key.as_deref().is_some_and(|key| LISTS.contains(&key)) => {
                    Some(at)
                }
                _ => of[parent],
            }));
        }
        Self { of }
    }

    /// Returns the outermost steps that decide about a reference at a byte.
    fn needed(&self, text: &str, outline: &Outline, offset: usize, reference: &str) -> BTreeSet<usize> {
        let innermost = outline.entries.iter().rposition(|entry| entry.key_at.start <= offset);
        let at_cursor = innermost.and_then(|at| self.of[at]);
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        for step in steps(outline) {
            owners.extend(step.entry.parent.and_then(|parent| self.of[parent]).map(|item| (step.name, item)));
        }
        let mut named: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        let (all, mut entry) = (references(text, outline), 0);
        for found in &all {
            while outline.entries.get(entry + 1).is_some_and(|next| next.key_at.start <= found.name.start) {
                entry += 1;
            }
            if let Some(item) = self.of.get(entry).copied().flatten() {
                named.entry(item).or_default().push(&text[found.name.clone()]);
            }
        }
        let (mut needed, mut left) = (BTreeSet::new(), Vec::new());
        let root = reference.split(['.', '[']).next().unwrap_or_default();
        left.extend(at_cursor.into_iter().chain(owners.get(root).copied()));
        let mut variables = Some(()).filter(|()| root == "vars");
        loop {
            // Steps set variables without being named.
            if variables.take().is_some() {
                let setters = outline.entries.iter().enumerate();
                let setters = setters.filter(|(_, entry)| entry.key.as_deref() == Some("outputVariable"));
                left.extend(setters.filter_map(|(at, _)| self.of[at]));
            }
            let Some(item) = left.pop() else { return needed };
            if needed.insert(item) {
                let names = named.get(&item).into_iter().flatten();
                for name in names {
                    left.extend(owners.get(name).copied());
                    variables = variables.or(Some(()).filter(|()| *name == "vars"));
                }
            }
        }
    }
}

/// Returns the list or the object of some entries. The outline bounds their nesting.
fn holder(text: &str, outline: &Outline, inside: &[Vec<usize>], entries: &[usize]) -> Value {
    let value = |at: usize| {
        let entry = &outline.entries[at];
        match (&entry.scalar, inside[at].as_slice()) {
            (Some(scalar), _) => scalar_of(text, scalar, entry.value_at.start),
            (None, []) => Value::Null,
            (None, parts) => holder(text, outline, inside, parts),
        }
    };
    if entries.iter().all(|at| outline.entries[*at].key.is_none()) {
        return entries.iter().map(|at| value(*at)).collect::<Vec<_>>().into();
    }
    let fields = entries.iter().filter_map(|at| Some((outline.entries[*at].key.clone()?, value(*at))));
    fields.collect::<Map>().into()
}

fn scalar_of(text: &str, scalar: &str, start: usize) -> Value {
    let is_quoted = text[..start].ends_with(['"', '\'']);
    let plain =
        json::value(scalar.as_bytes()).ok().filter(|value| value.as_list().is_none() && value.as_map().is_none());
    plain.filter(|_| !is_quoted).unwrap_or_else(|| scalar.into())
}

/// Returns the path of the step around a byte among the kept entries; the root if there is none.
fn step_path(outline: &Outline, offset: usize, is_kept: &dyn Fn(usize) -> bool) -> Path {
    let innermost = outline.entries.iter().rposition(|entry| entry.key_at.start <= offset);
    let around = std::iter::successors(innermost, |at| outline.entries[*at].parent);
    let mut way: Vec<usize> = around.skip_while(|at| !is_step(outline, *at)).collect();
    way.reverse();
    way.into_iter().fold(Path::root(), |path, at| match &outline.entries[at].key {
        Some(key) => path.key(key),
        None => {
            let parent = outline.entries[at].parent;
            let before = outline.entries[..at].iter().enumerate();
            path.index(before.filter(|(at, entry)| entry.parent == parent && is_kept(*at)).count())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_places() {
        let text = "steps:\n  - id: a\n    wait: false\n    env: {X: \"1\", Y: 2}\n  - id: b\n    steps:\n      - env: {X: \"@item.\n";
        let outline = Outline::read(text);
        let (document, path) = document_of(text, &outline, text.len(), "a");
        let value = json::compact(&document.value);
        assert!(
            value.starts_with(r#"{"steps":[{"env":{"X":"1","Y":2},"id":"a","wait":false},{"id":"b","steps":[{"#),
            "{value}"
        );
        assert_eq!(path.to_string(), "steps[1].steps[0]");
        let path_at = |offset| document_of(text, &outline, offset, "b").1.to_string();
        assert_eq!(path_at(text.find("wait").unwrap_or_default()), "steps[0]");
        assert_eq!(document_of(text, &outline, 0, "b").1, Path::root());
    }

    #[test]
    fn only_the_steps_that_decide_about_a_reference_are_read() {
        let step = |id: &str, command: &str| format!("  - {{id: {id}, type: bash, command: \"{command}\"}}\n");
        let others =
            |from: usize| (from..from + 20).map(|number| step(&format!("s{number}"), "ls")).collect::<String>();
        let check = |last: &str, reference: &str, expected: &[&str]| {
            let mut text = format!("name: x\nsteps:\n{}{}", others(0), step("list", "echo @first.stdout"));
            text += &format!("{}{}", others(20), step("first", "ls"));
            text += "  - {id: set, type: bash, command: ls, outputVariable: v}\n";
            let offset = text.len() + last.len();
            text += &format!("{last}\"}}\n{}", others(40));
            let (document, path) = document_of(&text, &Outline::read(&text), offset, reference);
            let kept = document.value.get("steps").and_then(Value::as_list).unwrap_or_default();
            let ids: Vec<&str> = kept.iter().filter_map(|step| step.get("id")?.as_text()).collect();
            assert_eq!(ids, expected, "{last}");
            assert_eq!(path.to_string(), format!("steps[{}]", expected.len() - 1), "{last}");
        };
        check("  - {id: last, command: \"@list.", "list", &["list", "first", "last"]);
        check("  - {id: last, command: \"@first.", "first", &["first", "last"]);
        check("  - {id: last, command: \"@vars.", "vars", &["set", "last"]);
        check("  - {id: last, command: \"@input.", "input", &["last"]);
    }
}
