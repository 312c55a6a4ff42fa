//! Event subscriptions: nodes in this process with an endpoint and a clock that the tests set, and a server that is killed
//! between a delivery and its record.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    failure::{Class, Failure},
    json,
    value::{Map, Value},
};
use mainspring_server::services::events::{sender, webhook_client::WebhookClient};
use mainspring_store::{
    DueTimes, Store,
    memory::MemoryStore,
    postgres::{PostgresStore, server as postgres},
};

use super::{
    client::{Client, Reply},
    commands::Caller,
    crowded_store::CrowdedStore,
    process::{Organization, Server},
    schedules::{Nodes, Outside, workflows},
    start::{echo, save, start},
};

mod passes;

/// A request that an endpoint has received.
#[derive(Debug, Clone)]
struct Received {
    id: String,
    timestamp: String,
    signature: String,
    hops: String,
    body: String,
    event: Value,
}

impl Received {
    fn text(&self, key: &str) -> String {
        self.event.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
    }

    fn event_type(&self) -> String {
        self.text("type").strip_prefix("workflow.").unwrap_or_default().to_string()
    }

    fn data(&self, key: &str) -> Value {
        self.event.get("data").and_then(|data| data.get(key)).cloned().unwrap_or_default()
    }
}

/// The statuses by which an endpoint answers; 0 for no answer, and 1 for 200 once the test says so.
type Answer = Box<dyn Fn(&Received) -> u16 + Send + Sync>;

/// An endpoint in this process, in place of the HTTP client of a node.
struct Endpoint {
    received: Mutex<Vec<Received>>,
    answer: Mutex<Answer>,
    /// Requests without an answer.
    hanging: tokio::sync::Notify,
    released: tokio::sync::Notify,
}

impl Endpoint {
    fn new(answer: impl Fn(&Received) -> u16 + Send + Sync + 'static) -> Arc<Self> {
        let (received, answer) = (Mutex::default(), Mutex::new(Box::new(answer) as Answer));
        let (hanging, released) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
        Arc::new(Self { received, answer, hanging, released })
    }

    fn answers(&self, answer: impl Fn(&Received) -> u16 + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Box::new(answer);
    }

    /// The requests since the last call.
    fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    fn types(&self) -> Vec<String> {
        self.take().iter().map(Received::event_type).collect()
    }
}

