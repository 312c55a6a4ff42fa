//! `mainspring` at a terminal: prompts, answers and interrupts.

use std::{fs, process::Command};

use mainspring_kernel::value::Value;
use rexpect::{
    process::WaitStatus,
    reader::Options,
    session::{PtySession, spawn_with_options},
};

mod support;
use support::{TestDir, call};

/// An approval that shows the output of a step, and a step after it.
const RELEASE: &str = r#"
name: release
steps:
  - {id: count, type: bash, command: "printf 42"}
  - id: ask
    type: approval
    prompt: Send @count.stdout invoices to @vars.to?
    items:
      - {count: "@count.stdout", to: "@vars.to"}
  - {id: send, type: bash, command: "echo sent >> log"}
"#;

/// A step that reports its start, and hangs in its first attempt.
const HANGS: &str = r#"
steps:
  - id: a
    type: bash
    command: '[ "$MAINSPRING_ATTEMPT" = 2 ] || { echo begun > begun; read -r line < never; }; echo done >> log'
"#;

/// The prompt.
const QUESTION: &str = "[y]es, [n]o, [l]ater? ";

/// Runs a command in a pseudoterminal. The timeout only turns a hang into a failure.
fn at_a_terminal(command: Command) -> PtySession {
    let options = Options::new().timeout_ms(Some(60_000)).strip_ansi_escape_codes(true);
    spawn_with_options(command, options).unwrap()
}

/// The printed text. The library represents each byte as one character.
fn text(read: &str) -> String {
    String::from_utf8(read.chars().map(|letter| u8::try_from(letter).expect("a byte")).collect()).unwrap()
}

/// The remaining output, and the exit code.
fn run_to_end(mut terminal: PtySession) -> (String, i32) {
    let printed = text(&terminal.exp_eof().unwrap());
    match terminal.process().wait().unwrap() {
        WaitStatus::Exited(_, code) => (printed, code),
        other => panic!("{other:?}: {printed}"),
    }
}

#[track_caller]
fn assert_printed(printed: &str, said: &[&str]) {
    for text in said {
        assert!(printed.contains(text), "{text:?} is not said:\n{printed}");
    }
}

