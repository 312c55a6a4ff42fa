//! The rules of the repository in one table, each a function of the repository.

mod bugs;
mod changelog;
mod circles;
mod decisions;
mod dependencies;
mod echoes;
mod edges;
mod fields;
mod leftovers;
mod lengths;
mod links;
mod measure;
mod module_docs;
mod ratchet;
mod run_bits;
mod sql;
mod subjects;
mod terms;
mod uncovered;
mod voice;
mod whitespace;

use crate::finding::Finding;
use crate::repository::Repository;
use std::fs;
use std::path::Path;

/// A rule with the function that finds its violations.
struct Check {
    name: &'static str,
    rule: &'static str,
    look: fn(&Repository) -> Vec<Finding>,
}

const CHECKS: [Check; 11] = [
    Check { name: "edges", rule: "A crate uses only crates of lower layers.", look: edges::look },
    Check { name: "module-docs", rule: "Every Rust file starts with its purpose.", look: module_docs::look },
    Check { name: "leftovers", rule: "Nothing half-done, machine-bound or sleeping stays.", look: leftovers::look },
    Check { name: "whitespace", rule: "No space at a line's end; a newline at a file's end.", look: whitespace::look },
    Check { name: "dependencies", rule: "Each dependency has a reason.", look: dependencies::look },
    Check { name: "sql", rule: "SQL is in the store's .sql files.", look: sql::look },
    Check { name: "changelog", rule: "The changelog names the current version.", look: changelog::look },
    Check { name: "run-bits", rule: "Scripts are executable.", look: run_bits::look },
    Check { name: "decisions", rule: "Every decision is in the index.", look: decisions::look },
    Check { name: "bugs", rule: "The simulator's bugs and their table agree.", look: bugs::look },
    Check { name: "uncovered", rule: "The list of uncovered cases names real cases.", look: uncovered::look },
];

const RATCHET: &str = "Numbers that only go down have not grown.";

/// Runs all checks. The error lists all findings.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let repository = Repository::read(root)?;
    let ratchet = ratchet::look(&repository);
    let mut results: Vec<(&str, &str, Vec<Finding>)> =
        CHECKS.iter().map(|check| (check.name, check.rule, (check.look)(&repository))).collect();
    results.push(("ratchet", RATCHET, ratchet.findings));
    let mut report = String::new();
    let mut count = 0;
    for (name, rule, mut findings) in results {
        findings.sort();
        count += findings.len();
        if !findings.is_empty() {
            report.push_str(&format!("{name}: {rule}\n"));
            findings.iter().for_each(|finding| report.push_str(&format!("  {finding}\n")));
        }
    }
    let note = match ratchet.lowerable {
        0 => String::new(),
        entries => format!(
            "\nnote: {entries} numbers in {} are too high; `cargo xtask tidy --lower` lowers them.",
            ratchet::PATH
        ),
    };
    match count {
        0 => Ok(format!("tidy: {} rules kept in {} files.{note}", CHECKS.len() + 1, repository.files.len())),
        1 => Err(format!("{report}tidy: 1 finding.")),
        _ => Err(format!("{report}tidy: {count} findings.")),
    }
}

/// Lowers the numbers in the ratchet to the measured ones, and removes the entries that are not needed.
pub(crate) fn lower(root: &Path) -> Result<String, String> {
    let repository = Repository::read(root)?;
    let before = repository.file(ratchet::PATH).map(|file| file.text.clone()).unwrap_or_default();
    let after = ratchet::lowered(&before, &ratchet::measure(&repository));
    if before == after {
        return Ok(format!("{} already has the measured values, or lower ones.", ratchet::PATH));
    }
    fs::write(root.join(ratchet::PATH), after)
        .map_err(|error| format!("{} cannot be written: {error}.", ratchet::PATH))?;
    Ok(format!("{} is lowered.", ratchet::PATH))
}

/// Prints the places that are counted by the entries with this prefix.
pub(crate) fn list(root: &Path, entry: &str) -> Result<String, String> {
    let measured = ratchet::measure(&Repository::read(root)?);
    let lines = measured.values().filter(|measure| measure.key.starts_with(entry)).map(|measure| {
        let places = measure.places.iter().map(|place| format!("  {place}\n"));
        format!("{} {}\n{}", measure.key, measure.number, places.collect::<String>())
    });
    Ok(lines.collect::<String>().trim_end().to_owned())
}

/// Functions for the tests of the checks.
#[cfg(test)]
mod tests {
    use super::measure::Measure;
    use crate::finding::Finding;
    use crate::repository::{File, Repository};

    /// Builds a repository of these files, without crates.
    pub(super) fn repository(files: &[(&str, &str)]) -> Repository {
        Repository::of(files.iter().map(|(path, text)| File::of(path, text)).collect(), Vec::new())
    }

    /// Returns the keys and numbers of measures.
    pub(super) fn counted(measures: Vec<Measure>) -> Vec<(String, usize)> {
        measures.into_iter().map(|measure| (measure.key, measure.number)).collect()
    }

    /// Checks the positions of findings, as `path:line`, and a word of each message.
    #[track_caller]
    pub(super) fn assert_found(mut findings: Vec<Finding>, expected: &[(&str, usize, &str)]) {
        findings.sort();
        let places: Vec<(&str, usize)> = findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        let expected_places: Vec<(&str, usize)> = expected.iter().map(|(path, line, _)| (*path, *line)).collect();
        assert_eq!(places, expected_places, "{findings:#?}");
        for (finding, (_, _, word)) in findings.iter().zip(expected) {
            assert!(finding.message.contains(word), "{finding} does not say {word:?}");
        }
    }

    #[test]
    fn this_repository_is_tidy() {
        if let Err(report) = super::run(&crate::repository_root()) {
            panic!("\n{report}");
        }
    }
}
