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

const CONFIG: &str = "mcpServers:\n  hello: {command: bash, args: [../server.sh]}\n";

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
    let definition = r#"
steps:
  - {id: greet, type: tool, tool: hello.greet, arguments: {name: "Ada"}}
  - {id: done, type: return, input: {said: "@greet.text"}}
"#;
    fs::write(bench.dir.workspace().join("wf.yaml"), definition).unwrap();
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
