//! Output for people and programs: the execution that a step runs, the reason for a skip, the purpose of a wait,
//! the number of steps, the errors of an input.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use mainspring_kernel::value::Value;

mod support;
use support::{Answer, TestDir, at, call};

fn mainspring(dir: &TestDir, arguments: &[&str]) -> Answer {
    call(dir.mainspring(arguments), b"")
}

fn with(files: &[(&str, &str)]) -> TestDir {
    let dir = TestDir::new();
    for (name, text) in files {
        fs::write(dir.root().join(name), text).unwrap();
    }
    dir
}

#[track_caller]
fn assert_printed(printed: &str, said: &[&str]) {
    for text in said {
        assert!(printed.contains(text), "{text:?} is not said:\n{printed}");
    }
}

/// A child that fails the first time: each attempt of the step runs an execution of its own.
#[test]
fn a_subworkflow_step_names_its_execution() {
    let child = "steps:\n  - {id: a, type: bash, command: '[ -e there ] || { touch there; exit 3; }'}\n  - {id: gate, type: approval}\n";
    let parent = "steps: [{id: sub, type: subworkflow, workflow: child, retry: {maxAttempts: 2, initialDelayMs: 1, retryOn: [failed]}}]\n";
    let dir = with(&[("child.yaml", child), ("wf.yaml", parent)]);
    let ran = mainspring(&dir, &["run", "wf.yaml", "--id", "p1"]);
    let shown = mainspring(&dir, &["show", "p1", "--json"]);
    let children: Vec<String> = (0..2).map(|place| shown.text(&format!("steps.{place}.childExecutionId"))).collect();
    assert_ne!(children[0], children[1]);
    for (child, status) in children.iter().zip(["failed", "needs_approval"]) {
        assert_eq!(mainspring(&dir, &["show", child, "--json"]).text("status"), status);
    }
    for printed in [ran.stdout, mainspring(&dir, &["tail", "p1"]).stdout] {
        assert_printed(&printed, &[&format!("sub  runs {}", children[0]), &format!("attempt 2, runs {}", children[1])]);
    }
    let printed = mainspring(&dir, &["show", "p1"]).stdout;
    assert_printed(&printed, &[&format!("  ran {}", children[0]), &format!("sub #2  runs {}", children[1])]);
}

const GRAPH: &str = "
nodes:
  - {id: a, type: bash, command: exit 3, onError: continue}
  - {id: off, type: bash, command: 'true', when: false}
  - {id: b, type: bash, command: 'true'}
  - {id: c, type: bash, command: 'true'}
  - {id: d, type: bash, command: 'true'}
  - {id: e, type: bash, command: 'true'}
  - {id: f, type: bash, command: 'true'}
  - {id: g, type: bash, command: 'true'}
  - {id: h, type: bash, command: 'true'}
edges:
  - {from: a, to: b, when: on_success}
  - {from: off, to: b, when: skip}
  - {from: b, to: c}
  - {from: off, to: d, when: skip}
  - {from: d, to: e, when: always, condition: {ref: '@d.exitCode', eq: 9}}
  - {from: d, to: f, when: on_failure}
  - {from: d, to: g, when: skip}
  - {from: a, to: h, when: skip}
  - {from: b, to: h}
";

#[test]
fn skipped_steps_name_the_blocking_condition() {
    let dir = with(&[("wf.yaml", GRAPH)]);
    let ran = mainspring(&dir, &["run", "wf.yaml", "--id", "e1", "--json"]);
    let steps = ran.at("steps");
    for (id, words) in [
        ("b", "`a` failed"),
        ("c", "`b` was skipped"),
        ("e", "the condition of the edge from `d` does not hold"),
        ("f", "`d` did not fail"),
        ("g", "`d` was not skipped"),
        ("h", "`a` failed, `b` was skipped"),
    ] {
        let step = steps.as_list().unwrap().iter().find(|step| at(step, "stepId") == id.into()).unwrap();
        let words = Value::from(format!("no edge leads to it: {words}"));
        assert_eq!((at(step, "status"), at(step, "note")), ("skipped".into(), words.clone()));
        assert_eq!(at(step, "because"), words);
    }
    let shown = mainspring(&dir, &["show", "e1", "--verbose"]).stdout;
    assert_printed(&shown, &["b  0 ms  no edge leads to it: `a` failed\n"]);
}

