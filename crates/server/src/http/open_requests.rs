//! Open requests of a connection, and timeouts for clients that do not read their responses.
//!
//! A request is open until the last byte of its response was written to the connection. An HTTP/2 client can stop a
//! response with flow control and still answer PINGs, so that no socket timeout ends it. This module splits bodies into
//! chunks that report when they were written, and a timer of its own finds overdue ones.

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

use crate::http::{connections::Connection, response_memory::ResponseReservation};

/// Time from connecting to the first request head. Round trips take seconds at most.
pub(crate) const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which a connection may have no open request. HTTP/2 PINGs do not count.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time in which a chunk must be written: 16 KiB per minute is slower than any real link.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Most open requests of a connection before authentication: six per tab of a browser, for some tabs. Further requests
/// on the connection wait.
pub(crate) const UNPROVEN_STREAMS_MAX: u32 = 32;

/// Most open requests of an HTTP/2 connection. RFC 9113, 6.5.2, recommends at least 100.
pub(crate) const STREAMS_MAX: u32 = 128;

const _: () = assert!(UNPROVEN_STREAMS_MAX < STREAMS_MAX);

/// Consecutive responses with 401 or 429 after which the next request closes the connection. A client that does not
/// know that its token has ended tries several times.
const REJECTED_MAX: u32 = 16;

/// Bytes of a chunk: the default size of an HTTP/2 frame (RFC 9113, 6.5.2).
const CHUNK_BYTES: usize = 16 * 1024;

