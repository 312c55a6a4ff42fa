//! Cases of authors on the simulated cluster: passing ones, reports of failing ones, and cases that cannot be
//! simulated.

use std::path::Path;

use mainspring_kernel::definition::Syntax;
use mainspring_sim::{
    cluster::Size,
    scenario::read_text,
    simulate::{Fault, SeedReport, Simulation},
};

const SIZE: Size = Size { executions: 6, nodes: 3, partitions: 4 };

fn simulation(text: &str) -> Result<Simulation, String> {
    let mut cases = read_text(text.as_bytes(), Syntax::Yaml, Path::new(".")).unwrap_or_else(|why| panic!("{why}"));
    Simulation::of(&cases.remove(0))
}

fn run(text: &str, seeds: u64, faults: &[Fault]) -> Vec<SeedReport> {
    let simulation = simulation(text).unwrap_or_else(|why| panic!("{why}"));
    (0..seeds).map(|seed| simulation.run(seed, SIZE, faults)).collect()
}

const RELEASE: &str = "
name: release
definition:
  name: release
  steps:
    - {id: build, type: bash, command: make, retry: {maxAttempts: 20, initialDelayMs: 10}}
    - {id: ask, type: approval, prompt: Ship it?}
    - {id: paid, type: signal, signal: paid}
    - {id: nap, type: sleep, durationMs: 5000}
    - {id: ship, type: tool, tool: SHIP, arguments: {x: '@paid.n'}, retry: {maxAttempts: 20, initialDelayMs: 10}}
    - {type: return, input: {shipped: '@ship'}}
effects:
  build: {return: {exitCode: 0}, after: 2s}
  SHIP: {echo: true}
inbox:
  - {at: {waiting: ask}, decide: approve, by: owner}
  - {at: {waiting: paid}, signal: {name: paid, payload: {n: 7}}}
expect: {status: completed}
";

#[test]
fn a_repeatable_case_ends_equally_under_every_fault() {
    let mut executions = 0;
    for report in run(RELEASE, 6, &[]) {
        assert!(report.failures.is_empty(), "seed {}: {:?}", report.seed, report.failures);
        executions += report.executions;
    }
    assert_eq!(executions, 6 * u64::from(SIZE.executions));
    for (name, fault) in Fault::ALL {
        for report in run(RELEASE, 1, &[fault]) {
            assert!(report.failures.is_empty(), "{name}, seed {}: {:?}", report.seed, report.failures);
        }
    }
}

#[test]
fn crashes_repeat_calls_and_fail_steps_that_must_not_repeat() {
    let slow = RELEASE.replace("after: 2s", "after: 40s");
    let repeated: u64 = run(&slow, 10, &[Fault::Crashes]).iter().map(|report| report.calls).sum();
    assert!(repeated > 10 * 2 * u64::from(SIZE.executions), "no call was made again: {repeated}");
    let once = slow.replace("command: make,", "command: make, onInterrupted: fail,");
    let reports = run(&once, 10, &[Fault::Crashes]);
    let failures: Vec<_> = reports.iter().flat_map(|report| &report.failures).collect();
    assert!(failures.iter().any(|why| why.contains("is failed") && why.contains("completed")), "{failures:?}");
    let failed = reports.iter().find(|report| !report.failures.is_empty()).expect("one fails");
    let again = simulation(&once).expect("it can be simulated").run(failed.seed, SIZE, &[Fault::Crashes]);
    assert_eq!(again.failures, failed.failures, "the same seed does the same");
}

/// Two late responses to heartbeats in a row cost a node its lease, and then a running attempt is repeated. A delay of
/// anything else repeats nothing.
#[test]
fn delays_alone_repeat_a_call_only_with_a_lost_lease() {
    let (mut calls, mut repeated) = (0, 0);
    for report in run(RELEASE, 3, &[Fault::Delays]) {
        assert!(report.failures.is_empty(), "seed {}: {:?}", report.seed, report.failures);
        calls += report.calls;
        repeated += report.repeated.values().sum::<u64>();
    }
    assert_eq!(calls, 3 * 2 * u64::from(SIZE.executions) + repeated);
    assert!(repeated <= 1, "{repeated} calls were repeated");
}