#[test]
fn a_wait_names_its_signal() {
    let dir = with(&[("wf.yaml", "steps: [{id: w, type: signal, signal: paid, timeoutMs: 1}]\n")]);
    let ran = mainspring(&dir, &["run", "wf.yaml"]);
    assert_printed(&ran.stdout, &["w  waits for the signal paid, at most 1 ms\n"]);
}

#[test]
fn steps_are_counted_as_they_were_written() {
    let each = "steps:\n  - {id: a, type: bash, command: 'true'}\n  - {id: b, type: bash, forEach: {ref: '@vars.list'}, command: 'true'}\n";
    for (text, said) in
        [(each, "2 steps, sha256"), ("steps: [{id: a, type: bash, command: 'true'}]\n", "1 step, sha256")]
    {
        let dir = with(&[("wf.yaml", text)]);
        assert_printed(&mainspring(&dir, &["validate", "wf.yaml"]).stdout, &[said]);
    }
}

#[test]
fn a_failure_in_a_round_names_the_round() {
    let each = "steps:\n  - {id: b, type: bash, forEach: {ref: '@vars.list'}, env: {N: '@item'}, command: exit $N}\n";
    let dir = with(&[("wf.yaml", each)]);
    let ran = mainspring(&dir, &["run", "wf.yaml", "--var", "list=[0,3]"]);
    assert_printed(&ran.stdout, &["  bash_exit_code:3 in `b[1]`: "]);
}

/// No displayed line has trailing blanks, even if a step has printed some.
#[test]
fn lines_have_no_trailing_spaces() {
    let text = "steps:\n  - {id: c, type: code, code: 'export default () => { console.log(\"\"); console.log(\"a \\n\\nb\"); }'}\n  - {id: gate, type: approval, prompt: \"one \\n\\ntwo\"}\n";
    let dir = with(&[("wf.yaml", text)]);
    for arguments in
        [&["run", "wf.yaml", "--id", "e1"][..], &["show", "e1"], &["show", "e1", "--verbose"], &["tail", "e1"]]
    {
        let printed = mainspring(&dir, arguments).stdout;
        assert_printed(&printed, &["two"]);
        assert!(printed.lines().all(|line| line.trim_end() == line), "{arguments:?}: {printed:?}");
    }
}

const SCHEMA: &str = "
inputSchema:
  type: object
  properties: {n: {type: integer, default: 3}, s: {type: string}, t: {type: boolean}}
steps:
  - {id: a, type: bash, env: {N: '@input.n'}, command: 'printf %s \"$N\"'}
";

/// If the schema requires an object and none is given, the defaults of its properties apply.
#[test]
fn a_missing_input_is_an_empty_object_if_the_schema_needs_one() {
    let dir = with(&[("wf.yaml", SCHEMA), ("list.yaml", &SCHEMA.replace("type: object", "type: [object, string]"))]);
    let ran = mainspring(&dir, &["run", "wf.yaml", "--json"]);
    assert_eq!(ran.text("steps.0.output.stdout"), "3", "{ran:?}");
    let ran = mainspring(&dir, &["run", "list.yaml", "--json"]);
    assert_eq!(ran.exit, Some(10), "{ran:?}");
}

