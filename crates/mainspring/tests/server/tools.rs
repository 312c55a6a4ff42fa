//! Tools at a server: policy, approvals of calls, and the rights of the processes of tool servers.

use std::fs;

use mainspring_kernel::value::{Map, Value};
use tempfile::TempDir;

use super::{
    client::Client,
    process::{Organization, Server},
    start::{save, start},
    support::yaml,
};

/// A tool server with the handshake of 2025-11-25. It appends the name of each called tool to `$CALLS`.
const TOOL_SERVER: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply '{"tools":[{"name":"pay","inputSchema":{"type":"object","required":["to"]}},{"name":"get","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      echo called >> "$CALLS"
      reply '{"content":[],"structuredContent":{"text":"done"}}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// A server whose settings file has a tool server and a policy.
struct Bench {
    folder: TempDir,
    server: Server,
}

impl Bench {
    fn new(scripts: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("tools.sh"), TOOL_SERVER).unwrap();
        let config = format!(
            "mcpServers:\n  shop: {{command: bash, args: [{}], env: {{CALLS: {}}}}}\n\
             policy:\n  classes: {{shop.get: read, shop.pay: payment}}\n  organizations: {{acme: {{shop.get: deny}}}}\n",
            path("tools.sh"),
            path("calls")
        );
        fs::write(path("config.yaml"), config).unwrap();
        let config = path("config.yaml");
        let server = Server::start_as(folder.path(), "data", &["--scripts", scripts, "--config", &config], &[]);
        Self { folder, server }
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default().lines().count()
    }
}

fn tool(name: &str, arguments: &str) -> Value {
    yaml(&format!("[{{id: call, type: tool, tool: {name}, arguments: {arguments}, retry: {{maxAttempts: 1}}}}]"))
}

/// Starts a saved workflow, and returns its id and its status once it has settled.
fn settled(client: &Client, workflow: &str) -> (String, String) {
    let id = start(client, workflow, workflow, Map::new()).expect(202).text_at("executionId");
    let status = client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
    (id, status)
}

#[test]
fn a_server_calls_tools_under_the_policy() {
    let bench = Bench::new("uncontained");
    let owner = bench.server.owner();
    save(&owner, "reads", tool("shop.get", "{}"));
    assert_eq!(settled(&owner, "reads").1, "completed");
    assert_eq!(bench.calls(), 1);

    save(&owner, "pays", tool("shop.pay", "{to: ann}"));
    let (id, status) = settled(&owner, "pays");
    assert_eq!((status.as_str(), bench.calls()), ("waiting_approval", 1));
    let seen = owner.get(&format!("/api/executions/{id}")).expect(200);
    assert!(seen.text.contains("Its class is payment. Allow this call?") && seen.text.contains("ann"), "{seen:?}");
    let body = [("approve", Value::Bool(true)), ("resumeToken", seen.text_at("resumeToken").into())];
    owner.post(&format!("/api/executions/{id}/approve"), &Value::map(body)).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!((ended.text_at("status").as_str(), bench.calls()), ("completed", 2), "{ended:?}");

    save(&owner, "mistaken", tool("shop.pay", "{too: ann}"));
    let (id, _) = settled(&owner, "mistaken");
    let seen = owner.get(&format!("/api/executions/{id}")).expect(200);
    let body = [("approve", Value::Bool(true)), ("resumeToken", seen.text_at("resumeToken").into())];
    owner.post(&format!("/api/executions/{id}/approve"), &Value::map(body)).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "failed");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
    assert!(steps.text.contains("tool_arguments_invalid"), "{steps:?}");
    assert_eq!(bench.calls(), 2, "arguments that do not match the schema are not sent");
}

#[test]
fn the_rules_of_an_organization_are_its_own() {
    let bench = Bench::new("uncontained");
    let acme = Organization::new(&bench.server, "acme");
    let body = Value::map([("id", "reads".into()), ("data", Value::map([("steps", tool("shop.get", "{}"))]))]);
    let refused = acme.owner.post("/api/workflows/sync", &body);
    assert!(refused.status >= 400 && refused.text.contains("policy_denied"), "{refused:?}");
    bench.server.owner().post("/api/workflows/sync", &body).expect(200);
    assert_eq!(bench.calls(), 0);
}

/// The processes of tool servers have no more rights than scripts.
#[test]
fn a_tool_server_is_no_process_where_scripts_are_none() {
    let bench = Bench::new("off");
    let owner = bench.server.owner();
    save(&owner, "reads", tool("shop.get", "{}"));
    let (id, status) = settled(&owner, "reads");
    assert_eq!(status, "failed");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
    assert!(steps.text.contains("tool_server_not_started") && steps.text.contains("use a server with"), "{steps:?}");
    assert_eq!(bench.calls(), 0);
}
