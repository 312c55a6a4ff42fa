//! Agents at the command line against the scripted model: the example, tools of a server, a killed process.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use mainspring_kernel::{json, value::Value};

mod support;
use support::{TestDir, call, spawn};

/// A tool server with one tool, which appends a line to `calls` for each call.
const SERVER: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply '{"tools":[{"name":"get","description":"Reads an issue","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      echo called >> calls
      reply '{"content":[{"type":"text","text":"the build crashes"}]}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// A data folder, and a running scripted model.
struct Bench {
    dir: TestDir,
    model: Child,
    address: String,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

impl Bench {
    fn new(script: &Path) -> Self {
        let dir = TestDir::new();
        let mut command =
            dir.mainspring(&["dev", "model", script.to_str().unwrap(), "--listen", "127.0.0.1:0", "--json"]);
        let mut model = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(model.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = json::value(line.trim().as_bytes()).unwrap();
        let address = url.get("url").and_then(Value::as_text).unwrap().strip_prefix("http://").unwrap().to_owned();
        fs::write(dir.root().join("server.sh"), SERVER).unwrap();
        let config = format!(
            "models: {{test: {{provider: openai, model: m, baseUrl: 'http://{address}/v1'}}}}\n\
             mcpServers: {{issues: {{command: bash, args: [../server.sh]}}}}\n\
             policy: {{classes: {{'issues.*': read}}}}\n"
        );
        fs::write(dir.root().join("config.yaml"), config).unwrap();
        Self { dir, model, address }
    }

    fn with(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.yaml");
        fs::write(&path, script).unwrap();
        Self::new(&path)
    }

    fn mainspring(&self, arguments: &[&str]) -> Command {
        let mut command = self.dir.mainspring(arguments);
        command.env("MAINSPRING_CONFIG", self.dir.root().join("config.yaml"));
        command.current_dir(self.dir.workspace());
        command
    }

    /// The number of requests that the model has received.
    fn requests(&self) -> u64 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /requests HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let report = json::value(response.split_once("\r\n\r\n").unwrap().1.as_bytes()).unwrap();
        report.get("count").and_then(Value::as_u64).unwrap()
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn the_example_runs_to_its_end_without_a_key() {
    let bench = Bench::new(&examples().join("models/agent.yaml"));
    let example = examples().join("agent.yaml");
    let ran = call(bench.mainspring(&["run", example.to_str().unwrap(), "--id", "e1", "--yes", "--json"]), b"");
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(r#"{"severity":"low","tokens":46,"turns":2}"#), "{}", ran.stdout);
    assert_eq!(bench.dir.file("rating.txt"), "low\nNothing in the folder is urgent.\n");
    assert_eq!(bench.requests(), 2);
    let verified = call(bench.mainspring(&["verify", "e1"]), b"");
    assert_eq!(verified.exit, Some(0), "{}", verified.stderr);
}

#[test]
fn the_example_needs_one_command_if_its_model_is_a_script() {
    let dir = TestDir::new();
    let run = |command: &[&str]| {
        let mut command = dir.mainspring(command);
        command.env("MAINSPRING_CONFIG", examples().join("models/config.yaml")).current_dir(dir.workspace());
        call(command, b"")
    };
    let example = examples().join("agent.yaml");
    let ran = run(&["run", example.to_str().unwrap(), "--yes", "--json"]);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(r#"{"severity":"low","tokens":46,"turns":2}"#), "{}", ran.stdout);
    let tried = run(&["models", "try"]);
    assert!(tried.exit == Some(0) && tried.stdout.contains("I look at the files."), "{}{}", tried.stdout, tried.stderr);
}

#[test]
fn a_script_that_cannot_be_read_fails_the_step_with_its_path() {
    let dir = TestDir::new();
    fs::write(dir.root().join("config.yaml"), "models: {m: {provider: openai, model: m, script: none.yaml}}\n")
        .unwrap();
    let mut command = dir.mainspring(&["run", examples().join("agent.yaml").to_str().unwrap(), "--yes", "--json"]);
    command.env("MAINSPRING_CONFIG", dir.root().join("config.yaml")).current_dir(dir.workspace());
    let ran = call(command, b"");
    assert!(ran.exit == Some(40) && ran.stdout.contains("none.yaml"), "{}{}", ran.stdout, ran.stderr);
}

const TRIAGE: &str = r#"
steps:
  - {id: ask, type: agent, goal: Read issue 7, tools: ["issues.*"], outputVariable: out}
"#;

#[test]
fn an_agent_calls_a_tool_of_a_server() {
    let bench = Bench::with(
        "answers:\n  - {toolCalls: [{name: issues.get, arguments: {id: 7}}]}\n  - {when: the build crashes, text: It crashes.}\n",
    );
    fs::write(bench.dir.workspace().join("wf.yaml"), TRIAGE).unwrap();
    let ran = call(bench.mainspring(&["run", "wf.yaml", "--id", "e1", "--json"]), b"");
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("It crashes."), "{}", ran.stdout);
    assert_eq!(bench.dir.file("calls").lines().count(), 1);
}

/// Without a rule for the tools of the server, a person sees the call that the model asks for, and decides.
#[test]
fn a_tool_that_no_rule_classifies_asks_before_an_agent_calls_it() {
    let bench = Bench::with(
        "answers:\n  - {toolCalls: [{name: issues.get, arguments: {id: 7}}]}\n  - {when: the build crashes, text: It crashes.}\n",
    );
    let config = fs::read_to_string(bench.dir.root().join("config.yaml")).unwrap();
    let without_policy = config.lines().filter(|line| !line.starts_with("policy")).collect::<Vec<_>>().join("\n");
    fs::write(bench.dir.root().join("config.yaml"), without_policy).unwrap();
    fs::write(bench.dir.workspace().join("wf.yaml"), TRIAGE).unwrap();
    let ran = call(bench.mainspring(&["run", "wf.yaml", "--id", "e1", "--json"]), b"");
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    let gate = r#"Step `ask#1.1` calls the tool \"issues.get\". Its class is destructive"#;
    assert!(ran.stdout.contains(gate) && ran.stdout.contains(r#""arguments":{"id":7}"#), "{}", ran.stdout);
    assert_eq!(bench.dir.file("calls"), "", "nothing is called before the decision");
    let approved = call(bench.mainspring(&["approve", "e1", "--json"]), b"");
    assert_eq!(approved.exit, Some(0), "{}{}", approved.stdout, approved.stderr);
    assert!(approved.stdout.contains("It crashes."), "{}", approved.stdout);
    assert_eq!(bench.dir.file("calls").lines().count(), 1);
}

#[test]
fn a_killed_agent_repeats_no_tool_call_or_paid_model_call() {
    let bench = Bench::with("answers:\n  - {toolCalls: [{name: issues.get, arguments: {id: 7}}]}\n  - {hang: true}\n");
    fs::write(bench.dir.workspace().join("wf.yaml"), TRIAGE).unwrap();
    let mut running = spawn(bench.mainspring(&["run", "wf.yaml", "--id", "e1", "--json"]), b"");
    while bench.requests() < 2 {
        assert_eq!(running.try_wait().unwrap(), None, "it waits for the second answer");
        std::thread::yield_now();
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let resumed = call(bench.mainspring(&["resume", "e1", "--json"]), b"");
    assert_eq!(resumed.exit, Some(40), "{}{}", resumed.stdout, resumed.stderr);
    assert!(resumed.stdout.contains("interrupted"), "{}", resumed.stdout);
    assert_eq!(bench.requests(), 2, "the first answer has a receipt, and the second is not bought again");
    assert_eq!(bench.dir.file("calls").lines().count(), 1, "the tool call has a receipt");
    let verified = call(bench.mainspring(&["verify", "e1"]), b"");
    assert_eq!(verified.exit, Some(0), "{}", verified.stderr);
}

/// An exhausted budget opens an approval. An approval raises it by the amount shown, and no call is repeated.
#[test]
fn a_budget_is_raised_by_a_person_and_the_conversation_continues() {
    let bench = Bench::with(
        "answers:\n  - {toolCalls: [{name: issues.get, arguments: {id: 7}}], usage: {inputTokens: 100, outputTokens: 20}}\n  \
         - {text: It crashes., usage: {inputTokens: 150, outputTokens: 10}}\n",
    );
    let mut config = fs::read_to_string(bench.dir.root().join("config.yaml")).unwrap();
    config.push_str("prices: {date: 2026-11-01, currency: USD, models: {test: {input: 2, output: 10}}}\n");
    fs::write(bench.dir.root().join("config.yaml"), config).unwrap();
    let workflow = "constraints: {budget: {cost: 1}}\nsteps:\n  - {id: ask, type: agent, goal: g, tools: [\"issues.*\"], \
                    budget: {modelCalls: 1, onExceeded: ask}, outputVariable: out}\n";
    fs::write(bench.dir.workspace().join("wf.yaml"), workflow).unwrap();
    let ran = call(bench.mainspring(&["run", "wf.yaml", "--id", "e1", "--json"]), b"");
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    let gate =
        r#"Step `ask#2` needs more than the budget of the step. Raise the budget by {\"modelCalls\":1} and continue?"#;
    assert!(ran.stdout.contains(gate), "{}", ran.stdout);
    assert_eq!(bench.requests(), 1);
    let usage = call(bench.mainspring(&["usage", "e1", "--json"]), b"");
    assert!(usage.stdout.contains(r#""modelCalls":1"#) && usage.stdout.contains(r#""tokens":120"#), "{}", usage.stdout);
    let approved = call(bench.mainspring(&["approve", "e1", "--json"]), b"");
    assert_eq!(approved.exit, Some(0), "{}{}", approved.stdout, approved.stderr);
    assert!(approved.stdout.contains("It crashes."), "{}", approved.stdout);
    assert_eq!((bench.requests(), bench.dir.file("calls").lines().count()), (2, 1), "nothing is repeated");
    let usage = call(bench.mainspring(&["usage", "e1"]), b"");
    // 250 tokens at 2 and 30 at 10 for a million.
    assert!(usage.stdout.contains("0.0008 of 1") && usage.stdout.contains("280"), "{}", usage.stdout);
    let verified = call(bench.mainspring(&["verify", "e1"]), b"");
    assert_eq!(verified.exit, Some(0), "{}", verified.stderr);
}

/// Names that the settings do not have, and prices, are checked without a request: neither the model nor the vault answers.
#[test]
fn names_that_the_settings_do_not_have_are_warnings_of_a_validation() {
    let dir = TestDir::new();
    let config = "models: {fast: {provider: openai, model: m, baseUrl: 'https://models.invalid/v1'}}\n\
                  agents: {coder: {command: coder}}\n\
                  secrets: {PAYMENTS: {vault: {path: app/payments, field: key}}}\n\
                  vault: {address: 'https://vault.invalid:8200', token: {env: VAULT_TOKEN}}\n";
    fs::write(dir.root().join("config.yaml"), config).unwrap();
    let validated = |steps: &str| {
        fs::write(dir.root().join("wf.yaml"), format!("steps:\n{steps}")).unwrap();
        let mut command = dir.mainspring(&["validate", "wf.yaml", "--json"]);
        command.env("MAINSPRING_CONFIG", dir.root().join("config.yaml"));
        let answer = call(command, b"");
        assert_eq!(answer.exit, Some(0), "{answer:?}");
        answer.stdout
    };
    let secret = |name: &str| {
        format!("  - {{id: a, type: http, url: 'https://example.com', headers: {{X: {{secret: {name}}}}}}}\n")
    };
    let cost = validated("  - {id: a, type: agent, goal: g, budget: {cost: 1}}\n");
    assert!(cost.contains(r#""code":"missing_price""#) && cost.contains("add `fast: {input: PRICE"), "{cost}");
    let tokens = validated("  - {id: a, type: agent, goal: g, budget: {tokens: 1}}\n");
    assert!(tokens.contains(r#""warnings":[]"#), "{tokens}");
    let runner = validated("  - {id: a, type: agent, goal: g, runner: codre}\n");
    assert!(runner.contains(r#""code":"unknown_runner""#) && runner.contains("coder"), "{runner}");
    let known = validated("  - {id: a, type: agent, goal: g, runner: coder}\n");
    assert!(known.contains(r#""warnings":[]"#), "{known}");
    let known = validated(&secret("PAYMENTS"));
    assert!(known.contains(r#""warnings":[]"#), "{known}");
    let unknown = validated(&secret("PAYMENT"));
    assert!(unknown.contains(r#""code":"unknown_secret""#) && unknown.contains("PAYMENTS"), "{unknown}");
}

#[test]
fn models_are_listed_queried_and_checked() {
    let bench = Bench::with("answers: [{text: OK}]");
    let listed = call(bench.mainspring(&["models", "--json"]), b"");
    assert_eq!(listed.exit, Some(0), "{}", listed.stderr);
    assert!(
        listed.stdout.contains(r#""default":true"#) && listed.stdout.contains(r#""name":"test""#),
        "{}",
        listed.stdout
    );
    let asked = call(bench.mainspring(&["models", "try", "--json"]), b"");
    assert_eq!(asked.exit, Some(0), "{}", asked.stderr);
    assert!(asked.stdout.contains(r#""text":"OK""#), "{}", asked.stdout);
    let unknown = call(bench.mainspring(&["models", "try", "other", "--json"]), b"");
    assert_eq!(unknown.exit, Some(40));
    assert!(unknown.stdout.contains("no model is named `other`; there are test"), "{}", unknown.stdout);
}

#[test]
fn wrong_settings_of_models_fail_only_agents() {
    let dir = TestDir::new();
    fs::write(dir.root().join("config.yaml"), "models: {a: {provider: none, model: m}}\n").unwrap();
    let mainspring = |arguments: &[&str]| {
        let mut command = dir.mainspring(arguments);
        command.env("MAINSPRING_CONFIG", dir.root().join("config.yaml")).current_dir(dir.workspace());
        call(command, b"")
    };
    fs::write(dir.workspace().join("plain.yaml"), "steps: [{id: a, type: bash, command: 'true'}]\n").unwrap();
    fs::write(dir.workspace().join("agent.yaml"), "steps: [{id: a, type: agent, goal: g}]\n").unwrap();
    let plain = mainspring(&["run", "plain.yaml", "--json"]);
    assert_eq!(plain.exit, Some(0), "{}{}", plain.stdout, plain.stderr);
    let agent = mainspring(&["run", "agent.yaml", "--json"]);
    assert_eq!(agent.exit, Some(40), "{}{}", agent.stdout, agent.stderr);
    assert!(agent.stdout.contains("models.a.provider"), "{}", agent.stdout);
    let listed = mainspring(&["models"]);
    assert_eq!(listed.exit, Some(10), "{}{}", listed.stdout, listed.stderr);
}
