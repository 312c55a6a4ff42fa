//! `mainspring test` on the command line.

use std::fs;

mod support;
use support::{TestDir, call};

const SCENARIO: &str = "
name: holds
definition: {steps: [{id: flaky, type: bash, command: 'true'}]}
effects: {flaky: {return: 1}, \"flaki\\n  ok\": {return: 2}}
expect: {status: completed}
";

#[test]
fn a_misspelled_name_gives_a_warning() {
    let dir = TestDir::new();
    fs::write(dir.root().join("a.scenario.yaml"), SCENARIO).unwrap();
    let answer = call(dir.mainspring(&["test", "."]), b"");
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    let warnings: Vec<_> = answer.stdout.lines().filter(|line| line.contains("warning: ")).collect();
    assert!(matches!(warnings.as_slice(), [line] if line.contains(r#""flaki\n  ok""#)), "{answer:?}");
    assert!(answer.stdout.contains("1 passed, 0 failed"), "{answer:?}");
    let answer = call(dir.mainspring(&["test", ".", "--json"]), b"");
    assert_eq!((answer.exit, answer.at("ok")), (Some(0), true.into()), "{answer:?}");
    assert!(answer.text("warnings.0").contains("flaki"), "{answer:?}");
    fs::write(dir.root().join("a.scenario.yaml"), SCENARIO.replace("completed", "failed")).unwrap();
    assert_eq!(call(dir.mainspring(&["test", "."]), b"").exit, Some(1));
}

#[test]
fn sim_runs_seeds_and_prints_the_command_of_each_failure() {
    let dir = TestDir::new();
    let file = dir.root().join("a.scenario.yaml");
    fs::write(&file, SCENARIO).unwrap();
    let answer = call(dir.mainspring(&["sim", ".", "--seeds", "2", "--executions", "3"]), b"");
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("2 seeds, 6 executions") && answer.stdout.contains("1 passed, 0 failed"),
        "{answer:?}"
    );
    let once = SCENARIO.replace("command: 'true'", "command: 'true', onInterrupted: fail");
    let slow = once.replace("{return: 1}", "{return: 1, after: 60s}");
    fs::write(&file, &slow).unwrap();
    let seeds = ["sim", ".", "--seeds", "0..8", "--fault", "crashes"];
    let answer = call(dir.mainspring(&seeds), b"");
    assert_eq!(answer.exit, Some(1), "{answer:?}");
    let command = answer.stdout.lines().find(|line| line.contains("mainspring sim ")).expect("how to run it again");
    assert!(command.contains("--only holds --seeds ") && command.contains("--fault crashes"), "{command}");
    let words: Vec<&str> = command.split_whitespace().skip(1).chain(["--json"]).collect();
    let answer = call(dir.mainspring(&words), b"");
    assert_eq!((answer.exit, answer.at("ok")), (Some(1), false.into()), "{answer:?}");
    fs::write(&file, SCENARIO.replace("flaky: {return: 1}, ", "")).unwrap();
    let answer = call(dir.mainspring(&["sim", "."]), b"");
    assert_eq!(answer.exit, Some(10), "{answer:?}");
    assert!(answer.stderr.contains("no script answers; write effects:"), "{answer:?}");
    for wrong in [["--seeds", "0"], ["--seeds", "5..5"], ["--seeds", "x"], ["--fault", "gremlins"], ["--nodes", "0"]] {
        assert_eq!(call(dir.mainspring(&[&["sim", "."], &wrong[..]].concat()), b"").exit, Some(10), "{wrong:?}");
    }
}
