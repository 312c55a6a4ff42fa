//! Drains: starts after the application of a proposal wait until the executions before have ended.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    process::{Server, everywhere},
    start::start,
    support::{MAINSPRING, call, yaml},
};

/// A definition that waits for a signal, and returns a number.
fn definition(number: u32) -> Value {
    yaml(&format!(
        "constraints: {{allowSelfModification: true}}\nsteps: [{{id: go, type: signal, signal: go}}]\n\
         output: {{result: {number}}}\n"
    ))
}

fn sync(client: &Client, id: &str, data: Value) -> String {
    let body = Value::map([("id", Value::from(id)), ("data", data)]);
    client.post("/api/workflows/sync", &body).expect(200).text_at("workflowHash")
}

/// Proposes a definition, approves it, and applies it with a treatment of running executions.
fn apply(client: &Client, workflow: &str, data: Value, while_running: &str) -> Reply {
    let base = workflow_of(client, workflow);
    let base = base.get("workflowHash").cloned().unwrap();
    let change = Value::map([("proposedWorkflow", data)]);
    let body = Value::map([("baseWorkflowHash", base), ("proposal", change)]);
    let created = client.post(&format!("/api/workflows/{workflow}/proposals"), &body).expect(201);
    let path = format!("/api/workflows/{workflow}/proposals/{}", created.text_at("id"));
    client.post(&format!("{path}/review"), &Value::map([("approve", Value::Bool(true))])).expect(200);
    client.post(&format!("{path}/apply"), &Value::map([("whileRunning", while_running.into())]))
}

fn workflow_of(client: &Client, workflow: &str) -> Value {
    client.get(&format!("/api/workflows/{workflow}")).expect(200).json()
}

fn start_execution(client: &Client, request: &str) -> String {
    start(client, "w", request, Map::new()).expect(202).text_at("executionId")
}

