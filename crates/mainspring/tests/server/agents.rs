//! Agents at a server and at nodes, against the scripted model.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::{
    client::Client,
    process::{Organization, Place, Server, everywhere},
    start::{save, start},
    support::{MAINSPRING, yaml},
};

/// A tool server with one tool, which appends the number of each call to `$CALLS`.
const TOOL_SERVER: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      reply '{"tools":[{"name":"get","description":"Reads","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      [[ $line =~ \"n\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}" >> "$CALLS"
      reply '{"content":[{"type":"text","text":"seen"}]}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// A running scripted model.
pub(crate) struct Model {
    process: Child,
    pub(crate) address: String,
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Model {
    pub(crate) fn start(folder: &Path, script: &str) -> Self {
        let path = folder.join("script.yaml");
        fs::write(&path, script).unwrap();
        let mut command = Command::new(MAINSPRING);
        command.args(["dev", "model", path.to_str().unwrap(), "--listen", "127.0.0.1:0", "--json"]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = json::value(line.trim().as_bytes()).unwrap();
        let address = url.get("url").and_then(Value::as_text).unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { process, address }
    }

    /// The report of the model: `{count, byAnswer, requests}`.
    pub(crate) fn report(&self) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /requests HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        json::value(response.split_once("\r\n\r\n").unwrap().1.as_bytes()).unwrap()
    }

    pub(crate) fn count(&self) -> u64 {
        self.report().get("count").and_then(Value::as_u64).unwrap()
    }

    pub(super) fn by_answer(&self) -> Vec<u64> {
        let report = self.report();
        report.get("byAnswer").and_then(Value::as_list).unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    }

    pub(crate) fn setting(&self, more: &str) -> String {
        format!("{{provider: openai, model: m, baseUrl: 'http://{}/v1'{more}}}", self.address)
    }
}

/// A script of turns with one tool call each, and a final answer. The call of a turn has its number.
fn script(turns: usize) -> String {
    let turn = |n: usize| format!("  - {{toolCalls: [{{name: issues.get, arguments: {{n: {n}}}}}], delayMs: 40}}\n");
    format!("answers:\n{}  - {{text: done}}\n", (0..turns).map(turn).collect::<String>())
}

pub(super) fn configure(place: &Place, model: &Model, folder: &Path, of_model: &str) {
    fs::write(folder.join("tools.sh"), TOOL_SERVER).unwrap();
    let (tools, calls) = (folder.join("tools.sh"), folder.join("calls"));
    place.configure(&format!(
        "models: {{test: {}}}\nmcpServers: {{issues: {{command: bash, args: [{}], env: {{CALLS: {}}}}}}}\n\
         policy: {{classes: {{'issues.*': read}}}}\n",
        model.setting(of_model),
        tools.display(),
        calls.display()
    ));
}

const AGENT: &str = "[{id: ask, type: agent, goal: Read, tools: ['issues.*'], maxTurns: 40, onInterrupted: retry, \
     retry: {maxAttempts: 20, initialDelayMs: 0}}]";

pub(super) fn ended(client: &Client, id: &str) -> String {
    loop {
        let reply = client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
        if reply != "running" && reply != "pending" {
            return reply;
        }
    }
}

/// The server is killed after several requests of one conversation. No call with a receipt is made again, so a repeated
/// call belongs to a kill.
#[test]
fn a_conversation_continues_after_server_kills() {
    const TURNS: usize = 12;
    const KILLS: [u64; 4] = [1, 4, 6, 10];
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(folder.path(), &script(TURNS));
        configure(place, &model, folder.path(), "");
        let mut server = place.start_uncontained();
        let token = server.token.clone().unwrap();
        save(&server.owner(), "reads", yaml(AGENT));
        let id = start(&server.owner(), "reads", "r1", Map::new()).expect(202).text_at("executionId");
        for (kill, requests) in KILLS.into_iter().enumerate() {
            while model.count() < requests + kill as u64 {
                std::thread::yield_now();
            }
            server.kill();
            // At a shared store, another node takes over.
            let other = place.another_uncontained(&format!("node-{kill}"));
            server = other.unwrap_or_else(|| place.start_uncontained());
        }
        let client = server.client(&token);
        assert_eq!(ended(&client, &id), "completed", "{}", client.get(&format!("/api/executions/{id}/steps")).text);
        let by_answer = model.by_answer();
        let repeated: u64 = by_answer.iter().map(|count| count - 1).sum();
        assert_eq!(by_answer.len(), TURNS + 1);
        assert!(repeated <= KILLS.len() as u64, "{by_answer:?}");
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        for turn in 0..TURNS {
            let count = calls.lines().filter(|line| *line == turn.to_string()).count() as u64;
            assert!((1..=1 + KILLS.len() as u64).contains(&count), "turn {turn}: {calls}");
        }
        assert!(
            calls.lines().count() + repeated as usize <= TURNS + KILLS.len(),
            "a kill loses at most one call: {calls}"
        );
    });
}

