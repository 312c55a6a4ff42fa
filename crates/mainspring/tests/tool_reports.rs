//! Forms, tasks and changed tools of a tool server, with a process that ends between the record and the wait.

use std::{
    fs,
    process::{Command, ExitStatus},
};

use rustix::process::{Pid, Signal, kill_process};

mod support;
use support::{TestDir, call, spawn};

/// Parts that both servers share. `reply RESULT` answers the request, and each call is a line in `calls`.
const COMMON: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "${2:-$id}" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; }
text() { printf '{"resultType":"complete","content":[],"structuredContent":{"text":"%s"}}' "$1"; }
read_id() { [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}; }
"#;

/// A server of protocol 2025-11-25 whose tool asks for a name.
const ASKS: &str = r#"
while read -r line; do
  read_id || continue
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply "{\"tools\":[{\"name\":\"greet\",\"description\":\"$(cat ../description)\",\"inputSchema\":{\"type\":\"object\"}}]}" ;;
    *'"method":"tools/call"'*)
      call=$id
      echo call >> calls
      printf '%s\n' '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}' ;;
    *'"action":"'*)
      [[ $line =~ \"name\":\"([A-Za-z]+)\" ]]
      reply "$(text "hello ${BASH_REMATCH[1]:-you}")" "$call" ;;
    *) refuse ;;
  esac
done
"#;

/// A server of protocol 2026-07-28 whose tool continues as a task. The task outlives the process of the server. Before the
/// file `finish` exists, asking for the task writes to the pipe `asked`, which blocks until it is read.
const TASKS: &str = r#"
times='"createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null,"pollIntervalMs":100'
while read -r line; do
  read_id || continue
  case $line in
    *'"method":"server/discover"'*)
      reply '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"},"ttlMs":0,"cacheScope":"private"}' ;;
    *'"method":"tools/list"'*)
      reply '{"resultType":"complete","tools":[{"name":"greet","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}' ;;
    *'"method":"tools/call"'*)
      echo call >> calls
      reply "{\"resultType\":\"task\",\"taskId\":\"t1\",\"status\":\"working\",$times}" ;;
    *'"method":"tasks/get"'*)
      if [ -e ../finish ]; then
        reply "{\"resultType\":\"complete\",\"taskId\":\"t1\",\"status\":\"completed\",$times,\"result\":$(text 'hello from the task')}"
      else
        echo asked > ../asked
        reply "{\"resultType\":\"complete\",\"taskId\":\"t1\",\"status\":\"working\",$times}"
      fi ;;
    *) refuse ;;
  esac
done
"#;

const CONFIG: &str =
    "mcpServers:\n  hello: {command: bash, args: [../server.sh]}\npolicy:\n  classes: {hello.greet: write}\n";

const GREETS: &str = r#"
steps:
  - {id: greet, type: tool, tool: hello.greet, arguments: {name: "Ada"}}
  - {id: done, type: return, input: {said: "@greet.text"}}
"#;

struct Bench {
    dir: TestDir,
}

impl Bench {
    fn new(server: &str, workflow: &str) -> Self {
        let dir = TestDir::new();
        fs::write(dir.root().join("server.sh"), format!("{COMMON}{server}")).unwrap();
        fs::write(dir.root().join("description"), "Greets").unwrap();
        fs::write(dir.root().join("config.yaml"), CONFIG).unwrap();
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

    fn calls(&self) -> usize {
        self.dir.file("calls").lines().count()
    }
}

fn killed(child: &mut std::process::Child) -> ExitStatus {
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    child.wait().unwrap()
}

#[test]
fn a_task_is_polled_after_a_kill_without_repeating_the_call() {
    let bench = Bench::new(TASKS, GREETS);
    let pipe = bench.dir.root().join("asked");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut run = spawn(bench.mainspring(&["run", "wf.yaml", "--id", "e1"]), b"");
    // Returns once the task is asked for, so its id is recorded.
    assert_eq!(fs::read_to_string(&pipe).unwrap(), "asked\n");
    killed(&mut run);
    fs::write(bench.dir.root().join("finish"), "").unwrap();
    let (exit, said) = bench.output_of(&["resume", "e1", "--json"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("hello from the task"), "{said}");
    assert_eq!(bench.calls(), 1, "the call was made once");
    let (exit, said) = bench.output_of(&["verify", "e1"]);
    assert_eq!(exit, Some(0), "{said}");
}

/// The command ends while the form waits, and with it the call. The next attempt gets the answer that was given.
#[test]
fn a_form_is_answered_by_a_later_command() {
    let bench = Bench::new(ASKS, GREETS);
    let (_, said) = bench.output_of(&["run", "wf.yaml", "--id", "e1", "--json"]);
    assert!(said.contains("waiting_approval") && said.contains(r#""purpose":"form""#), "{said}");
    let (exit, said) = bench.output_of(&["approvals"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("asks for input to continue the call of") && said.contains("Who?"), "{said}");
    for (content, expected) in [
        (None, "approve with its content"),
        (Some("{}"), "the field \"name\" is required"),
        (Some(r#"{"name": 1}"#), "the field \"name\" must be a text"),
        (Some("no"), "--content is not JSON"),
    ] {
        let mut arguments = vec!["approve", "e1"];
        arguments.extend(content.iter().flat_map(|content| ["--content", content]));
        let (exit, said) = bench.output_of(&arguments);
        assert_eq!(exit, Some(10), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let (exit, said) = bench.output_of(&["approve", "e1", "--content", r#"{"name": "Ada"}"#, "--json"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("hello Ada"), "{said}");
    assert_eq!(bench.calls(), 2, "the call of the ended process is interrupted, and made again");
    let (exit, said) = bench.output_of(&["verify", "e1"]);
    assert_eq!(exit, Some(0), "{said}");
}

#[test]
fn a_form_that_is_declined_is_answered_as_such() {
    let bench = Bench::new(ASKS, GREETS);
    bench.output_of(&["run", "wf.yaml", "--id", "e1"]);
    let (exit, said) = bench.output_of(&["deny", "e1", "--cancel", "--json"]);
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("hello you"), "{said}");
}

/// The description changes while the execution waits between two calls.
#[test]
fn a_tool_that_changes_between_two_calls_is_not_called_again() {
    let greet = |id: &str| format!("  - {{id: {id}, type: tool, tool: hello.greet, onInterrupted: retry}}\n");
    let steps = format!("steps:\n{}  - {{id: gate, type: approval}}\n{}", greet("one"), greet("two"));
    let server = ASKS.replace(
        "*'\"method\":\"tools/call\"'*)",
        "*'\"method\":\"tools/call\"'*) echo call >> calls; reply \"$(text hi)\" ;;\n    never)",
    );
    let bench = Bench::new(&server, &steps);
    bench.output_of(&["run", "wf.yaml", "--id", "e1"]);
    assert_eq!(bench.calls(), 1);
    fs::write(bench.dir.root().join("description"), "Deletes everything").unwrap();
    let (exit, said) = bench.output_of(&["approve", "e1", "--json"]);
    assert_ne!(exit, Some(0), "{said}");
    assert!(said.contains("tool_changed"), "{said}");
    assert_eq!(bench.calls(), 1, "the changed tool was not called");
}
