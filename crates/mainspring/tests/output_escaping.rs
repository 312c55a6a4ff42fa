//! Display of untrusted text: no name or value looks like a line of Mainspring, and no control character reaches
//! the terminal.

use std::fs;

use mainspring_kernel::{json::compact, value::Value};

mod support;
use support::{TestDir, call, hash_of, request, yaml};

/// The start of every forged line.
const FORGED: &str = "  ✓ forged";

/// Characters that a terminal interprets or hides: an escape, a right-to-left override, a zero-width space, a line
/// separator.
const OBEYED: [&str; 4] = ["\u{1b}[", "\u{202e}", "\u{200b}", "\u{2028}"];

/// A text with all of them.
fn hostile(what: &str) -> String {
    format!("{what}\n{FORGED}{}", OBEYED.concat())
}

fn definition() -> Value {
    let text = |what: &str| Value::from(hostile(what));
    let mut definition = yaml(
        "steps:\n  - {id: a, type: bash, command: \"printf '%s' \\\"$TEXT\\\"; exit 3\", onError: continue}\n  - {id: gate, type: approval}\n",
    );
    if let Value::Map(map) = &mut definition {
        map.insert("name".into(), text("name"));
        map.insert("version".into(), text("version"));
        let Some(Value::List(steps)) = map.get_mut("steps") else { panic!("steps are a list") };
        for (step, key, value) in [
            (0, "env", Value::map([("TEXT", text("output"))])),
            (1, "prompt", text("prompt")),
            (1, "items", Value::List(vec![text("item")])),
        ] {
            let Value::Map(step) = &mut steps[step] else { panic!("a step is a map") };
            step.insert(key.into(), value);
        }
    }
    definition
}

#[track_caller]
fn check(what: &str, printed: &str) {
    for line in printed.lines() {
        assert!(!line.starts_with(FORGED), "{what}: a line is forged: {printed}");
        assert!(!line.starts_with('{'), "{what}: an event is forged: {printed}");
    }
    for obeyed in OBEYED {
        assert!(!printed.contains(obeyed), "{what}: {obeyed:?} is not escaped: {printed:?}");
    }
}

#[test]
fn names_and_texts_cannot_imitate_output_lines() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.json"), compact(&definition())).unwrap();
    for arguments in [
        &["run", "wf.json", "--id", "e1"][..],
        &["list"],
        &["approvals"],
        &["show", "e1", "--verbose"],
        &["tail", "e1"],
        &["verify", "--all"],
        &["validate", "wf.json"],
        &["plan", "wf.json"],
        &["show", "none\n  ✓ forged"],
        &["list", "none\n  ✓ forged"],
        &["cancel", "e1", "--reason", "reason\n  ✓ forged"],
        &["show", "e1"],
    ] {
        let answer = call(dir.mainspring(arguments), b"");
        check(&format!("{arguments:?}"), &answer.stdout);
        check(&format!("{arguments:?}"), &answer.stderr);
        assert!(!(answer.stdout + &answer.stderr).is_empty(), "{arguments:?}");
    }
    let shown = call(dir.mainspring(&["list"]), b"").stdout;
    assert!(shown.contains("name\\n  ✓ forged\\u{1b}["), "{shown}");
}

/// `workflow` accepts any execution id, and `mainspring` displays it.
#[test]
fn a_name_given_to_the_executable_of_a_sandbox_is_shown_on_one_line() {
    let (dir, id) = (TestDir::new(), hostile("e"));
    let definition = yaml("steps:\n  - {id: gate, type: approval}\n");
    call(dir.run(&id, &definition), &request(&definition)).expect(0, "needs_approval");
    let folder = fs::read_dir(dir.state()).unwrap().next().unwrap().unwrap().path();
    let folder = folder.to_str().unwrap();
    for command in [&["list"][..], &["show", "last"], &["tail", "last"], &["verify", "--all"], &["approve", "last"]] {
        let answer = call(dir.mainspring(&[command, &["--dir", folder]].concat()), b"");
        check(&format!("{command:?}"), &(answer.stdout.clone() + &answer.stderr));
        assert_eq!(answer.exit, Some(0), "{command:?}: {answer:?}");
    }
}

/// Programs parse the standard error of `workflow`, so no argument may forge an event.
#[test]
fn no_argument_forges_an_event() {
    let dir = TestDir::new();
    let forged = "x\n{\"type\":\"execution.finished\",\"status\":\"ok\"}";
    let definition = yaml("steps:\n  - {id: gate, type: approval}\n");
    let hash = hash_of(&definition);
    for arguments in [
        &["run", forged][..],
        &["resume", "--execution-id", forged, "--resume-token", "t"],
        &["run", "--execution-id", "e", "--workflow-hash", &hash, "--workspace", forged],
        &["propose", "--workflow-id", forged, "--base-hash", "x", "--intent", "y"],
    ] {
        let answer = call(dir.workflow(arguments), &request(&definition));
        assert!(answer.events().is_empty(), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains("workflow: "), "{arguments:?}: {answer:?}");
    }
}
