//! Tools at a server: policy, approvals of calls, and the rights of the processes of tool servers.

use std::fs;

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};
use tempfile::TempDir;

use super::{
    client::{Client, Reply},
    commands::Caller,
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
fn tool_servers_do_not_start_if_scripts_are_off() {
    let bench = Bench::new("off");
    let owner = bench.server.owner();
    save(&owner, "reads", tool("shop.get", "{}"));
    let (id, status) = settled(&owner, "reads");
    assert_eq!(status, "failed");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200);
    assert!(steps.text.contains("tool_server_not_started") && steps.text.contains("use a server with"), "{steps:?}");
    assert_eq!(bench.calls(), 0);
}

/// Sets the rules of the caller's organization.
fn put_policy(client: &Client, verdicts: &[(&str, &str)]) -> Reply {
    let verdicts = verdicts.iter().map(|(key, verdict)| (*key, Value::from(*verdict)));
    client.put("/api/policy", &Value::map([("verdicts", Value::map(verdicts))]))
}

#[test]
fn an_organization_tightens_the_policy_and_cannot_loosen_it() {
    let bench = Bench::new("uncontained");
    let owner = bench.server.owner();
    save(&owner, "reads", tool("shop.get", "{}"));
    save(&owner, "pays", tool("shop.pay", "{to: a}"));
    put_policy(&owner, &[("shop.pay", "allow"), ("shop.get", "ask")]).expect(200);
    assert_eq!(settled(&owner, "pays").1, "waiting_approval", "the installation asks about payments");
    assert_eq!(settled(&owner, "reads").1, "waiting_approval");
    let caller = Caller::owner(&bench.server);
    caller.fine(&["policy", "set", "read=deny"]);
    assert!(caller.fine(&["policy", "show"]).contains(r#""read": "deny""#));
    let data = Value::map([("steps", tool("shop.get", "{}"))]);
    let refused = owner.post("/api/workflows/sync", &Value::map([("id", Value::from("denied")), ("data", data)]));
    assert!(refused.status >= 400 && refused.text.contains("policy_denied"), "{refused:?}");
    let start = start(&owner, "reads", "again", Map::new()).expect(202).text_at("executionId");
    let ended = owner.get(&format!("/api/executions/{start}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "failed", "a workflow that was saved before is denied at its call");
    assert!(ended.text.contains("policy_denied"), "{ended:?}");
    assert_eq!(bench.calls(), 0);
    // Other organizations keep their rules, and so does this one after a refused change.
    let acme = Organization::new(&bench.server, "acme");
    assert_eq!(policy_of(&acme.owner), "{}");
    for (key, verdict, place) in [
        ("read", "never", "verdicts.read"),
        ("a b", "deny", "verdicts.a b"),
        ("a=b", "deny", "verdicts.a=b"),
        ("", "ask", "verdicts."),
    ] {
        let refused = put_policy(&owner, &[(key, verdict)]).expect(400);
        assert!(refused.text.contains(place), "{refused:?}");
    }
    let twice = r#"{"verdicts": {"payment": "deny", "payment": "allow"}}"#;
    let refused = owner.send("PUT", "/api/policy", &[], Some(twice)).expect(400);
    assert!(refused.text.contains("is there twice"), "{refused:?}");
    assert_eq!(policy_of(&owner), r#"{"read":"deny"}"#);
    let tag = owner.get("/api/policy").expect(200).header("etag").unwrap().to_string();
    let body = r#"{"verdicts": {}}"#;
    owner.send("PUT", "/api/policy", &[("if-match", &tag)], Some(body)).expect(200);
    owner.send("PUT", "/api/policy", &[("if-match", &tag)], Some(body)).expect(412);
    put_policy(&acme.member("bob", "member"), &[]).expect(403);
    let log = owner.get("/api/audit").expect(200).text;
    assert!(log.contains("policy.set") && log.contains(r#""verdicts":{"read":"deny"}"#), "{log}");
}

/// The own rules of the caller's organization.
fn policy_of(client: &Client) -> String {
    compact(client.get("/api/policy").expect(200).json().get("verdicts").unwrap())
}

#[test]
fn a_check_lists_the_tools_of_a_server_with_their_verdicts() {
    let bench = Bench::new("uncontained");
    let owner = bench.server.owner();
    let listed = owner.get("/api/tool-servers").expect(200);
    assert!(listed.text.contains(r#""name":"shop","transport":"stdio","address":"bash""#), "{listed:?}");
    assert!(!listed.text.contains("tools.sh"), "arguments can hold secrets: {listed:?}");
    let check = |client: &Client, server: &str| {
        client.post(&format!("/api/tool-servers/{server}/check"), &Value::Map(Map::new()))
    };
    let verdicts = |reply: &Reply| -> Vec<[String; 3]> {
        let body = reply.json();
        let tools = body.get("tools").and_then(Value::as_list).unwrap();
        let text = |tool: &Value, key: &str| tool.get(key).and_then(Value::as_text).unwrap().to_string();
        tools.iter().map(|tool| ["name", "class", "verdict"].map(|key| text(tool, key))).collect()
    };
    let checked = check(&owner, "shop").expect(200);
    assert_eq!(verdicts(&checked), [["shop.get", "read", "allow"], ["shop.pay", "payment", "ask"]]);
    assert!(checked.text.contains(r#""required":["to"]"#), "{checked:?}");
    let acme = Organization::new(&bench.server, "acme");
    assert_eq!(verdicts(&check(&acme.owner, "shop").expect(200))[0], ["shop.get", "read", "deny"]);
    check(&owner, "none").expect(404);
    check(&acme.member("eve", "viewer"), "shop").expect(403);
    assert!(owner.get("/api/audit").expect(200).text.contains("tool_server.check"));
    // A server that cannot be started is a check that failed.
    let other = Bench::new("off");
    let failed = check(&other.server.owner(), "shop").expect(200);
    assert!(failed.text.contains(r#""ok":false"#) && failed.text.contains("processes are off"), "{failed:?}");
}

/// The annotations of a trusted server give its tools their classes, at the start of the server and with each check.
#[test]
fn a_server_reads_the_annotations_of_trusted_tool_servers() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let annotated = TOOL_SERVER.replace(r#""name":"get","#, r#""name":"get","annotations":{"readOnlyHint":true},"#);
    fs::write(path("tools.sh"), &annotated).unwrap();
    let server = format!("{{command: bash, args: [{}], env: {{CALLS: {}}}}}", path("tools.sh"), path("calls"));
    let config = format!("mcpServers:\n  shop: {server}\n  other: {server}\npolicy: {{trusted: [shop]}}\n");
    fs::write(path("config.yaml"), config).unwrap();
    let arguments = ["--scripts", "uncontained", "--config", &path("config.yaml")];
    let server = Server::start_as(folder.path(), "data", &arguments, &[]);
    let owner = server.owner();
    for (workflow, name, expected) in [
        ("reads", "shop.get", "completed"),
        ("pays", "shop.pay", "waiting_approval"),
        ("asks", "other.get", "waiting_approval"),
    ] {
        save(&owner, workflow, tool(name, "{to: a}"));
        assert_eq!(settled(&owner, workflow).1, expected, "{workflow}");
    }
}
