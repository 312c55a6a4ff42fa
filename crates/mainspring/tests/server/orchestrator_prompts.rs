//! Prompts of schedules with the target `orchestrator`: nodes in this process on virtual time and a server that is killed,
//! with a real HTTP endpoint on this machine whose answers the tests choose.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use mainspring_effects::{
    BoxFuture,
    http::{Http, HttpOptions},
    secrets::{SecretError, SecretSource, SecretUser, SecretValue},
};
use mainspring_kernel::{
    json,
    time::parse_rfc3339,
    value::{Map, Value},
};
use mainspring_server::services::{
    events::webhook_client::WebhookClient,
    prompts::{orchestrators::Orchestrators, sender},
};
use mainspring_store::{
    ResourceRow, Store,
    memory::MemoryStore,
    postgres::{PostgresStore, server as postgres},
};

use super::{
    client::{Client, Reply},
    commands::Caller,
    process::{Organization, Server},
    schedules::{Nodes, Outside},
    start::{echo, save},
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request that the endpoint has received.
#[derive(Debug, Clone)]
struct Received {
    path: String,
    id: String,
    timestamp: String,
    signature: String,
    body: String,
}

impl Received {
    fn event(&self) -> Value {
        json::value(self.body.as_bytes()).unwrap()
    }

    fn data(&self, key: &str) -> Value {
        self.event().get("data").and_then(|data| data.get(key)).cloned().unwrap_or_default()
    }

    /// Computed without the code that sends.
    fn is_signed(&self) -> bool {
        let key = BASE64_STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
        let content = format!("{}.{}.{}", self.id, self.timestamp, self.body);
        self.signature == format!("v1,{}", BASE64_STANDARD.encode(ring::hmac::sign(&key, content.as_bytes())))
    }
}

/// The head of a response; `None` for a connection that stays open without one.
type Answer = Option<&'static str>;

const ACCEPTED: Answer = Some("HTTP/1.1 202 Accepted\r\n");

/// An HTTP server on this machine.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    answer: Arc<Mutex<Answer>>,
    arrived: mpsc::Receiver<String>,
}

impl Receiver {
    fn start(answer: Answer) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    fn on(listener: TcpListener, answer: Answer) -> Self {
        let (address, received, answer) =
            (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default(), Arc::new(Mutex::new(answer)));
        let (of_thread, answers) = (received.clone(), answer.clone());
        let (arrives, arrived) = mpsc::channel();
        std::thread::spawn(move || {
            // Connections without an answer stay open.
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&mut stream);
                let id = request.id.clone();
                of_thread.lock().unwrap().push(request);
                match *answers.lock().unwrap() {
                    Some(head) => {
                        let response = format!("{head}content-length: 0\r\nconnection: close\r\n\r\n");
                        stream.write_all(response.as_bytes()).unwrap();
                    }
                    None => open.push(stream),
                }
                let _ = arrives.send(id);
            }
        });
        Self { address, received, answer, arrived }
    }

    fn answers(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    /// The requests since the last call.
    fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    /// Waits for the next request. Returns its id.
    fn next(&self) -> String {
        self.arrived.recv_timeout(Duration::from_secs(60)).expect("a request arrives")
    }

    fn url(&self) -> String {
        format!("http://{}/prompts", self.address)
    }
}

fn read(stream: &mut TcpStream) -> Received {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default().to_string();
    let (mut id, mut timestamp, mut signature) = (String::new(), String::new(), String::new());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim().to_string();
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => id = value,
            "webhook-timestamp" => timestamp = value,
            "webhook-signature" => signature = value,
            "content-type" => assert_eq!(value, "application/cloudevents+json; charset=utf-8"),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Received { path, id, timestamp, signature, body: String::from_utf8(body).unwrap() }
}

