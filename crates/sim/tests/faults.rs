//! Runs the sequence cases under every fault that scenarios do not name, at every opportunity and at random ones.

use std::path::Path;

use mainspring_sim::{
    Faults, run_case_under,
    scenario::{Case, find, read},
};

/// The cases whose workflows this build accepts.
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sequence");
    let files = find(&[folder]).unwrap_or_else(|error| panic!("{error}"));
    let cases: Vec<Case> = files.iter().flat_map(|file| read(file).unwrap_or_else(|error| panic!("{error}"))).collect();
    let holds = |case: &Case| run_case_under(case, Faults::NONE, 0).is_empty();
    let covered: Vec<Case> = cases.into_iter().filter(holds).collect();
    assert!(covered.len() >= 29, "only {} cases hold without faults", covered.len());
    covered
}

#[track_caller]
fn check(faults: Faults, seeds: u64) {
    for case in cases() {
        for seed in 0..seeds {
            let failures = run_case_under(&case, faults, seed);
            assert!(failures.is_empty(), "seed {seed} of {:?}, {faults:?}:\n{}", case.name, failures.join("\n"));
        }
    }
}

#[test]
fn a_crash_after_every_commit_loses_only_actions() {
    check(Faults { crash_after_commit: 100, ..Faults::NONE }, 1);
}

#[test]
fn a_decision_lost_by_a_crash_is_made_again() {
    check(Faults { crash_before_commit: 100, ..Faults::NONE }, 1);
}

#[test]
fn commits_with_unknown_results() {
    check(Faults { unknown_written: 100, ..Faults::NONE }, 1);
    check(Faults { unknown_not_written: 100, ..Faults::NONE }, 1);
    check(Faults { unknown_written: 50, unknown_not_written: 50, ..Faults::NONE }, 4);
}

#[test]
fn commits_that_fail_once() {
    check(Faults { not_written: 100, ..Faults::NONE }, 1);
}

#[test]
fn all_faults_together() {
    let faults = Faults {
        crash_before_input: 20,
        kill_before_input: 0,
        deliver_twice: 20,
        deliver_again: 20,
        deliver_late: 30,
        crash_before_commit: 10,
        crash_after_commit: 20,
        unknown_written: 20,
        unknown_not_written: 20,
        not_written: 10,
        inbox_again: true,
    };
    check(faults, 8);
}
