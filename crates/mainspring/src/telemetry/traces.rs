//! Exports spans to an OpenTelemetry collector.
//!
//! The engine only enqueues a span; a separate thread sends batches. Spans that do not fit into the queue, or that
//! the collector rejects repeatedly, are dropped and counted. Spans contain no payload values.

mod encode;
mod send;
mod settings;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use mainspring_engine::trace_spans::{Span, Spans};
use metrics::{Counter, counter, describe_counter};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};
use tracing::{info, warn};

use self::send::{Collector, Unsent};
pub(super) use self::settings::Settings;

/// Queued spans: some megabytes.
const QUEUE_MAX: usize = 16_384;

/// Spans of a request: some hundred kilobytes.
const BATCH_MAX: usize = 1_024;

/// The time that a span waits for others in its batch.
const LINGER: Duration = Duration::from_secs(1);

/// Pauses between retries of transient errors. The batch is dropped after the last.
const WAITS: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// The time that an ending process waits for the export of remaining spans.
const END_MAX: Duration = Duration::from_secs(2);

/// The exporter's handle.
#[derive(Debug)]
pub(super) struct Tracer {
    spans: mpsc::Sender<Arc<Span>>,
    counts: Arc<Counts>,
    is_ending: watch::Sender<bool>,
    ended: Mutex<Receiver<()>>,
    endpoint: String,
}

/// Counters of exported and dropped spans.
struct Counts {
    sent: Counter,
    dropped: Counter,
    /// The value of `dropped`, for the message at the end.
    dropped_number: AtomicU64,
    why: Mutex<Option<String>>,
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Counts({} dropped)", self.dropped_number.load(Ordering::Relaxed))
    }
}

impl Counts {
    fn new() -> Self {
        let name = "mainspring_trace_spans_total";
        describe_counter!(name, "Spans by outcome: sent to the collector, or dropped.");
        Self {
            sent: counter!(name, "result" => "sent"),
            dropped: counter!(name, "result" => "dropped"),
            dropped_number: AtomicU64::new(0),
            why: Mutex::new(None),
        }
    }

    fn lose(&self, spans: usize, why: &str) {
        self.dropped.increment(spans as u64);
        self.dropped_number.fetch_add(spans as u64, Ordering::Relaxed);
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| why.to_owned());
    }
}

impl Tracer {
    /// Starts the exporter's thread.
    pub(super) fn begin(settings: Settings) -> Self {
        let (spans, received) = mpsc::channel(QUEUE_MAX);
        let (is_ending, ending) = watch::channel(false);
        let (end, ended) = channel();
        let (counts, endpoint) = (Arc::new(Counts::new()), settings.endpoint.to_string());
        let exporter = Exporter {
            collector: Collector::new(&settings),
            resource: encode::resource(&settings.resource),
            counts: counts.clone(),
            ending,
            is_failing: false,
        };
        let work = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(exporter.run(received));
            let _ = end.send(());
        };
        std::thread::Builder::new().name("traces".into()).spawn(work).expect("a process can start a thread");
        Self { spans, counts, is_ending, ended: Mutex::new(ended), endpoint }
    }

    /// The receiver of the engine's spans.
    pub(super) fn spans(&self) -> Spans {
        let (spans, counts) = (self.spans.clone(), self.counts.clone());
        Arc::new(move |span| {
            if spans.try_send(span).is_err() {
                counts.lose(1, "more spans ended than the collector accepts");
            }
        })
    }

    /// Exports remaining spans for a bounded time. Returns a message if spans were lost.
    pub(super) fn end(&self) -> Option<String> {
        self.is_ending.send_replace(true);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_all = ended.recv_timeout(END_MAX).is_ok();
        let dropped = self.counts.dropped_number.load(Ordering::Relaxed);
        let why = self.counts.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (is_all, dropped) {
            (true, 0) => None,
            (true, dropped) => {
                let why = why.unwrap_or_default();
                Some(format!("traces: {dropped} spans could not be sent to {}: {why}", self.endpoint))
            }
            (false, _) => Some(format!("traces: {} does not answer, and not all spans were sent", self.endpoint)),
        }
    }
}

/// The part that runs on the thread.
struct Exporter {
    collector: Collector,
    resource: Vec<u8>,
    counts: Arc<Counts>,
    ending: watch::Receiver<bool>,
    is_failing: bool,
}

impl Exporter {
    async fn run(mut self, mut received: mpsc::Receiver<Arc<Span>>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut ending = self.ending.clone();
        loop {
            tokio::select! {
                biased;
                count = received.recv_many(&mut batch, BATCH_MAX) => if count == 0 { return },
                _ = ending.wait_for(|is_ending| *is_ending), if !received.is_closed() => {
                    received.close();
                    continue;
                }
            }
            let until = Instant::now() + LINGER;
            while batch.len() < BATCH_MAX && !received.is_closed() {
                let room = BATCH_MAX - batch.len();
                tokio::select! {
                    more = timeout_at(until, received.recv_many(&mut batch, room)) => if !matches!(more, Ok(1..)) { break },
                    _ = ending.wait_for(|is_ending| *is_ending) => received.close(),
                }
            }
            self.send(&batch).await;
            batch.clear();
        }
    }

    /// Sends a batch, with retries unless the process is ending.
    async fn send(&mut self, batch: &[Arc<Span>]) {
        let body = bytes::Bytes::from(encode::request(&self.resource, batch));
        let mut waits = WAITS.iter();
        loop {
            let unsent = match self.collector.post(body.clone()).await {
                Ok(()) => {
                    if std::mem::replace(&mut self.is_failing, false) {
                        info!("the collector accepts traces again");
                    }
                    return self.counts.sent.increment(batch.len() as u64);
                }
                Err(unsent) => unsent,
            };
            // One log line for each outage.
            if !std::mem::replace(&mut self.is_failing, true) {
                let Unsent { why, .. } = &unsent;
                warn!(endpoint = %self.collector.endpoint(), why, "traces cannot be sent, and are dropped until they can");
            }
            let wait = waits.next().filter(|_| unsent.is_transient && !*self.ending.borrow());
            let Some(wait) = wait else { return self.counts.lose(batch.len(), &unsent.why) };
            let _ = tokio::time::timeout(*wait, self.ending.wait_for(|is_ending| *is_ending)).await;
        }
    }
}
