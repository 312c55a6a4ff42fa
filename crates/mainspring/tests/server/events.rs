//! Event streams of executions, and their continuation after a disconnect.

use std::{io::BufReader, net::TcpStream};

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::{
    client::{Client, chunk, head},
    process::{Organization, Server, everywhere},
    start::{save, start},
};

/// A watcher of an execution.
pub(crate) struct Watcher {
    reader: BufReader<TcpStream>,
    rest: String,
}

/// A received event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Watcher {
    pub(crate) fn new(client: &Client, execution: &str, after: Option<&str>) -> Self {
        Self::at(client, &format!("/api/executions/{execution}/events"), after)
    }

    /// A watcher that gets progress as well. These events have no id.
    pub(crate) fn of_progress(client: &Client, execution: &str) -> Self {
        Self::at(client, &format!("/api/executions/{execution}/events?progress=true"), None)
    }

    fn at(client: &Client, route: &str, after: Option<&str>) -> Self {
        let headers: Vec<_> = after.into_iter().map(|id| ("last-event-id", id)).collect();
        let mut reader = client.open("GET", route, &headers, None);
        let (status, headers) = head(&mut reader);
        assert_eq!(status, 200);
        assert!(headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream"));
        Self { reader, rest: String::new() }
    }

    /// The next event; `None` if the stream has ended.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((one, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| one.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let event = field("event:").map(|kind| Event {
                    id: field("id:").unwrap_or_default().to_string(),
                    kind: kind.to_string(),
                    data: json::read(field("data:").unwrap().as_bytes()).unwrap().value,
                });
                self.rest = rest.to_string();
                if event.is_some() {
                    return event;
                }
                continue;
            }
            self.rest += &String::from_utf8(chunk(&mut self.reader)?).unwrap();
        }
    }

    pub(crate) fn all(mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn steps() -> Value {
    let code = "export default function () { return 1; }";
    let step = |id: &str| Value::map([("id", Value::from(id)), ("type", "code".into()), ("code", code.into())]);
    let gate = Value::map([("id", Value::from("gate")), ("type", "approval".into())]);
    Value::List(vec![step("first"), gate, step("last")])
}

#[test]
fn a_watcher_gets_all_events_and_resumes_after_a_disconnect() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "flow", steps());
        let id = start(&owner, "flow", "r1", Map::new()).expect(202).text_at("executionId");
        let mut live = Watcher::new(&owner, &id, None);
        let mut seen = Vec::new();
        while seen.last().is_none_or(|event: &Event| event.kind != "approval.required") {
            seen.push(live.next().unwrap());
        }
        let kinds: Vec<&str> = seen.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["execution.started", "step.started", "step.completed", "step.started", "approval.required"]);
        let told = seen.last().unwrap().data.get("resumeToken").and_then(Value::as_text).map(ToString::to_string);
        let token = owner.get(&format!("/api/executions/{id}")).text_at("resumeToken");
        assert_eq!(told.as_ref(), Some(&token), "callers who may decide get the token");
        let body = [("approve", Value::Bool(true)), ("resumeToken", token.as_str().into())];
        owner.post(&format!("/api/executions/{id}/approve"), &Value::map(body)).expect(200);
        let last_seen = seen.last().unwrap().id.clone();
        seen.extend(live.all());
        assert_eq!(seen.last().unwrap().kind, "execution.finished");
        assert_eq!(seen.last().unwrap().data.get("status"), Some(&"ok".into()));
        // After the end, a stream from the start or from the middle has the same events with the same ids.
        assert_eq!(Watcher::new(&owner, &id, None).all(), seen);
        let place = seen.iter().position(|event| event.id == last_seen).unwrap();
        assert_eq!(Watcher::new(&owner, &id, Some(&last_seen)).all(), seen[place + 1..]);
        let wrong = owner.send("GET", &format!("/api/executions/{id}/events"), &[("last-event-id", "x")], None);
        assert_eq!((wrong.status, wrong.text_at("code")), (400, "VALIDATION_ERROR".into()));
    });
}

#[test]
fn a_late_watcher_gets_evicted_events_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let code = "export default function (i) { return i; }";
    let action = Value::map([("code", Value::from(code))]);
    let each = Value::map([("ref", Value::from("@vars.items"))]);
    let step = [("name", "each".into()), ("action", action), ("input", "@item".into()), ("forEach", each)];
    save(&owner, "many", Value::List(vec![Value::map(step)]));
    let items: Vec<Value> = (0..700u64).map(Value::from).collect();
    let body = Value::map([
        ("workflowId", Value::from("many")),
        ("clientRequestId", "r1".into()),
        ("variables", Value::map([("items", Value::List(items))])),
    ]);
    owner.put("/api/workflows/many", &Value::map([("description", Value::from("d"))])).expect(200);
    let id = owner.post("/api/triggers/manual/run", &body).expect(202).text_at("executionId");
    let mut watcher = Watcher::new(&owner, &id, None);
    assert_eq!(watcher.next().unwrap().kind, "execution.started");
    let ended = owner.get(&format!("/api/executions/{id}/wait?timeoutMs=60000")).expect(200);
    let all = Watcher::new(&owner, &id, None).all();
    let finished = all.last().unwrap();
    assert_eq!(finished.kind, "execution.finished", "{ended:?}");
    let ids: std::collections::BTreeSet<&str> = all.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids.len(), all.len(), "every event has an id of its own");
}