/// Timeouts of one connection: its open requests, and the progress of their responses.
#[derive(Debug)]
pub(crate) struct ConnectionTimer {
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
    had_request: bool,
    is_proven: bool,
    /// Rejected requests since the last authenticated one.
    rejected: u32,
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

impl ConnectionTimer {
    /// State of a new connection.
    pub(crate) fn new(connection: Option<Connection>, is_proxy: bool) -> Self {
        let state = State {
            had_request: false,
            is_proven: is_proxy,
            rejected: 0,
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
    pub(crate) fn authenticated(&self) {
        self.state().rejected = 0;
    }

    /// Counts a response with 401 or 429.
    pub(crate) fn rejected(&self) {
        self.state().rejected += 1;
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
        state.is_over |= !self.is_proxy && state.rejected >= REJECTED_MAX;
        let number = state.next;
        state.next += 1;
        state.had_request = true;
        state.open.insert(number, Progress { waiting: 0, since: Instant::now() });
        if state.open.len() == 1 {
            self.connection.iter().for_each(Connection::busy);
        }
        drop(state);
        self.changed.notify_one();
        Open { timer: self.clone(), number, reservation: None, stream: None }
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
            let check_at = until.unwrap_or(now + WRITE_TIMEOUT);
            let _ = timeout_at(check_at, self.changed.notified()).await;
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
            return Some(self.idle_since + if self.had_request { IDLE_TIMEOUT } else { FIRST_REQUEST_TIMEOUT });
        }
        let waiting = || self.open.values().filter(|one| one.waiting > 0).map(|one| one.since + WRITE_TIMEOUT);
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
    timer: Arc<ConnectionTimer>,
    number: u64,
    reservation: Option<ResponseReservation>,
    stream: Option<OwnedSemaphorePermit>,
}

impl Open {
    fn progress(&self, change: impl FnOnce(&mut Progress, Instant)) {
        if let Some(progress) = self.timer.state().open.get_mut(&self.number) {
            change(progress, Instant::now());
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.timer.state();
        state.open.remove(&self.number);
        if state.open.is_empty() {
            state.idle_since = Instant::now();
            self.timer.connection.iter().for_each(Connection::idle);
        }
        drop(state);
        self.timer.changed.notify_one();
    }
}

/// The body of a response. It keeps its request open until it was written.
pub(crate) struct ResponseBody {
    body: Body,
    /// Rest of the current frame, not yet split into chunks.
    rest: Bytes,
    open: Arc<Open>,
}

impl ResponseBody {
    /// Wraps a body with the request that it answers and its memory.
    pub(crate) fn of(body: Body, mut open: Open, reservation: Option<ResponseReservation>) -> Self {
        open.reservation = reservation;
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

impl HttpBody for ResponseBody {
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

    fn expired(timer: &Arc<ConnectionTimer>) -> JoinHandle<()> {
        let timer = timer.clone();
        tokio::spawn(async move { timer.expired().await })
    }

    async fn ends_after(time_limit: Duration, mut ended: JoinHandle<()>) {
        assert!(timeout(time_limit - SECOND, &mut ended).await.is_err(), "before {time_limit:?}");
        assert!(timeout(SECOND * 2, ended).await.is_ok(), "after {time_limit:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_its_last_request() {
        let timer = Arc::new(ConnectionTimer::new(None, false));
        ends_after(FIRST_REQUEST_TIMEOUT, expired(&timer)).await;
        let (open, other) = (timer.begin(), timer.begin());
        let mut request_ended = expired(&timer);
        drop(other);
        assert!(timeout(IDLE_TIMEOUT * 9, &mut request_ended).await.is_err(), "a request is open");
        drop(open);
        ends_after(IDLE_TIMEOUT, request_ended).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_open_until_its_last_chunk_was_written() {
        let timer = Arc::new(ConnectionTimer::new(None, false));
        let mut sending = ResponseBody::of(Body::from(vec![7; 3 * CHUNK_BYTES + 1]), timer.begin(), None);
        assert_eq!(sending.size_hint().exact(), Some(3 * CHUNK_BYTES as u64 + 1));
        let mut chunks = Vec::new();
        while let Some(frame) = sending.frame().await {
            chunks.push(frame.unwrap().into_data().unwrap());
        }
        assert!(sending.is_end_stream());
        assert_eq!(chunks.iter().map(Bytes::len).collect::<Vec<_>>(), [CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 1]);
        drop(sending);
        // Each written chunk restarts the timeout.
        let ended = expired(&timer);
        for chunk in chunks.drain(..3) {
            tokio::time::advance(WRITE_TIMEOUT - SECOND).await;
            drop(chunk);
        }
        assert!(!ended.is_finished() && timer.state().open.len() == 1);
        ends_after(WRITE_TIMEOUT, ended).await;
        drop(chunks);
        assert!(timer.state().open.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn open_requests_are_limited_until_authentication() {
        let timer = Arc::new(ConnectionTimer::new(None, false));
        let mut open = Vec::new();
        while open.len() <= STREAMS_MAX as usize
            && let Ok(one) = timeout(SECOND, timer.admit()).await
        {
            open.push(one);
        }
        assert_eq!(open.len(), UNPROVEN_STREAMS_MAX as usize);
        open.pop();
        assert!(timeout(SECOND, timer.admit()).await.is_ok(), "one that ends makes room");
        (0..2).for_each(|_| timer.proven());
        while open.len() <= STREAMS_MAX as usize
            && let Ok(one) = timeout(SECOND, timer.admit()).await
        {
            open.push(one);
        }
        assert_eq!(open.len(), STREAMS_MAX as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_rejected_requests_close_a_connection_except_of_a_proxy() {
        for is_proxy in [false, true] {
            let timer = Arc::new(ConnectionTimer::new(None, is_proxy));
            (1..REJECTED_MAX).for_each(|_| timer.rejected());
            timer.authenticated();
            (1..REJECTED_MAX).for_each(|_| timer.rejected());
            let (first, ended) = (timer.begin(), expired(&timer));
            drop(first);
            timer.rejected();
            assert!(timeout(SECOND, timer.expired()).await.is_err(), "the last response is to be written");
            let next = timer.begin();
            assert_eq!(timeout(SECOND, ended).await.is_ok(), !is_proxy);
            drop(next);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_response_closes_its_connection_except_of_a_proxy() {
        for is_proxy in [false, true] {
            let timer = Arc::new(ConnectionTimer::new(None, is_proxy));
            let (mut one, other) = (ResponseBody::of(Body::from("a"), timer.begin(), None), timer.begin());
            let _chunk = one.frame().await;
            let mut ended = expired(&timer);
            let is_ended = timeout(WRITE_TIMEOUT + SECOND, &mut ended).await.is_ok();
            assert_eq!(is_ended, !is_proxy);
            drop(other);
            if is_proxy {
                assert!(timeout(SECOND, ended).await.is_ok(), "no other response is left");
            }
        }
    }
}