impl Executor for Endpoint {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, attempt: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        let text = |value: Option<&Value>| value.and_then(Value::as_text).unwrap_or_default().to_string();
        let header = |name: &str| text(attempt.params.get("headers").and_then(|headers| headers.get(name)));
        assert_eq!(header("content-type"), "application/cloudevents+json; charset=utf-8");
        let body = text(attempt.params.get("body"));
        let event = json::value(body.as_bytes()).unwrap();
        let received = Received {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
            hops: header("mainspring-hops"),
            body,
            event,
        };
        let status = self.answer.lock().unwrap()(&received);
        self.received.lock().unwrap().push(received);
        Box::pin(async move {
            match status {
                0 => {
                    self.hanging.notify_one();
                    std::future::pending().await
                }
                1 => {
                    self.hanging.notify_one();
                    self.released.notified().await;
                    Outcome::Done(Value::map([("status", 200u64.into())]))
                }
                200..300 => Outcome::Done(Value::map([("status", u64::from(status).into())])),
                _ => Outcome::Failed(Failure::new(Class::Failed, format!("http_status:{status}"), "no")),
            }
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

type Clock = (&'static AtomicU64, fn() -> u64);

/// Nodes that send to an endpoint, with workflows.
fn nodes(count: usize, store: Arc<dyn Store>, clock: Clock, endpoint: &Arc<Endpoint>) -> Nodes {
    clock.0.store(1_772_000_000_000, Ordering::SeqCst);
    let nodes = Nodes::start_with(count, store, clock, &Outside::of(WebhookClient::new(endpoint.clone())));
    save(&nodes.owner, "echo", echo());
    workflows(&nodes.owner);
    nodes
}

/// All nodes send what is due, at the same time.
fn poll(nodes: &Nodes) {
    let poll = |app: &mainspring_server::App| {
        let app = app.clone();
        nodes.runtime.spawn(async move { sender::poll(&app).await.map(drop).map_err(|problem| problem.full_message()) })
    };
    let polls: Vec<_> = nodes.apps.iter().map(poll).collect();
    polls.into_iter().for_each(|poll| nodes.runtime.block_on(poll).unwrap().unwrap());
}

fn advance(nodes: &Nodes, ms: u64) {
    nodes.clock.fetch_add(ms, Ordering::SeqCst);
}

fn subscribe(client: &Client, more: &str) -> Reply {
    let body = format!(r#"{{"name": "n", "url": "https://example.com/hook"{more}}}"#);
    client.send("POST", "/api/event-subscriptions", &[], Some(&body))
}

fn all_events(client: &Client) -> (String, String) {
    let created = subscribe(client, r#", "types": ["workflow.*"]"#).expect(201);
    (created.text_at("id"), created.text_at("secret"))
}

fn nothing() -> Value {
    Value::Map(Map::new())
}

/// Runs a workflow to its end, or until it waits.
fn finished(nodes: &Nodes, workflow: &str) -> String {
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    let request = REQUESTS.fetch_add(1, Ordering::SeqCst).to_string();
    let variables = Map::from([("name".to_string(), Value::from("secret-name"))]);
    let id = start(&nodes.owner, workflow, &request, variables).expect(202).text_at("executionId");
    nodes.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    id
}

/// The signature of a request by a secret, computed without the code that sends.
fn signature(received: &Received, secret: &str) -> String {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let content = format!("{}.{}.{}", received.id, received.timestamp, received.body);
    format!("v1,{}", BASE64_STANDARD.encode(ring::hmac::sign(&key, content.as_bytes())))
}

fn shown(nodes: &Nodes, id: &str) -> Value {
    nodes.owner.get(&format!("/api/event-subscriptions/{id}")).expect(200).json()
}

const OF_ECHO: [&str; 5] =
    ["execution.enqueued", "execution.started", "step.started", "step.completed", "execution.finished"];

#[test]
fn events_arrive_in_order_signed_and_without_payloads() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 204);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    finished(&nodes, "echo");
    let (id, secret) = all_events(&nodes.owner);
    assert!(!shown(&nodes, &id).get("secret").is_some_and(|secret| *secret != Value::Null), "it is shown once");
    let execution = finished(&nodes, "echo");
    poll(&nodes);
    let received = endpoint.take();
    assert_eq!(received.iter().map(Received::event_type).collect::<Vec<_>>(), OF_ECHO, "later executions only");
    let mut last = String::new();
    for event in &received {
        assert_eq!(event.signature, signature(event, &secret));
        assert_eq!(event.timestamp, "1772000000");
        assert_eq!((event.text("specversion").as_str(), event.text("id")), ("1.0", event.id.clone()));
        assert_eq!(event.text("subject"), execution);
        assert_eq!(event.text("source"), "/organizations/default/workflows/echo");
        assert_eq!(event.text("dataschema"), "urn:mainspring:schema:event");
        assert_eq!(event.data("workflowId"), Value::from("echo"));
        assert!(last < event.text("sequence"), "{last} is before {}", event.text("sequence"));
        last = event.text("sequence");
        assert!(!event.body.contains("secret-name"), "{}", event.body);
    }
    assert_eq!(received[4].data("status"), Value::from("completed"));
    assert_eq!(received[3].data("stepId"), Value::from("echo"));
    let ids: BTreeSet<&String> = received.iter().map(|event| &event.id).collect();
    assert_eq!(ids.len(), OF_ECHO.len());
    poll(&nodes);
    assert!(endpoint.take().is_empty(), "each is sent once");
    assert_eq!(nodes.store.event_queue().count_events(&id, 9), Ok(0));
    // A rotated secret signs with both for a day, which a second rotation would end.
    let rotate = format!("/api/event-subscriptions/{id}/rotate-secret");
    let rotated = nodes.owner.post(&rotate, &nothing()).expect(200);
    let refused = nodes.owner.post(&rotate, &nothing()).expect(409);
    assert!(refused.text.contains("2026-02-26T06:13:20.000Z") && refused.text.contains("force"), "{refused:?}");
    finished(&nodes, "ends");
    poll(&nodes);
    for event in endpoint.take() {
        let [new, old] = [&rotated.text_at("secret"), &secret].map(|secret| signature(&event, secret));
        assert_eq!(event.signature, format!("{new} {old}"));
    }
    advance(&nodes, 24 * 3_600_000);
    finished(&nodes, "ends");
    poll(&nodes);
    let event = endpoint.take().remove(0);
    assert_eq!(event.signature, signature(&event, &rotated.text_at("secret")));
    nodes.owner.post(&rotate, &nothing()).expect(200);
    nodes.owner.post(&rotate, &Value::map([("force", true.into())])).expect(200);
}

#[test]
fn approval_and_cancel_events_are_sent_to_subscribers() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let types = r#", "types": ["workflow.approval.*", "workflow.execution.finished"], "workflows": ["waits"]"#;
    subscribe(&nodes.owner, types).expect(201);
    let [approved, canceled] = ["waits", "waits"].map(|workflow| finished(&nodes, workflow));
    finished(&nodes, "echo");
    poll(&nodes);
    assert_eq!(endpoint.types(), ["approval.required", "approval.required"]);
    let open = nodes.owner.get(&format!("/api/executions/{approved}")).expect(200).json();
    let token = open.get("resumeToken").and_then(Value::as_text).expect("a token").to_string();
    let decision = Value::map([("approve", true.into()), ("resumeToken", token.as_str().into())]);
    nodes.owner.post(&format!("/api/executions/{approved}/approve"), &decision).expect(200);
    let reason = Value::map([("reason", Value::from("enough"))]);
    nodes.owner.post(&format!("/api/executions/{canceled}/cancel"), &reason).expect(200);
    for id in [&approved, &canceled] {
        nodes.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    }
    poll(&nodes);
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in endpoint.take() {
        assert!(!event.body.contains(&token), "no token is sent");
        told.entry(event.text("subject")).or_default().push(event.event_type());
    }
    assert_eq!(told[&approved], ["approval.approved", "execution.finished"]);
    assert_eq!(told[&canceled], ["execution.finished"]);
}

#[test]
fn a_failed_delivery_delays_only_its_execution() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    let [first, second] = ["echo", "echo"].map(|workflow| finished(&nodes, workflow));
    let failing = first.clone();
    endpoint.answers(
        move |event| {
            if event.text("subject") == failing && event.event_type() == "step.started" { 503 } else { 200 }
        },
    );
    poll(&nodes);
    let received = endpoint.take();
    let of = |id: &str| received.iter().filter(|event| event.text("subject") == id).collect::<Vec<_>>();
    assert_eq!(of(&first).iter().map(|event| event.event_type()).collect::<Vec<_>>(), &OF_ECHO[..3]);
    assert_eq!(of(&second).iter().map(|event| event.event_type()).collect::<Vec<_>>(), OF_ECHO);
    let failed_id = of(&first)[2].id.clone();
    let state = shown(&nodes, &id);
    assert_eq!(state.get("waitingExecutions"), Some(&Value::from(1u64)));
    let last = state.get("lastFailure").and_then(|failure| failure.get("error")).cloned();
    assert_eq!(last, Some(Value::from("http_status:503")));
    poll(&nodes);
    assert!(endpoint.take().is_empty(), "the delay is not over");
    advance(&nodes, 6_000);
    poll(&nodes);
    let again = endpoint.take();
    assert_eq!(again.iter().map(|event| &event.id).collect::<Vec<_>>(), [&failed_id]);
    advance(&nodes, 6_000);
    poll(&nodes);
    assert!(endpoint.take().is_empty(), "the second delay is longer");
    endpoint.answers(|_| 200);
    advance(&nodes, 6_000);
    poll(&nodes);
    let rest = endpoint.take();
    assert_eq!(rest.iter().map(Received::event_type).collect::<Vec<_>>(), &OF_ECHO[2..]);
    assert_eq!(rest[0].id, failed_id);
    assert_eq!(shown(&nodes, &id).get("failures"), Some(&Value::from(0u64)));
}

#[test]
fn a_delivery_whose_record_is_lost_is_repeated_with_its_id() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|event| if event.event_type() == "step.started" { 0 } else { 200 });
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    all_events(&nodes.owner);
    finished(&nodes, "echo");
    let app = nodes.apps[0].clone();
    // The node ends after the endpoint has the event, before it knows the answer.
    nodes.runtime.block_on(async {
        tokio::select! {
            _ = sender::poll(&app) => panic!("the endpoint does not answer"),
            () = endpoint.hanging.notified() => {}
        }
    });
    let before = endpoint.take();
    assert_eq!(before.iter().map(Received::event_type).collect::<Vec<_>>(), &OF_ECHO[..3]);
    endpoint.answers(|_| 200);
    poll(&nodes);
    let after = endpoint.take();
    assert_eq!(after.iter().map(Received::event_type).collect::<Vec<_>>(), &OF_ECHO[2..]);
    assert_eq!((&after[0].id, &after[0].body), (&before[2].id, &before[2].body));
}