/// The approval event that a watcher receives.
fn approval_event(client: &Client, id: &str, after: Option<&str>) -> Event {
    let mut watcher = Watcher::new(client, id, after);
    loop {
        let event = watcher.next().unwrap();
        if event.kind == "approval.required" {
            return event;
        }
    }
}

/// Rights are checked for each watcher and each event, since they may change.
#[test]
fn resume_tokens_are_sent_only_to_approvers() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let gate = |id: &str, approvers: &[&str]| {
            let named: Vec<Value> = approvers.iter().map(|name| Value::from(*name)).collect();
            let gate = [("id", Value::from(id)), ("type", "approval".into())];
            Value::map(gate.into_iter().chain((!named.is_empty()).then(|| ("approvers", named.into()))))
        };
        save(&ours.owner, "owners", Value::List(vec![gate("ask", &[])]));
        save(&ours.owner, "named", Value::List(vec![gate("ask", &["bob"]), gate("then", &["cem"])]));
        let (bob, cem, eve) =
            (ours.member("bob", "member"), ours.member("cem", "member"), ours.member("eve", "viewer"));
        let agent = ours.member("robot", "agent");
        let has = |client: &Client, id: &str| approval_event(client, id, None).data.get("resumeToken").is_some();
        let id = start(&ours.owner, "owners", "r1", Map::new()).expect(202).text_at("executionId");
        assert_eq!(
            [&ours.owner, &bob, &cem, &eve, &agent].map(|one| has(one, &id)),
            [true, false, false, false, false]
        );
        assert!(!has(&ours.session_of(&id), &id), "a session is no person");
        let id = start(&ours.owner, "named", "r1", Map::new()).expect(202).text_at("executionId");
        assert_eq!(
            [&ours.owner, &bob, &cem, &eve, &agent].map(|one| has(one, &id)),
            [false, true, false, false, false]
        );
        // The token of the event decides once.
        let event = approval_event(&bob, &id, None);
        let token = event.data.get("resumeToken").cloned().unwrap();
        let mut waits = Watcher::new(&cem, &id, Some(&event.id));
        // A watcher who has lost the right gets approvals without their tokens.
        ours.owner.put("/api/members/cem", &Value::map([("role", Value::from("viewer"))])).expect(200);
        let body = Value::map([("approve", Value::Bool(true)), ("resumeToken", token)]);
        bob.post(&format!("/api/executions/{id}/approve"), &body).expect(200);
        bob.post(&format!("/api/executions/{id}/approve"), &body).expect(409);
        let then = loop {
            let event = waits.next().unwrap();
            if event.kind == "approval.required" {
                break event;
            }
        };
        assert!(then.data.get("resumeToken").is_none(), "{then:?}");
    });
}

/// Later events are not sent with a revoked credential.
#[test]
fn a_watcher_is_disconnected_when_its_credential_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    save(&ours.owner, "flow", steps());
    type Revoke<'a> = (&'a str, &'a dyn Fn(&Client));
    let revoke: [Revoke<'_>; 3] = [
        ("a", &|client| {
            let id = client.token().split('_').nth(1).unwrap().to_string();
            ours.owner.send("DELETE", &format!("/api/tokens/{id}"), &[], None).expect(204);
        }),
        ("b", &|_| drop(ours.owner.send("DELETE", "/api/members/b", &[], None).expect(204))),
        ("c", &|client| drop(client.send("DELETE", "/api/members/c", &[], None).expect(204))),
    ];
    for (user, revoke) in revoke {
        let client = ours.member(user, if user == "c" { "admin" } else { "member" });
        let id = start(&ours.owner, "flow", user, Map::new()).expect(202).text_at("executionId");
        let mut watcher = Watcher::new(&client, &id, None);
        while watcher.next().unwrap().kind != "approval.required" {}
        revoke(&client);
        let body = Value::map([("approve", Value::Bool(true))]);
        ours.owner.post(&format!("/api/approvals/{id}:gate:1/decide"), &body).expect(200);
        assert_eq!(watcher.all(), [], "{user} still watches");
    }
}
