//! Connections to servers over streamable HTTP, against a server of this process.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use mainspring_effects::{
    CancelHandle, Executor,
    http::{SystemResolver, TlsRoots},
    stdio::Uncontained,
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    json,
    key::ExecutionKey,
    value::Value,
};
use mainspring_mcp::{
    config::{HttpConfig, ServerConfig, TransportConfig},
    connection::Access,
    executor::Tools,
    http::HttpAccess,
    pool::Pool,
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The state of the server: the header that each call carried.
type Seen = UnboundedSender<String>;

async fn serve(State(seen): State<Seen>, headers: HeaderMap, Json(message): Json<serde_json::Value>) -> Response {
    let id = message["id"].clone();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let name = message["params"]["name"].as_str().unwrap_or_default().to_owned();
            let team = headers.get("x-team").and_then(|value| value.to_str().ok()).unwrap_or("none");
            let _ = seen.send(format!("{name} {team}"));
            match name.as_str() {
                "busy" => return (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "7")]).into_response(),
                "broken" => return StatusCode::BAD_GATEWAY.into_response(),
                "secret" => return StatusCode::UNAUTHORIZED.into_response(),
                "moved" => return (StatusCode::FOUND, [(header::LOCATION, "/other")]).into_response(),
                "stream" => {
                    let events = [
                        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}),
                        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "end"}]}}),
                    ];
                    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
                    return ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response();
                }
                "resumed" => {
                    RESUMED_ID.store(id.as_u64().unwrap_or_default(), Ordering::SeqCst);
                    return interrupted();
                }
                "cut" => return ([(header::CONTENT_TYPE, "text/event-stream")], "data: {\"jsonrpc\"").into_response(),
                "page" => return ([(header::CONTENT_TYPE, "text/html")], "<h1>hello</h1>").into_response(),
                _ => json!({"content": [{"type": "text", "text": message["params"]["arguments"].to_string()}]}),
            }
        }
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

/// The streams after which the server gives the result.
const STREAMS: usize = 20;

static RESUMED_ID: AtomicU64 = AtomicU64::new(0);
static STREAMS_SEEN: AtomicUsize = AtomicUsize::new(0);

/// A stream that ends at once and is to be resumed without a pause.
fn interrupted() -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], "id: 1\nretry: 0\ndata:\n\n").into_response()
}

async fn resume() -> Response {
    if STREAMS_SEEN.fetch_add(1, Ordering::SeqCst) + 1 < STREAMS {
        return interrupted();
    }
    let content = json!({"content": [{"type": "text", "text": "late"}]});
    let message = json!({"jsonrpc": "2.0", "id": RESUMED_ID.load(Ordering::SeqCst), "result": content});
    ([(header::CONTENT_TYPE, "text/event-stream")], format!("data: {message}\n\n")).into_response()
}

/// The executor of a server of this process, with the calls that the server has seen.
async fn bench(allow: &str) -> (Tools, UnboundedReceiver<String>) {
    let (seen, calls) = unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = Router::new().route("/mcp", post(serve).get(resume)).route("/other", post(serve)).with_state(seen);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let headers = BTreeMap::from([("x-team".to_owned(), "platform".to_owned().into())]);
    let config = ServerConfig { name: "web".into(), transport: TransportConfig::Http(HttpConfig { url, headers }) };
    let http = HttpAccess {
        allow: allow.parse().unwrap(),
        trust: TlsRoots::default(),
        resolver: Arc::new(SystemResolver),
        connect_timeout: Duration::from_secs(5),
    };
    let access = Access { start: Arc::new(Uncontained), http, secrets: None };
    (Tools::new(Arc::new(Pool::new(vec![config], access, TEST_TIMEOUT))), calls)
}

async fn perform(tools: &Tools, tool: &str) -> Outcome {
    let attempt = Attempt {
        execution: ExecutionKey::new(0, [0; 10]),
        root: ExecutionKey::new(0, [0; 10]),
        execution_id: "exe_1".into(),
        organization: None,
        workflow_id: None,
        step: "call".into(),
        number: 1,
        effect: "tool".into(),
        params: Value::map([("tool", tool.into()), ("arguments", Value::map([("a", true.into())]))]),
        intent: Hash::of(b"intent"),
        flags: AttemptFlags::default(),
        handed_out_at: 0,
        workspace: None,
        secrets: mainspring_kernel::secret::SecretUses::default(),
        progress: None,
    };
    let (_stopper, stop) = CancelHandle::pair();
    in_time(tools.perform(&attempt, stop)).await
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, work).await.expect("it ends in time")
}

async fn check(tools: &Tools, tool: &str, expected: &str) {
    let outcome = match perform(tools, tool).await {
        Outcome::Done(value) => format!("done {}", json::canonical(&value)),
        Outcome::Failed(failure) => format!(
            "failed {} {} {} {}",
            failure.class.name(),
            failure.code,
            json::canonical(&failure.details),
            failure.message
        ),
        other => format!("{other:?}"),
    };
    assert!(outcome.contains(expected), "{tool}: {outcome} does not contain {expected}");
}

#[tokio::test]
async fn calls_are_sent_once_and_their_results_are_read() {
    let (tools, mut calls) = bench("127.0.0.1").await;
    check(&tools, "echo", r#"done [{"text":"{\"a\":true}","type":"text"}]"#).await;
    check(&tools, "web.stream", r#"done [{"text":"end","type":"text"}]"#).await;
    assert_eq!(calls.recv().await.as_deref(), Some("echo platform"), "the configured header is sent");
    assert_eq!(calls.recv().await.as_deref(), Some("stream platform"));
    assert!(calls.is_empty(), "each call is sent once");
}

#[tokio::test]
async fn errors_of_http_become_failures_with_their_class() {
    let (tools, mut calls) = bench("127.0.0.1").await;
    check(&tools, "web.busy", r#"failed rate_limited tool_server_rate_limited {"retryAfterMs":7000}"#).await;
    check(&tools, "web.broken", "failed transient tool_server_http_error").await;
    check(&tools, "web.secret", "failed failed tool_server_not_authorized").await;
    check(&tools, "web.moved", "failed unavailable tool_connection_lost").await;
    check(&tools, "web.page", "failed invalid tool_answer_invalid").await;
    let seen: Vec<String> = std::iter::from_fn(|| calls.try_recv().ok()).collect();
    assert_eq!(seen.len(), 5, "no call is repeated and no redirect is followed: {seen:?}");
}

#[tokio::test]
async fn a_private_address_is_not_connected_to() {
    let (tools, mut calls) = bench("").await;
    check(&tools, "web.echo", "MAINSPRING_HTTP_ALLOW").await;
    assert!(calls.try_recv().is_err());
}

/// The clock advances only while nothing else can run, so it counts the pauses only.
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_again_and_again_is_resumed_with_pauses() {
    let (tools, _calls) = bench("127.0.0.1").await;
    let begun = tokio::time::Instant::now();
    check(&tools, "web.resumed", r#"done [{"text":"late","type":"text"}]"#).await;
    assert_eq!(STREAMS_SEEN.load(Ordering::SeqCst), STREAMS);
    assert!(begun.elapsed() >= Duration::from_secs(11), "{:?}", begun.elapsed());
}