fn shown(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/executions/{id}")).expect(200).json()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

/// Polls until an execution has a status.
fn reaches(client: &Client, id: &str, status: &str) -> Value {
    for _ in 0..600 {
        let execution = shown(client, id);
        if text(&execution, "status") == status {
            return execution;
        }
        // The server answers when the execution has settled, or after the time.
        client.get(&format!("/api/executions/{id}/wait?timeoutMs=100")).expect(200);
    }
    panic!("{id} does not become {status}: {:?}", shown(client, id));
}

/// Checks that an execution begins before the node reads its organization on its own, which it does every 20 seconds.
fn begins(client: &Client, id: &str) {
    let is_pending = || text(&shown(client, id), "status") == "pending";
    for _ in 0..80 {
        if !is_pending() {
            return;
        }
        // The server answers after the time.
        client.get(&format!("/api/executions/{id}/wait?timeoutMs=100")).expect(200);
    }
    panic!("{id} still waits");
}

/// Sends the signal and waits for the end. Returns the output.
fn ended(client: &Client, id: &str) -> Value {
    reaches(client, id, "running");
    client
        .post(&format!("/api/executions/{id}/signal"), &Value::map([("id", Value::from("s")), ("name", "go".into())]))
        .expect(200);
    reaches(client, id, "completed");
    shown(client, id).get("outputs").cloned().unwrap_or_default()
}

fn output(number: u32) -> Value {
    Value::map([("result", Value::from(number))])
}

#[test]
fn queued_starts_use_the_new_definition_after_a_drain() {
    everywhere(|place| {
        let (server, mut nodes) = (place.start(), Vec::new());
        nodes.extend(place.another());
        let owner = server.owner();
        let from = sync(&owner, "w", definition(1));
        let old = [start_execution(&owner, "1"), start_execution(&owner, "2")];
        old.iter().for_each(|id| drop(reaches(&owner, id, "running")));
        let applied = apply(&owner, "w", definition(2), "drain").expect(200).json();
        assert_eq!(
            applied.get("proposal").unwrap().get("applied").map(|applied| text(applied, "whileRunning")),
            Some("drain".into())
        );
        // A start at any node waits.
        let other = nodes.first().map_or_else(|| owner.clone(), |node| owner.at(&node.address));
        let new = [start_execution(&other, "3"), start_execution(&owner, "4")];
        let check_waits = || {
            for id in &new {
                let execution = shown(&owner, id);
                assert_eq!(
                    (text(&execution, "status"), text(&execution, "waitingFor")),
                    ("pending".into(), "draining".into())
                );
            }
        };
        check_waits();
        let drain = workflow_of(&owner, "w").get("draining").cloned().unwrap();
        assert_eq!((text(&drain, "by"), text(&drain, "fromHash")), ("owner".into(), from));
        assert_eq!(drain.get("waitsFor").and_then(Value::as_u64), Some(2), "{drain:?}");
        assert_eq!(apply(&owner, "w", definition(3), "drain").expect(409).text_at("code"), "CONFLICT");
        assert_eq!(ended(&owner, &old[0]), output(1));
        check_waits();
        assert_eq!(workflow_of(&owner, "w").get("draining").unwrap().get("waitsFor").and_then(Value::as_u64), Some(1));
        assert_eq!(ended(&owner, &old[1]), output(1));
        for id in &new {
            assert_eq!(ended(&owner, id), output(2));
        }
        assert_eq!(workflow_of(&owner, "w").get("draining"), Some(&Value::Null));
        assert_eq!(ended(&owner, &start_execution(&other, "5")), output(2));
        // Another drain, with nothing that runs, is over at once.
        apply(&owner, "w", definition(4), "drain").expect(200);
        assert_eq!(ended(&owner, &start_execution(&other, "6")), output(4));
    });
}

#[test]
fn a_drain_survives_a_crash_and_can_be_ended() {
    everywhere(|place| {
        let mut server = place.start();
        let owner = server.owner();
        sync(&owner, "w", definition(1));
        let old = start_execution(&owner, "1");
        reaches(&owner, &old, "running");
        apply(&owner, "w", definition(2), "drain").expect(200);
        let new = start_execution(&owner, "2");
        server.kill();
        let server = place.start();
        let owner = owner.at(&server.address);
        assert_eq!(text(&shown(&owner, &new), "waitingFor"), "draining");
        let later = start_execution(&owner, "3");
        assert_eq!(text(&shown(&owner, &later), "status"), "pending");
        owner.send("DELETE", "/api/workflows/w/drain", &[], None).expect(200);
        assert_eq!((ended(&owner, &new), ended(&owner, &later)), (output(2), output(2)));
        reaches(&owner, &old, "running");
        assert_eq!(owner.send("DELETE", "/api/workflows/w/drain", &[], None).expect(409).text_at("code"), "CONFLICT");
        assert_eq!(ended(&owner, &old), output(1));
    });
}

#[test]
fn later_definitions_wait_too_and_a_return_ends_the_drain() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(place.path());
    let owner = server.owner();
    let first = sync(&owner, "w", definition(1));
    let old = start_execution(&owner, "1");
    reaches(&owner, &old, "running");
    apply(&owner, "w", definition(2), "drain").expect(200);
    let second = start_execution(&owner, "2");
    sync(&owner, "w", definition(3));
    let third = start_execution(&owner, "3");
    assert_eq!([&second, &third].map(|id| text(&shown(&owner, id), "waitingFor")), ["draining", "draining"]);
    owner.post("/api/workflows/w/rollback", &Value::map([("workflowHash", Value::from(first))])).expect(200);
    assert_eq!(workflow_of(&owner, "w").get("draining"), Some(&Value::Null));
    [&second, &third].into_iter().for_each(|id| begins(&owner, id));
    let fourth = start_execution(&owner, "4");
    assert_eq!(ended(&owner, &fourth), output(1));
    // A return by a save, and the deletion of the workflow.
    apply(&owner, "w", definition(5), "drain").expect(200);
    let fifth = start_execution(&owner, "5");
    assert_eq!(text(&shown(&owner, &fifth), "waitingFor"), "draining");
    sync(&owner, "w", definition(2));
    begins(&owner, &fifth);
    apply(&owner, "w", definition(6), "drain").expect(200);
    let sixth = start_execution(&owner, "6");
    assert_eq!(text(&shown(&owner, &sixth), "waitingFor"), "draining");
    owner.send("DELETE", "/api/workflows/w", &[], None).expect(204);
    begins(&owner, &sixth);
    assert_eq!((ended(&owner, &fifth), ended(&owner, &sixth)), (output(5), output(6)));
    assert_eq!((ended(&owner, &second), ended(&owner, &third), ended(&owner, &old)), (output(2), output(3), output(1)));
}

#[test]
fn the_owner_and_admins_end_a_drain() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(place.path());
    let owner = server.owner();
    sync(&owner, "w", definition(1));
    let old = start_execution(&owner, "1");
    apply(&owner, "w", definition(2), "drain").expect(200);
    for role in ["member", "viewer", "agent"] {
        owner.put(&format!("/api/members/{role}"), &Value::map([("role", role.into())])).expect(200);
        let token = Value::map([("name", Value::from("t")), ("userId", role.into())]);
        let member = server.client(&owner.post("/api/tokens", &token).expect(201).text_at("token"));
        member.send("DELETE", "/api/workflows/w/drain", &[], None).expect(403);
    }
    let session = Value::map([("name", Value::from("t")), ("sessionOf", old.as_str().into())]);
    let session = server.client(&owner.post("/api/tokens", &session).expect(201).text_at("token"));
    session.send("DELETE", "/api/workflows/w/drain", &[], None).expect(403);
    let mut command = std::process::Command::new(MAINSPRING);
    command.args(["proposals", "end-drain", "w"]).env("MAINSPRING_SERVER", format!("http://{}", server.address));
    command.env("MAINSPRING_TOKEN", owner.token()).env("HOME", place.path());
    let ended = call(command, b"");
    assert!(ended.exit == Some(0) && ended.stdout.contains("no longer drains"), "{ended:?}");
    let log = owner.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap();
    assert!(entries.iter().any(|entry| text(entry, "action") == "workflow.drain_end"), "{entries:?}");
}
