//! The list of conformance cases that this build does not cover: each entry names one case, once.
//!
//! The number of its entries is in the ratchet, so the list only shrinks.

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::{CASES, File, Repository, UNCOVERED};
use serde_json::Value;
use std::collections::BTreeSet;

const SEPARATOR: &str = " :: ";

/// The keys that name a case: scenarios have names, vectors have ids.
const NAMES: [&str; 2] = ["name", "id"];

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let Some(list) = repository.file(UNCOVERED) else { return Vec::new() };
    let cases: BTreeSet<String> = repository.files.iter().filter(|file| file.is_given()).flat_map(cases).collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for (number, entry) in entries(list) {
        let message = if !cases.contains(entry) {
            "No case is called so; an entry is `path in conformance :: name or id`."
        } else if !seen.insert(entry) {
            "This case is in the list already."
        } else {
            continue;
        };
        findings.push(Finding::at(UNCOVERED, number, message));
    }
    findings
}

/// Measures the number of uncovered cases, which the ratchet must allow.
pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let Some(list) = repository.file(UNCOVERED) else { return Vec::new() };
    let unit = "uncovered cases; a case that was covered once stays covered";
    let mut measure = Measure::count(format!("cases {UNCOVERED}"), unit);
    entries(list).for_each(|(number, entry)| measure.add(Finding::at(UNCOVERED, number, entry)));
    vec![measure]
}

fn entries(list: &File) -> impl Iterator<Item = (usize, &str)> {
    list.lines().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the cases of one file in the notation of the list.
fn cases(file: &File) -> Vec<String> {
    let path = file.path.trim_start_matches(CASES);
    let document: Value = serde_json::from_str(&file.text).unwrap_or_default();
    let cases = document.get("cases").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = cases.iter().filter_map(|case| NAMES.iter().find_map(|key| case.get(key)?.as_str()));
    names.map(|name| format!("{path}{SEPARATOR}{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{look, measure};
    use crate::repository::{Repository, UNCOVERED};
    use crate::tidy::tests::{assert_found, repository};

    fn with_list(list: &str) -> Repository {
        repository(&[
            ("conformance/graph/a.scenario.json", r#"{"cases": [{"name": "one :: of two"}, {"name": "two"}]}"#),
            ("conformance/vectors/b.json", r#"{"cases": [{"id": "b-1"}]}"#),
            (UNCOVERED, list),
        ])
    }

    #[test]
    fn an_entry_names_one_case_once() {
        let good = "# why\n\ngraph/a.scenario.json :: one :: of two\nvectors/b.json :: b-1\n";
        assert_found(look(&with_list(good)), &[]);
        assert_found(look(&with_list("graph/a.scenario.json :: three\n")), &[(UNCOVERED, 1, "No case")]);
        assert_found(look(&with_list("a.scenario.json :: two\n")), &[(UNCOVERED, 1, "No case")]);
        assert_found(look(&with_list("vectors/b.json :: b-1\nvectors/b.json :: b-1\n")), &[(UNCOVERED, 2, "already")]);
    }

    #[test]
    fn every_entry_counts() {
        let number = |list: &str| measure(&with_list(list))[0].number;
        assert_eq!(number("# why\n\nvectors/b.json :: b-1\nvectors/b.json :: b-2\n"), 2);
        assert_eq!(number("# why\n"), 0);
    }
}
