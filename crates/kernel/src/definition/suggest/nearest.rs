//! Finds the known name that is most similar to an unknown one, for help texts.

use alloc::{format, string::String, vec::Vec};

use super::synonyms::synonym;
use crate::{definition::help::Help, document::Path};

/// Names longer than this are not compared: the time grows with the square of the length.
const COMPARED_BYTES_MAX: usize = 64;

/// Returns the most similar name if at most a third of its characters differ. Names of one or two characters never
/// match: they are similar to too many others.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let near = known.into_iter().filter(|known| known.len().abs_diff(name.len()) <= allowed(name, known));
    let ranked = near.map(|known| (distance(name, known), known));
    ranked
        .filter(|(distance, known)| *distance <= allowed(name, known))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns the name that differs from a short one by one character, if only one of a few names does and it begins with the
/// same letter.
pub(in crate::definition) fn only_near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_near = |known: &&str| {
        known.len() <= 3 && known.as_bytes().first() == name.as_bytes().first() && distance(name, known) == 1
    };
    let mut near = known.take(LISTED_MAX).filter(is_near);
    near.next().filter(|_| name.len() <= 3 && near.next().is_none())
}

/// Returns the known word that an author meant: a synonym, otherwise the most similar one.
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    synonym(word, known.clone()).or_else(|| nearest(word, known))
}

/// Returns the help for an unknown word at a path: the one that was meant, otherwise all known words.
pub(in crate::definition) fn write_instead<'a>(
    path: &Path,
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Help {
    match meant(word, known.clone()) {
        Some(known) => Help::value(path, known),
        None => known_here(known).into(),
    }
}

/// The maximum number of names in a message. A plan may have thousands.
const LISTED_MAX: usize = 30;

/// Lists some of the known names.
pub(in crate::definition) fn known_here<'a>(known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known = known.into_iter();
    let listed: Vec<String> = known.by_ref().take(LISTED_MAX).map(shown).collect();
    format!("known here: {}{}", listed.join(", "), if known.next().is_some() { ", …" } else { "" })
}

/// Returns a name for a list, shortened if it is long: many diagnostics may repeat the same list.
fn shown(name: &str) -> String {
    match name.char_indices().nth(COMPARED_BYTES_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}

fn allowed(name: &str, known: &str) -> usize {
    name.len().max(known.len()) / 3
}

/// Returns the optimal string alignment distance, ignoring ASCII case: insertions, deletions, substitutions and swaps
/// of adjacent characters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: [Vec<usize>; 3] = [alloc::vec![0; b.len() + 1], (0..=b.len()).collect(), alloc::vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let changed = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = least;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let check = |name: &str, expected: Option<&str>| {
            let known = ["tool", "bash", "conditional", "parallel", "timeoutMs", "id"];
            assert_eq!(nearest(name, known), expected, "{name}");
        };
        check("tol", Some("tool"));
        check("Bash", Some("bash"));
        check("bsah", Some("bash"));
        check("timeout_ms", Some("timeoutMs"));
        check("timeoutMS", Some("timeoutMs"));
        check("condition", Some("conditional"));
        check("teleport", None);
        check("", None);
        check("x", None);
        check(&"conditional".repeat(9), None);
    }

    #[test]
    fn a_single_short_name_is_suggested() {
        assert_eq!(only_near("bb", ["b", "c"].into_iter()), Some("b"));
        assert_eq!(only_near("bb", ["b", "ba"].into_iter()), None);
        assert_eq!(only_near("x", ["b"].into_iter()), None);
        assert_eq!(only_near("bbbb", ["bbb"].into_iter()), None);
    }

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 1), ("é", "e", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }
}