/// Gives every settings part the same value.
struct OneSecret(&'static str);

impl SecretSource for OneSecret {
    fn read<'a>(&'a self, name: &'a str, _: &'a SecretUser) -> BoxFuture<'a, Result<SecretValue, SecretError>> {
        let known = if name == "ORCHESTRATOR" { Ok(self.0) } else { Err("there is no such secret") };
        let value = known.and_then(|value| SecretValue::new(value).map_err(|_| "it is too short"));
        Box::pin(std::future::ready(value.map_err(|why| SecretError::Missing(why.into()))))
    }
}

fn orchestrators(url: &str, secret: &'static str) -> Orchestrators {
    let text = format!(r#"{{"default": {{"url": "{url}", "secret": {{"secret": "ORCHESTRATOR"}}}}}}"#);
    Orchestrators::read(&json::data(text.as_bytes()).unwrap()).unwrap().with_secrets(Arc::new(OneSecret(secret)))
}

/// A client that may reach this machine for the organization `default`.
pub(super) fn local_client() -> WebhookClient {
    let allow = "127.0.0.0/8".parse().unwrap();
    WebhookClient::new(Arc::new(Http::new(HttpOptions { allow, ..HttpOptions::default() })))
}

type Clock = (&'static AtomicU64, fn() -> u64);

const MORNING: &str = "2026-02-25T06:13:20Z";

fn nodes_with(count: usize, store: Arc<dyn Store>, clock: Clock, outside: &Outside) -> Nodes {
    clock.0.store(parse_rfc3339(MORNING).unwrap(), Ordering::SeqCst);
    Nodes::start_with(count, store, clock, outside)
}

fn nodes(clock: Clock, url: &str) -> Nodes {
    let outside = Outside { orchestrators: orchestrators(url, SECRET), ..Outside::of(local_client()) };
    nodes_with(1, Arc::new(MemoryStore::new()), clock, &outside)
}

/// All nodes send the due prompts at the same time.
fn send(nodes: &Nodes) {
    let send = |app: &mainspring_server::App| {
        let app = app.clone();
        nodes.runtime.spawn(async move { sender::poll(&app).await.map(drop).map_err(|problem| problem.full_message()) })
    };
    let sends: Vec<_> = nodes.apps.iter().map(send).collect();
    sends.into_iter().for_each(|send| nodes.runtime.block_on(send).unwrap().unwrap());
}

fn advance(nodes: &Nodes, ms: u64) {
    nodes.clock.fetch_add(ms, Ordering::SeqCst);
}

const CONFIG: &str =
    r#"{"type": "schedule", "cron": "* * * * *", "target": "orchestrator", "prompt": "Sum up the day."}"#;

fn create(client: &Client, config: &str, more: &str) -> Reply {
    let body = format!(r#"{{"name": "brief", "config": {config}{more}}}"#);
    client.send("POST", "/api/triggers", &[], Some(&body))
}

fn nothing() -> Value {
    Value::Map(Map::new())
}

/// Accepts a prompt on request. Returns its id.
fn accept(client: &Client, trigger: &str, request: &str) -> String {
    let body = format!(r#"{{"clientRequestId": "{request}"}}"#);
    client.send("POST", &format!("/api/triggers/{trigger}/run"), &[], Some(&body)).expect(202).text_at("promptId")
}

/// The run log, the oldest first.
fn log(client: &Client, trigger: &str) -> Vec<Value> {
    let found = client.get(&format!("/api/triggers/{trigger}/deliveries")).expect(200).json();
    found.get("deliveries").and_then(Value::as_list).unwrap().iter().rev().cloned().collect()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or("-").to_string()
}

fn outcomes(client: &Client, trigger: &str) -> Vec<String> {
    log(client, trigger).iter().map(|run| format!("{} {}", text(run, "outcome"), text(run, "deliveryId"))).collect()
}

fn prompts(client: &Client, trigger: &str) -> Value {
    let shown = client.get(&format!("/api/triggers/{trigger}")).expect(200).json();
    shown.get("prompts").cloned().unwrap_or_default()
}

fn last_error(client: &Client, trigger: &str) -> String {
    prompts(client, trigger).get("lastFailure").map(|failure| text(failure, "error")).unwrap_or_default()
}

#[test]
fn a_tick_sends_its_prompt_once_signed_and_starts_nothing() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(ACCEPTED);
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), &receiver.url());
    let created = create(&nodes.owner, CONFIG, "").expect(201);
    let id = created.text_at("id");
    assert_eq!(created.json().get("workflowId"), Some(&Value::Null));
    assert_eq!((created.text_at("userId"), created.text_at("type")), ("owner".into(), "schedule".into()));
    nodes.set("2026-02-25T06:14:00Z");
    nodes.poll();
    assert_eq!(outcomes(&nodes.owner, &id), ["queued 2026-02-25T06:14"]);
    assert_eq!(prompts(&nodes.owner, &id).get("waiting"), Some(&Value::from(1u64)));
    send(&nodes);
    let received = receiver.take();
    let [prompt] = &received[..] else { panic!("{received:?}") };
    assert!(prompt.is_signed() && prompt.path == "/prompts", "{prompt:?}");
    assert_eq!(prompt.timestamp, (parse_rfc3339("2026-02-25T06:14:00Z").unwrap() / 1000).to_string());
    let event = prompt.event();
    let attributes = ["id", "type", "source", "subject", "time"].map(|key| text(&event, key));
    let kind = "workflow.orchestrator.prompt";
    assert_eq!(attributes, [&prompt.id, kind, "/organizations/default", &id, "2026-02-25T06:14:00.000Z"]);
    assert!(!prompt.id.contains('.'), "the signature separates its parts by dots");
    let data = ["prompt", "triggerId", "triggerName", "triggerType", "scheduledAt"].map(|key| prompt.data(key));
    let expected = ["Sum up the day.", &id, "brief", "schedule", "2026-02-25T06:14"];
    assert_eq!(data, expected.map(Value::from));
    assert_eq!(outcomes(&nodes.owner, &id), ["queued 2026-02-25T06:14", "delivered 2026-02-25T06:14"]);
    let delivered = log(&nodes.owner, &id).remove(1);
    assert_eq!(
        (text(&delivered, "promptId"), delivered.get("status")),
        (prompt.id.clone(), Some(&Value::from(202u64)))
    );
    nodes.poll();
    send(&nodes);
    assert!(receiver.take().is_empty(), "it is sent once");
    assert_eq!(prompts(&nodes.owner, &id).get("waiting"), Some(&Value::from(0u64)));
    for kind in ["prompt", "due prompt"] {
        let rows = [nodes.rows(kind, "default"), nodes.rows(kind, "")].concat();
        assert!(rows.is_empty(), "{kind}: nothing stays in the store");
    }
    assert!(nodes.store.executions(&mainspring_store::Filter::default(), None, 9).unwrap().is_empty());
    // The next tick is another message.
    nodes.set("2026-02-25T06:15:00Z");
    nodes.poll();
    send(&nodes);
    assert_ne!(receiver.take()[0].id, prompt.id);
}

/// Each way in which a receiver fails: the same message is sent again after a delay, and the failure is shown.
#[test]
fn a_receiver_that_fails_gets_the_same_message_again() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(ACCEPTED);
    let outside = Outside {
        // For the receiver that does not answer.
        webhooks: local_client().with_timeout(Duration::from_secs(5)),
        orchestrators: orchestrators(&receiver.url(), SECRET),
        ..Outside::of(local_client())
    };
    let nodes = nodes_with(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &outside);
    let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
    let failures: [(Answer, &str, u64); 5] = [
        (Some("HTTP/1.1 503 Service Unavailable\r\n"), "http_status:503", 4_000),
        (Some("HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\n"), "http_status:307", 4_000),
        (Some("HTTP/1.1 429 Too Many Requests\r\nretry-after: 600\r\n"), "http_status:429", 600_000),
        (Some("HTTP/1.1 410 Gone\r\n"), "http_status:410", 4_000),
        (None, "http_timeout", 4_000),
    ];
    for (number, (answer, error, delay_ms)) in failures.into_iter().enumerate() {
        receiver.answers(answer);
        let prompt = accept(&nodes.owner, &id, &number.to_string());
        send(&nodes);
        let first = receiver.take();
        assert_eq!((first.len(), &first[0].id, first[0].path.as_str()), (1, &prompt, "/prompts"), "{error}");
        assert_eq!(last_error(&nodes.owner, &id), error);
        assert_eq!(prompts(&nodes.owner, &id).get("waiting"), Some(&Value::from(1u64)));
        receiver.answers(ACCEPTED);
        advance(&nodes, delay_ms - 1);
        send(&nodes);
        assert!(receiver.take().is_empty(), "{error}: the delay is not over");
        advance(&nodes, if delay_ms == 4_000 { 2_001 } else { 1 });
        send(&nodes);
        let again = receiver.take();
        assert_eq!((again.len(), &again[0].id, &again[0].body), (1, &prompt, &first[0].body), "{error}");
        assert!(again[0].is_signed() && again[0].timestamp > first[0].timestamp, "{error}: signed anew");
        assert_eq!(prompts(&nodes.owner, &id).get("lastFailure"), Some(&Value::Null));
    }
}

