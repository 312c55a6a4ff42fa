//! The HTTP server of the scripted model.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Method, Response, StatusCode, body::Incoming as Body, header::RETRY_AFTER, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use mainspring_kernel::{json, value::Value};
use tokio::task::JoinSet;

use super::{
    reply_body::{End, ReplyBody},
    script::{Script, Scripted, ScriptedStream},
    stream::stream_of,
    wire::{self, Incoming},
};
use crate::{
    limits::{DEV_REQUEST_BYTES_MAX, DEV_REQUESTS_KEPT, QUOTED_CHARS_MAX},
    provider::Provider,
};

/// A server that answers from a script. It ends when [`run`](Self::run) is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    log: Mutex<Log>,
}

/// The requests so far.
#[derive(Debug)]
struct Log {
    count: u64,
    kept: VecDeque<Value>,
    /// For each answer, the number of requests for it.
    by_answer: Vec<u64>,
}

/// A response before it is sent.
struct Reply {
    status: u16,
    body: Value,
    /// The format and the stream, for an answer that is asked for as one.
    stream: Option<(Provider, ScriptedStream)>,
    retry_after_s: Option<u64>,
    delay_ms: u64,
    hangs: bool,
}

impl Reply {
    fn new(status: u16, body: Value) -> Self {
        Self { status, body, stream: None, retry_after_s: None, delay_ms: 0, hangs: false }
    }
}

impl ScriptedModel {
    /// Binds an address. The port 0 selects a free one.
    pub fn bind(address: SocketAddr, script: Script) -> io::Result<Self> {
        let by_answer = vec![0; script.answers.len()];
        let log = Mutex::new(Log { count: 0, kept: VecDeque::new(), by_answer });
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, shared: Arc::new(Shared { script, log }) })
    }

    /// Returns the bound address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves connections. Returns only for an error of the listener.
    pub async fn run(self) -> io::Error {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return error,
        };
        let mut connections = JoinSet::new();
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => return error,
                },
                Some(_) = connections.join_next() => continue,
            };
            let shared = self.shared.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| {
                    let shared = shared.clone();
                    async move { Ok::<_, Infallible>(respond(&shared, request).await) }
                });
                // A client that breaks off concerns only its own connection.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> Value {
        let log = self.log();
        Value::map([
            ("count", log.count.into()),
            ("byAnswer", log.by_answer.iter().map(|count| (*count).into()).collect::<Vec<Value>>().into()),
            ("requests", log.kept.iter().cloned().collect::<Vec<_>>().into()),
        ])
    }

    /// Chooses the response to a request of a provider's format, and logs the request.
    fn reply(&self, provider: Provider, path: &str, head: &Head, body: &[u8]) -> Reply {
        let read = json::data(body).map_err(|error| format!("the body is not JSON: {error:?}"));
        let read = read.and_then(|body| wire::read(provider, path, &body));
        let mut log = self.log();
        log.count += 1;
        let number = log.count;
        let (reply, incoming) = match read {
            Ok(incoming) => (self.choose(provider, head, &incoming, number, &mut log), Some(incoming)),
            Err(why) => (Reply::new(400, wire::error(provider, 400, &why)), None),
        };
        let shown = |text: &str| text.chars().take(QUOTED_CHARS_MAX).collect::<String>();
        let entry = Value::map([
            ("number", number.into()),
            ("provider", provider.name().into()),
            ("model", incoming.as_ref().map(|incoming| shown(&incoming.model)).into()),
            ("answersBefore", incoming.as_ref().map(|incoming| incoming.answers_before as u64).into()),
            ("lastMessage", incoming.as_ref().map(|incoming| shown(&incoming.last_message)).into()),
            ("idempotencyKey", head.idempotency_key.as_deref().map(shown).into()),
            ("status", u32::from(reply.status).into()),
            ("streamed", reply.stream.is_some().into()),
        ]);
        if log.kept.len() == DEV_REQUESTS_KEPT {
            log.kept.pop_front();
        }
        log.kept.push_back(entry);
        reply
    }

    fn choose(&self, provider: Provider, head: &Head, incoming: &Incoming, number: u64, log: &mut Log) -> Reply {
        let refuse = |status: u16, why: &str| Reply::new(status, wire::error(provider, status, why));
        if self.script.key.as_ref().is_some_and(|key| head.key.as_ref() != Some(key)) {
            return refuse(401, "the key is not that of the script");
        }
        let at = incoming.answers_before;
        let Some(answer) = self.script.answers.get(at) else {
            return refuse(400, &format!("the script has {} answers, and this would be the next", at));
        };
        let Scripted { when, errors, .. } = answer;
        if let Some(when) = when.as_ref().filter(|when| !incoming.last_message.contains(when.as_str())) {
            return refuse(400, &format!("answers[{at}] is for a message with `{when}`, and this message has none"));
        }
        log.by_answer[at] += 1;
        if let Some(error) = errors.get(log.by_answer[at] as usize - 1) {
            let body = wire::error(provider, error.status, &error.message);
            return Reply { retry_after_s: error.retry_after_s, ..Reply::new(error.status, body) };
        }
        let body = wire::answer(provider, &incoming.model, number, answer);
        let stream = incoming.streams.then(|| (provider, answer.stream.clone()));
        Reply { stream, delay_ms: answer.delay_ms, hangs: answer.hangs, ..Reply::new(200, body) }
    }
}

/// The headers that a script depends on.
struct Head {
    key: Option<String>,
    idempotency_key: Option<String>,
}

async fn respond(shared: &Shared, request: hyper::Request<Body>) -> Response<ReplyBody> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer ").map(ToOwned::to_owned));
    let key = header("x-api-key").or_else(|| header("x-goog-api-key")).or(bearer);
    let head = Head { key, idempotency_key: header("idempotency-key") };
    let body = Limited::new(body, DEV_REQUEST_BYTES_MAX).collect().await;
    let reply = match (parts.method, wire::provider_of(&path), body) {
        (Method::GET, None, _) if path == "/requests" => Reply::new(200, shared.report()),
        (Method::POST, Some(provider), Ok(body)) => shared.reply(provider, &path, &head, &body.to_bytes()),
        (Method::POST, Some(provider), Err(_)) => {
            Reply::new(413, wire::error(provider, 413, "the body is incomplete or too large"))
        }
        _ => Reply::new(404, Value::map([("error", Value::from("POST a request of a provider, or GET /requests"))])),
    };
    if reply.hangs {
        std::future::pending::<()>().await;
    }
    if reply.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
    }
    let (body, content_type) = match &reply.stream {
        None => (ReplyBody::whole(Bytes::from(json::compact(&reply.body))), "application/json"),
        Some((provider, stream)) => (streamed(*provider, &reply.body, stream), "text/event-stream"),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    if let Some(seconds) = reply.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns the body of a stream.
fn streamed(provider: Provider, body: &Value, stream: &ScriptedStream) -> ReplyBody {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut bytes = Bytes::from(stream_of(provider, body, size(stream.delta_chars)));
    let end = match (stream.cut_at_byte, stream.hang_at_byte) {
        (Some(at), _) if size(at) < bytes.len() => {
            bytes.truncate(size(at));
            End::Cut
        }
        (_, Some(at)) if size(at) < bytes.len() => {
            bytes.truncate(size(at));
            End::Hang
        }
        _ => End::Whole,
    };
    let pause = Duration::from_millis(stream.chunk_delay_ms);
    ReplyBody::of_pieces(&bytes, size(stream.chunk_bytes), pause, end)
}
