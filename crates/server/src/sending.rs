//! Open requests of a connection, and timeouts for clients that do not read their responses.
//!
//! A request is open until the last byte of its response was written to the connection. An HTTP/2 client can stop a
//! response with flow control and still answer PINGs, so that no socket timeout ends it. This module splits bodies into
//! chunks that report when they were written, and a clock of its own finds overdue ones.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{connections::Connection, responses::HeldResponse};

/// Time from connecting to the first request head. Round trips take seconds at most.
pub(crate) const FIRST_HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// Time for which a connection may have no open request. HTTP/2 PINGs do not count.
pub(crate) const IDLE_PATIENCE: Duration = Duration::from_secs(60);

/// Time in which a chunk must be written: 16 KiB per minute is slower than any real link.
pub(crate) const WRITE_PATIENCE: Duration = Duration::from_secs(60);

/// Most open requests of a connection before authentication: six per tab of a browser, for some tabs. Further requests
/// on the connection wait.
pub(crate) const UNPROVEN_STREAMS_MAX: u32 = 32;

/// Most open requests of an HTTP/2 connection. RFC 9113, 6.5.2, recommends at least 100.
pub(crate) const STREAMS_MAX: u32 = 128;

const _: () = assert!(UNPROVEN_STREAMS_MAX < STREAMS_MAX);

/// Consecutive responses with 401 or 429 after which the next request closes the connection. A client that does not
/// know that its token has ended tries several times.
const TURNED_AWAY_MAX: u32 = 16;

/// Bytes of a chunk: the default size of an HTTP/2 frame (RFC 9113, 6.5.2).
const CHUNK_BYTES: usize = 16 * 1024;

/// Timeouts of one connection: its open requests, and the progress of their responses.
#[derive(Debug)]
pub(crate) struct Clock {
    connection: Option<Connection>,
    /// A proxy's connection serves several clients: a stalled response must not end the others.
    is_proxy: bool,
    state: Mutex<State>,
    changed: Notify,
    /// A permit for each further request that may be open.
    streams: Arc<Semaphore>,
}

#[derive(Debug)]
struct State {
    has_asked: bool,
    is_proven: bool,
    /// Rejected requests since the last authenticated one.
    turned_away: u32,
    /// True if the connection is to be closed after too many rejections.
    is_over: bool,
    idle_since: Instant,
    next: u64,
    open: HashMap<u64, Progress>,
}

/// Progress of a response.
#[derive(Debug)]
struct Progress {
    /// Chunks that were passed to the connection and are not written yet.
    waiting: usize,
    /// When the oldest of these was passed, or the last one was written.
    since: Instant,
}

impl Clock {
    /// State of a new connection.
    pub(crate) fn new(connection: Option<Connection>, is_proxy: bool) -> Self {
        let state = State {
            has_asked: false,
            is_proven: is_proxy,
            turned_away: 0,
            is_over: false,
            idle_since: Instant::now(),
            next: 0,
            open: HashMap::new(),
        };
        // Clients behind a proxy do not depend on each other's authentication.
        let streams = if is_proxy { STREAMS_MAX } else { UNPROVEN_STREAMS_MAX };
        let streams = Arc::new(Semaphore::new(streams as usize));
        Self { connection, is_proxy, state: Mutex::new(state), changed: Notify::new(), streams }
    }

    /// Its entry among all connections; `None` in tests that do not count connections.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// Raises the number of open requests after a request was authenticated.
    pub(crate) fn proven(&self) {
        if !std::mem::replace(&mut self.state().is_proven, true) {
            self.streams.add_permits((STREAMS_MAX - UNPROVEN_STREAMS_MAX) as usize);
        }
    }

    /// Resets the count of rejections after an authenticated request.
    pub(crate) fn let_in(&self) {
        self.state().turned_away = 0;
    }

    /// Counts a response with 401 or 429.
    pub(crate) fn turned_away(&self) {
        self.state().turned_away += 1;
    }