#[test]
fn a_failing_endpoint_is_paused_until_it_is_enabled() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 500);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    let executions: Vec<String> = (0..6).map(|_| finished(&nodes, "echo")).collect();
    let path = format!("/api/event-subscriptions/{id}");
    let mut attempts = 0;
    for _ in 0..500 {
        poll(&nodes);
        attempts += endpoint.take().len();
        advance(&nodes, 60_000);
    }
    assert!((20..30).contains(&attempts), "{attempts}");
    let state = shown(&nodes, &id);
    let paused = state.get("paused").and_then(|paused| paused.get("message")).and_then(Value::as_text).unwrap();
    assert!(paused.contains("http_status:500") && paused.contains("enable"), "{paused}");
    assert_eq!(state.get("enabled"), Some(&Value::Bool(true)));
    assert!(nodes.owner.get("/api/audit?limit=200").expect(200).text.contains("event_subscription.pause"));
    // A test delivery works during the pause; events of new executions wait.
    let test = nodes.owner.post(&format!("{path}/test"), &nothing()).expect(200).json();
    assert_eq!((test.get("delivered"), test.get("status")), (Some(&Value::Bool(false)), Some(&500u64.into())));
    endpoint.answers(|_| 200);
    let test = nodes.owner.post(&format!("{path}/test"), &nothing()).expect(200).json();
    assert_eq!(test.get("delivered"), Some(&Value::Bool(true)));
    assert_eq!(endpoint.types(), ["subscription.test", "subscription.test"]);
    let late = finished(&nodes, "echo");
    poll(&nodes);
    assert!(endpoint.take().is_empty());
    nodes.owner.post(&format!("{path}/enable"), &nothing()).expect(200);
    advance(&nodes, 2 * 3_600_000);
    poll(&nodes);
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in endpoint.take() {
        told.entry(event.text("subject")).or_default().push(event.event_type());
    }
    let expected = executions.iter().chain([&late]).map(|id| (id.clone(), OF_ECHO.map(String::from).to_vec()));
    assert_eq!(told, expected.collect(), "nothing is lost, and each execution is in order");
    // 410 pauses at once.
    endpoint.answers(|_| 410);
    finished(&nodes, "ends");
    poll(&nodes);
    assert_eq!(endpoint.take().len(), 1);
    let code = shown(&nodes, &id).get("paused").and_then(|paused| paused.get("code")).cloned();
    assert_eq!(code, Some(Value::from("gone")));
}