/// Each organization uses the models that serve it, and cannot see others.
#[test]
fn organizations_use_the_models_that_serve_them() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path(), "answers: [{text: OK}]\n");
    let config = folder.path().join("config.yaml");
    let settings = format!(
        "models:\n  shared: {}\n  ours: {}\n",
        model.setting(", default: true"),
        model.setting(", organizations: [default]")
    );
    fs::write(&config, settings).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let acme = Organization::new(&server, "acme");
    let run = |client: &Client, workflow: &str| {
        let id = start(client, workflow, workflow, Map::new()).expect(202).text_at("executionId");
        (ended(client, &id), client.get(&format!("/api/executions/{id}/steps")).expect(200).text)
    };
    for (name, of_model) in [("shared", ""), ("ours", ", model: ours")] {
        let steps = yaml(&format!("[{{id: ask, type: agent, goal: Say OK{of_model}}}]"));
        save(&server.owner(), name, steps.clone());
        save(&acme.owner, name, steps);
        assert_eq!(run(&server.owner(), name).0, "completed");
    }
    // An address of this machine is permitted for the model, though not for `http` steps.
    assert_eq!(run(&acme.owner, "shared").0, "completed");
    let (status, steps) = run(&acme.owner, "ours");
    assert_eq!(status, "failed");
    assert!(steps.contains("no model is named `ours`; there are shared"), "{steps}");
    let url = format!("http://{}/requests", model.address);
    save(&acme.owner, "http", yaml(&format!("[{{id: get, type: http, url: '{url}', retry: {{maxAttempts: 1}}}}]")));
    let (status, steps) = run(&acme.owner, "http");
    assert_eq!(status, "failed");
    assert!(steps.contains("http_address_refused"), "{steps}");
    assert_eq!(model.count(), 3);
    // Each sees and checks the models that it may use.
    let listed = |client: &Client| client.get("/api/models").expect(200).text;
    assert!(listed(&server.owner()).contains(r#""name":"ours""#) && !listed(&acme.owner).contains("ours"));
    let check =
        |client: &Client, name: &str| client.post(&format!("/api/models/{name}/check"), &Value::Map(Map::new()));
    let checked = check(&server.owner(), "ours").expect(200);
    assert!(checked.text.contains(r#""ok":true,"text":"OK""#), "{checked:?}");
    check(&acme.owner, "ours").expect(404);
    check(&acme.member("bob", "member"), "shared").expect(403);
    assert_eq!(model.count(), 4);
    assert!(server.owner().get("/api/audit").expect(200).text.contains("model.check"));
}

/// Scripts of an agent need the same right and the same workspace as `bash` steps.
#[test]
fn scripts_of_an_agent_need_the_permission_of_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let script = "answers:\n  - {toolCalls: [{name: bash, arguments: {command: echo from-the-script}}]}\n  \
                  - {when: from-the-script, text: OK}\n";
    let model = Model::start(folder.path(), script);
    let config = folder.path().join("config.yaml");
    fs::write(&config, format!("models: {{test: {}}}\n", model.setting(""))).unwrap();
    let arguments = ["--config", config.to_str().unwrap(), "--scripts", "uncontained"];
    let server = Server::start_in(folder.path(), "data", &arguments);
    let owner = server.owner();
    save(&owner, "shell", yaml("[{id: ask, type: agent, goal: Say OK, tools: [bash]}]"));
    let id = start(&owner, "shell", "r1", Map::new()).expect(202).text_at("executionId");
    assert_eq!(ended(&owner, &id), "completed", "{}", owner.get(&format!("/api/executions/{id}/steps")).text);
}

/// Cancellation ends a call that is waiting for its answer.
#[test]
fn a_cancelled_execution_does_not_wait_for_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path(), "answers: [{hang: true}]\n");
    let config = folder.path().join("config.yaml");
    fs::write(&config, format!("models: {{test: {}}}\n", model.setting(""))).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let owner = server.owner();
    save(&owner, "waits", yaml("[{id: ask, type: agent, goal: Wait, maxTurns: 3}]"));
    let id = start(&owner, "waits", "r1", Map::new()).expect(202).text_at("executionId");
    while model.count() < 1 {
        std::thread::yield_now();
    }
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::Map(Map::new())).expect(200);
    assert_eq!(ended(&owner, &id), "cancelled");
}

