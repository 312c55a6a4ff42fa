//! The definition that an outline describes, for questions about shapes in text that does not parse.

use mainspring_kernel::{
    document::{Document, Path},
    json,
    value::{Map, Value},
};

use super::{objects::is_step, outline::Outline};

/// Returns the data of an outline, as far as it was understood.
pub(super) fn document(text: &str, outline: &Outline) -> Document {
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); outline.entries.len()];
    let mut outermost = Vec::new();
    for (at, entry) in outline.entries.iter().enumerate() {
        match entry.parent {
            Some(parent) => inside[parent].push(at),
            None => outermost.push(at),
        }
    }
    Document::placeless(holder(text, outline, &inside, &outermost))
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

/// Returns the path of the step around a byte; the root if there is none.
pub(super) fn step_path(outline: &Outline, offset: usize) -> Path {
    let innermost = outline.entries.iter().rposition(|entry| entry.key_at.start <= offset);
    let around = std::iter::successors(innermost, |at| outline.entries[*at].parent);
    let mut way: Vec<usize> = around.skip_while(|at| !is_step(outline, *at)).collect();
    way.reverse();
    way.into_iter().fold(Path::root(), |path, at| match &outline.entries[at].key {
        Some(key) => path.key(key),
        None => {
            let parent = outline.entries[at].parent;
            path.index(outline.entries[..at].iter().filter(|entry| entry.parent == parent).count())
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
        let value = json::compact(&document(text, &outline).value);
        assert!(
            value.starts_with(r#"{"steps":[{"env":{"X":"1","Y":2},"id":"a","wait":false},{"id":"b","steps":[{"#),
            "{value}"
        );
        assert_eq!(step_path(&outline, text.len()).to_string(), "steps[1].steps[0]");
        assert_eq!(step_path(&outline, text.find("wait").unwrap_or_default()).to_string(), "steps[0]");
        assert_eq!(step_path(&outline, 0), Path::root());
    }
}