#[test]
fn a_clock_set_back_delays_a_retry_by_at_most_the_maximum() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(Some("HTTP/1.1 503 Service Unavailable\r\n"));
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), &receiver.url());
    let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
    let prompt = accept(&nodes.owner, &id, "1");
    send(&nodes);
    receiver.answers(ACCEPTED);
    nodes.clock.fetch_sub(24 * 3_600_000, Ordering::SeqCst);
    send(&nodes);
    assert_eq!(receiver.take().iter().map(|received| &received.id).collect::<Vec<_>>(), [&prompt, &prompt]);
}

#[test]
fn a_receiver_gets_all_prompts_after_its_downtime() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _guard = runtime.enter();
    // Bound and not listening: connections are refused, and no other process gets the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nodes =
        nodes((&NOW, || NOW.load(Ordering::SeqCst)), &format!("http://{}/prompts", socket.local_addr().unwrap()));
    let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
    for minute in 14..17 {
        nodes.set(&format!("2026-02-25T06:{minute}:00Z"));
        nodes.poll();
        send(&nodes);
    }
    assert_eq!(last_error(&nodes.owner, &id), "http_connect_failed");
    assert_eq!(prompts(&nodes.owner, &id).get("waiting"), Some(&Value::from(3u64)));
    let listener = socket.listen(16).unwrap().into_std().unwrap();
    listener.set_nonblocking(false).unwrap();
    let receiver = Receiver::on(listener, ACCEPTED);
    nodes.owner.post(&format!("/api/triggers/{id}/disable"), &nothing()).expect(200);
    advance(&nodes, 3_600_000);
    send(&nodes);
    let received = receiver.take();
    let minutes: BTreeSet<String> = received.iter().map(|prompt| text(&prompt.event(), "time")).collect();
    assert_eq!((received.len(), minutes.len()), (3, 3), "prompts that were accepted before are sent: {received:?}");
    assert_eq!(prompts(&nodes.owner, &id).get("waiting"), Some(&Value::from(0u64)));
}