/// A model that obeys an attacker calls a tool that is not listed, decides its own approval through a listed `http`, and
/// asks for a larger budget. It achieves none of it, and people see the usage.
#[test]
fn an_attacked_agent_cannot_raise_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let server_address = "127.0.0.1:1";
    let script = format!(
        "answers:\n  - toolCalls:\n    - {{name: bash, arguments: {{command: mainspring approve last}}}}\n    \
         - {{name: mainspring.approve, arguments: {{execution: last}}}}\n    \
         - {{name: budget, arguments: {{tokens: 1000000}}}}\n    \
         - {{name: http, arguments: {{url: 'http://{server_address}/api/executions/e/approve', method: POST, body: {{approve: true}}}}}}\n  \
         - {{text: unreachable}}\n"
    );
    let model = Model::start(folder.path(), &script);
    let config = folder.path().join("config.yaml");
    fs::write(&config, format!("models: {{test: {}}}\n", model.setting(""))).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let owner = server.owner();
    let steps = "[{id: ask, type: agent, goal: g, tools: [http], budget: {modelCalls: 1, onExceeded: ask}}]";
    save(&owner, "obeys", yaml(steps));
    let id = start(&owner, "obeys", "r1", Map::new()).expect(202).text_at("executionId");
    assert_eq!(ended(&owner, &id), "waiting_approval");
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
    assert_eq!(steps.matches("tool_not_listed").count(), 3, "{steps}");
    assert!(steps.contains("http_address_refused"), "{steps}");
    let seen = owner.get(&format!("/api/executions/{id}")).expect(200);
    let used = seen.json().get("usage").and_then(|usage| usage.get("used")).cloned().unwrap();
    assert_eq!(used.get("modelCalls"), Some(&Value::from(1u64)), "{seen:?}");
    assert!(seen.text.contains("Raise the budget by"), "{seen:?}");
    assert_eq!(model.count(), 1);
    // A session of the agent has its owner's rights and is no person.
    let acme = Organization::new(&server, "acme");
    save(
        &acme.owner,
        "obeys",
        yaml("[{id: ask, type: agent, goal: g, tools: [http], budget: {modelCalls: 1, onExceeded: ask}}]"),
    );
    let id = start(&acme.owner, "obeys", "r1", Map::new()).expect(202).text_at("executionId");
    assert_eq!(ended(&acme.owner, &id), "waiting_approval");
    let token = acme.owner.get(&format!("/api/executions/{id}")).expect(200).text_at("resumeToken");
    let body = Value::map([("approve", Value::Bool(true)), ("resumeToken", token.as_str().into())]);
    let refused = acme.session_of(&id).post(&format!("/api/executions/{id}/approve"), &body);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(model.count(), 2);
}

/// A workflow among the tools has its input schema, runs as a child, and its output is the result of the call.
#[test]
fn an_agent_runs_a_workflow_as_a_tool() {
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let script = "answers:\n  - toolCalls: [{name: 'workflow:double', arguments: {n: 21}}]\n  - {when: '42', text: It is 42.}\n";
        let model = Model::start(folder.path(), script);
        place.configure(&format!("models: {{test: {}}}\n", model.setting("")));
        let server = place.start();
        let owner = server.owner();
        let double = yaml(
            "steps:\n- {id: run, type: code, code: 'export default ({n}) => n * 2', input: {n: '@input.n'}}\noutput: '@run'\n\
             inputSchema: {type: object, required: [n], properties: {n: {type: integer}}}\n",
        );
        owner.post("/api/workflows/sync", &Value::map([("id", "double".into()), ("data", double)])).expect(200);
        save(
            &owner,
            "asks",
            yaml("[{id: ask, type: agent, goal: Double 21, tools: [{workflow: double}], outputVariable: out}]"),
        );
        let id = start(&owner, "asks", "r1", Map::new()).expect(202).text_at("executionId");
        let steps = || owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
        assert_eq!(ended(&owner, &id), "completed", "{}", steps());
        assert!(owner.get(&format!("/api/executions/{id}")).expect(200).text.contains("It is 42."), "{}", steps());
        assert_eq!(model.count(), 2);
    });
}