#[test]
fn unsupported_cases_are_refused_with_a_remedy() {
    for (from, to, words) in [
        ("  SHIP: {echo: true}\n", "", "write effects: {ship: {return: …}}"),
        ("  - {at: {waiting: ask}, decide: approve, by: owner}\n", "", "decide: approve"),
        ("  - {at: {waiting: paid}, signal: {name: paid, payload: {n: 7}}}\n", "", "signal: {name: NAME}"),
        ("expect:", "  - {at: {time: 1s}, cancel: user_stop}\nexpect:", "a `cancel`"),
        ("type: return", "type: retrun", "the definition was refused"),
    ] {
        assert!(RELEASE.contains(from), "{from}");
        let why = simulation(&RELEASE.replace(from, to)).expect_err(to);
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn transforms_schemas_loops_and_children_are_simulated() {
    let reports = run(
        "
name: tree
definition:
  steps:
    - {id: get, type: tool, tool: GET, transform: 'export default (x) => x.items', outputSchema: {type: array}, retry: {maxAttempts: 20, initialDelayMs: 10}}
    - id: each
      type: loop
      forEach: {ref: '@get', concurrency: 2}
      steps:
        - {id: child, type: subworkflow, workflow: child, input: '@item'}
workflows:
  child: {steps: [{id: put, type: tool, tool: PUT, arguments: '@input', retry: {maxAttempts: 20, initialDelayMs: 10}}]}
effects:
  GET: {return: {items: [{n: 1}, {n: 2}, {n: 3}]}}
  PUT: {echo: true}
expect: {status: completed}
",
        8,
        &[],
    );
    for report in reports {
        assert!(report.failures.is_empty(), "seed {}: {:?}", report.seed, report.failures);
        assert_eq!(report.executions, 4 * u64::from(SIZE.executions), "seed {}", report.seed);
    }
}

#[test]
fn the_time_of_cleanup_may_end_before_that_of_the_execution() {
    let reports = run(
        "
name: cleanup
definition:
  finallyTimeoutMs: 1000
  steps: [{id: put, type: tool, tool: PUT, retry: {maxAttempts: 20, initialDelayMs: 10}}]
  finally: [{id: remove, type: tool, tool: REMOVE, retry: {maxAttempts: 20, initialDelayMs: 10}}]
effects:
  PUT: {return: 1}
  REMOVE: {return: 2}
expect: {status: completed}
",
        12,
        &[],
    );
    let failures: Vec<String> = reports.iter().map(|report| format!("{:?}", report.failures)).collect();
    assert!(failures.iter().all(|failure| !failure.contains("Deadline ")), "{failures:#?}");
    let late = failures.iter().filter(|failure| failure.contains("completed with failures")).count();
    assert!(late > 0, "no time of cleanup has ended: {failures:#?}");
}

#[test]
fn a_late_receipt_that_continues_a_turn_is_in_the_journal() {
    let text = "
name: each
definition:
  steps:
    - id: each
      type: loop
      forEach: {ref: '@input.items', concurrency: 2}
      steps:
        - {id: get, type: tool, tool: GET, transform: 'export default (x) => x.n', retry: {maxAttempts: 20, initialDelayMs: 10}}
input: {items: [1, 2, 3]}
effects:
  GET: {return: {n: 1}}
expect: {status: completed}
";
    // In seed 10 a paused node sends the receipt while the turn of the next attempt is yielded.
    let simulation = simulation(text).unwrap_or_else(|why| panic!("{why}"));
    for seed in 8..12 {
        let report = simulation.run(seed, SIZE, &[Fault::Pauses]);
        assert!(report.failures.is_empty(), "seed {seed}: {:?}", report.failures);
    }
}