    /// Waits until the connection may have one more open request. Dropping the guard ends the request.
    pub(crate) async fn admit(self: &Arc<Self>) -> Open {
        let mut open = self.begin();
        if self.state().is_over {
            // The connection is about to be closed.
            std::future::pending::<()>().await;
        }
        open.stream = self.streams.clone().acquire_owned().await.ok();
        open
    }

    /// Registers a request.
    fn begin(self: &Arc<Self>) -> Open {
        let mut state = self.state();
        state.is_over |= !self.is_proxy && state.turned_away >= TURNED_AWAY_MAX;
        let number = state.next;
        state.next += 1;
        state.has_asked = true;
        state.open.insert(number, Progress { waiting: 0, since: Instant::now() });
        if state.open.len() == 1 {
            self.connection.iter().for_each(Connection::busy);
        }
        drop(state);
        self.changed.notify_one();
        Open { clock: self.clone(), number, held: None, stream: None }
    }

    /// Returns when the connection was idle for too long, or a response made no progress for too long.
    pub(crate) async fn expired(&self) {
        loop {
            let now = Instant::now();
            let until = self.state().until(self.is_proxy);
            if until.is_some_and(|until| until <= now) {
                return;
            }
            // A chunk that starts to wait now is overdue at this time.
            let look_at = until.unwrap_or(now + WRITE_PATIENCE);
            let _ = timeout_at(look_at, self.changed.notified()).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Time at which the connection is closed if nothing changes.
    fn until(&self, is_proxy: bool) -> Option<Instant> {
        if self.is_over {
            return Some(self.idle_since);
        }
        if self.open.is_empty() {
            return Some(self.idle_since + if self.has_asked { IDLE_PATIENCE } else { FIRST_HEAD_PATIENCE });
        }
        let waiting = || self.open.values().filter(|one| one.waiting > 0).map(|one| one.since + WRITE_PATIENCE);
        match is_proxy {
            false => waiting().min(),
            true if waiting().count() < self.open.len() => None,
            true => waiting().max(),
        }
    }
}

/// An open request.
#[derive(Debug)]
pub(crate) struct Open {
    clock: Arc<Clock>,
    number: u64,
    held: Option<HeldResponse>,
    stream: Option<OwnedSemaphorePermit>,
}

impl Open {
    fn progress(&self, change: impl FnOnce(&mut Progress, Instant)) {
        if let Some(progress) = self.clock.state().open.get_mut(&self.number) {
            change(progress, Instant::now());
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.clock.state();
        state.open.remove(&self.number);
        if state.open.is_empty() {
            state.idle_since = Instant::now();
            self.clock.connection.iter().for_each(Connection::idle);
        }
        drop(state);
        self.clock.changed.notify_one();
    }
}

/// The body of a response. It keeps its request open until it was written.
pub(crate) struct Sending {
    body: Body,
    /// Rest of the current frame, not yet split into chunks.
    rest: Bytes,
    open: Arc<Open>,
}

impl Sending {
    /// Wraps a body with the request that it answers and its memory.
    pub(crate) fn of(body: Body, mut open: Open, held: Option<HeldResponse>) -> Self {
        open.held = held;
        Self { body, rest: Bytes::new(), open: Arc::new(open) }
    }
}

/// A chunk of a response. It reports when it was written.
struct Chunk {
    bytes: Bytes,
    open: Arc<Open>,
}

impl Chunk {
    fn of(bytes: Bytes, open: &Arc<Open>) -> Bytes {
        open.progress(|progress, now| {
            if progress.waiting == 0 {
                progress.since = now;
            }
            progress.waiting += 1;
        });
        Bytes::from_owner(Self { bytes, open: open.clone() })
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.open.progress(|progress, now| {
            progress.waiting = progress.waiting.saturating_sub(1);
            progress.since = now;
        });
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    Ok(bytes) => self.rest = bytes,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let bytes_max = CHUNK_BYTES.min(self.rest.len());
        let bytes = self.rest.split_to(bytes_max);
        Poll::Ready(Some(Ok(Frame::data(Chunk::of(bytes, &self.open)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let upper = hint.upper();
        if let Some(upper) = upper {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::{task::JoinHandle, time::timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn expired(clock: &Arc<Clock>) -> JoinHandle<()> {
        let clock = clock.clone();
        tokio::spawn(async move { clock.expired().await })
    }

    async fn ends_after(patience: Duration, mut ended: JoinHandle<()>) {
        assert!(timeout(patience - SECOND, &mut ended).await.is_err(), "before {patience:?}");
        assert!(timeout(SECOND * 2, ended).await.is_ok(), "after {patience:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_its_last_request_and_not_amid_one() {
        let clock = Arc::new(Clock::new(None, false));
        ends_after(FIRST_HEAD_PATIENCE, expired(&clock)).await;
        let (open, other) = (clock.begin(), clock.begin());
        let mut asked = expired(&clock);
        drop(other);
        assert!(timeout(IDLE_PATIENCE * 9, &mut asked).await.is_err(), "a request is open");
        drop(open);
        ends_after(IDLE_PATIENCE, asked).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_open_until_its_last_chunk_was_written() {
        let clock = Arc::new(Clock::new(None, false));
        let mut sending = Sending::of(Body::from(vec![7; 3 * CHUNK_BYTES + 1]), clock.begin(), None);
        assert_eq!(sending.size_hint().exact(), Some(3 * CHUNK_BYTES as u64 + 1));
        let mut chunks = Vec::new();
        while let Some(frame) = sending.frame().await {
            chunks.push(frame.unwrap().into_data().unwrap());
        }
        assert!(sending.is_end_stream());
        assert_eq!(chunks.iter().map(Bytes::len).collect::<Vec<_>>(), [CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 1]);
        drop(sending);
        // Each written chunk restarts the timeout.
        let ended = expired(&clock);
        for chunk in chunks.drain(..3) {
            tokio::time::advance(WRITE_PATIENCE - SECOND).await;
            drop(chunk);
        }
        assert!(!ended.is_finished() && clock.state().open.len() == 1);
        ends_after(WRITE_PATIENCE, ended).await;
        drop(chunks);
        assert!(clock.state().open.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_few_requests_open_until_a_credential_was_let_in() {
        let clock = Arc::new(Clock::new(None, false));
        let mut open = Vec::new();
        while open.len() <= STREAMS_MAX as usize
            && let Ok(one) = timeout(SECOND, clock.admit()).await
        {
            open.push(one);
        }
        assert_eq!(open.len(), UNPROVEN_STREAMS_MAX as usize);
        open.pop();
        assert!(timeout(SECOND, clock.admit()).await.is_ok(), "one that ends makes room");
        (0..2).for_each(|_| clock.proven());
        while open.len() <= STREAMS_MAX as usize
            && let Ok(one) = timeout(SECOND, clock.admit()).await
        {
            open.push(one);
        }
        assert_eq!(open.len(), STREAMS_MAX as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_requests_are_turned_away_is_closed_and_not_that_of_a_proxy() {
        for is_proxy in [false, true] {
            let clock = Arc::new(Clock::new(None, is_proxy));
            (1..TURNED_AWAY_MAX).for_each(|_| clock.turned_away());
            clock.let_in();
            (1..TURNED_AWAY_MAX).for_each(|_| clock.turned_away());
            let (first, ended) = (clock.begin(), expired(&clock));
            drop(first);
            clock.turned_away();
            assert!(timeout(SECOND, clock.expired()).await.is_err(), "the last response is to be written");
            let next = clock.begin();
            assert_eq!(timeout(SECOND, ended).await.is_ok(), !is_proxy);
            drop(next);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_waits_ends_the_connection_of_its_caller_and_not_that_of_a_proxy() {
        for is_proxy in [false, true] {
            let clock = Arc::new(Clock::new(None, is_proxy));
            let (mut one, other) = (Sending::of(Body::from("a"), clock.begin(), None), clock.begin());
            let _chunk = one.frame().await;
            let mut ended = expired(&clock);
            let is_ended = timeout(WRITE_PATIENCE + SECOND, &mut ended).await.is_ok();
            assert_eq!(is_ended, !is_proxy);
            drop(other);
            if is_proxy {
                assert!(timeout(SECOND, ended).await.is_ok(), "no other response is left");
            }
        }
    }
}