#[test]
fn all_mismatches_are_listed() {
    let dir = with(&[("wf.yaml", SCHEMA)]);
    let ran = mainspring(&dir, &["run", "wf.yaml", "--input", r#"{"n": "x", "s": 1, "t": 2}"#]);
    assert_eq!(ran.exit, Some(10), "{ran:?}");
    assert_printed(&ran.stderr, &["in 3 places", "`n`: ", "`s`: ", "`t`: "]);
}

#[test]
fn calls_are_bounded_by_a_flag() {
    let two = "steps:\n  - {id: a, type: bash, command: echo >> log}\n  - {id: b, type: bash, command: echo >> log}\n";
    let dir = with(&[("wf.yaml", two)]);
    let run = |calls: &str| mainspring(&dir, &["run", "wf.yaml", "--id", &format!("e{calls}"), "--max-calls", calls]);
    assert_eq!((run("2").exit, run("1").exit), (Some(0), Some(30)));
    assert_eq!(fs::read_to_string(dir.root().join("log")).unwrap().lines().count(), 3);
    let verified = mainspring(&dir, &["verify", "--all"]);
    assert_eq!(verified.exit, Some(0), "{verified:?}");
    let otherwise = mainspring(&dir, &["run", "wf.yaml", "--id", "e1", "--max-calls", "5"]);
    assert_eq!(otherwise.exit, Some(20), "{otherwise:?}");
    assert_printed(&otherwise.stderr, &["the bound on calls was 1 and is now 5"]);
}

#[test]
fn a_refused_address_names_the_setting_that_allows_it() {
    let http = "steps: [{id: a, type: http, url: 'http://127.0.0.1:9/x', retry: {maxAttempts: 1}}]\n";
    let dir = with(&[("wf.yaml", http)]);
    let ran = mainspring(&dir, &["run", "wf.yaml", "--json"]);
    assert_eq!(ran.text("error.code"), "http_address_refused");
    let entry = "MAINSPRING_HTTP_ALLOW=127.0.0.1:9";
    assert_printed(&ran.text("error.message"), &[entry]);
    let mut command = dir.mainspring(&["run", "wf.yaml", "--json"]);
    command.env("MAINSPRING_HTTP_ALLOW", entry.split_once('=').unwrap().1);
    assert_ne!(call(command, b"").text("error.code"), "http_address_refused");
}

/// A settled run leaves no work, however short it was.
#[test]
fn executions_that_were_not_delegated_are_not_resumed() {
    let dir = with(&[
        ("gate.yaml", "steps: [{id: a, type: approval}]\n"),
        ("return.yaml", "steps: [{id: a, type: return}]\n"),
    ]);
    for file in ["gate.yaml", "return.yaml"].repeat(8) {
        let ran = mainspring(&dir, &["run", file]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{file}");
    }
}

/// A child that its parent does not wait for ends before the process does, and the message names it as such a
/// child.
#[test]
fn detached_children_are_reported_as_such() {
    let child = "steps: [{id: a, type: bash, command: 'read -r line < go; echo $line >> log'}]\n";
    let parent = "steps: [{id: sub, type: subworkflow, workflow: child, wait: false}]\n";
    let dir = with(&[("child.yaml", child), ("wf.yaml", parent)]);
    assert!(Command::new("mkfifo").arg(dir.root().join("go")).status().unwrap().success());
    let mut run = dir.mainspring(&["run", "wf.yaml"]);
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(run.stderr.as_mut().unwrap()).read_line(&mut told).unwrap();
    assert_printed(&told, &["continuing with a workflow that was started and is not waited for"]);
    fs::write(dir.root().join("go"), "done\n").unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(fs::read_to_string(dir.root().join("log")).unwrap(), "done\n");
}

/// A range of a long execution's attempts can be shown, with their total number.
#[test]
fn show_prints_a_range_of_attempts() {
    let definition = "steps: [{id: all, type: loop, while: {ref: '@index', lt: 9}, steps: [{id: c, type: conditional, condition: true, then: []}]}]";
    let dir = with(&[("wf.yaml", definition)]);
    mainspring(&dir, &["run", "wf.yaml", "--id", "e", "--max-steps", "100"]);
    let part = mainspring(&dir, &["show", "e", "--json", "--skip", "3", "--limit", "2"]);
    assert_eq!(part.at("stepCount"), 10u64.into());
    let names: Vec<_> = part.at("steps").as_list().unwrap().iter().map(|step| at(step, "stepId")).collect();
    assert_eq!(names, [Value::from("all[2].c"), Value::from("all[3].c")]);
    assert_eq!(mainspring(&dir, &["show", "e", "--json"]).at("stepCount"), Value::Null);
    for (arguments, said) in [
        (["--skip", "0", "--limit", "4"], "1 to 4 of 10 attempts; --skip 4 continues from here"),
        (["--skip", "8", "--limit", "4"], "9 to 10 of 10 attempts\n"),
        (["--skip", "99", "--limit", "4"], "none of 10 attempts\n"),
    ] {
        let shown = mainspring(&dir, &[&["show", "e"][..], &arguments].concat()).stdout;
        assert_printed(&shown, &[said]);
    }
}

/// A warning is an error with `--strict`, and no longer one if the file allows it.
#[test]
fn strict_validation_refuses_warnings() {
    let warned = "steps: [{id: a, type: bash, command: 'true', when: false}]\n";
    let allowed = "allow: [step_never_runs]\nsteps: [{id: a, type: bash, command: 'true', when: false}]\n";
    let dir = with(&[("warned.yaml", warned), ("allowed.yaml", allowed)]);
    let exits = |arguments: &[&str], exit: i32| {
        let answer = mainspring(&dir, arguments);
        assert_eq!(answer.exit, Some(exit), "{arguments:?}: {answer:?}");
        answer
    };
    assert_printed(&exits(&["validate", "warned.yaml"], 0).stderr, &["warning[step_never_runs]"]);
    assert_printed(&exits(&["validate", "--strict", "warned.yaml"], 10).stderr, &["--strict", "step_never_runs"]);
    assert!(exits(&["validate", "--strict", "allowed.yaml"], 0).stderr.is_empty());
    let refused = exits(&["validate", "--strict", "--json", "warned.yaml"], 10);
    assert_eq!(refused.text("status"), "invalid");
    assert_eq!(refused.text("errors.0.code"), "step_never_runs");
    assert_eq!(refused.text("errors.0.severity"), "error");
    for (file, strict, exit) in [("warned.yaml", false, 0), ("warned.yaml", true, 10), ("allowed.yaml", true, 0)] {
        let path = dir.root().join(file);
        let mut arguments = vec!["validate", "--workflow-path", path.to_str().unwrap()];
        arguments.extend(strict.then_some("--strict"));
        let answer = call(dir.workflow(&arguments), b"");
        assert_eq!(answer.exit, Some(exit), "{arguments:?}: {answer:?}");
    }
}

/// `finally` runs after a failure and after a cancel, and `--force` skips it, in both executables.
#[test]
fn cleanup_runs_after_every_outcome() {
    let text = "steps:\n  - {id: make, type: bash, command: touch made}\n  - {id: gate, type: approval}\n\
                finally:\n  - {id: remove, type: bash, env: {END: '@ctx.outcome'}, command: 'rm made; echo \"$END\" > end'}\n";
    let failing = text.replace("type: approval", "type: bash, command: exit 3");
    let dir = with(&[("wf.yaml", text), ("failing.yaml", &failing)]);
    let ended = |outcome: &str| {
        let end = fs::read_to_string(dir.root().join("end")).unwrap_or_default();
        assert_eq!((end.trim(), dir.root().join("made").exists()), (outcome, outcome.is_empty()));
        let _ = fs::remove_file(dir.root().join("end"));
    };
    assert_eq!(mainspring(&dir, &["run", "failing.yaml", "--id", "e1"]).exit, Some(40));
    ended("failed");
    mainspring(&dir, &["run", "wf.yaml", "--id", "e2"]);
    mainspring(&dir, &["cancel", "e2"]);
    ended("cancelled");
    mainspring(&dir, &["run", "wf.yaml", "--id", "e3"]);
    mainspring(&dir, &["deny", "e3"]);
    ended("denied");
    mainspring(&dir, &["run", "wf.yaml", "--id", "e4"]);
    mainspring(&dir, &["cancel", "e4", "--force"]);
    ended("");
    assert_eq!(mainspring(&dir, &["show", "e4", "--json"]).text("status"), "cancelled");
    let ran = dir.ran("w1", &support::yaml(&failing));
    assert_eq!(ran.text("status"), "failed");
    assert_eq!(fs::read_to_string(dir.workspace().join("end")).unwrap().trim(), "failed");
    assert!(!dir.workspace().join("made").exists());
}
