//! The exceptions from the limits, each with its number, in a file of their own. A number only goes down.
//!
//! | measured | in the file | what is said |
//! |---|---|---|
//! | within the limit | no | nothing |
//! | too much | no | mend it |
//! | too much | the same | nothing |
//! | too much | less | it has grown: mend it |
//! | too much | more | lower the number |
//! | within the limit | yes | strike the entry |

use super::{lengths, uncovered};
use crate::finding::Finding;
use crate::repository::Repository;
use std::collections::BTreeMap;

pub(super) const PATH: &str = "xtask/ratchet.txt";

/// Something that may be too much.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    /// What is measured and where, as it stands in the file: `function crates/a/src/b.rs::c`. Functions of one name in
    /// one file share a key, and the longest of them counts.
    pub(super) key: String,
    pub(super) path: String,
    /// Counted from 1; 0 for a whole file.
    pub(super) line: usize,
    pub(super) number: usize,
    pub(super) limit: usize,
    /// What the number counts, and how to mend it.
    pub(super) unit: &'static str,
}

impl Measure {
    pub(super) fn is_too_much(&self) -> bool {
        self.number > self.limit
    }
}

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let text = repository.file(PATH).map(|file| file.text.as_str()).unwrap_or_default();
    compare(text, &measure(repository))
}

/// All that is too much, by key.
pub(super) fn measure(repository: &Repository) -> BTreeMap<String, Measure> {
    let mut largest: BTreeMap<String, Measure> = BTreeMap::new();
    for measure in lengths::measure(repository).into_iter().chain(uncovered::measure(repository)) {
        if largest.get(&measure.key).is_none_or(|known| known.number < measure.number) {
            largest.insert(measure.key.clone(), measure);
        }
    }
    largest
}

/// The ratchet with lower numbers and without entries that nothing needs. Its comments stay.
pub(super) fn lowered(text: &str, measured: &BTreeMap<String, Measure>) -> String {
    let line_after = |line: &str| match entry(line) {
        Line::Entry(key, number) => measured.get(key).map(|measure| format!("{key} {}\n", measure.number.min(number))),
        Line::Comment | Line::Unreadable => Some(format!("{line}\n")),
    };
    text.lines().filter_map(line_after).collect()
}

fn compare(text: &str, measured: &BTreeMap<String, Measure>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unexcused = measured.clone();
    for (line, number) in text.lines().zip(1..) {
        let message = match entry(line) {
            Line::Comment => continue,
            Line::Unreadable => "An entry is `what where number`.".to_owned(),
            Line::Entry(key, allowed) => match unexcused.remove(key) {
                Some(measure) if measure.number > allowed => {
                    let message = format!("{} and the ratchet allows {allowed}: {}.", measure.number, measure.unit);
                    findings.push(Finding::at(&measure.path, measure.line, message));
                    continue;
                }
                Some(measure) if measure.number == allowed => continue,
                Some(measure) => format!("{key} is down to {}; run `cargo xtask tidy --lower`.", measure.number),
                None => format!("{key} needs no entry any more; run `cargo xtask tidy --lower`."),
            },
        };
        findings.push(Finding::at(PATH, number, message));
    }
    let too_much = unexcused.values().map(|measure| {
        let message = format!("{} where {} are allowed: {}.", measure.number, measure.limit, measure.unit);
        Finding::at(&measure.path, measure.line, message)
    });
    findings.extend(too_much);
    findings
}

enum Line<'a> {
    Comment,
    Entry(&'a str, usize),
    Unreadable,
}

fn entry(line: &str) -> Line<'_> {
    if line.is_empty() || line.starts_with('#') {
        return Line::Comment;
    }
    match line.rsplit_once(' ').map(|(key, number)| (key, number.parse())) {
        Some((key, Ok(number))) if key.contains(' ') => Line::Entry(key, number),
        _ => Line::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::{Measure, PATH, compare, lowered, measure};
    use crate::tidy::tests::{assert_found, repository};
    use std::collections::BTreeMap;

    const KEY: &str = "function a.rs::b";

    fn measured(number: usize) -> BTreeMap<String, Measure> {
        let found = Measure { key: KEY.to_owned(), path: "a.rs".to_owned(), line: 7, number, limit: 70, unit: "lines" };
        if found.is_too_much() { [(KEY.to_owned(), found)].into() } else { BTreeMap::new() }
    }

    /// One row of the table at the top of this file.
    #[track_caller]
    fn check(number: usize, allowed: Option<usize>, expected: &[(&str, usize, &str)], after: Option<usize>) {
        let text = |entry: Option<usize>| entry.map(|number| format!("# why\n{KEY} {number}\n")).unwrap_or_default();
        let before = text(allowed);
        assert_found(compare(&before, &measured(number)), expected);
        let kept = if allowed.is_some() && after.is_none() { "# why\n".to_owned() } else { text(after) };
        assert_eq!(lowered(&before, &measured(number)), kept);
    }

    #[test]
    fn every_row_of_the_table() {
        check(70, None, &[], None);
        check(71, None, &[("a.rs", 7, "71 where 70 are allowed")], None);
        check(80, Some(80), &[], Some(80));
        check(81, Some(80), &[("a.rs", 7, "81 and the ratchet allows 80")], Some(80));
        check(75, Some(80), &[(PATH, 2, "down to 75")], Some(75));
        check(70, Some(80), &[(PATH, 2, "no entry any more")], None);
    }

    #[test]
    fn an_entry_that_nobody_can_read_is_said_and_kept() {
        assert_found(
            compare("b 3\nfunction a.rs::b many\n", &BTreeMap::new()),
            &[(PATH, 1, "entry"), (PATH, 2, "entry")],
        );
        assert_eq!(lowered("b 3\n", &BTreeMap::new()), "b 3\n");
    }

    #[test]
    fn the_longest_of_one_name_counts() {
        let long = |lines: usize| format!("fn b() {{\n{}}}\n", "a();\n".repeat(lines - 2));
        let text = format!("mod x {{ {}}}\nmod y {{ {}}}\nmod z {{ {}}}\n", long(75), long(90), long(80));
        let numbers: Vec<usize> =
            measure(&repository(&[("crates/a.rs", &text)])).values().map(|found| found.number).collect();
        assert_eq!(numbers, [90]);
    }
}
