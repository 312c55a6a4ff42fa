//! External agents in executions: permissions, and a process that is killed in the middle.

use std::{fs, process::Command};

use rustix::process::{Pid, Signal, kill_process};

mod support;
use support::{TestDir, call, spawn};

/// The scripted agent of `mainspring-acp`.
const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../acp/tests/agent.py");

const WORKFLOW: &str = r#"
steps:
  - id: work
    type: agent
    runner: tester
    goal: Tidy up
    outputSchema: {type: object, properties: {log: {type: array, minItems: 3}}, required: [log]}
  - {id: done, type: return, input: {log: "@work.value.log", calls: "@work.toolCalls"}}
"#;

struct Bench {
    dir: TestDir,
}

impl Bench {
    fn new(mode: &str, workflow: &str, rules: &str) -> Self {
        let dir = TestDir::new();
        let config = format!("agents:\n  tester: {{command: python3, args: [-u, {AGENT:?}, {mode}]}}\n{rules}\n");
        fs::write(dir.root().join("config.yaml"), config).unwrap();
        fs::write(dir.workspace().join("wf.yaml"), workflow).unwrap();
        Self { dir }
    }

    fn mainspring(&self, arguments: &[&str]) -> Command {
        let mut command = self.dir.mainspring(arguments);
        command.env("MAINSPRING_CONFIG", self.dir.root().join("config.yaml"));
        command.current_dir(self.dir.workspace());
        command
    }

    fn output_of(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let answer = call(self.mainspring(arguments), b"");
        (answer.exit, format!("{}{}", answer.stdout, answer.stderr))
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        let (exit, said) = self.output_of(arguments);
        assert_eq!(exit, Some(0), "{arguments:?}: {said}");
        said
    }
}

const RULES: &str = "policy:\n  verdicts: {tester.execute: deny}";