#[test]
fn an_abandoned_prompt_is_listed_and_can_be_resent() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(Some("HTTP/1.1 500 Internal Server Error\r\n"));
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), &receiver.url());
    let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
    nodes.set("2026-02-25T06:14:00Z");
    nodes.poll();
    nodes.owner.post(&format!("/api/triggers/{id}/disable"), &nothing()).expect(200);
    for _ in 0..200 {
        send(&nodes);
        advance(&nodes, 15 * 60_000);
    }
    let attempts = receiver.take();
    assert!((20..50).contains(&attempts.len()), "{}", attempts.len());
    let of = attempts[0].id.clone();
    assert!(attempts.iter().all(|attempt| attempt.id == of));
    let failed = log(&nodes.owner, &id).remove(1);
    assert_eq!((text(&failed, "outcome"), text(&failed, "promptId")), ("failed".into(), of.clone()));
    assert_eq!(failed.get("status"), Some(&Value::from(500u64)));
    assert!(text(&failed, "reason").contains("http_status:500"), "{failed:?}");
    assert_eq!(prompts(&nodes.owner, &id).get("waiting"), Some(&Value::from(0u64)));
    let redeliver = format!("/api/triggers/{id}/deliveries/{}/redeliver", text(&failed, "id"));
    nodes.owner.post(&redeliver, &nothing()).expect(409);
    let prompt =
        r#"{"config": {"type": "schedule", "cron": "0 0 1 1 *", "target": "orchestrator", "prompt": "Anew."}}"#;
    nodes.owner.send("PATCH", &format!("/api/triggers/{id}"), &[], Some(prompt)).expect(200);
    nodes.owner.post(&format!("/api/triggers/{id}/enable"), &nothing()).expect(200);
    let again = nodes.owner.post(&redeliver, &nothing()).expect(202);
    assert_eq!(again.json().get("executionId"), Some(&Value::Null));
    receiver.answers(ACCEPTED);
    send(&nodes);
    let received = receiver.take();
    assert_eq!((received.len(), &received[0].id), (1, &again.text_at("promptId")));
    assert_ne!(received[0].id, of, "the receiver must not take it for a repetition");
    let data = ["redeliveryOf", "prompt", "requestedBy", "scheduledAt"].map(|key| received[0].data(key));
    assert_eq!(data, [of.as_str(), "Anew.", "owner", "2026-02-25T06:14"].map(Value::from));
}

