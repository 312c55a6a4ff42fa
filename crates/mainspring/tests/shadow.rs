//! `mainspring shadow`: recorded executions are replayed, and nothing is performed.

use std::fs;

mod support;
use mainspring_kernel::value::Value;
use support::{Answer, TestDir, call};

/// Two scripts, of which the second depends on the first, and a branch. The scripts count their runs in a file.
const OLD: &str = r#"
name: release
steps:
  - {id: build, type: bash, command: "echo build >> log"}
  - {id: large, type: conditional, condition: {ref: "@build.exitCode", lt: 1}, then: [{id: ask, type: approval, prompt: "Ship it?"}]}
  - {id: ship, type: bash, command: "echo ship >> log"}
"#;

fn recorded() -> TestDir {
    let dir = TestDir::new();
    fs::write(dir.root().join("old.yaml"), OLD).unwrap();
    for id in ["r1", "r2"] {
        let ran = call(dir.mainspring(&["run", "old.yaml", "--id", id, "--yes"]), b"");
        assert_eq!(ran.exit, Some(0), "{ran:?}");
    }
    dir
}

fn runs(dir: &TestDir) -> usize {
    fs::read_to_string(dir.root().join("log")).unwrap_or_default().lines().count()
}

fn shadow(dir: &TestDir, new: &str, flags: &[&str]) -> Answer {
    fs::write(dir.root().join("new.yaml"), new).unwrap();
    let before = runs(dir);
    let answer = call(dir.mainspring(&[&["shadow", "new.yaml"], flags].concat()), b"");
    assert_eq!(runs(dir), before, "a shadow run has run a script: {answer:?}");
    answer
}

fn grades(answer: &Answer) -> Vec<String> {
    let report = answer.envelope();
    let executions = report.get("executions").and_then(Value::as_list).unwrap().to_vec();
    executions.iter().map(|one| one.get("grade").and_then(Value::as_text).unwrap().to_string()).collect()
}

#[test]
fn a_change_is_compared_with_the_past() {
    let dir = recorded();
    assert_eq!(runs(&dir), 4);
    let same = shadow(&dir, OLD, &["--json", "--fail-on-difference"]);
    assert_eq!((same.exit, grades(&same)), (Some(0), vec!["same".into(), "same".into()]), "{same:?}");
    // Another branch is another path, which the recorded answers cover.
    let smaller = OLD.replace("lt: 1", "lt: 0");
    let path = shadow(&dir, &smaller, &["--json", "--against", "r1"]);
    assert_eq!(grades(&path), ["other_path"], "{path:?}");
    assert_eq!(shadow(&dir, &smaller, &["--fail-on-difference"]).exit, Some(1));
    // Another input to a script has no answer. Steps behind it are not reached.
    let other = OLD.replace("echo ship >> log", "echo ship --force >> log");
    let text = shadow(&dir, &other, &["--against", "r2"]);
    for part in ["r2 other input", "no answer: ship (bash): other input", "input ship command", "open at the horizon"] {
        assert!(text.stdout.contains(part), "{part}: {text:?}");
    }
    // A new script has no answer either.
    let more = format!("{OLD}  - {{id: tell, type: bash, command: \"echo tell >> log\"}}\n");
    assert_eq!(grades(&shadow(&dir, &more, &["--json"])), ["no_answer", "no_answer"]);
    // So has an approval with another question.
    let question = OLD.replace("Ship it?", "Ship it now?");
    let text = shadow(&dir, &question, &["--against", "r1"]);
    assert!(text.stdout.contains("no answer: ask (approval): other input"), "{text:?}");
}

#[test]
fn executions_that_do_not_exist_are_bad_input() {
    let dir = recorded();
    for (flags, said) in [
        (["--against", "r9"], "there is no execution `r9`"),
        (["--against", "last:0"], "write last:1 to last:50"),
        (["--against", "last:51"], "write last:1 to last:50"),
        (["--workflow", "other"], "there is no ended execution of the workflow `other`"),
    ] {
        let answer = shadow(&dir, OLD, &flags);
        assert!(answer.exit == Some(10) && answer.stderr.contains(said), "{said}: {answer:?}");
    }
    assert_eq!(shadow(&dir, "steps: []\n", &[]).exit, Some(10));
}

/// Timers fire some milliseconds after they are due, and functions take time. The time of a decision after them is in the
/// output of its gate.
#[test]
fn an_execution_with_late_timers_and_functions_is_the_same_as_itself() {
    let dir = TestDir::new();
    let code = "export default function () { return 1; }";
    let sleeps: String = (0..20).map(|n| format!("  - {{id: s{n}, type: sleep, durationMs: 1}}\n")).collect();
    let waits = format!(
        "name: waits\nsteps:\n{sleeps}  - {{id: c, type: code, code: '{code}'}}\n  - {{id: ask, type: approval, prompt: Go?, outputVariable: asked}}\n"
    );
    fs::write(dir.root().join("old.yaml"), &waits).unwrap();
    let ran = call(dir.mainspring(&["run", "old.yaml", "--id", "r1", "--yes"]), b"");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let same = shadow(&dir, &waits, &["--json", "--fail-on-difference"]);
    assert_eq!((same.exit, grades(&same)), (Some(0), vec!["same".into()]), "{same:?}");
}
