//! Measures executions that are started by HTTP requests, and the processor time of the server.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};
use tokio::net::TcpStream;

use super::{
    load_generator::{Bounds, Measured},
    test_store::{StoreUrl, TestStore},
    workload::Workload,
};
use crate::error::CliError;

/// The result of a measurement at a server.
pub(super) struct Served {
    /// The duration of each start request, and the time until the last execution ended.
    pub(super) starts: Measured,
    /// The processor time of the server from the first start to the last end.
    pub(super) cpu: Duration,
}

/// The polling interval for the end of the executions.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The workflow's id at the server.
const WORKFLOW: &str = "bench";

fn failed(what: impl Into<String>) -> CliError {
    CliError::internal("bench_failed", format!("the server that is measured: {}", what.into()))
}

/// Starts executions from `at_a_time` callers, each with its own connection, and waits until all have ended.
pub(super) async fn measure(
    test_store: &TestStore,
    place: &str,
    workload: Workload,
    at_a_time: u32,
    bounds: Bounds,
) -> Result<Served, CliError> {
    let server = Server::begin(test_store, place)?;
    let mut connection = server.connect().await?;
    let limits = Value::map([("perUser", Value::from(u32::MAX)), ("perOrganization", u32::MAX.into())]);
    connection.ask("PATCH", "/api/organization", Some(&Value::map([("limits", limits)]))).await?;
    let workflow = Value::map([("id", Value::from(WORKFLOW)), ("data", workload.definition())]);
    connection.ask("POST", "/api/workflows/sync", Some(&workflow)).await?;
    let mut callers = Vec::new();
    for _ in 0..at_a_time {
        callers.push(server.connect().await?);
    }
    let (before, began, numbers) = (cpu_time(server.child.id())?, Instant::now(), Arc::new(AtomicU64::new(0)));
    let working: Vec<_> = callers
        .into_iter()
        .map(|connection| tokio::spawn(starts(connection, workload, bounds, began, numbers.clone())))
        .collect();
    let mut each = Vec::new();
    for caller in working {
        each.extend(caller.await.map_err(|error| failed(error.to_string()))??);
    }
    connection.all_ended().await?;
    let all = began.elapsed();
    let cpu = cpu_time(server.child.id())?.saturating_sub(before);
    Ok(Served { starts: Measured { each, all }, cpu })
}

/// Starts executions one after another.
async fn starts(
    mut connection: Connection,
    workload: Workload,
    bounds: Bounds,
    began: Instant,
    numbers: Arc<AtomicU64>,
) -> Result<Vec<Duration>, CliError> {
    let mut each = Vec::new();
    while began.elapsed() < bounds.duration {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        if number >= bounds.executions_max {
            break;
        }
        let body = [
            ("workflowId", Value::from(WORKFLOW)),
            ("clientRequestId", number.to_string().into()),
            ("input", workload.input(number)),
        ];
        let asked = Instant::now();
        connection.ask("POST", "/api/triggers/manual/run", Some(&Value::map(body))).await?;
        each.push(asked.elapsed());
    }
    Ok(each)
}

/// The server process. It is ended on drop.
struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn begin(test_store: &TestStore, place: &str) -> Result<Self, CliError> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["bench", "--serve", "--dir"]).arg(test_store.place(place));
        // The address is passed in the environment: other users can read arguments, and it may contain a password.
        match test_store.url() {
            StoreUrl::Sqlite => command.env_remove("MAINSPRING_STORE"),
            StoreUrl::Postgres(address) => command.env("MAINSPRING_STORE", address),
        };
        // Opening the store here registers its schema for removal.
        drop(test_store.store(place)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut said = String::new();
        let read = child.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut said));
        let told = read.and_then(|_| json::read(said.as_bytes()).ok()).map(|read| read.value);
        let text = |key: &str| Some(told.as_ref()?.get(key)?.as_text()?.to_string());
        match (text("address"), text("token")) {
            (Some(address), Some(token)) => Ok(Self { child, address, token }),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                Err(failed("it has exited; its output is above"))
            }
        }
    }

    async fn connect(&self) -> Result<Connection, CliError> {
        let stream = TcpStream::connect(&self.address).await.map_err(|error| failed(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| failed(error.to_string()))?;
        tokio::spawn(connection);
        Ok(Connection { sender, host: self.address.clone(), credential: format!("Bearer {}", self.token) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A persistent connection.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    credential: String,
}

impl Connection {
    async fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, CliError> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|error| failed(error.to_string()))?;
        let bytes = body.map(|body| Bytes::from(compact(body))).unwrap_or_default();
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", &self.host).header("authorization", &self.credential);
        let request = request.header("content-type", "application/json").body(Full::new(bytes));
        let request = request.map_err(|error| failed(error.to_string()))?;
        self.sender.ready().await.map_err(|error| failed(error.to_string()))?;
        let answer = self.sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
        if !status.is_success() {
            return Err(failed(format!("{path} is answered with {status}: {}", String::from_utf8_lossy(&bytes))));
        }
        json::read(&bytes).map(|read| read.value).map_err(|_| failed(format!("{path} is answered with no JSON")))
    }

    async fn all_ended(&mut self) -> Result<(), CliError> {
        let mut again = tokio::time::interval(POLL_INTERVAL);
        loop {
            let open = self.ask("GET", "/api/executions?status=pending,running&limit=1", None).await?;
            if open.get("executions").and_then(Value::as_list).is_some_and(|list| list.is_empty()) {
                return Ok(());
            }
            again.tick().await;
        }
    }
}

/// The processor time of a process so far, over all its threads.
pub(super) fn cpu_time(process: u32) -> Result<Duration, CliError> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path).map_err(|error| failed(format!("{path}: {error}")))?;
    // The fields after the name, which may contain any character: 14 and 15 of the whole line.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}
