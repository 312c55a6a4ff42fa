//! Messages of people to agents: the response is true on every node, and the log has them without their text.

use mainspring_kernel::{
    limits::MESSAGE_BYTES_MAX,
    value::{Map, Value},
};

use super::{
    client::{Client, Reply},
    process::everywhere,
    start::{save, start},
};

fn send(client: &Client, id: &str, message: &str, conversation: &str, content: &str) -> Reply {
    let body = [("id", message), ("conversation", conversation), ("content", content)];
    client
        .post(&format!("/api/executions/{id}/messages"), &Value::map(body.map(|(key, text)| (key, Value::from(text)))))
}

/// An agent behind a signal, so that its messages are kept.
fn steps() -> Value {
    let text = "[{id: go, type: signal, signal: go}, {id: ask, type: agent, goal: Read, conversation: chat}]";
    mainspring_kernel::yaml::read(text.as_bytes()).unwrap().value
}

#[test]
fn a_message_is_stored_once_or_refused() {
    everywhere(|place| {
        place.configure("models: {test: {provider: openai, model: m, baseUrl: 'http://127.0.0.1:1/v1'}}\n");
        let server = place.start_uncontained();
        let other = place.another();
        let owner = server.owner();
        let everybody: Vec<Client> =
            [Some(&server), other.as_ref()].into_iter().flatten().map(|server| owner.at(&server.address)).collect();
        save(&owner, "talks", steps());
        let id = start(&owner, "talks", "r1", Map::new()).expect(202).text_at("executionId");
        for client in &everybody {
            send(client, &id, "m1", "chat", "a secret word").expect(200);
        }
        for refused in ["", " ", &"x".repeat(MESSAGE_BYTES_MAX)] {
            send(&owner, &id, "m2", "chat", refused).expect(400);
        }
        let unknown = send(&owner, &id, "m3", "other", "hello").expect(409);
        assert!(unknown.text_at("error").contains("has no such conversation"), "{unknown:?}");
        let more = Value::map([("id", Value::from("m4")), ("content", "hello".into()), ("more", true.into())]);
        owner.post(&format!("/api/executions/{id}/messages"), &more).expect(400);
        owner.post(&format!("/api/executions/{id}/cancel"), &Value::Map(Map::new())).expect(200);
        owner.get(&format!("/api/executions/{id}/wait")).expect(200);
        for client in &everybody {
            send(client, &id, "m1", "chat", "a secret word").expect(200);
            let refused = send(client, &id, "m5", "chat", "hello").expect(409);
            assert!(refused.text_at("error").contains("no agent"), "{refused:?}");
        }
        let log = owner.get("/api/audit?limit=200").expect(200).json();
        let entries = log.get("entries").and_then(Value::as_list).unwrap();
        let of_message = |entry: &&Value| {
            entry.get("action").and_then(Value::as_text).is_some_and(|action| action.starts_with("execution.message"))
        };
        assert!(entries.iter().any(|entry| of_message(&entry)), "{log:?}");
        assert!(!mainspring_kernel::json::compact(&log).contains("secret word"), "the text is in the journal alone");
    });
}