#[test]
fn an_event_refused_for_a_day_is_listed_and_can_be_resent() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    let refused = finished(&nodes, "echo");
    let of_refused = refused.clone();
    endpoint.answers(move |event| {
        if event.text("subject") == of_refused && event.event_type() == "step.completed" { 400 } else { 200 }
    });
    let failed = format!("/api/event-subscriptions/{id}/failed");
    let list = || nodes.owner.get(&failed).expect(200).json().get("failed").and_then(Value::as_list).unwrap().to_vec();
    let mut told = Vec::new();
    for _ in 0..60 {
        // Events of other executions are delivered, so the subscription is not paused.
        finished(&nodes, "ends");
        poll(&nodes);
        told.extend(endpoint.take().into_iter().filter(|event| event.text("subject") == refused));
        if !list().is_empty() {
            break;
        }
        advance(&nodes, 3_600_000);
    }
    let types: Vec<String> = told.iter().map(Received::event_type).collect();
    assert_eq!(types.iter().filter(|name| *name == "step.completed").count(), told.len() - 3, "{types:?}");
    let entry = list().remove(0);
    let text = |key: &str| entry.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    assert_eq!((text("error").as_str(), text("executionId")), ("http_status:400", refused.clone()));
    assert_eq!(text("eventType"), "workflow.step.completed");
    assert_eq!(entry.get("attempts").and_then(Value::as_u64), Some(told.len() as u64 - 3));
    poll(&nodes);
    let rest = endpoint.take().into_iter().filter(|event| event.text("subject") == refused);
    assert_eq!(
        rest.map(|event| event.event_type()).collect::<Vec<_>>(),
        ["execution.finished"],
        "the next one follows"
    );
    let redeliver = format!("{failed}/{}/redeliver", text("id"));
    let again = nodes.owner.post(&redeliver, &nothing()).expect(200).json();
    assert_eq!(again.get("error"), Some(&Value::from("http_status:400")));
    assert_eq!(list().len(), 1, "it stays until it is delivered");
    endpoint.answers(|_| 200);
    endpoint.take();
    let again = nodes.owner.post(&redeliver, &nothing()).expect(200).json();
    assert_eq!(again.get("delivered"), Some(&Value::Bool(true)));
    let sent = endpoint.take();
    assert_eq!((sent[0].id.clone(), sent[0].event_type().as_str()), (text("eventId"), "step.completed"));
    assert!(list().is_empty());
    nodes.owner.post(&redeliver, &nothing()).expect(404);
    let audit = nodes.owner.get("/api/audit?limit=200").expect(200).text;
    assert_eq!(audit.matches("event_subscription.redeliver").count(), 2, "{audit}");
}

