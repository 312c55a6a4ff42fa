//! Tools of MCP servers at the command line: listing, calling, and `tool` steps of an execution.

use std::{fs, process::Command};

use mainspring_kernel::json;

mod support;
use support::{TestDir, call};

/// A tool server with the handshake of 2025-11-25. It appends the intent of each call to `calls`.
const SERVER: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply '{"tools":[{"name":"greet","title":"Greets \u001b[31m somebody","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*'"name":"greet"'*)
      [[ $line =~ intent\":\"([0-9a-f]+) ]] && echo "${BASH_REMATCH[1]}" >> calls
      reply '{"content":[],"structuredContent":{"text":"hello"}}' ;;
    *'"method":"tools/call"'*)
      reply '{"isError":true,"content":[{"type":"text","text":"no such tool"}]}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

struct Bench {
    dir: TestDir,
}

impl Bench {
    fn new(config: &str) -> Self {
        let dir = TestDir::new();
        fs::write(dir.root().join("server.sh"), SERVER).unwrap();
        fs::write(dir.root().join("config.yaml"), config).unwrap();
        Self { dir }
    }

    fn mainspring(&self, arguments: &[&str]) -> Command {
        let mut command = self.dir.mainspring(arguments);
        command.env("MAINSPRING_CONFIG", self.dir.root().join("config.yaml"));
        command.current_dir(self.dir.workspace());
        command
    }
}

const CONFIG: &str =
    "mcpServers:\n  hello: {command: bash, args: [../server.sh]}\npolicy:\n  classes: {hello.greet: write}\n";

/// The same server, about whose tools nothing is known.
const UNCLASSIFIED: &str = "mcpServers:\n  hello: {command: bash, args: [../server.sh]}\n";

const GREETS: &str = r#"
steps:
  - {id: greet, type: tool, tool: hello.greet, arguments: {name: "Ada"}}
  - {id: done, type: return, input: {said: "@greet.text"}}
"#;

#[test]
fn tools_are_listed_and_called() {
    let bench = Bench::new(CONFIG);
    let listed = call(bench.mainspring(&["tools"]), b"");
    assert_eq!(listed.exit, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.contains("hello.greet"), "{}", listed.stdout);
    assert!(!listed.stdout.contains('\u{1b}'), "text of a server is escaped: {:?}", listed.stdout);
    let listed = call(bench.mainspring(&["tools", "--json"]), b"");
    let tool = json::value(listed.stdout.as_bytes()).unwrap();
    assert_eq!(tool.get("name").and_then(|name| name.as_text()), Some("hello.greet"));
    let called = call(bench.mainspring(&["tools", "call", "greet", "--input", "{}", "--json"]), b"");
    assert_eq!((called.exit, called.stdout.trim()), (Some(0), r#"{"text":"hello"}"#), "{}", called.stderr);
    let failed = call(bench.mainspring(&["tools", "call", "hello.other", "--json"]), b"");
    assert_eq!(failed.exit, Some(40));
    assert!(failed.stdout.contains("tool_error") && failed.stdout.contains("no such tool"), "{}", failed.stdout);
}

#[test]
fn a_step_calls_a_tool_once_and_passes_its_result_on() {
    let bench = Bench::new(CONFIG);
    fs::write(bench.dir.workspace().join("wf.yaml"), GREETS).unwrap();
    let ran = call(bench.mainspring(&["run", "wf.yaml", "--id", "e1", "--json"]), b"");
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(r#"{"said":"hello"}"#), "{}", ran.stdout);
    assert_eq!(bench.dir.file("calls").lines().count(), 1, "the tool was called once, with its intent");
    let verified = call(bench.mainspring(&["verify", "e1"]), b"");
    assert_eq!(verified.exit, Some(0), "{}", verified.stderr);
}

#[test]
fn a_wrong_configuration_is_named_with_its_place() {
    let check = |config: &str, arguments: &[&str], expected: &str| {
        let bench = Bench::new(config);
        let answer = call(bench.mainspring(arguments), b"");
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert_ne!(answer.exit, Some(0), "{said}");
        assert!(said.contains(expected), "{said} does not contain {expected}");
    };
    check("", &["tools"], "no tool servers are configured");
    check("mcpServers: {a: {command: 1}}", &["tools"], "mcpServers.a.command");
    check(CONFIG, &["tools", "other"], "no tool server is named `other`; there are hello");
    check("mcpServers: {a: {command: no-such-program}}", &["tools"], "`no-such-program` is not in PATH");
    check(CONFIG, &["tools", "call", "great"], "mainspring tools");
}

impl Bench {
    /// A workspace with `wf.yaml`, which greets.
    fn greeting(config: &str) -> Self {
        let bench = Self::new(config);
        fs::write(bench.dir.workspace().join("wf.yaml"), GREETS).unwrap();
        bench
    }

    /// Runs a command and returns its exit code and everything that it prints.
    fn output_of(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let answer = call(self.mainspring(arguments), b"");
        (answer.exit, format!("{}{}", answer.stdout, answer.stderr))
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.dir.workspace().join("calls")).unwrap_or_default().lines().count()
    }
}

#[test]
fn an_unclassified_tool_waits_for_an_approval() {
    let bench = Bench::greeting(UNCLASSIFIED);
    let (_, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert!(said.contains("waiting_approval"), "{said}");
    let prompt = "Step `greet` calls the tool `hello.greet`. Its class is destructive, which is assumed";
    for (command, parts) in
        [(&["approvals", "--json"][..], &[prompt][..]), (&["show", "e1", "--json"], &[prompt, "Ada", "inputHash"])]
    {
        let (_, gates) = bench.output_of(command);
        parts.iter().for_each(|part| assert!(gates.contains(part), "{gates} does not contain {part}"));
    }
    assert_eq!(bench.calls(), 0, "nothing is called before the approval");
    let (exit, said) = bench.output_of(&["approve", "e1", "--json"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains(r#"{"said":"hello"}"#), "{said}");
    assert_eq!(bench.calls(), 1);
    let (exit, said) = bench.output_of(&["verify", "e1"]);
    assert_eq!(exit, Some(0), "{said}");
}

#[test]
fn validate_names_unclassified_tools() {
    let said = |config: &str| {
        let bench = Bench::new(config);
        fs::write(bench.dir.workspace().join("flow.yaml"), GREETS).unwrap();
        let answer = call(bench.mainspring(&["validate", "flow.yaml"]), b"");
        assert_eq!(answer.exit, Some(0), "{answer:?}");
        answer.stderr
    };
    let note = said(UNCLASSIFIED);
    for part in ["a person is asked before each call of hello.greet", "\"hello.greet\": CLASS", "readOnlyHint"] {
        assert!(note.contains(part), "no {part:?} in {note}");
    }
    assert!(!said(CONFIG).contains("a person is asked"), "{}", said(CONFIG));
}

#[test]
fn a_denied_tool_is_a_diagnostic_and_nothing_runs() {
    let bench = Bench::greeting(&format!("{UNCLASSIFIED}policy: {{verdicts: {{\"hello.*\": deny}}}}\n"));
    for command in [&["run", "wf.yaml"][..], &["validate", "wf.yaml"], &["plan", "wf.yaml"]] {
        let (exit, said) = bench.output_of(command);
        assert_eq!(exit, Some(10), "{said}");
        assert!(said.contains("policy_denied") && said.contains("wf.yaml:3:5"), "{said}");
    }
    assert_eq!(bench.calls(), 0);
}

#[test]
fn the_plan_shows_class_and_verdict_of_each_call() {
    let check = |config: &str, expected: &str| {
        let (exit, said) = Bench::greeting(config).output_of(&["plan", "wf.yaml"]);
        assert_eq!(exit, Some(0), "{said}");
        assert!(said.contains(expected), "{said} does not contain {expected}");
    };
    check(UNCLASSIFIED, "ask greet  destructive, assumed");
    check(CONFIG, "allow greet  write, by a rule");
    let (_, said) = Bench::greeting(CONFIG).output_of(&["plan", "wf.yaml", "--json"]);
    let calls = json::value(said.as_bytes()).unwrap().get("calls").cloned().unwrap();
    assert_eq!(json::canonical(&calls), r#"[{"class":"write","source":"by a rule","step":"greet","verdict":"allow"}]"#);
}

/// The annotations of a server count if the installation trusts it. This server gives none, so its tool is destructive.
#[test]
fn the_annotations_of_a_trusted_server_give_the_class() {
    let trusted = format!("{UNCLASSIFIED}policy: {{trusted: [hello]}}\n");
    let (exit, said) = Bench::greeting(&trusted).output_of(&["plan", "wf.yaml"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("ask greet  destructive, by the annotations of its server"), "{said}");
    // A tool of an agent is a tool.
    let bench = Bench::new(&trusted);
    let agent = "steps: [{id: a, type: agent, goal: g, tools: [hello.greet]}]";
    fs::write(bench.dir.workspace().join("wf.yaml"), agent).unwrap();
    let (exit, said) = bench.output_of(&["plan", "wf.yaml"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("destructive, by the annotations of its server"), "{said}");
}

#[test]
fn a_settings_mistake_affects_only_its_part() {
    let run = |config: &str, steps: &str| {
        let bench = Bench::new(config);
        fs::write(bench.dir.workspace().join("wf.yaml"), steps).unwrap();
        bench.output_of(&["run", "wf.yaml", "--yes", "--json"])
    };
    let broken = "mcpServers: {hello: {command: 1}}\n";
    let (exit, said) = run(broken, "steps: [{id: a, type: bash, command: echo fine}]");
    assert_eq!(exit, Some(0), "no step uses a tool: {said}");
    let (exit, said) = run(broken, GREETS);
    assert_ne!(exit, Some(0), "{said}");
    assert!(said.contains("tool_settings_invalid") && said.contains("mcpServers.hello.command"), "{said}");
    let (exit, said) =
        run("policy: {verdicts: {execute: never}}\n", "steps: [{id: a, type: bash, command: echo fine}]");
    assert_eq!(exit, Some(10), "a policy that cannot be read permits nothing: {said}");
    assert!(said.contains("policy.verdicts.execute"), "{said}");
}

#[test]
fn calls_are_recorded_as_a_workflow_that_runs() {
    let bench = Bench::new(CONFIG);
    let fine = |arguments: &[&str]| {
        let (exit, said) = bench.output_of(arguments);
        assert_eq!(exit, Some(0), "{arguments:?}: {said}");
        said
    };
    fine(&["record", "start", "rec.jsonl", "--input", r#"{"name": "Ada"}"#]);
    let said = fine(&["record", "call", "rec.jsonl", "hello.greet", "--args", r#"{"name": "@input.name"}"#, "--json"]);
    assert_eq!(said.trim(), r#"{"result":{"text":"hello"},"step":"hello_greet_1"}"#);
    fine(&["record", "set", "rec.jsonl", "known", "--output", r#"{"to": "me@example.com"}"#]);
    let session = br#"{"call": "hello.greet", "args": {"name": "@hello_greet_1.text", "to": "@known.to"}}
{"call": "hello.greet", "args": {"name": "@nobody_1.id"}}
{"call": "hello.other"}
{"calls": 1}
{"set": "more", "output": [1]}
"#;
    let answered = call(bench.mainspring(&["record", "session", "rec.jsonl"]), session);
    let answers: Vec<&str> = answered.stdout.lines().collect();
    assert_eq!(answers.len(), 5, "{} {}", answered.stdout, answered.stderr);
    for (answer, part) in answers.iter().zip([
        r#"{"result":{"text":"hello"},"step":"hello_greet_2"}"#,
        "`@nobody_1.id` leads nowhere",
        "policy_denied",
        "write {",
        r#"{"step":"more"}"#,
    ]) {
        assert!(answer.contains(part), "{answer} does not contain {part}");
    }
    assert_eq!(bench.calls(), 2, "what is refused is not called");
    fine(&["record", "save", "rec.jsonl", "-o", "recorded.yaml"]);
    let saved = fs::read_to_string(bench.dir.workspace().join("recorded.yaml")).unwrap();
    assert!(
        saved.contains("@input.name") && saved.contains("@known.to") && saved.contains("me@@example.com"),
        "{saved}"
    );
    fine(&["run", "recorded.yaml", "--input", r#"{"name": "Bob"}"#, "--json"]);
    assert_eq!(bench.calls(), 4, "the recorded workflow makes the same calls");
}

#[test]
fn a_recording_survives_the_end_of_its_process_amid_a_call() {
    let bench = Bench::new(CONFIG);
    let path = bench.dir.workspace().join("rec.jsonl");
    let (exit, said) = bench.output_of(&["record", "start", "rec.jsonl"]);
    assert_eq!(exit, Some(0), "{said}");
    let (exit, said) = bench.output_of(&["record", "start", "rec.jsonl"]);
    assert!(exit == Some(10) && said.contains("it exists"), "{said}");
    let begun = fs::read_to_string(&path).unwrap();
    let calling = r#"{"calling":{"args":{},"intent":"00","tool":"hello.greet"}}"#;
    fs::write(&path, format!("{begun}{calling}\n{{\"step\":{{\"na")).unwrap();
    let (exit, said) = bench.output_of(&["record", "save", "rec.jsonl"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("is not recorded and is not repeated") && !said.contains("hello_greet_1"), "{said}");
    let (exit, said) = bench.output_of(&["record", "call", "rec.jsonl", "hello.greet", "--json"]);
    assert!(exit == Some(0) && said.contains("hello_greet_1"), "{said}");
    assert_eq!(bench.calls(), 1);
    fs::write(&path, format!("{begun}{{\"step\":{{\"name\":\"x\"}}}}\n")).unwrap();
    let (exit, said) = bench.output_of(&["record", "save", "rec.jsonl"]);
    assert!(exit == Some(10) && said.contains("line 2: this entry is not allowed here"), "{said}");
}
