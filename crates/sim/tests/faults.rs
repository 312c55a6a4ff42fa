//! Runs the sequence cases under every fault that scenarios do not name, at every opportunity and at random ones.

use std::path::Path;

use mainspring_kernel::definition::Syntax;
use mainspring_sim::{
    Faults, run_case_under,
    scenario::{Case, find, read, read_text},
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

/// The cases of conversations, with messages that are kept and read between the commits.
fn conversations() -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/messages.scenario.yaml");
    let cases = read(&file).unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= 7, "{}", cases.len());
    cases
}

#[track_caller]
fn check(faults: Faults, seeds: u64) {
    check_all(cases(), faults, seeds);
}

#[track_caller]
fn check_all(cases: Vec<Case>, faults: Faults, seeds: u64) {
    for case in cases {
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

/// A kill loses no message and delivers none twice. A running model call fails by default when its process dies, so these
/// faults leave it alone.
#[test]
fn messages_survive_every_fault_between_two_commits() {
    for faults in [
        Faults { crash_before_commit: 100, ..Faults::NONE },
        Faults { unknown_written: 100, ..Faults::NONE },
        Faults { unknown_not_written: 100, ..Faults::NONE },
        Faults { not_written: 100, ..Faults::NONE },
        Faults { deliver_twice: 50, deliver_again: 50, deliver_late: 30, inbox_again: true, ..Faults::NONE },
    ] {
        check_all(conversations(), faults, 4);
    }
}

/// An agent that repeats interrupted calls, with messages that are read, awaited, and interrupt a call.
const REPEATING: &str = "
name: an agent that repeats its calls
definition:
  steps:
    - id: both
      type: parallel
      steps:
        - id: ask
          type: agent
          goal: g
          conversation: chat
          onInterrupted: retry
          retry: {maxAttempts: 50, initialDelayMs: 10}
        - id: late
          type: conditional
          condition: true
          then:
            - {id: first, type: agent_message, content: one}
            - {type: sleep, durationMs: 5000}
            - {id: tell, type: agent_message, content: two, interrupt: true, await_response: true, outputVariable: said}
effects:
  ask:
    - {return: {text: too late}, after: 60s}
    - {return: {text: understood}, after: 1s}
expect:
  status: completed
  output: {said: {conversation: chat, response: understood}}
";

#[test]
fn messages_survive_a_crash_after_every_commit() {
    let cases = || read_text(REPEATING.as_bytes(), Syntax::Yaml, Path::new(".")).unwrap_or_else(|why| panic!("{why}"));
    check_all(cases(), Faults { crash_after_commit: 100, ..Faults::NONE }, 1);
    check_all(cases(), Faults { crash_before_input: 30, crash_after_commit: 30, ..Faults::NONE }, 8);
}