/// The command ends while a person is asked, and with it the agent. Its session is loaded with the decision.
#[test]
fn a_session_continues_after_each_permission_verdict() {
    let bench = Bench::new("loads", WORKFLOW, RULES);
    let (_, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert!(said.contains("waiting_approval"), "{said}");
    assert_eq!(bench.dir.file("log"), "read yes\n", "reading is allowed");
    let said = bench.succeeds(&["approvals"]);
    assert!(said.contains("asks in step `work` for the permission to use a tool of the kind"), "{said}");
    assert!(said.contains("\"Delete old.txt\\\\u{1b}[2K\"") || said.contains("u{1b}"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let said = bench.succeeds(&["approve", "e1", "--json"]);
    assert_eq!(bench.dir.file("log"), "read yes\ndelete yes\nexecute no\n", "{said}");
    assert_eq!(bench.dir.file("sessions"), "new\nload s-1\n");
    assert!(said.contains(r#""log":["read yes","delete yes","execute no"]"#), "{said}");
    bench.succeeds(&["verify", "e1"]);
}

#[test]
fn a_denied_permission_is_an_answer_and_the_agent_continues() {
    let bench = Bench::new("loads", WORKFLOW, RULES);
    bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    let said = bench.succeeds(&["deny", "e1", "--json"]);
    assert_eq!(bench.dir.file("log"), "read yes\ndelete no\nexecute no\n", "{said}");
}

#[test]
fn a_session_continues_after_a_kill() {
    let rules = "policy:\n  verdicts: {tester.execute: deny}\n  classes: {tester.delete: write}";
    let bench = Bench::new("blocks", WORKFLOW, rules);
    let pipe = bench.dir.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut run = spawn(bench.mainspring(&["run", "wf.yaml", "--id", "e1"]), b"");
    // Returns once the agent works.
    assert_eq!(fs::read_to_string(&pipe).unwrap(), "blocked\n");
    let id = Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    run.wait().unwrap();
    let said = bench.succeeds(&["resume", "e1", "--json"]);
    assert_eq!(bench.dir.file("log"), "read yes\ndelete yes\nexecute no\n", "{said}");
    assert_eq!(bench.dir.file("sessions"), "new\nload s-1\n");
    bench.succeeds(&["verify", "e1"]);
}

#[test]
fn on_interrupt_applies_if_sessions_cannot_be_loaded() {
    let bench = Bench::new("asks", WORKFLOW, RULES);
    bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    let (exit, said) = bench.output_of(&["approve", "e1", "--json"]);
    assert_ne!(exit, Some(0), "{said}");
    assert!(said.contains("interrupted") && said.contains("the answer `accept`"), "{said}");
    assert_eq!(bench.dir.file("log"), "read yes\n", "nothing was allowed");
    // Another attempt asks for the same, and gets the answer that was given.
    let workflow = WORKFLOW.replace("goal: Tidy up", "goal: Tidy up\n    onInterrupted: retry");
    let bench = Bench::new("asks", &workflow, RULES);
    bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    let said = bench.succeeds(&["approve", "e1", "--json"]);
    assert_eq!(bench.dir.file("sessions"), "new\nnew\n", "{said}");
    assert_eq!(bench.dir.file("log"), "read yes\nread yes\ndelete yes\nexecute no\n", "{said}");
}

#[test]
fn an_answer_that_does_not_fit_its_schema_fails_the_step() {
    let workflow = WORKFLOW.replace("minItems: 3", "minItems: 9");
    let rules = "policy:\n  classes: {tester.delete: write}";
    let bench = Bench::new("asks", &workflow, rules);
    let (exit, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert_ne!(exit, Some(0), "{said}");
    assert!(said.contains("invalid_output"), "{said}");
}

#[test]
fn a_rule_for_commands_asks_before_the_agent_starts() {
    let bench = Bench::new("asks", WORKFLOW, "policy:\n  verdicts: {execute: ask}");
    let (_, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert!(said.contains("waiting_approval"), "{said}");
    assert_eq!(bench.dir.file("sessions"), "", "the agent was not started");
    let bench = Bench::new("asks", WORKFLOW, "policy:\n  verdicts: {execute: deny}");
    let (exit, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert_ne!(exit, Some(0), "{said}");
    assert!(said.contains("policy"), "{said}");
}

#[test]
fn mistakes_name_their_position() {
    let bench = Bench::new("asks", WORKFLOW, "");
    let said = bench.output_of(&["doctor"]).1;
    assert!(said.contains("1 configured: tester"), "{said}");
    fs::write(bench.dir.root().join("config.yaml"), "agents: {tester: {command: python3, cwd: x}}\n").unwrap();
    let (_, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert!(said.contains("runner_settings_invalid") && said.contains("agents.tester.cwd"), "{said}");
    let said = bench.output_of(&["doctor"]).1;
    assert!(said.contains("agents.tester.cwd"), "{said}");
    for (key, help) in [
        ("model: fast", "`args` or `env` of the agent"),
        ("tools: [bash]", "go through `policy`"),
        ("maxTurns: 3", "`timeoutMs`"),
        ("budget: {tokens: 3}", "the limits of the key"),
        ("conversation: chat", "`context`"),
        ("transform: export default (x) => x", "a `code` step"),
        ("keyPer: attempt", "no idempotency keys"),
    ] {
        let workflow = WORKFLOW.replace("goal: Tidy up", &format!("goal: Tidy up\n    {key}"));
        fs::write(bench.dir.workspace().join("wf.yaml"), workflow).unwrap();
        let (exit, said) = bench.output_of(&["validate", "wf.yaml"]);
        assert_ne!(exit, Some(0), "{key}: {said}");
        assert!(said.contains("does not apply to an agent with `runner`") && said.contains(help), "{key}: {said}");
    }
    let workflow = format!("constraints: {{budget: {{tokens: 5}}}}\n{WORKFLOW}");
    fs::write(bench.dir.workspace().join("wf.yaml"), workflow).unwrap();
    let said = bench.output_of(&["validate", "wf.yaml"]).1;
    assert!(said.contains("`constraints.budget` does not limit an agent with `runner`"), "{said}");
}
