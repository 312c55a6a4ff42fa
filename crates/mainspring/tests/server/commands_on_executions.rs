//! Cancels and signals: the response is true on every node.

use std::{fs::OpenOptions, io::Write, path::Path, process::Command};

use mainspring_kernel::{
    limits::{SIGNAL_BYTES_MAX, SIGNALS_KEPT_BYTES_MAX},
    value::{Map, Value},
};

use super::{
    client::{Client, Reply},
    commands::Caller,
    events::Watcher,
    process::{Organization, Server, everywhere},
    start::{save, start},
};

/// Two signal steps in sequence.
fn waits() -> Value {
    let step = |name: &str| Value::map([("id", Value::from(name)), ("type", "signal".into()), ("signal", name.into())]);
    Value::List(vec![step("go"), step("stop")])
}

fn begin(client: &Client, workflow: &str, request: &str) -> String {
    start(client, workflow, request, Map::new()).expect(202).text_at("executionId")
}

fn cancel(client: &Client, id: &str) -> Reply {
    client.post(&format!("/api/executions/{id}/cancel"), &Value::map([("reason", Value::from("enough"))]))
}

fn signal(client: &Client, id: &str, message: &str, name: &str, payload: Value) -> Reply {
    let body = [("id", Value::from(message)), ("name", name.into()), ("payload", payload)];
    client.post(&format!("/api/executions/{id}/signal"), &Value::map(body))
}

fn show(client: &Client, id: &str) -> Reply {
    client.get(&format!("/api/executions/{id}")).expect(200)
}

fn ended(client: &Client, id: &str) -> String {
    client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status")
}

/// A step that reports its start, and ends when the test releases it instead of at SIGTERM.
fn slow(folder: &Path) -> Value {
    for name in ["up", "go"] {
        assert!(Command::new("mkfifo").arg(folder.join(name)).status().unwrap().success());
    }
    let folder = folder.display();
    let script =
        format!("trap 'read < {folder}/go; exit 1' TERM; echo > {folder}/up; while :; do sleep 300 & wait; done");
    let slow = Value::map([("id", Value::from("slow")), ("type", "bash".into()), ("command", script.into())]);
    let both = waits().as_list().unwrap()[..1].iter().cloned().chain([slow]).collect();
    let both = [("id", Value::from("both")), ("type", "parallel".into()), ("steps", Value::List(both))];
    Value::List(vec![Value::map(both)])
}

fn runs(folder: &Path) {
    assert_eq!(std::fs::read_to_string(folder.join("up")).unwrap(), "\n");
}

fn release(folder: &Path) {
    // Works without a reader too.
    OpenOptions::new().read(true).write(true).open(folder.join("go")).unwrap().write_all(b"\n").unwrap();
}

