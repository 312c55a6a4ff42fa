//! `mainspring review`: output, JSON and exit codes, without a server.

mod support;

use std::{fs, process::Command};

use mainspring_kernel::{json, value::Value};
use support::{Answer, MAINSPRING, TestDir, call};

const OLD: &str =
    "steps:\n  - {id: ask, type: approval, prompt: Ship?}\n  - {id: ship, type: tool, tool: t.ship, arguments: {}}\n";

fn review(new: &str, flags: &[&str]) -> Answer {
    let folder = TestDir::new();
    let (before, after) = (folder.root().join("old.yaml"), folder.root().join("new.yaml"));
    fs::write(&before, OLD).unwrap();
    fs::write(&after, new).unwrap();
    let mut command = Command::new(MAINSPRING);
    command.arg("review").args([&before, &after]).args(flags).env("HOME", folder.root());
    call(command, b"")
}

#[test]
fn a_removed_gate_is_shown_and_fails_a_pipeline() {
    let new = "steps:\n  - {id: ship, type: tool, tool: t.ship, arguments: {}}\n";
    let shown = review(new, &[]);
    assert_eq!(shown.exit, Some(0), "{shown:?}");
    for part in ["gate_removed steps[0]", "The approval \"ask\" is gone.", "step removed ask", "risk: high"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    for (bound, exit) in [("low", 1), ("medium", 1), ("high", 1)] {
        assert_eq!(review(new, &["--fail-on", bound]).exit, Some(exit));
    }
    let report = json::read(review(new, &["--json"]).stdout.as_bytes()).unwrap().value;
    let finding = &report.get("findings").and_then(Value::as_list).unwrap()[0];
    let keys: Vec<&str> = finding.as_map().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["code", "path", "reason", "severity"]);
    assert_eq!(report.get("risk"), Some(&"high".into()));
}

#[test]
fn a_low_risk_and_an_empty_change_pass() {
    let new = OLD.replace("arguments: {}", "arguments: {n: 1}");
    assert_eq!(review(&new, &["--fail-on", "medium"]).exit, Some(0));
    assert_eq!(review(&new, &["--fail-on", "low"]).exit, Some(1));
    let same = review(OLD, &["--fail-on", "low"]);
    assert!(same.exit == Some(0) && same.stdout.contains("no difference"), "{same:?}");
}

#[test]
fn a_definition_that_does_not_compile_is_bad_input() {
    let answer = review("steps: []\n", &[]);
    assert!(answer.exit == Some(10) && answer.stderr.contains("new.yaml"), "{answer:?}");
    assert_eq!(review(OLD, &["--fail-on", "none"]).exit, Some(10));
    assert_eq!(review(OLD, &["--server", "http://127.0.0.1:1"]).exit, Some(10));
}