/// An agent reads its workflow, sends a wrong change and a right one, and neither approves nor applies it.
#[test]
fn an_agent_proposes_a_change_of_its_workflow() {
    const FLOW: &str = "constraints: {allowSelfModification: true}\n\
        steps: [{id: improve, type: agent, goal: Improve, tools: [propose_change], onInterrupted: retry}]\n";
    let folder = tempfile::tempdir().unwrap();
    let proposed = FLOW.replace("goal: Improve", "goal: Improve more").replace('\n', "\\n");
    let call = |arguments: &str| format!("  - {{toolCalls: [{{name: propose_change, arguments: {arguments}}}]}}\n");
    let script = format!(
        "answers:\n{}{}{}{}  - {{text: done}}\n",
        call("{}"),
        call("{proposedWorkflow: {steps: [{type: nothing}]}}"),
        call(&format!("{{proposedWorkflow: \"{proposed}\", summary: More, rationale: It helps}}")),
        call(&format!("{{proposedWorkflow: \"{proposed}\", approve: true}}")),
    );
    let model = Model::start(folder.path(), &script);
    let config = folder.path().join("config.yaml");
    fs::write(&config, format!("models: {{test: {}}}\n", model.setting(""))).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let owner = server.owner();
    let sync = |text: &str| {
        let body = Value::map([("id", Value::from("w")), ("data", text.into())]);
        owner.post("/api/workflows/sync", &body).expect(200).text_at("workflowHash")
    };
    let base = sync(FLOW);
    let id = start(&owner, "w", "r1", Map::new()).expect(202).text_at("executionId");
    assert_eq!(ended(&owner, &id), "completed", "{}", owner.get(&format!("/api/executions/{id}/steps")).text);
    let steps = owner.get(&format!("/api/executions/{id}/steps")).expect(200).text;
    for part in [base.as_str(), "steps[0].type", "`approve` is not known", "pending"] {
        assert!(steps.contains(part), "{part}: {steps}");
    }
    let listed = owner.get("/api/workflows/w/proposals").expect(200).json();
    let [proposal] = listed.get("proposals").and_then(Value::as_list).unwrap() else { panic!("{listed:?}") };
    assert_eq!(proposal.get("status"), Some(&"pending".into()));
    assert_eq!(proposal.get("executionId"), Some(&id.as_str().into()));
    assert!(proposal.get("proposedBySessionId").and_then(Value::as_text).is_some_and(|id| id.starts_with("sess_")));
    assert_eq!(owner.get("/api/workflows/w").expect(200).text_at("workflowHash"), base, "nothing is applied");
    // A workflow that does not permit proposals refuses them, and a step that does not list the tool has none.
    sync(&FLOW.replace("constraints: {allowSelfModification: true}\n", ""));
    let id = start(&owner, "w", "r2", Map::new()).expect(202).text_at("executionId");
    ended(&owner, &id);
    let listed = owner.get("/api/workflows/w/proposals").expect(200).json();
    assert_eq!(listed.get("proposals").and_then(Value::as_list).map(<[_]>::len), Some(1));
}

/// The tool acts as the session, which has no scopes: a credential with fewer permissions cannot get it by a start.
#[test]
fn starting_a_proposing_agent_needs_the_proposal_scope() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path(), "answers:\n  - {text: done}\n  - {text: done}\n");
    let config = folder.path().join("config.yaml");
    fs::write(&config, format!("models: {{test: {}}}\n", model.setting(""))).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let owner = server.owner();
    let agent = |tools: &str| yaml(&format!("[{{id: i, type: agent, goal: Improve, tools: [{tools}]}}]"));
    save(&owner, "proposes", agent("ask, propose_change"));
    save(&owner, "asks", agent("ask"));
    save(&owner, "parent", yaml("[{id: c, type: subworkflow, workflow: proposes}]"));
    let scoped = |scopes: &[&str]| {
        let list: Vec<Value> = scopes.iter().map(|scope| Value::from(*scope)).collect();
        let body = Value::map([("name", Value::from("n")), ("scopes", list.into())]);
        owner.with_token(&owner.post("/api/tokens", &body).expect(201).text_at("token"))
    };
    let starter = scoped(&["executions:start"]);
    for workflow in ["proposes", "parent"] {
        let refused = start(&starter, workflow, "r1", Map::new()).expect(403);
        assert!(refused.text_at("error").contains("without `proposals:write`"), "{refused:?}");
        let refused = start(&scoped(&["executions:start", "proposals:write"]), workflow, "r2", Map::new()).expect(403);
        assert!(refused.text_at("error").contains("without `workflows:read`"), "{refused:?}");
    }
    start(&starter, "asks", "r3", Map::new()).expect(202);
    let proposer = scoped(&["executions:start", "proposals:write", "workflows:read"]);
    start(&proposer, "proposes", "r4", Map::new()).expect(202);
}
