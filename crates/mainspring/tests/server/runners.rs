//! External agents at a server: contained as scripts are, and held while people decide about permissions.

use std::{fs, path::PathBuf};

use mainspring_kernel::{
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

/// The scripted agent of `mainspring-acp`. A container does not show its file.
const AGENT: &str = include_str!("../../../acp/tests/agent.py");

const STEPS: &str = "[{id: work, type: agent, runner: tester, goal: Tidy up}]";

struct Bench {
    folder: TempDir,
    server: Server,
}

impl Bench {
    fn new(mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let args: Vec<Value> = ["-u", "-c", AGENT, mode].into_iter().map(Value::from).collect();
        let env = Value::map([("KEY", Value::map([("secret", "TOKEN".into())]))]);
        let agent = Value::map([("command", "python3".into()), ("args", args.into()), ("env", env)]);
        let settings = Value::map([
            ("agents", Value::map([("tester", agent)])),
            ("policy", Value::map([("verdicts", Value::map([("tester.execute", "deny".into())]))])),
            ("secrets", Value::map([("TOKEN", Value::map([("env", "OUR_TOKEN".into())]))])),
        ]);
        fs::write(folder.path().join("config.yaml"), compact(&settings)).unwrap();
        let server = started(&folder);
        Self { folder, server }
    }

    /// Starts the agent, and returns the execution once it waits or has ended.
    fn run(&self, client: &Client, workflow: &str) -> (String, String) {
        save(client, workflow, yaml(STEPS));
        let id = start(client, workflow, workflow, Map::new()).expect(202).text_at("executionId");
        let status = client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
        (id, status)
    }

    /// A file that the agent has written in the only workspace.
    fn file(&self, name: &str) -> String {
        let entries = fs::read_dir(self.folder.path().join("data/workspaces")).unwrap().flatten();
        let folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        let [folder] = folders.as_slice() else { panic!("one workspace: {folders:?}") };
        fs::read_to_string(folder.join(name)).unwrap_or_default()
    }
}

/// Starts a server that keeps the workspaces of ended executions.
fn started(folder: &TempDir) -> Server {
    let config = folder.path().join("config.yaml");
    let arguments = ["--config", config.to_str().unwrap(), "--scripts-keep-minutes", "60"];
    Server::start_as(folder.path(), "data", &arguments, &[("OUR_TOKEN", "c2VjcmV0LXRva2Vu")])
}

fn decide(client: &Client, id: &str, approve: bool) -> Reply {
    let seen = client.get(&format!("/api/executions/{id}")).expect(200);
    let body = Value::map([("approve", approve.into()), ("resumeToken", seen.text_at("resumeToken").into())]);
    client.post(&format!("/api/executions/{id}/approve"), &body)
}

fn steps(client: &Client, id: &str) -> String {
    client.get(&format!("/api/executions/{id}/steps")).expect(200).text
}

#[test]
fn a_contained_agent_waits_for_a_permission_and_continues() {
    let bench = Bench::new("asks");
    let owner = bench.server.owner();
    let (id, status) = bench.run(&owner, "tidies");
    assert_eq!(status, "waiting_approval", "{}", steps(&owner, &id));
    let seen = owner.get(&format!("/api/executions/{id}")).expect(200);
    assert!(seen.text.contains("Delete old.txt") && seen.text.contains("asks in step `work`"), "{seen:?}");
    assert_eq!(bench.file("log"), "read yes\n");
    decide(&owner, &id, true).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "completed", "{}", steps(&owner, &id));
    assert_eq!(bench.file("log"), "read yes\ndelete yes\nexecute no\n");
    assert_eq!(bench.file("sessions"), "new\n", "the same process continued");
}

#[test]
fn a_key_of_an_agent_is_removed_from_its_answer() {
    let bench = Bench::new("secret");
    let owner = bench.server.owner();
    let (id, status) = bench.run(&owner, "tells");
    let steps = steps(&owner, &id);
    assert_eq!(status, "completed", "{steps}");
    assert!(steps.contains("the key is ***"), "{steps}");
}

#[test]
fn a_canceled_execution_ends_the_agent_that_waits() {
    let bench = Bench::new("asks");
    let owner = bench.server.owner();
    let (id, _) = bench.run(&owner, "tidies");
    owner.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", "enough".into())])).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "cancelled", "{ended:?}");
    assert_eq!((bench.file("canceled").as_str(), bench.file("log").as_str()), ("yes\n", "read yes\n"));
}

#[test]
fn a_session_is_loaded_after_a_kill_of_the_server() {
    let mut bench = Bench::new("loads");
    let owner = bench.server.owner();
    let (id, _) = bench.run(&owner, "tidies");
    bench.server.kill();
    let token = bench.server.token.clone().unwrap();
    bench.server = started(&bench.folder);
    let owner = bench.server.client(&token);
    decide(&owner, &id, true).expect(200);
    let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "completed", "{}", steps(&owner, &id));
    assert_eq!(bench.file("log"), "read yes\ndelete yes\nexecute no\n");
    assert_eq!(bench.file("sessions"), "new\nload s-1\n");
}