/// Runs the release up to its prompt, which must show the items.
fn run_to_prompt(dir: &TestDir) -> PtySession {
    fs::write(dir.root().join("wf.yaml"), RELEASE).unwrap();
    let command = dir.mainspring(&["run", "wf.yaml", "--id", "r1", "--var", "to=ann\n  ✓ all\u{1b}[2J"]);
    let mut terminal = at_a_terminal(command);
    let shown = text(&terminal.exp_string(QUESTION).unwrap());
    assert_printed(
        &shown,
        &["release r1", "✓ count", "Send 42 invoices to ann", "\"count\": \"42\"", r#""to": "ann\n  ✓ all\u001b[2J""#],
    );
    assert!(shown.lines().all(|line| !line.starts_with("  ✓ all")), "a value forges no line:\n{shown}");
    terminal
}

/// The stored status and steps; true if the step after the approval ran.
fn kept(dir: &TestDir) -> (String, Value, bool) {
    let shown = call(dir.mainspring(&["show", "r1", "--json"]), b"");
    (shown.text("status"), shown.at("steps"), dir.root().join("log").exists())
}

#[test]
fn yes_approves_and_continues() {
    let dir = TestDir::new();
    let mut terminal = run_to_prompt(&dir);
    terminal.send_line("what?").unwrap();
    terminal.exp_string(QUESTION).expect("what is no answer is asked again");
    terminal.send_line("y").unwrap();
    let (printed, exit) = run_to_end(terminal);
    assert_printed(&printed, &["approve by", "✓ send", "r1 completed"]);
    assert_eq!((exit, kept(&dir).0.as_str(), kept(&dir).2), (0, "ok", true));
    let events = call(dir.mainspring(&["tail", "r1", "--json"]), b"");
    assert!(events.stdout.contains("approval.approved"), "{events:?}");
}

#[test]
fn no_denies_and_cancels() {
    let dir = TestDir::new();
    let mut terminal = run_to_prompt(&dir);
    terminal.send_line("no").unwrap();
    let (printed, exit) = run_to_end(terminal);
    assert_printed(&printed, &["deny by", "r1 cancelled", "approval_denied"]);
    assert_eq!((exit, kept(&dir).0.as_str(), kept(&dir).2), (0, "cancelled", false));
}

/// "Later", the end of input and Ctrl-C leave the approval open and print how to continue, which then works.
#[test]
fn an_undecided_prompt_leaves_the_gate_open() {
    for leave in ["later", "end", "interrupt"] {
        let dir = TestDir::new();
        let mut terminal = run_to_prompt(&dir);
        match leave {
            "later" => drop(terminal.send_line("l").unwrap()),
            "end" => terminal.send_control('d').unwrap(),
            _ => terminal.send_control('c').unwrap(),
        }
        let (printed, exit) = run_to_end(terminal);
        assert_printed(&printed, &["r1 waiting_approval", "mainspring approve r1", "mainspring deny r1"]);
        assert_eq!((exit, kept(&dir).0.as_str(), kept(&dir).2), (0, "needs_approval", false), "{leave}");
        // The same or another person returns, and is prompted again.
        let mut terminal = at_a_terminal(dir.mainspring(&["resume", "r1"]));
        terminal.exp_string(QUESTION).unwrap();
        terminal.send_line("yes").unwrap();
        assert_eq!(run_to_end(terminal).1, 0);
        assert_eq!((kept(&dir).0.as_str(), kept(&dir).2), ("ok", true), "{leave}");
    }
}

/// The prompt of a child appears at the terminal of its parent's run.
#[test]
fn a_childs_approval_is_prompted_at_the_parents_terminal() {
    for (answer, expected) in [("y", (0, "ok", true)), ("n", (0, "cancelled", false))] {
        let dir = TestDir::new();
        let child = "steps:\n  - {id: gate, type: approval, prompt: Child?}\n  - {id: work, type: bash, command: echo >> log}\n";
        fs::write(dir.root().join("child.yaml"), child).unwrap();
        fs::write(dir.root().join("wf.yaml"), "steps: [{id: sub, type: subworkflow, workflow: child}]\n").unwrap();
        let mut terminal = at_a_terminal(dir.mainspring(&["run", "wf.yaml", "--id", "r1"]));
        assert_printed(&text(&terminal.exp_string(QUESTION).unwrap()), &["Child?"]);
        terminal.send_line(answer).unwrap();
        let (printed, exit) = run_to_end(terminal);
        assert_eq!((exit, kept(&dir).0.as_str(), kept(&dir).2), expected, "{printed}");
    }
}

/// Without a terminal there is no prompt.
#[test]
fn no_prompt_appears_without_a_terminal() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), RELEASE).unwrap();
    let answer = call(dir.mainspring(&["run", "wf.yaml", "--var", "to=ann"]), b"y\n");
    assert_eq!(answer.exit, Some(0), "{answer:?}");
    assert!(!answer.stdout.contains(QUESTION.trim()) && answer.stdout.contains("mainspring approve"), "{answer:?}");
}

#[test]
fn ctrl_c_stops_attempts_and_prints_how_to_resume() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), HANGS).unwrap();
    for name in ["begun", "never"] {
        assert!(Command::new("mkfifo").arg(dir.root().join(name)).status().unwrap().success());
    }
    let mut terminal = at_a_terminal(dir.mainspring(&["run", "wf.yaml", "--id", "r1"]));
    assert_eq!(fs::read_to_string(dir.root().join("begun")).unwrap(), "begun\n");
    terminal.send_control('c').unwrap();
    let (printed, exit) = run_to_end(terminal);
    assert_printed(
        &printed,
        &["stopping running steps", "interrupted; nothing is lost", "`mainspring resume r1` continues"],
    );
    assert_eq!((exit, kept(&dir).0.as_str(), kept(&dir).2), (40, "running", false));
    let (printed, exit) = run_to_end(at_a_terminal(dir.mainspring(&["resume", "r1"])));
    assert_printed(&printed, &["✓ a", "r1 completed"]);
    assert_eq!((exit, fs::read_to_string(dir.root().join("log")).unwrap().as_str()), (0, "done\n"));
}

/// A list is cut to the width of a terminal, and not cut in a pipe.
#[test]
fn long_names_are_cut_at_a_terminal_and_whole_in_a_pipe() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), "steps: [{id: gate, type: approval}]\n").unwrap();
    let id = "long-".repeat(30);
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", &id]), b"").exit, Some(0));
    let (printed, _) = run_to_end(at_a_terminal(dir.mainspring(&["list"])));
    assert!(printed.contains("…  waiting_approval") && !printed.contains(&id), "{printed}");
    for flags in [&["list"][..], &["list", "--json"]] {
        let piped = call(dir.mainspring(flags), b"").stdout;
        assert!(piped.contains(&id) && !piped.contains(" \n"), "{piped}");
    }
}
