//! Scenarios beyond the conformance cases: gaps in those, and code that mutation testing found untested.

use std::path::Path;

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
