//! Repeated runs with an existing name: an equal request attaches, and a different one is an error that changes
//! nothing.

use std::fs;

use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};

mod support;
use support::{Answer, TestDir, call, request, yaml};

const DEFINITION: &str = "
steps:
  - {id: a, type: bash, command: echo >> log}
  - {id: gate, type: approval, prompt: '@vars.x'}
";

/// Flags of `mainspring run`, and the reported difference to `--var x=1 --input '{\"n\": 1}' --max-steps 9`.
const FLAGS: &[(&[&str], &[&str])] = &[
    (&["--var", "x=2", "--input", "{\"n\":1}", "--max-steps", "9"], &["variable `x` was 1", "is now 2"]),
    (&["--input", "{\"n\":1}", "--max-steps", "9"], &["variable `x` was 1", "is now not given"]),
    (&["--var", "x=1", "--var", "y=a", "--input", "{\"n\":1}", "--max-steps", "9"], &["variable `y` was not given"]),
    (&["--var", "x=1", "--input", "{\"n\":2}", "--max-steps", "9"], &["the input was {\"n\":1}", "is now {\"n\":2}"]),
    (&["--var", "x=1", "--max-steps", "9"], &["the input was {\"n\":1}", "is now null"]),
    (&["--var", "x=1", "--input", "{\"n\":1}"], &["the bound on steps was 9", "is now 50"]),
    (
        &["--var", "x=1", "--input", "{\"n\":1}", "--max-steps", "9", "--max-parallel", "2", "--timeout-ms", "7000"],
        &["the bound on branches at a time was 4", "the bound on milliseconds was not given", "is now 7000"],
    ),
    (
        &["--var", "x=1", "--input", "{\"n\":1}", "--max-steps", "9", "--workspace", "home"],
        &["the workspace was", "/home\""],
    ),
];

const SAME: &[&str] = &["--var", "x=1", "--input", " {\"n\": 1.0}", "--max-steps", "9"];

fn run(dir: &TestDir, more: &[&[&str]]) -> Answer {
    call(dir.mainspring(&[&["run", "wf.yaml", "--id", "e1"], more.concat().as_slice()].concat()), b"")
}

#[test]
fn a_run_with_other_input_is_refused_with_the_difference() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    let first = run(&dir, &[SAME]);
    assert_eq!(first.exit, Some(0), "{first:?}");
    let log = fs::read_to_string(dir.root().join("log")).unwrap();
    for (flags, said) in FLAGS {
        for detach in [&[][..], &["--detach"]] {
            let answer = run(&dir, &[flags, detach]);
            assert_eq!(answer.exit, Some(20), "{flags:?}: {answer:?}");
            for text in said.iter().chain(&["`e1`", "mainspring resume e1"]) {
                assert!(answer.stderr.contains(text), "{flags:?}: {text:?} is not said: {answer:?}");
            }
        }
        let answer = run(&dir, &[flags, &["--json"]]);
        assert_eq!(answer.text("error.code"), "request_mismatch", "{flags:?}");
        assert!(answer.at("error.details.differs").as_list().is_some_and(|list| !list.is_empty()), "{answer:?}");
    }
    // An equal request from another folder attaches too, since it names no workspace.
    for detach in [&[][..], &["--detach"]] {
        let again = run(&dir, &[SAME, detach]);
        assert_eq!(again.exit, Some(0), "{again:?}");
    }
    let mut elsewhere = dir.mainspring(&["run", "../wf.yaml", "--id", "e1"]);
    elsewhere.args(SAME).current_dir(dir.workspace());
    assert_eq!(call(elsewhere, b"").exit, Some(0));
    fs::write(dir.root().join("wf.yaml"), DEFINITION.replace("log", "other")).unwrap();
    for detach in [&["--json"][..], &["--detach", "--json"]] {
        let other = run(&dir, &[SAME, detach]);
        assert_eq!((other.exit, other.text("error.code").as_str()), (Some(20), "hash_mismatch"), "{other:?}");
    }
    assert_eq!(fs::read_to_string(dir.root().join("log")).unwrap(), log, "nothing ran again");
}

/// A repeated idempotency key returns the first execution; the rest of the request is not compared.
#[test]
fn a_repeated_idempotency_key_gives_the_first_execution() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    let with_key = |x: &str| {
        let variable = format!("x={x}");
        call(dir.mainspring(&["run", "wf.yaml", "--idempotency-key", "k", "--json", "--var", &variable]), b"")
    };
    let (first, second) = (with_key("1"), with_key("2"));
    assert_eq!(second.exit, Some(0), "{second:?}");
    assert_eq!(first.text("executionId"), second.text("executionId"));
    assert_eq!(second.text("requiresApproval.prompt"), "1");
}

/// Requests and flags of `workflow run`, with the reported differences.
const REQUESTS: &[(&str, &[&str], &[&str])] = &[
    (r#"{"variables": {"x": 1}, "input": [1]}"#, &[], &[]),
    (r#"{"variables": {"x": 1}, "input": [1], "runtime": {"attempt": 2}}"#, &[], &[]),
    (r#"{"variables": {"x": 1}, "input": [1], "runtime": {"policy": {"maxSteps": 50}}}"#, &[], &[]),
    (r#"{"variables": {"x": 1}, "input": [1]}"#, &["--max-parallel", "4"], &[]),
    (r#"{"variables": {"x": 2}, "input": [1]}"#, &[], &["variable `x`"]),
    (r#"{"variables": {"x": 1}, "input": []}"#, &[], &["the input"]),
    (r#"{"variables": {"x": 1}, "input": [1]}"#, &["--max-steps", "3"], &["the bound on steps"]),
    (r#"{"variables": {"x": 1}, "input": [1], "runtime": {"policy": {"timeoutMs": 5}}}"#, &[], &["on milliseconds"]),
    (r#"{"variables": {"x": 1}, "input": [1]}"#, &["--workspace"], &["the workspace"]),
];

#[test]
fn the_workflow_executable_detects_differences() {
    let (dir, definition) = (TestDir::new(), yaml(DEFINITION));
    let with = |more: &str| {
        let (mut whole, more) =
            (json::read(&request(&definition)).unwrap().value, json::read(more.as_bytes()).unwrap());
        let (Value::Map(whole_map), Value::Map(more)) = (&mut whole, more.value) else { panic!("objects") };
        whole_map.extend(more);
        compact(&whole).into_bytes()
    };
    let first = call(dir.run("e", &definition), &with(REQUESTS[0].0)).expect(0, "needs_approval");
    for (more, flags, said) in REQUESTS {
        let mut command = dir.run("e", &definition);
        if *flags == ["--workspace"] {
            let other = dir.root().join("other");
            fs::create_dir(&other).unwrap();
            let hash = support::hash_of(&definition);
            let arguments = ["run", "--execution-id", "e", "--workflow-hash", &hash, "--workspace"];
            command = dir.workflow(&arguments);
            command.arg(other);
        } else {
            command.args(*flags);
        }
        let answer = call(command, &with(more));
        if said.is_empty() {
            assert_eq!(answer.expect(0, "needs_approval").envelope(), first.envelope(), "{more} {flags:?}");
            continue;
        }
        let answer = answer.expect(20, "failed");
        assert_eq!(answer.text("error.code"), "request_mismatch", "{more} {flags:?}");
        for text in said.iter().chain(&["`e`", "--execution-id"]) {
            assert!(answer.text("error.message").contains(text), "{more} {flags:?}: {text:?}: {answer:?}");
        }
        assert!(answer.events().is_empty(), "{answer:?}");
    }
    assert_eq!(dir.file("log"), "\n");
}
