//! Runs the conformance cases, and checks that the list of uncovered ones is correct.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use mainspring_sim::{
    CaseReport, run_case,
    scenario::{find, read},
};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance"))
}

/// The file of a case in the folder, with `/`, and its name.
type Key = (String, String);

/// Reads the scenarios of the list; lines about test vectors belong to another test.
fn uncovered() -> BTreeSet<Key> {
    let text = fs::read_to_string(folder().join("uncovered.txt")).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|line| line.split_once(" :: ").unwrap_or_else(|| panic!("`{line}` is no `path :: name`")));
    let scenarios = entries.filter(|(path, _)| !path.starts_with("vectors/"));
    scenarios.map(|(path, name)| (path.trim().into(), name.trim().into())).collect()
}

fn reports() -> BTreeMap<Key, CaseReport> {
    let root = folder();
    let folders = ["sequence", "dataflow", "graph"].map(|name| root.join(name));
    let mut reports = BTreeMap::new();
    for file in find(&folders).unwrap_or_else(|error| panic!("{error}")) {
        let path = relative(&file, &root);
        for case in read(&file).unwrap_or_else(|error| panic!("{error}")) {
            reports.insert((path.clone(), case.name.clone()), run_case(&case));
        }
    }
    reports
}

fn relative(file: &Path, root: &Path) -> String {
    let parts = file.strip_prefix(root).unwrap().components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[test]
fn every_case_holds_or_is_listed_as_uncovered() {
    let (reports, uncovered) = (reports(), uncovered());
    let mut failures = Vec::new();
    for ((path, name), report) in &reports {
        match (report.holds(), uncovered.contains(&(path.clone(), name.clone()))) {
            (true, true) => failures.push(format!("{path} :: {name}\n  holds: remove it from the list")),
            (false, false) => {
                failures.push(format!("{path} :: {name}\n  {}\n  {}", report.why, report.failures.join("\n  ")));
            }
            _ => {}
        }
    }
    let unknown = uncovered.iter().filter(|key| !reports.contains_key(key));
    failures.extend(unknown.map(|(path, name)| format!("{path} :: {name}\n  is listed, and there is no such case")));
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), reports.len(), failures.join("\n"));
    assert!(reports.len() >= 142, "only {} cases were found", reports.len());
}
