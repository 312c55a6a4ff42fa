//! The allowed exceptions from the limits, each with its number, in `ratchet.txt`. A number only goes down.
//!
//! | measured | in the file | result |
//! |---|---|---|
//! | within the limit | no | nothing |
//! | too much | no | a finding for each place |
//! | too much | the same | nothing |
//! | too much | less | a finding: the number has grown |
//! | too much | more | a note: the number can be lowered |
//! | within the limit | yes | a note: the entry can be removed |
//!
//! A number that is too high is a note, not a finding: two changes that each lower the measured number would otherwise
//! fail together.

use super::measure::Measure;
use super::{circles, echoes, fields, lengths, links, subjects, terms, uncovered, voice};
use crate::finding::Finding;
use crate::repository::Repository;
use std::collections::{BTreeMap, BTreeSet};

/// Number of places in changed files that are shown for a number that has grown.
const PLACES_SHOWN_MAX: usize = 5;

pub(super) const PATH: &str = "xtask/ratchet.txt";

/// The result of all measures: findings, and the number of entries that can be lowered.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) findings: Vec<Finding>,
    pub(super) lowerable: usize,
}

pub(super) fn look(repository: &Repository) -> Comparison {
    let text = repository.file(PATH).map(|file| file.text.as_str()).unwrap_or_default();
    compare(text, &measure(repository), &repository.changed)
}

/// Returns the measures beyond their limits, by key.
pub(super) fn measure(repository: &Repository) -> BTreeMap<String, Measure> {
    let mut largest: BTreeMap<String, Measure> = BTreeMap::new();
    let measures: [fn(&Repository) -> Vec<Measure>; 9] = [
        lengths::measure,
        uncovered::measure,
        fields::measure,
        circles::measure,
        voice::measure,
        terms::measure,
        echoes::measure,
        links::measure,
        subjects::measure,
    ];
    for measure in measures.into_iter().flat_map(|measure| measure(repository)).filter(Measure::is_too_much) {
        if largest.get(&measure.key).is_none_or(|known| known.number < measure.number) {
            largest.insert(measure.key.clone(), measure);
        }
    }
    largest
}

/// Lowers the numbers of the ratchet file and removes unnecessary entries. Comments are kept.
pub(super) fn lowered(text: &str, measured: &BTreeMap<String, Measure>) -> String {
    let line_after = |line: &str| match entry(line) {
        Line::Entry(key, number) => measured.get(key).map(|measure| format!("{key} {}\n", measure.number.min(number))),
        Line::Comment | Line::Unreadable => Some(format!("{line}\n")),
    };
    text.lines().filter_map(line_after).collect()
}

fn compare(text: &str, measured: &BTreeMap<String, Measure>, changed: &BTreeSet<String>) -> Comparison {
    let mut comparison = Comparison::default();
    let mut unexcused = measured.clone();
    for (line, number) in text.lines().zip(1..) {
        match entry(line) {
            Line::Comment => {}
            Line::Unreadable => comparison.findings.push(Finding::at(PATH, number, "An entry is `what where number`.")),
            Line::Entry(key, allowed) => match unexcused.remove(key) {
                Some(measure) if measure.number > allowed => {
                    comparison.findings.push(grown(&measure, allowed, number, changed))
                }
                Some(measure) if measure.number == allowed => {}
                _ => comparison.lowerable += 1,
            },
        }
    }
    comparison.findings.extend(unexcused.values().flat_map(unallowed));
    comparison
}

/// Builds one finding. The new place among many is unknown, but probably in a changed file.
fn grown(measure: &Measure, allowed: usize, line: usize, changed: &BTreeSet<String>) -> Finding {
    let Measure { key, number, unit, places, .. } = measure;
    if let [place] = places.as_slice() {
        return Finding { message: format!("{number} and the ratchet allows {allowed}: {unit}."), ..place.clone() };
    }
    let in_changed = places.iter().filter(|place| changed.contains(&place.path)).take(PLACES_SHOWN_MAX);
    let shown: String = in_changed.map(|place| format!("\n    {place}")).collect();
    let message = format!(
        "`{key}` is {number} and the ratchet allows {allowed}: {unit}. Places: `cargo xtask tidy --list '{key}'`{}{shown}",
        if shown.is_empty() { "." } else { ", and of those in changed files:" },
    );
    Finding::at(PATH, line, message)
}

/// Builds a finding for each place.
fn unallowed(measure: &Measure) -> impl Iterator<Item = Finding> {
    let Measure { number, limit, unit, .. } = measure;
    measure.places.iter().map(move |place| {
        let shown = if place.message.is_empty() { String::new() } else { format!(" ({})", place.message) };
        Finding { message: format!("{number} where {limit} are allowed: {unit}.{shown}"), ..place.clone() }
    })
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
    use crate::finding::Finding;
    use crate::tidy::tests::{assert_found, repository};
    use std::collections::{BTreeMap, BTreeSet};

    const KEY: &str = "function a.rs::b";

    fn measured(number: usize, limit: usize) -> BTreeMap<String, Measure> {
        let places = vec![Finding::at("a.rs", 7, "")];
        let found = Measure { key: KEY.to_owned(), number, limit, unit: "lines".to_owned(), places };
        if found.is_too_much() { [(KEY.to_owned(), found)].into() } else { BTreeMap::new() }
    }

    /// Checks one row of the table at the top of this file: the finding, the note, and the entry after lowering.
    #[track_caller]
    fn check(
        number: usize,
        allowed: Option<usize>,
        expected: &[(&str, usize, &str)],
        lowerable: usize,
        after: Option<usize>,
    ) {
        let text = |entry: Option<usize>| entry.map(|number| format!("# why\n{KEY} {number}\n")).unwrap_or_default();
        let before = text(allowed);
        let comparison = compare(&before, &measured(number, 70), &BTreeSet::new());
        assert_found(comparison.findings, expected);
        assert_eq!(comparison.lowerable, lowerable);
        let kept = if allowed.is_some() && after.is_none() { "# why\n".to_owned() } else { text(after) };
        assert_eq!(lowered(&before, &measured(number, 70)), kept);
    }

    #[test]
    fn every_row_of_the_table() {
        check(70, None, &[], 0, None);
        check(71, None, &[("a.rs", 7, "71 where 70 are allowed")], 0, None);
        check(80, Some(80), &[], 0, Some(80));
        check(81, Some(80), &[("a.rs", 7, "81 and the ratchet allows 80")], 0, Some(80));
        check(75, Some(80), &[], 1, Some(75));
        check(70, Some(80), &[], 1, None);
    }

    #[test]
    fn a_count_shows_its_positions_or_the_command() {
        let mut count = Measure::count("openers a".to_owned(), "openers");
        ["a.rs", "b.rs"].into_iter().for_each(|path| count.add(Finding::at(path, 1, "What.")));
        let measured = BTreeMap::from([(count.key.clone(), count)]);
        let changed = BTreeSet::from(["b.rs".to_owned()]);
        let of = |text: &str| compare(text, &measured, &changed).findings;
        assert_found(of(""), &[("a.rs", 1, "(What.)"), ("b.rs", 1, "(What.)")]);
        assert_found(
            of("openers a 1\n"),
            &[(PATH, 1, "--list 'openers a'`, and of those in changed files:\n    b.rs:1: What.")],
        );
        assert_found(of("openers a 2\n"), &[]);
    }

    #[test]
    fn an_unreadable_entry_is_a_finding_and_stays() {
        assert_found(
            compare("b 3\nfunction a.rs::b many\n", &BTreeMap::new(), &BTreeSet::new()).findings,
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
