//! Text that is not what it looks like: hidden characters, words of mixed scripts, names that look like others
//! (Unicode Technical Standard 39).

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{diagnostic::is_obeyed, document::Path, value::Value};
use unicode_security::{MixedScript, confusable_detection::skeleton};

use super::{Sides, finding, quoted};
use crate::{
    capability::capabilities,
    finding::{Finding, HIDDEN_TEXT, LOOK_ALIKE},
    outline::Outline,
    version::Version,
};

pub(super) fn find(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let mut known = BTreeSet::new();
    texts(sides.old.normalised, &Path::root(), &mut |text, _| {
        known.insert(text.to_string());
    });
    texts(sides.new.normalised, &Path::root(), &mut |text, path| {
        if known.contains(text) {
            return;
        }
        if let Some(letter) = hidden(text) {
            let reason = format!("The text contains the character U+{:04X}, which is not shown.", letter as u32);
            found.push(finding(&HIDDEN_TEXT, path.clone(), reason));
        }
        if let Some(word) = words(text).find(|word| !word.is_single_script()) {
            let reason = format!("The word {} has letters of several scripts: {}.", quoted(word), foreign(word));
            found.push(finding(&LOOK_ALIKE, path.clone(), reason));
        }
    });
    let (before, after) = (names(sides.old), names(sides.new));
    let all: BTreeMap<&String, &Path> = before.iter().chain(&after).collect();
    let mut shapes: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    all.keys().for_each(|name| shapes.entry(skeleton(name).collect()).or_default().push(name));
    for (name, path) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        if words(name).any(|word| !word.is_single_script()) {
            continue;
        }
        let shape: String = skeleton(name).collect();
        let other = shapes.get(&shape).into_iter().flatten().find(|other| **other != name);
        if let Some(other) = other {
            let reason = format!("The name {} looks like {}: {}.", quoted(name), quoted(other), differing(name, other));
            found.push(finding(&LOOK_ALIKE, path.clone(), reason));
        } else if !name.is_ascii() && shape.is_ascii() {
            let reason = format!("The name {} looks like {}: {}.", quoted(name), quoted(&shape), foreign(name));
            found.push(finding(&LOOK_ALIKE, path.clone(), reason));
        }
    }
}

/// Finds hidden characters that only the text of the file has, which means in a comment or as an escape.
pub(crate) fn comments(old: Version<'_>, new: Version<'_>, found: &[Finding]) -> Option<Finding> {
    let known: BTreeSet<&str> = old.source.into_iter().flat_map(str::lines).collect();
    if found.iter().any(|finding| finding.code == &HIDDEN_TEXT) {
        return None;
    }
    let mut lines = new.source?.lines().enumerate().filter(|(_, line)| !known.contains(line));
    let (line, letter) = lines.find_map(|(line, text)| Some((line + 1, hidden(text)?)))?;
    let reason = format!("Line {line} of the file contains the character U+{:04X}, which is not shown.", letter as u32);
    Some(finding(&HIDDEN_TEXT, Path::root(), reason))
}

fn hidden(text: &str) -> Option<char> {
    text.chars().find(|letter| is_obeyed(*letter) && !matches!(letter, '\n' | '\r' | '\t'))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_ascii())
}

/// Shows the characters of a word that are not ASCII.
fn foreign(word: &str) -> String {
    let mut letters: Vec<String> =
        word.chars().filter(|letter| !letter.is_ascii()).map(|letter| format!("U+{:04X}", letter as u32)).collect();
    letters.dedup();
    letters.truncate(5);
    letters.join(", ")
}

/// Shows the first pair of characters in which two names differ.
fn differing(name: &str, other: &str) -> String {
    let shown = |letter: Option<char>| letter.map_or("nothing".into(), |letter| format!("U+{:04X}", letter as u32));
    let at = name.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
    format!("{} stands for {}", shown(name.chars().nth(at)), shown(other.chars().nth(at)))
}

/// Calls `found` with each text and each key, and its path.
fn texts(value: &Value, path: &Path, found: &mut dyn FnMut(&str, &Path)) {
    match value {
        Value::Text(text) => found(text, path),
        Value::List(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts(item, &path.index(index), found));
        }
        Value::Map(map) => {
            for (key, field) in map {
                let path = path.key(key);
                found(key, &path);
                texts(field, &path, found);
            }
        }
        _ => {}
    }
}

/// Returns the names by which a version calls and identifies things, each with its first place.
fn names(outline: &Outline<'_>) -> BTreeMap<String, Path> {
    let mut found = BTreeMap::new();
    for node in &outline.nodes {
        let mut add = |name: &str, path: Path| {
            if !name.is_empty() {
                found.entry(name.to_string()).or_insert(path);
            }
        };
        if node.is_named {
            add(&node.id, node.path.clone());
        }
        for capability in capabilities(node) {
            let (_, _, keys) = capability.kind.describe();
            add(&capability.name, outline.path_of(node, keys));
        }
        add(node.text("signal"), outline.path_of(node, &["signal"]));
        let approvers = node.fields.get("approvers").and_then(Value::as_list).unwrap_or_default();
        for name in approvers.iter().filter_map(Value::as_text) {
            add(name, outline.path_of(node, &["approvers"]));
        }
    }
    found
}
