//! Forms of tool servers at a server: approvals with content, and executions that end while people are asked.

use std::{fs, path::PathBuf};

use mainspring_kernel::{
    hash::Hash,
    json::compact,
    value::{Map, Value},
};
use tempfile::TempDir;

use super::{
    client::{Client, Reply},
    process::Server,
    start::{save, start},
    support::yaml,
};

/// A tool server of protocol 2025-11-25 whose tool asks for a name. It writes each call, each cancellation and each answer
/// to `log` in the workspace.
const ASKS: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]} || id=
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
  case $line in
    *'"method":"initialize"'*)
      reply "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply "$id" '{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      call=$id
      echo call >> "$MAINSPRING_WORKSPACE/log"
      printf '%s\n' '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","maxLength":20}},"required":["name"]}}}' ;;
    *'notifications/cancelled'*) echo cancelled >> "$MAINSPRING_WORKSPACE/log" ;;
    *'"action":"'*)
      [[ $line =~ \"action\":\"([a-z]+)\" ]] && echo "answer ${BASH_REMATCH[1]}" >> "$MAINSPRING_WORKSPACE/log"
      name=you
      [[ $line =~ \"name\":\"([A-Za-z]+)\" ]] && name=${BASH_REMATCH[1]}
      reply "$call" "{\"content\":[],\"structuredContent\":{\"text\":\"hello $name\"}}" ;;
    *) [[ $id ]] && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

struct Bench {
    folder: TempDir,
    server: Server,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        let settings =
            Value::map([("command", Value::from("bash")), ("args", vec![Value::from("-c"), ASKS.into()].into())]);
        let policy = Value::map([("classes", Value::map([("desk.greet", "read".into())]))]);
        let settings = Value::map([("mcpServers", Value::map([("desk", settings)])), ("policy", policy)]);
        fs::write(&config, compact(&settings)).unwrap();
        let server = started(&folder);
        Self { folder, server }
    }

    /// Starts a call, and returns the execution once it asks.
    fn start_until_form(&self, client: &Client, workflow: &str, more: &str) -> String {
        let step = format!("[{{id: greet, type: tool, tool: desk.greet, retry: {{maxAttempts: 1}}{more}}}]");
        save(client, workflow, yaml(&step));
        let id = start(client, workflow, workflow, Map::new()).expect(202).text_at("executionId");
        let waits = client.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(waits.text_at("status"), "waiting_approval", "{waits:?}");
        id
    }

    /// The lines that the tool server of the only workspace has written.
    fn log(&self) -> String {
        let entries = fs::read_dir(self.folder.path().join("data/workspaces")).unwrap().flatten();
        let folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        let [folder] = folders.as_slice() else { panic!("one workspace: {folders:?}") };
        fs::read_to_string(folder.join("log")).unwrap_or_default()
    }
}

/// Starts a server that keeps the workspaces of ended executions.
fn started(folder: &TempDir) -> Server {
    let config = folder.path().join("config.yaml");
    let arguments = ["--config", config.to_str().unwrap(), "--scripts-keep-minutes", "60"];
    Server::start_as(folder.path(), "data", &arguments, &[])
}

fn decide(client: &Client, id: &str, more: &[(&str, Value)]) -> Reply {
    let seen = client.get(&format!("/api/executions/{id}")).expect(200);
    let own = [("approve", Value::Bool(true)), ("resumeToken", seen.text_at("resumeToken").into())];
    let body = Value::map(own.into_iter().chain(more.iter().cloned()));
    client.post(&format!("/api/executions/{id}/approve"), &body)
}

fn named(name: Value) -> (&'static str, Value) {
    ("content", Value::map([("name", name)]))
}

#[test]
fn a_form_is_answered_over_the_api_with_content_that_fits() {
    let bench = Bench::new();
    let owner = bench.server.owner();
    let id = bench.start_until_form(&owner, "greets", "");
    let seen = owner.get(&format!("/api/executions/{id}")).expect(200);
    assert!(seen.text.contains(r#""purpose":"form""#) && seen.text.contains("Who?"), "{seen:?}");
    let proto = Value::map([("name", "Ann".into()), ("__proto__", Value::map([("admin", true.into())]))]);
    for (more, expected) in [
        (vec![], "approve with its content"),
        (vec![named(1u64.into())], "must be a text"),
        (vec![named("x".repeat(21).into())], "of at most 20 characters"),
        (vec![("content", proto)], "no field"),
        (vec![("content", "Ann".into())], "no object"),
        (vec![named("Ann".into()), ("cancel", true.into())], "cannot cancel"),
        (vec![named("Ann".into()), ("approve", false.into())], "a denial has no content"),
    ] {
        let refused = decide(&owner, &id, &more);
        assert!((400..500).contains(&refused.status) && refused.text.contains(expected), "{expected}: {refused:?}");
    }
    assert_eq!(bench.log(), "call\n", "nothing reached the tool server");
    decide(&owner, &id, &[named("Ann".into())]).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "completed", "{ended:?}");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
    assert!(steps.text.contains("hello Ann"), "{steps:?}");
    let log = owner.get("/api/audit?limit=50").text;
    // The log cannot be erased, so a hash stands for the content.
    let hash = Hash::of(br#"{"name":"Ann"}"#).prefixed();
    assert!(log.contains(&hash) && !log.contains("Ann"), "{log}");
}

#[test]
fn a_canceled_execution_ends_the_call_that_waits_for_a_form() {
    let bench = Bench::new();
    let owner = bench.server.owner();
    let id = bench.start_until_form(&owner, "greets", "");
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", "enough".into())])).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "cancelled", "{ended:?}");
    let seen = owner.get("/api/approvals").expect(200);
    assert!(!seen.text.contains(&id), "{seen:?}");
    let log = bench.log();
    assert!(log.starts_with("call\n") && log.matches("call").count() == 1, "{log}");
}

/// The call is open in the process that ended, so its outcome is unknown. Without a repetition the step says so.
#[test]
fn an_answer_after_a_kill_of_the_server_is_not_lost_silently() {
    let mut bench = Bench::new();
    let owner = bench.server.owner();
    let id = bench.start_until_form(&owner, "greets", ", onInterrupted: fail");
    bench.server.kill();
    let token = bench.server.token.clone().unwrap();
    bench.server = started(&bench.folder);
    let owner = bench.server.client(&token);
    decide(&owner, &id, &[named("Ann".into())]).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "failed", "{ended:?}");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
    assert!(
        steps.text.contains("interrupted") && steps.text.contains("may not have reached the tool server"),
        "{steps:?}"
    );
    assert_eq!(bench.log(), "call\n", "the call is not repeated");
}