#[test]
fn waiting_prompts_of_an_organization_are_bounded() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(ACCEPTED);
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), &receiver.url());
    let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
    let first = accept(&nodes.owner, &id, "1");
    let full =
        ResourceRow { body: br#"{"waiting": 1000}"#.to_vec(), ..nodes.rows("prompt queue", "default").remove(0) };
    nodes.overwrite(vec![ResourceRow { version: full.version + 1, ..full }], Vec::new());
    let run = format!("/api/triggers/{id}/run");
    let refused = nodes.owner.post(&run, &nothing()).expect(429);
    assert!(refused.text.contains("1000 prompts") && refused.header("retry-after").is_some(), "{refused:?}");
    nodes.set("2026-02-25T06:14:00Z");
    nodes.poll();
    let runs = log(&nodes.owner, &id);
    assert_eq!(runs.iter().map(|run| text(run, "outcome")).collect::<Vec<_>>(), ["queued", "refused"]);
    assert!(text(&runs[1], "reason").contains("1000 prompts"), "{runs:?}");
    // One that is delivered makes room for another.
    send(&nodes);
    assert_eq!(receiver.take().iter().map(|prompt| prompt.id.clone()).collect::<Vec<_>>(), [first]);
    accept(&nodes.owner, &id, "2");
    nodes.owner.post(&run, &nothing()).expect(429);
    // The refused tick can be repeated.
    send(&nodes);
    let redeliver = format!("/api/triggers/{id}/deliveries/{}/redeliver", text(&runs[1], "id"));
    nodes.owner.post(&redeliver, &nothing()).expect(202);
    // The deletion of a trigger drops its prompts.
    receiver.take();
    nodes.owner.send("DELETE", &format!("/api/triggers/{id}"), &[], None).expect(204);
    send(&nodes);
    assert!(receiver.take().is_empty());
    assert!(nodes.rows("prompt", "default").is_empty() && nodes.rows("due prompt", "").is_empty());
    let left = nodes.rows("prompt queue", "default").remove(0);
    assert_eq!(String::from_utf8(left.body).unwrap(), r#"{"waiting":999}"#);
}

#[test]
fn a_request_with_an_id_is_accepted_once() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(ACCEPTED);
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), &receiver.url());
    let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
    let (run, body) = (format!("/api/triggers/{id}/run"), r#"{"clientRequestId": "r"}"#);
    let first = accept(&nodes.owner, &id, "r");
    for _ in 0..2 {
        let again = nodes.owner.send("POST", &run, &[], Some(body)).expect(200);
        assert_eq!((again.text_at("promptId"), again.json().get("existed")), (first.clone(), Some(&Value::Bool(true))));
        send(&nodes);
    }
    assert_eq!(receiver.take().len(), 1, "also after it was delivered");
    for faulty in [r#"{"event": {"body": 1}}"#, r#"{"variables": {"a": 1}}"#] {
        nodes.owner.send("POST", &run, &[], Some(faulty)).expect(400);
    }
}

