//! References in a text: at the cursor, to one step, and all of them.

use std::ops::Range;

use mainspring_kernel::reference::{is_name, length};

use super::{
    objects::{names_a_step, never_refers, steps},
    outline::Outline,
};

/// A reference in a text, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReferenceAt {
    /// Bytes of the name after the `@`.
    pub(super) name: Range<usize>,
    /// Bytes of the name and the path.
    pub(super) all: Range<usize>,
}

/// Returns all references of a text: an `@` that no other precedes, outside of comments and functions.
pub(super) fn references(text: &str, outline: &Outline) -> Vec<ReferenceAt> {
    let sources: Vec<&Range<usize>> =
        outline.entries.iter().filter(|entry| never_refers(entry)).map(|entry| &entry.value_at).collect();
    let mut found = Vec::new();
    let mut source = sources.iter().peekable();
    let mut at = 0;
    while let Some(next) = text[at..].find('@') {
        let sign = at + next;
        at = sign + 1;
        while source.peek().is_some_and(|range| range.end <= sign) {
            source.next();
        }
        if source.peek().is_some_and(|range| range.contains(&sign)) || is_in_comment(text, sign) {
            continue;
        }
        if text[at..].starts_with('@') {
            at += 1;
            continue;
        }
        if let Some((name, all)) = length(&text[at..]) {
            found.push(ReferenceAt { name: at..at + name, all: at..at + all });
            at += all;
        }
    }
    found
}

/// True after a `#` that begins a comment on the line: at its start, or after a blank, outside of quotes.
fn is_in_comment(text: &str, offset: usize) -> bool {
    let start = text[..offset].rfind('\n').map_or(0, |line| line + 1);
    // Most lines have none, and a completion looks at all references of a file.
    if !text[start..offset].contains('#') {
        return false;
    }
    let (mut quote, mut before) = (None, ' ');
    for letter in text[start..offset].chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(letter),
            (None, '#') if before == ' ' => return true,
            _ => {}
        }
        before = letter;
    }
    false
}

/// Returns the name of the step at a byte: of its id, of a reference to it, or of an edge.
pub(super) fn step_at(text: &str, outline: &Outline, offset: usize) -> Option<(String, Range<usize>)> {
    let steps = steps(outline);
    if let Some(step) = steps.iter().find(|step| has(&step.entry.value_at, offset)) {
        return Some((step.name.to_string(), step.entry.value_at.clone()));
    }
    let is_step = |name: &str| steps.iter().any(|step| step.name == name);
    if let Some(found) = references(text, outline).into_iter().find(|found| has(&found.name, offset)) {
        let name = text[found.name.clone()].to_string();
        return is_step(&name).then_some((name, found.name));
    }
    let (at, entry) = outline.at(offset)?;
    let name = entry.scalar.clone().filter(|name| names_a_step(outline, at) && is_step(name))?;
    Some((name, entry.value_at.clone()))
}

fn has(range: &Range<usize>, offset: usize) -> bool {
    range.start <= offset && offset <= range.end
}

/// Returns every place of a step's name: its id, references, edges and `needs`, in the order of the text.
pub(super) fn places(text: &str, outline: &Outline, name: &str) -> Vec<Range<usize>> {
    let ids = steps(outline).into_iter().filter(|step| step.name == name).map(|step| step.entry.value_at.clone());
    let references = references(text, outline).into_iter().map(|found| found.name);
    let references = references.filter(|range| &text[range.clone()] == name);
    let named = outline
        .entries
        .iter()
        .enumerate()
        .filter(|(at, entry)| entry.scalar.as_deref() == Some(name) && names_a_step(outline, *at));
    let named = named.map(|(_, entry)| entry.value_at.clone());
    let mut places: Vec<Range<usize>> = ids.chain(references).chain(named).collect();
    places.sort_by_key(|range| range.start);
    places.dedup();
    places
}

/// Returns the text with another name in all places of a step, or the reason why the name is not possible.
pub(super) fn renamed(text: &str, outline: &Outline, old: &str, new: &str) -> Result<Vec<Range<usize>>, String> {
    if !is_name(new) || mainspring_kernel::reference::RESERVED_NAMES.contains(&new) {
        return Err(format!("{new:?} is no name of a step: write letters, digits, _ and -, and no reserved name"));
    }
    if steps(outline).iter().any(|step| step.name == new) {
        return Err(format!("another step is called {new:?}"));
    }
    Ok(places(text, outline, old))
}

/// Returns the unfinished reference before the cursor: its bytes after the `@`.
pub(super) fn typed(text: &str, offset: usize) -> Option<Range<usize>> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '[' | ']');
    let before = text.get(..offset)?;
    let start = before.trim_end_matches(is_part).len();
    before[..start].ends_with('@').then_some(start..offset)
}
