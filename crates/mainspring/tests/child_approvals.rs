//! Approvals of child executions: listed, shown and decided through the parent.

use std::fs;

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{time::rfc3339, value::Value};

mod support;
use support::{Answer, TestDir, at, call};

/// An approval, and then work.
const CHILD: &str = r#"
name: child
steps:
  - {id: gate, type: approval, prompt: "Child?"}
  - {id: work, type: bash, command: "echo child >> log"}
"#;

/// Starts the child from a workflow in between.
const MIDDLE: &str = "
name: middle
steps:
  - {id: inner, type: subworkflow, workflow: child}
";

/// An own approval, a child, and a child of a child, all in parallel.
const WIDE: &str = r#"
name: wide
steps:
  - id: all
    type: parallel
    steps:
      - {id: gate, type: approval, prompt: "Own?"}
      - {id: near, type: subworkflow, workflow: child}
      - {id: far, type: subworkflow, workflow: middle}
"#;

const ONE: &str = "
steps:
  - {id: sub, type: subworkflow, workflow: child}
  - {id: last, type: bash, command: echo parent >> log}
";

/// A folder with all definitions.
fn dir() -> TestDir {
    let dir = TestDir::new();
    for (name, text) in [("child", CHILD), ("middle", MIDDLE), ("wide", WIDE), ("one", ONE)] {
        fs::write(dir.root().join(format!("{name}.yaml")), text).unwrap();
    }
    dir
}

fn mainspring(dir: &TestDir, arguments: &[&str]) -> Answer {
    call(dir.mainspring(arguments), b"")
}

#[track_caller]
fn assert_printed(printed: &str, said: &[&str]) {
    for text in said {
        assert!(printed.contains(text), "{text:?} is not said:\n{printed}");
    }
}

fn status(dir: &TestDir) -> String {
    mainspring(dir, &["show", "p1", "--json"]).text("status")
}

fn log(dir: &TestDir) -> String {
    fs::read_to_string(dir.root().join("log")).unwrap_or_default()
}

#[test]
fn a_gate_of_a_child_is_shown_and_approved_at_its_parent() {
    for step in [&[][..], &["--step", "gate"], &["--step", "sub/gate"]] {
        let dir = dir();
        for look in [&["run", "one.yaml", "--id", "p1"][..], &["show", "p1"], &["tail", "p1"], &["resume", "p1"]] {
            let answer = mainspring(&dir, look);
            assert_eq!(answer.exit, Some(0), "{look:?}: {answer:?}");
            let said = ["p1 waiting_approval", "waits at `sub/gate`: Child?", "mainspring approve p1    or"];
            assert_printed(&answer.stdout, &said);
        }
        let approved = mainspring(&dir, &[&["approve", "p1"], step].concat());
        assert_eq!(approved.exit, Some(0), "{approved:?}");
        assert_printed(&approved.stdout, &["Child?", "✓ sub", "✓ last", "p1 completed"]);
        assert_eq!(log(&dir), "child\nparent\n");
        let again = mainspring(&dir, &["approve", "p1"]);
        assert_eq!(again.exit, Some(20), "{again:?}");
    }
}

#[test]
fn yes_approves_children() {
    let dir = dir();
    let answer = mainspring(&dir, &["run", "wide.yaml", "--id", "p1", "--yes"]);
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    assert_printed(&answer.stdout, &["p1 completed"]);
    assert_eq!(log(&dir), "child\nchild\n");
}

#[test]
fn a_denial_in_a_child_cancels_its_parent() {
    let dir = dir();
    mainspring(&dir, &["run", "one.yaml", "--id", "p1"]);
    let denied = mainspring(&dir, &["deny", "p1"]);
    assert_printed(&denied.stdout, &["p1 cancelled", "approval_denied"]);
    assert_eq!((denied.exit, log(&dir).as_str()), (Some(0), ""), "{denied:?}");
}