#[test]
fn a_faulty_trigger_is_refused_with_the_place() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), "https://agents.example.com/");
    let owner = &nodes.owner;
    save(owner, "w1", echo());
    let with = |more: &str| format!(r#"{{"type": "schedule", "cron": "@daily", {more}}}"#);
    let long = with(&format!(r#""target": "orchestrator", "prompt": "{}""#, "x".repeat(16 * 1024 + 1)));
    let table = [
        (with(r#""target": "orchestrator""#), "", "config.prompt"),
        (with(r#""target": "orchestrator", "prompt": " ""#), "", "config.prompt"),
        (long, "", "config.prompt"),
        (with(r#""prompt": "x""#), r#", "workflowId": "w1""#, "config.prompt"),
        (with(r#""target": "agent""#), r#", "workflowId": "w1""#, "config.target"),
        (with(r#""target": "orchestrator", "prompt": "x", "overlap": "skip""#), "", "config.overlap"),
        (CONFIG.into(), r#", "workflowId": "w1""#, "workflowId"),
        (CONFIG.into(), r#", "variableMapping": {"a": "$.tick"}"#, "variableMapping"),
        (with(r#""target": "workflow""#), "", "workflowId"),
    ];
    for (config, more, place) in table {
        let refused = create(owner, &config, more).expect(400).json();
        let field = refused.get("details").map(|details| text(details, "field"));
        assert_eq!(field.as_deref(), Some(place), "{config} {more}");
    }
    let id = create(owner, CONFIG, "").expect(201).text_at("id");
    let path = format!("/api/triggers/{id}");
    for change in [r#"{"config": {"type": "manual"}}"#, r#"{"variableMapping": {"a": "$.tick"}}"#] {
        owner.send("PATCH", &path, &[], Some(change)).expect(400);
    }
    let other = create(owner, &with(r#""target": "workflow""#), r#", "workflowId": "w1""#).expect(201).text_at("id");
    let change = format!(r#"{{"config": {CONFIG}}}"#);
    owner.send("PATCH", &format!("/api/triggers/{other}"), &[], Some(&change)).expect(400);
}

#[test]
fn a_prompt_acts_for_its_owner_and_stops_with_the_owner() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(ACCEPTED);
    let nodes = nodes((&NOW, || NOW.load(Ordering::SeqCst)), &receiver.url());
    let owner = &nodes.owner;
    let member = |id: &str, role: &str| {
        owner.put(&format!("/api/members/{id}"), &Value::map([("role", Value::from(role))])).expect(200);
        let token = owner.post("/api/tokens", &Value::map([("name", "t"), ("userId", id)].map(|(k, v)| (k, v.into()))));
        owner.with_token(&token.expect(201).text_at("token"))
    };
    let (ann, bob, eve) = (member("ann", "member"), member("bob", "member"), member("eve", "viewer"));
    let id = create(&bob, CONFIG, "").expect(201).text_at("id");
    create(&eve, CONFIG, "").expect(403);
    for other in [&ann, &eve] {
        other.post(&format!("/api/triggers/{id}/run"), &nothing()).expect(403);
        other.send("DELETE", &format!("/api/triggers/{id}"), &[], None).expect(403);
    }
    accept(owner, &id, "by the owner of the organization");
    send(&nodes);
    let received = receiver.take();
    assert_eq!(["userId", "requestedBy"].map(|key| received[0].data(key)), ["bob", "owner"].map(Value::from));
    let waiting = accept(owner, &id, "accepted before the owner is removed");
    owner.send("DELETE", "/api/members/bob", &[], None).expect(204);
    nodes.set("2026-02-25T06:14:00Z");
    nodes.poll();
    send(&nodes);
    assert!(receiver.take().is_empty());
    let runs: Vec<Value> = log(owner, &id).into_iter().filter(|run| text(run, "promptId") == waiting).collect();
    assert_eq!(runs.iter().map(|run| text(run, "outcome")).collect::<Vec<_>>(), ["queued", "refused"]);
    assert_eq!(prompts(owner, &id).get("waiting"), Some(&Value::from(0u64)));
    let shown = owner.get(&format!("/api/triggers/{id}")).expect(200).json();
    let code = shown.get("stopped").map(|stopped| text(stopped, "code"));
    assert_eq!((code.as_deref(), shown.get("enabled")), (Some("TRIGGER_OWNER_REMOVED"), Some(&Value::Bool(false))));
}

#[test]
fn the_address_rules_and_the_secret_of_the_organization_apply() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let receiver = Receiver::start(ACCEPTED);
    let clock = (&NOW, (|| NOW.load(Ordering::SeqCst)) as fn() -> u64);
    let closed = WebhookClient::new(Arc::new(Http::new(HttpOptions::default())));
    let table = [
        (closed, orchestrators(&receiver.url(), SECRET), "http_address_refused"),
        (local_client(), orchestrators(&receiver.url(), "not a secret of webhooks"), "orchestrator_secret_invalid"),
        (local_client(), orchestrators(&receiver.url(), "short"), "orchestrator_secret_unreadable"),
    ];
    for (webhooks, orchestrators, error) in table {
        let outside = Outside { orchestrators, ..Outside::of(webhooks) };
        let nodes = nodes_with(1, Arc::new(MemoryStore::new()), clock, &outside);
        let id = create(&nodes.owner, CONFIG, "").expect(201).text_at("id");
        accept(&nodes.owner, &id, "r");
        send(&nodes);
        let said = last_error(&nodes.owner, &id);
        assert_eq!(said, error, "a code without names and paths of the operator");
        assert!(receiver.take().is_empty());
    }
}

/// Two nodes find each tick and each prompt at the same time.
#[test]
fn two_nodes_on_postgresql_send_each_prompt_once() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let options = postgres::Options { fsync: false, ..postgres::Options::default() };
    let server = postgres::Server::start(options).unwrap();
    let scratch = server.scratch();
    let store = Arc::new(PostgresStore::open(&scratch.address()).unwrap());
    let receiver = Receiver::start(ACCEPTED);
    let outside = Outside { orchestrators: orchestrators(&receiver.url(), SECRET), ..Outside::of(local_client()) };
    let nodes = nodes_with(2, store, (&NOW, || NOW.load(Ordering::SeqCst)), &outside);
    while nodes.apps.iter().any(|app| app.engine.owned_partitions().len() != 32) {
        std::thread::yield_now();
    }
    let ids: Vec<String> = (0..3).map(|_| create(&nodes.owner, CONFIG, "").expect(201).text_at("id")).collect();
    for minute in 14..18 {
        nodes.set(&format!("2026-02-25T06:{minute}:00Z"));
        nodes.poll();
        send(&nodes);
    }
    let received = receiver.take();
    let distinct: BTreeSet<&String> = received.iter().map(|prompt| &prompt.id).collect();
    assert_eq!((received.len(), distinct.len()), (ids.len() * 4, ids.len() * 4));
    for id in &ids {
        let outcomes: Vec<String> = log(&nodes.owner, id).iter().map(|run| text(run, "outcome")).collect();
        assert_eq!(outcomes, ["queued", "delivered"].repeat(4));
    }
}

/// The settings of a server with an endpoint, and the value of its secret in the environment.
fn settings(folder: &std::path::Path, organization: &str, url: &str) -> String {
    let path = folder.join("settings.yaml");
    let text = format!(
        "secrets: {{ORCHESTRATOR: {{env: ORCHESTRATOR_KEY}}}}\n\
         orchestrators: {{{organization}: {{url: '{url}', secret: {{secret: ORCHESTRATOR}}}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn an_accepted_prompt_is_delivered_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(None);
    let settings = settings(folder.path(), "default", &receiver.url());
    let environment = [("MAINSPRING_HTTP_ALLOW", "127.0.0.0/8"), ("ORCHESTRATOR_KEY", SECRET)];
    let start = || Server::start_as(folder.path(), "data", &["--config", &settings], &environment);
    let mut server = start();
    let token = server.token.clone().unwrap();
    let id = create(&server.owner(), CONFIG.replace("* * * * *", "0 0 1 1 *").as_str(), "").expect(201).text_at("id");
    let first = accept(&server.owner(), &id, "1");
    assert_eq!(receiver.next(), first);
    // The server has no answer yet. The second prompt is accepted, and may or may not have left.
    let second = accept(&server.owner(), &id, "2");
    server.kill();
    let before = receiver.take();
    receiver.answers(ACCEPTED);
    let server = start();
    let mut again = BTreeSet::new();
    while again.len() < 2 {
        again.insert(receiver.next());
    }
    assert_eq!(again, BTreeSet::from([first.clone(), second]));
    let repeated = receiver.take();
    let body = |received: &[Received]| received.iter().find(|prompt| prompt.id == first).unwrap().body.clone();
    assert_eq!(body(&repeated), body(&before));
    assert!(repeated.iter().all(Received::is_signed));
    let audit = server.client(&token).get("/api/audit?limit=200").expect(200).text;
    assert!(audit.contains("secret.use") && audit.contains("orchestrators.default"), "{audit}");
}

#[test]
fn commands_manage_prompts_and_other_organizations_have_no_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(ACCEPTED);
    let settings = settings(folder.path(), "default", &receiver.url());
    let environment = [("MAINSPRING_HTTP_ALLOW", "127.0.0.0/8"), ("ORCHESTRATOR_KEY", SECRET)];
    let server = Server::start_as(folder.path(), "data", &["--config", &settings], &environment);
    let refused = create(&Organization::new(&server, "ours").owner, CONFIG, "").expect(501);
    assert!(refused.text.contains("orchestrators"), "{refused:?}");
    let caller = Caller::owner(&server);
    let call = |arguments: &[&str]| caller.fine(&[&["triggers"], arguments].concat());
    let json = |text: &str| json::read(text.as_bytes()).unwrap().value;
    let create = ["create", "--name", "brief", "--cron", "0 9 1 1 *", "--prompt", "Sum up the year."];
    let id = text(&json(&call(&[&create[..], &["--json"]].concat())), "id");
    let shown = call(&["show", &id]);
    assert!(shown.contains("Sum up the year.") && shown.contains("waiting") && !shown.contains("workflow "), "{shown}");
    let run = call(&["run", &id]);
    let prompt = receiver.next();
    assert!(run.contains(&prompt) && run.contains("orchestrator"), "{run}");
    let delivered = || log(&server.owner(), &id).into_iter().find(|run| text(run, "outcome") == "delivered");
    let delivered = loop {
        match delivered() {
            Some(run) => break text(&run, "id"),
            None => std::thread::yield_now(),
        }
    };
    let listed = call(&["deliveries", &id]);
    assert!(listed.contains(&prompt) && listed.contains("queued") && listed.contains("delivered"), "{listed}");
    assert!(call(&["redeliver", &id, &delivered]).contains("accepted"));
    assert_ne!(receiver.next(), prompt);
    caller.refused(
        &["triggers", "create", "w1", "--name", "x", "--cron", "@daily", "--prompt", "x"],
        10,
        &["--prompt"],
    );
    call(&["delete", &id]);
}
