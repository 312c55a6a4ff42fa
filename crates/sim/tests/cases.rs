//! Scenarios beyond the conformance cases: gaps in those, and code that mutation testing found untested.

use std::{fs, os::unix::net::UnixListener, path::Path};

use mainspring_sim::{run_case, scenario};

#[test]
fn every_case_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut seen = 0;
    for file in scenario::find(&[folder]).expect("the folder is read") {
        for case in scenario::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            let report = run_case(&case);
            assert!(report.holds(), "{}: {}\n{}", file.display(), report.name, report.failures.join("\n"));
            seen += 1;
        }
    }
    assert!(seen >= 300, "{seen}");
}

#[test]
fn only_regular_files_of_a_folder_are_scenarios() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.scenario.yaml"), "cases: []").expect("written");
    let _socket = UnixListener::bind(folder.path().join("b.scenario.yaml")).expect("bound");
    let found = scenario::find(&[folder.path().into()]).expect("the folder is read");
    assert_eq!(found, [folder.path().join("a.scenario.yaml")]);
}