#[test]
fn subscriptions_are_per_organization_and_bounded() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let owner = &nodes.owner;
    let table = [
        (r#", "types": []"#, "types"),
        (r#", "types": ["workflow.step"]"#, "types"),
        (r#", "types": ["workflow.*"], "workflows": []"#, "workflows"),
        (r#", "types": ["workflow.*"], "workflows": ["nope"]"#, "workflows"),
        (r#", "types": ["workflow.*"], "secret": "s3cret""#, "secret"),
    ];
    for (fields, place) in table {
        assert!(subscribe(owner, fields).expect(400).text.contains(place), "{place}");
    }
    let body = r#"{"name": "n", "url": "ftp://a/", "types": ["workflow.*"]}"#;
    assert!(owner.send("POST", "/api/event-subscriptions", &[], Some(body)).expect(400).text.contains("url"));
    for blank in [" https://a/", "https://a/ ", "https://a/\\n"] {
        let body = format!(r#"{{"name": "n", "url": "{blank}", "types": ["workflow.*"]}}"#);
        assert!(owner.send("POST", "/api/event-subscriptions", &[], Some(&body)).expect(400).text.contains("url"));
    }
    subscribe(owner, r#", "types": ["workflow.*"], "color": "red""#).expect(400);
    let ids: Vec<String> = (0..50).map(|_| all_events(owner).0).collect();
    let full = subscribe(owner, r#", "types": ["workflow.*"]"#).expect(409);
    assert!(full.text.contains("50 event subscriptions"), "{full:?}");
    let path = format!("/api/event-subscriptions/{}", ids[0]);
    for field in ["name", "url", "types", "enabled"] {
        owner.send("PATCH", &path, &[], Some(&format!(r#"{{"{field}": null}}"#))).expect(400);
    }
    owner.send("PATCH", &path, &[], Some(r#"{"workflows": null}"#)).expect(200);
    // A disabled one gets nothing, and its queue is emptied.
    finished(&nodes, "ends");
    owner.post(&format!("{path}/disable"), &nothing()).expect(200);
    finished(&nodes, "ends");
    assert_eq!(nodes.store.event_queue().count_events(&ids[0], 9), Ok(0));
    assert_eq!(nodes.store.event_queue().count_events(&ids[1], 9), Ok(2));
    for id in &ids {
        owner.send("DELETE", &format!("/api/event-subscriptions/{id}"), &[], None).expect(204);
    }
    poll(&nodes);
    assert!(endpoint.take().is_empty(), "deleted ones get nothing");
    owner.get(&path).expect(404);
    assert_eq!(nodes.store.event_queue().due_subscriptions(DueTimes::by(u64::MAX)), Ok(Vec::new()));
}

#[test]
fn a_subscription_with_too_many_waiting_executions_is_reported() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let store = Arc::new(CrowdedStore::default());
    let nodes = nodes(1, store, (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    let before = finished(&nodes, "echo");
    poll(&nodes);
    let told = |received: Vec<Received>| received.iter().map(|event| event.text("subject")).collect::<BTreeSet<_>>();
    assert_eq!(told(endpoint.take()), BTreeSet::from([before]), "what waits is sent");
    assert_eq!(shown(&nodes, &id).get("overflowedAt"), Some(&Value::from("2026-02-25T06:13:20.000Z")));
    finished(&nodes, "echo");
    poll(&nodes);
    assert!(endpoint.take().is_empty());
    nodes.owner.post(&format!("/api/event-subscriptions/{id}/enable"), &nothing()).expect(200);
    assert_eq!(shown(&nodes, &id).get("overflowedAt"), Some(&Value::Null));
    let after = finished(&nodes, "echo");
    poll(&nodes);
    assert_eq!(told(endpoint.take()), BTreeSet::from([after]));
}

#[test]
fn other_organizations_and_members_without_rights_see_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (ours, theirs) = (Organization::new(&server, "ours"), Organization::new(&server, "theirs"));
    let (id, _) = all_events(&ours.owner);
    let path = format!("/api/event-subscriptions/{id}");
    let ann = ours.member("ann", "member");
    for path in [path.as_str(), "/api/event-subscriptions"] {
        ann.get(path).expect(403);
    }
    theirs.owner.get(&path).expect(404);
    theirs.owner.post(&format!("{path}/test"), &nothing()).expect(404);
    theirs.owner.send("DELETE", &path, &[], None).expect(404);
    // The server of a test may reach no private address.
    let body = r#"{"name": "n", "url": "http://127.0.0.1:9/", "types": ["workflow.*"]}"#;
    let created = ours.owner.send("POST", "/api/event-subscriptions", &[], Some(body)).expect(201);
    let test = ours.owner.post(&format!("/api/event-subscriptions/{}/test", created.text_at("id")), &nothing());
    assert!(test.expect(200).text.contains("http_address_refused"));
}

/// Several subscriptions and two nodes: each event of each execution once and in order, whichever node ran it.
#[test]
fn two_nodes_on_postgresql_send_each_event_once() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let options = postgres::Options { fsync: false, ..postgres::Options::default() };
    let server = postgres::Server::start(options).unwrap();
    let scratch = server.scratch();
    let store = Arc::new(PostgresStore::open(&scratch.address()).unwrap());
    let endpoint = Endpoint::new(|_| 200);
    let mut nodes = nodes(2, store, (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    while nodes.apps.iter().any(|app| app.engine.owned_partitions().len() != 32) {
        std::thread::yield_now();
    }
    let secrets: Vec<String> = (0..6).map(|_| all_events(&nodes.owner).1).collect();
    let executions: Vec<String> = (0..8).map(|_| finished(&nodes, "echo")).collect();
    poll(&nodes);
    let check = |received: Vec<Received>, executions: &[String]| {
        for secret in &secrets {
            let own = received.iter().filter(|event| event.signature == signature(event, secret));
            let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
            own.for_each(|event| told.entry(event.text("subject")).or_default().push(event.event_type()));
            let expected = executions.iter().map(|id| (id.clone(), OF_ECHO.map(String::from).to_vec()));
            assert_eq!(told, expected.collect::<BTreeMap<_, _>>());
        }
        assert_eq!(received.len(), secrets.len() * executions.len() * OF_ECHO.len());
    };
    check(endpoint.take(), &executions);
    // The remaining node sends for all subscriptions.
    let executions: Vec<String> = (0..4).map(|_| finished(&nodes, "echo")).collect();
    let gone = nodes.apps.pop().unwrap();
    nodes.runtime.block_on(gone.engine.drain());
    while nodes.apps[0].engine.owned_partitions().len() != 64 {
        std::thread::yield_now();
    }
    poll(&nodes);
    check(endpoint.take(), &executions);
}

/// Reads one request. Returns the connection and the id of its event.
fn accept(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(&mut stream);
    let (mut id, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => id = value.trim().to_string(),
            "content-length" => length = value.trim().parse().unwrap(),
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    (stream, id)
}

fn answer(mut stream: TcpStream) {
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
}

#[test]
fn a_server_killed_during_a_delivery_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("MAINSPRING_HTTP_ALLOW", "127.0.0.0/8")];
    let mut server = Server::start_as(folder.path(), "data", &[], &environment);
    let owner = server.owner();
    save(&owner, "echo", echo());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let body = format!(r#"{{"name": "n", "url": "{url}", "types": ["workflow.*"]}}"#);
    owner.send("POST", "/api/event-subscriptions", &[], Some(&body)).expect(201);
    let started = start(&owner, "echo", "r1", Map::from([("name".to_string(), Value::from("a"))])).expect(202);
    owner.get(&format!("/api/executions/{}/wait", started.text_at("executionId"))).expect(200);
    let mut ids = Vec::new();
    for number in 0..OF_ECHO.len() {
        let (stream, id) = accept(&listener);
        if number == 2 {
            // The endpoint has the event, and the server cannot know.
            server.kill();
            drop(stream);
            server = Server::start_as(folder.path(), "data", &[], &environment);
            let (stream, again) = accept(&listener);
            assert_eq!(again, id);
            answer(stream);
        } else {
            answer(stream);
        }
        ids.push(id);
    }
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), OF_ECHO.len(), "{ids:?}");
    drop(server);
}

#[test]
fn commands_manage_subscriptions() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    save(&server.owner(), "w1", echo());
    let caller = Caller::owner(&server);
    let call = |arguments: &[&str]| caller.fine(&[&["subscriptions"], arguments].concat());
    let json = |text: &str| json::read(text.as_bytes()).unwrap().value;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
    let create = ["create", "http://127.0.0.1:9/hook", "--name", "chat", "--type", "workflow.step.*"];
    let created = json(&call(&[&create[..], &["--workflow", "w1", "--json"]].concat()));
    let (id, secret) = (text(&created, "id"), text(&created, "secret"));
    assert!(secret.starts_with("whsec_"));
    let listed = call(&["list"]);
    assert!(listed.contains(&id) && listed.contains("chat") && listed.contains("enabled"), "{listed}");
    let shown = call(&["show", &id]);
    assert!(shown.contains("http://127.0.0.1:9/hook") && !shown.contains("whsec_"), "{shown}");
    let rotated = call(&["rotate-secret", &id]);
    assert!(rotated.contains("whsec_") && !rotated.contains(&secret), "{rotated}");
    assert!(call(&["update", &id, "--type", "workflow.*", "--all-workflows"]).contains("workflow.*"));
    // The server of a test may not reach this address.
    let test = caller.call(&["subscriptions", "test", &id]);
    assert!(test.exit == Some(40) && test.stdout.contains("http_address_refused"), "{test:?}");
    assert!(call(&["failed", &id]).contains("none"));
    caller.refused(&["subscriptions", "redeliver", &id, "nope"], 10, &["no such failed delivery"]);
    caller.refused(&["subscriptions", "dismiss", &id, "nope"], 10, &["no such failed delivery"]);
    assert!(call(&["disable", &id]).contains("disabled"));
    assert!(call(&["enable", &id]).contains("enabled"));
    let secret_file = caller.folder().join("secret");
    std::fs::write(&secret_file, format!("{secret}\n")).unwrap();
    let given = ["--secret-file", "secret", "--disabled", "--json"];
    let given = json(&call(&[&create[..], &given].concat()));
    assert_eq!((given.get("secret"), given.get("enabled")), (Some(&Value::Null), Some(&Value::Bool(false))));
    call(&["delete", &id]);
    caller.refused(&["subscriptions", "show", &id], 10, &["no such event subscription"]);
    caller.refused(&["subscriptions", "create", "x", "--name", "n", "--type", "workflow.*"], 10, &["url"]);
}