/// The order in JSON: the own approval first, then those of children, each with its execution.
#[test]
fn json_lists_all_approvals() {
    let dir = dir();
    let ran = mainspring(&dir, &["run", "wide.yaml", "--id", "p1", "--json"]);
    for answer in [&ran, &mainspring(&dir, &["show", "p1", "--json"])] {
        assert_eq!(answer.text("status"), "needs_approval", "{answer:?}");
        let envelope = answer.envelope();
        let texts = |key: &str| -> Vec<Option<String>> {
            let gates = (0..3).map(|place| at(&envelope, &format!("approvals.{place}.{key}")));
            gates.map(|text| text.as_text().map(String::from)).collect()
        };
        let some = |text: &str| Some(text.to_string());
        assert_eq!(texts("stepId"), [some("gate"), some("gate"), some("gate")]);
        assert_eq!(texts("path"), [None, some("near/gate"), some("far/inner/gate")]);
        assert_eq!(texts("prompt"), [some("Own?"), some("Child?"), some("Child?")]);
        assert_eq!(at(&envelope, "approvals").as_list().map(<[Value]>::len), Some(3));
        assert_eq!(at(&envelope, "requiresApproval"), at(&envelope, "approvals.0"));
        assert_eq!(texts("executionId")[0], None);
        for id in &texts("executionId")[1..] {
            let child = mainspring(&dir, &["show", id.as_deref().unwrap(), "--json"]);
            assert_eq!(child.text("requiresApproval.stepId"), "gate", "{child:?}");
        }
    }
    let required: Vec<_> =
        ran.events().into_iter().filter(|event| at(event, "type") == "approval.required".into()).collect();
    for (place, event) in required.iter().enumerate() {
        let gate = ran.at(&format!("approvals.{place}"));
        for key in ["stepId", "path", "resumeToken"] {
            assert_eq!(at(event, key), at(&gate, key), "{event:?}");
        }
        let execution = at(&gate, "executionId");
        let execution = if execution == Value::Null { "p1".into() } else { execution };
        assert_eq!(at(event, "executionId"), execution);
    }
    assert_eq!(required.len(), 3, "{ran:?}");
}

#[test]
fn a_decision_needs_the_step_if_several_approvals_are_open() {
    let dir = dir();
    let ran = mainspring(&dir, &["run", "wide.yaml", "--id", "p1"]);
    assert_printed(&ran.stdout, &["mainspring deny p1 --step far/inner/gate", "mainspring approve p1 --step gate "]);
    for (step, exit, said) in [
        (&[][..], 10, "name one with --step: gate, near/gate, far/inner/gate"),
        (&["--step", "none"], 20, "open now: `gate`, `near/gate`, `far/inner/gate`"),
        (&["--step", "ate"], 20, "there is no approval `ate`"),
    ] {
        let answer = mainspring(&dir, &[&["approve", "p1"], step].concat());
        assert_eq!(answer.exit, Some(exit), "{answer:?}");
        assert_printed(&answer.stderr, &[said]);
    }
    // A full path takes precedence over a suffix: `gate` is the approval of the execution itself.
    for (step, left) in [("gate", 2), ("inner/gate", 1), ("near/gate", 0)] {
        let answer = mainspring(&dir, &["approve", "p1", "--step", step, "--json"]);
        assert_eq!(answer.at("approvals").as_list().map(<[Value]>::len), Some(left), "{step}: {answer:?}");
    }
    assert_eq!(status(&dir), "ok");
}

/// An expired approval of a child is about to be decided, so the command waits for it.
#[test]
fn a_run_waits_for_the_expiry_of_a_childs_approval() {
    let dir = dir();
    // Long enough for the run to reach the approval.
    let child = CHILD.replace("type: approval", "type: approval, ttlMs: 1500, onTimeout: approve");
    fs::write(dir.root().join("child.yaml"), child).unwrap();
    let expires_at = mainspring(&dir, &["run", "one.yaml", "--id", "p1", "--json"]).text("approvals.0.expiresAt");
    while rfc3339(now_ms()) <= expires_at {
        std::thread::yield_now();
    }
    let answer = mainspring(&dir, &["resume", "p1"]);
    assert_printed(&answer.stdout, &["p1 completed"]);
}