#[test]
fn cancel_requested_names_the_requester() {
    everywhere(|place| {
        let (server, folder) = (place.start_uncontained(), tempfile::tempdir().unwrap());
        let owner = server.owner();
        save(&owner, "slow", slow(folder.path()));
        let id = begin(&owner, "slow", "r1");
        runs(folder.path());
        assert_eq!(show(&owner, &id).json().get("cancelRequested"), Some(&Value::Null));
        cancel(&owner, &id).expect(200);
        let body = show(&owner, &id).json();
        assert_eq!(body.get("status"), Some(&"cancel_requested".into()));
        assert_eq!((body.get("error"), body.get("errorCode")), (Some(&Value::Null), Some(&Value::Null)));
        let requested = body.get("cancelRequested").unwrap();
        assert_eq!((requested.get("by"), requested.get("reason")), (Some(&"owner".into()), Some(&"enough".into())));
        let refused = signal(&owner, &id, "s1", "go", Value::Null).expect(409);
        assert!(refused.text_at("error").contains("is ending"), "{refused:?}");
        cancel(&owner, &id).expect(409);
        let mut live = Watcher::new(&owner, &id, None);
        let at_once =
            std::iter::from_fn(|| live.next()).find(|event| event.kind == "execution.cancel_requested").unwrap();
        assert_eq!(at_once.data.get("by"), Some(&"owner".into()));
        release(folder.path());
        assert_eq!(ended(&owner, &id), "cancelled");
        let body = show(&owner, &id).json();
        assert_eq!(body.get("errorCode"), Some(&"enough".into()));
        assert_eq!(body.get("cancelRequested"), Some(requested));
        // The event is the last of its frame, so that earlier events keep their indexes.
        let all = Watcher::new(&owner, &id, None).all();
        let at = all.iter().position(|event| *event == at_once).unwrap();
        let (frame, index) = at_once.id.split_once('.').unwrap();
        assert_eq!((all[at - 1].kind.as_str(), index), ("step.cancelled", "1"));
        assert_eq!(all[at - 1].id, format!("{frame}.0"));
        let told = Caller::owner(&server).fine(&["tail", &id, "--json"]);
        assert_eq!(told.matches("execution.cancel_requested").count(), 1, "{told}");
        if let Some(mut beside) = place.command(&["tail", &id, "--json"]) {
            assert_eq!(String::from_utf8(beside.output().unwrap().stdout).unwrap(), told);
        }
        let audit = owner.get("/api/audit").expect(200);
        assert!(audit.text.contains(r#""reason":"enough""#), "{audit:?}");
    });
}

/// On the node that owns the execution, and on another one.
#[test]
fn an_ended_execution_is_not_canceled_again() {
    everywhere(|place| {
        let server = place.start_uncontained();
        let other = place.another();
        let owner = server.owner();
        save(&owner, "waits", waits());
        let id = begin(&owner, "waits", "r1");
        cancel(&owner, &id).expect(200);
        assert_eq!(ended(&owner, &id), "cancelled");
        let events = Watcher::new(&owner, &id, None).all();
        assert!(events.iter().all(|event| event.kind != "execution.cancel_requested"), "{events:?}");
        let last = events.last().unwrap();
        assert_eq!((last.kind.as_str(), last.data.get("reason")), ("execution.finished", Some(&"enough".into())));
        for address in [Some(&server), other.as_ref()].into_iter().flatten().map(|server| &server.address) {
            let refused = cancel(&owner.at(address), &id).expect(409);
            assert_eq!(refused.text_at("code"), "CONFLICT");
        }
    });
}

#[test]
fn a_signal_is_stored_or_refused() {
    everywhere(|place| {
        let server = place.start_uncontained();
        let other = place.another();
        let owner = server.owner();
        let everybody: Vec<Client> =
            [Some(&server), other.as_ref()].into_iter().flatten().map(|server| owner.at(&server.address)).collect();
        save(&owner, "waits", waits());
        let id = begin(&owner, "waits", "r1");
        let too_large = Value::from("x".repeat(SIGNAL_BYTES_MAX));
        signal(&owner, &id, "large", "go", too_large).expect(400);
        for client in &everybody {
            signal(client, &id, "s1", "stop", Value::from(1u64)).expect(200);
        }
        signal(&owner, &id, "s2", "go", Value::Null).expect(200);
        assert_eq!(ended(&owner, &id), "completed");
        for client in &everybody {
            // A received signal id stays known after the end; a new one is rejected.
            let again = signal(client, &id, "s1", "stop", Value::from(1u64)).expect(200);
            assert_eq!(again.text_at("status"), "completed");
            let refused = signal(client, &id, "s3", "go", Value::Null).expect(409);
            assert!(refused.text_at("error").contains("has ended"), "{refused:?}");
        }
    });
}

#[test]
fn a_signal_beyond_the_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    save(&owner, "waits", waits());
    let id = begin(&owner, "waits", "r1");
    // The header of a text of this length takes five bytes.
    let largest = Value::from("x".repeat(SIGNAL_BYTES_MAX - 5));
    for number in 0..SIGNALS_KEPT_BYTES_MAX / SIGNAL_BYTES_MAX {
        signal(&owner, &id, &format!("s{number}"), "stop", largest.clone()).expect(200);
    }
    let refused = signal(&owner, &id, "more", "stop", Value::Null).expect(409);
    assert!(refused.text_at("error").contains("as many signals as it may"), "{refused:?}");
    signal(&owner, &id, "s0", "stop", Value::Null).expect(200);
    signal(&owner, &id, "awaited", "go", Value::Null).expect(200);
}

/// A signal for which no step ever waits is a typing error; one whose step has not begun is kept.
#[test]
fn a_signal_of_a_wrong_name_is_refused_with_the_right_one() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "waits", waits());
        let id = begin(&owner, "waits", "r1");
        let refused = signal(&owner, &id, "s1", "stpo", Value::Null).expect(409);
        assert!(refused.text_at("error").contains("did you mean `stop`?"), "{refused:?}");
        let other = signal(&owner, &id, "s1", "elsewhere", Value::Null).expect(409);
        assert!(other.text_at("error").contains("its steps wait for `go`, `stop`"), "{other:?}");
        signal(&owner, &id, "s1", "stop", Value::Null).expect(200);
        signal(&owner, &id, "s2", "go", Value::Null).expect(200);
        let ended = owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        assert_eq!(ended.text_at("status"), "completed", "the early signal was kept");
    });
}

/// An act that is sent through another node's inbox is logged too.
#[test]
fn requests_to_any_node_are_audited() {
    everywhere(|place| {
        let one = place.start();
        let Some(other) = place.another() else { return };
        let owner = Organization::new(&one, "acme").owner;
        let there = owner.at(&other.address);
        let wait = [("id", Value::from("wait")), ("type", "approval".into())];
        let signal = [("id", Value::from("go")), ("type", "signal".into()), ("signal", "go".into())];
        save(&owner, "waits", Value::List(vec![Value::map(wait), Value::map(signal)]));
        let ids: Vec<String> = (0..4)
            .map(|number| start(&owner, "waits", &format!("r{number}"), Map::new()).expect(202).text_at("executionId"))
            .collect();
        for id in &ids {
            let is_waiting = || owner.get(&format!("/api/executions/{id}")).text_at("status") == "waiting_approval";
            assert!(std::iter::repeat_with(is_waiting).any(|is_waiting| is_waiting));
            for (client, at) in [(&owner, "one"), (&there, "other")] {
                let signal = [("id", Value::from(at)), ("name", "go".into())];
                client.post(&format!("/api/executions/{id}/signal"), &Value::map(signal)).expect(200);
            }
        }
        let log = owner.get("/api/audit?limit=200").expect(200).json();
        let entries = log.get("entries").and_then(Value::as_list).unwrap();
        let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_text).unwrap().to_string();
        for id in &ids {
            let acts: Vec<_> = entries
                .iter()
                .filter(|entry| text(entry, "target") == *id && text(entry, "action").starts_with("execution.signal"))
                .map(|entry| (text(entry, "action"), text(entry, "actor")))
                .collect();
            assert_eq!(acts.len(), 2, "{acts:?}");
            let posted = acts.iter().filter(|(action, _)| action == "execution.signal.posted").count();
            assert!(posted >= 1, "at most one node holds it, the other posts: {acts:?}");
            assert!(acts.iter().all(|(_, actor)| actor == "ada"));
        }
    });
}
