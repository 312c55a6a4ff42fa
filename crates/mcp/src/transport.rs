//! Bounds on what a server can make this process hold before the protocol is read.
//!
//! `rmcp` answers each request of a server in a task of its own, keeps each result until it is read, and skips lines that
//! it cannot read. A [`Guarded`] transport ends the connection of a server that exceeds a bound, with the reason.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Notify, watch},
};

use crate::{
    error::{quoted, too_large},
    limits::{MESSAGE_BYTES_MAX, REQUEST_ID_BYTES_MAX, RESULTS_MAX, UNANSWERED_MAX},
};

/// The bounds of one connection.
#[derive(Default)]
pub(crate) struct Guard {
    fault: watch::Sender<Option<String>>,
    state: Mutex<State>,
    result_read: Notify,
}

#[derive(Default)]
struct State {
    /// Requests of the server without an answer.
    unanswered: HashSet<RequestId>,
    /// Answers that are being sent.
    sending: usize,
    /// Calls that wait for their result.
    calls: HashSet<RequestId>,
    /// Results that wait to be read.
    results: HashSet<RequestId>,
}

impl Guard {
    /// Returns the bound that the server has exceeded. The connection is closed then.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.borrow().clone()
    }

    /// Counts the result of a call as unread, until the guard that is returned is dropped.
    pub(crate) fn call(self: &Arc<Self>, id: &RequestId) -> CallGuard {
        let id = canonical(id);
        self.state().calls.insert(id.clone());
        CallGuard { guard: self.clone(), id }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, why: String) {
        self.fault.send_if_modified(|fault| {
            let is_first = fault.is_none();
            fault.get_or_insert(why);
            is_first
        });
    }

    async fn failed(&self) {
        let mut fault = self.fault.subscribe();
        let _ = fault.wait_for(Option::is_some).await;
    }

    /// Returns once few enough results wait to be read.
    async fn has_place(&self) {
        while self.state().results.len() >= RESULTS_MAX {
            self.result_read.notified().await;
        }
    }

    fn admit(&self, message: &ServerJsonRpcMessage) -> Result<(), String> {
        let mut state = self.state();
        match message {
            JsonRpcMessage::Request(request) => {
                if matches!(&request.id, RequestId::String(id) if id.len() > REQUEST_ID_BYTES_MAX) {
                    return Err(format!("the id of a request has more than {REQUEST_ID_BYTES_MAX} bytes"));
                }
                if !state.unanswered.insert(request.id.clone()) {
                    return Err(format!("it sent two requests with the id {}", quoted(&request.id.to_string())));
                }
                if state.unanswered.len() + state.sending > UNANSWERED_MAX {
                    return Err(format!("it sent more than {UNANSWERED_MAX} requests without reading the answers"));
                }
            }
            JsonRpcMessage::Notification(notification) => {
                // A canceled request gets no answer.
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.unanswered.remove(id);
                }
            }
            JsonRpcMessage::Response(response) => state.answered(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    state.answered(id);
                }
            }
        }
        Ok(())
    }

    /// Counts an answer to the server as being sent, until the guard that is returned is dropped.
    fn sending(self: &Arc<Self>, message: &ClientJsonRpcMessage) -> Option<SendGuard> {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return None,
        };
        let mut state = self.state();
        if let Some(id) = id {
            state.unanswered.remove(id);
        }
        state.sending += 1;
        Some(SendGuard(self.clone()))
    }
}

impl State {
    fn answered(&mut self, id: &RequestId) {
        let id = canonical(id);
        if self.calls.remove(&id) {
            self.results.insert(id);
        }
    }
}

/// `rmcp` accepts an answer whose id is the number of a request as text.
fn canonical(id: &RequestId) -> RequestId {
    match id {
        RequestId::String(text) => text.parse().map_or_else(|_| id.clone(), RequestId::Number),
        RequestId::Number(_) => id.clone(),
    }
}

/// A call whose result is not read yet.
pub(crate) struct CallGuard {
    guard: Arc<Guard>,
    id: RequestId,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut state = self.guard.state();
        state.calls.remove(&self.id);
        state.results.remove(&self.id);
        drop(state);
        self.guard.result_read.notify_one();
    }
}

struct SendGuard(Arc<Guard>);

impl Drop for SendGuard {
    fn drop(&mut self) {
        self.0.state().sending -= 1;
    }
}

/// A transport with the bounds of a [`Guard`].
pub(crate) struct Guarded<T: Transport<RoleClient>> {
    inner: T,
    guard: Arc<Guard>,
    /// The error of a message that is sent after the connection was closed.
    closed: fn() -> T::Error,
}

impl<T: Transport<RoleClient>> Guarded<T> {
    pub(crate) fn new(inner: T, guard: Arc<Guard>, closed: fn() -> T::Error) -> Self {
        Self { inner, guard, closed }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Guarded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (guard, closed) = (self.guard.clone(), self.closed);
        let sending = guard.sending(&message);
        let sent = self.inner.send(message);
        async move {
            let _sending = sending;
            // `rmcp` waits for open sends before it reports the end of the connection.
            tokio::select! {
                biased;
                () = guard.failed() => Err(closed()),
                sent = sent => sent,
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.guard.has_place().await;
        if self.guard.fault().is_some() {
            return None;
        }
        let message = self.inner.receive().await?;
        match self.guard.admit(&message) {
            Ok(()) => Some(message),
            Err(why) => {
                self.guard.fail(why);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Messages as lines, on the streams of a process.
pub(crate) struct Lines<R, W> {
    input: BufReader<R>,
    /// The beginning of a line. `receive` may be canceled in the middle of one.
    line: Vec<u8>,
    output: Arc<tokio::sync::Mutex<Option<W>>>,
    guard: Arc<Guard>,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub(crate) fn new(input: R, output: W, guard: Arc<Guard>) -> Self {
        let output = Arc::new(tokio::sync::Mutex::new(Some(output)));
        Self { input: BufReader::new(input), line: Vec::new(), output, guard }
    }

    /// Reads to the end of a line. `None` at the end of the stream.
    async fn read_line(&mut self) -> Result<Option<()>, String> {
        loop {
            let read = self.input.fill_buf().await.map_err(|error| error.to_string())?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let (part, count) = match end {
                Some(end) => (read.get(..end).unwrap_or_default(), end + 1),
                None => (read, read.len()),
            };
            if self.line.len() + part.len() > MESSAGE_BYTES_MAX {
                return Err(too_large());
            }
            self.line.extend_from_slice(part);
            self.input.consume(count);
            if end.is_some() {
                return Ok(Some(()));
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient> for Lines<R, W> {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            let output = output.as_mut().ok_or_else(closed)?;
            output.write_all(&line).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match self.read_line().await {
                Ok(None) => return None,
                Ok(Some(())) => parse(&self.line),
                Err(why) => Err(why),
            };
            self.line.clear();
            match message {
                Ok(None) => {}
                Ok(Some(message)) => return Some(message),
                Err(why) => {
                    self.guard.fail(why);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}

/// The error of a message for a connection that is closed.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the connection is closed")
}

/// Reads a line. `None` for a notification that this client does not know, and for text that is no message: servers
/// write logs to their standard output. Any other line may be the answer to a call, which would wait for it in vain.
fn parse(line: &[u8]) -> Result<Option<ServerJsonRpcMessage>, String> {
    const MARK: &[u8] = b"\"jsonrpc\"";
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let is_message = line.windows(MARK.len()).any(|part| part == MARK);
    let is_notification = || {
        let message = serde_json::from_slice::<serde_json::Value>(line);
        message.is_ok_and(|message| message.get("method").is_some() && message.get("id").is_none())
    };
    match is_message && !is_notification() {
        true => Err(format!("a message cannot be read: {}", quoted(&error.to_string()))),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde_json::json;

    use super::*;

    /// Gives these messages, and never sends one.
    struct Queue(VecDeque<serde_json::Value>);

    impl Transport<RoleClient> for Queue {
        type Error = io::Error;

        fn send(&mut self, _: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
            std::future::pending()
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            self.0.pop_front().map(|message| serde_json::from_value(message).unwrap())
        }

        async fn close(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn guarded(messages: impl IntoIterator<Item = serde_json::Value>) -> (Guarded<Queue>, Arc<Guard>) {
        let guard = Arc::new(Guard::default());
        (Guarded::new(Queue(messages.into_iter().collect()), guard.clone(), closed), guard)
    }

    fn ping(id: serde_json::Value) -> serde_json::Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
    }

    /// Receives without a wait. `Err` if the transport waits.
    async fn receive_now(transport: &mut Guarded<Queue>) -> Result<Option<ServerJsonRpcMessage>, ()> {
        tokio::select! {
            biased;
            message = transport.receive() => Ok(message),
            () = std::future::ready(()) => Err(()),
        }
    }

    async fn check_fault(messages: impl IntoIterator<Item = serde_json::Value>, expected: &str) {
        let (mut transport, guard) = guarded(messages);
        while transport.receive().await.is_some() {}
        let fault = guard.fault().unwrap_or_default();
        assert!(fault.contains(expected), "{fault}");
    }

    #[tokio::test]
    async fn requests_beyond_their_bounds_end_the_connection() {
        let requests = || (0..=UNANSWERED_MAX).map(|id| ping(json!(id)));
        check_fault(requests(), "more than 64 requests").await;
        check_fault(requests().take(UNANSWERED_MAX), "").await;
        check_fault([ping(json!("x".repeat(REQUEST_ID_BYTES_MAX + 1)))], "the id of a request").await;
        check_fault([ping(json!(1)), ping(json!(1))], "two requests with the id 1").await;
    }

    /// An answer counts until it is sent, also if its request was canceled.
    #[tokio::test]
    async fn answers_that_are_not_sent_count() {
        let (mut transport, guard) = guarded((0..=UNANSWERED_MAX).map(|id| ping(json!(id))));
        let mut sends = Vec::new();
        for id in 0..UNANSWERED_MAX {
            assert!(transport.receive().await.is_some());
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
            sends.push(Box::pin(transport.send(serde_json::from_value(answer).unwrap())));
        }
        sends.pop();
        assert!(transport.receive().await.is_some(), "an answer that was sent makes place");
        assert!(guard.fault().is_none());
        let id = UNANSWERED_MAX;
        let canceled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        transport.inner.0.extend([canceled, ping(json!(id)), ping(json!(id + 1))]);
        while transport.receive().await.is_some() {}
        assert!(guard.fault().unwrap().contains("more than 64 requests"));
        assert!(sends.pop().unwrap().await.is_err(), "a send ends with the connection");
    }

    #[tokio::test]
    async fn results_wait_until_earlier_ones_are_read() {
        let count = RESULTS_MAX as i64 + 2;
        // `rmcp` reads the ids as numbers.
        let results = (0..count).map(|id| json!({"jsonrpc": "2.0", "id": id.to_string(), "result": {"content": []}}));
        let (mut transport, guard) = guarded(results);
        let mut calls: VecDeque<_> = (0..count).map(|id| guard.call(&RequestId::Number(id))).collect();
        for _ in 0..RESULTS_MAX {
            assert!(matches!(receive_now(&mut transport).await, Ok(Some(_))));
        }
        assert!(receive_now(&mut transport).await.is_err(), "no result was read");
        drop(calls.pop_front());
        assert!(matches!(receive_now(&mut transport).await, Ok(Some(_))));
        assert!(receive_now(&mut transport).await.is_err());
        drop(calls);
        assert!(matches!(receive_now(&mut transport).await, Ok(Some(_))));
    }

    #[test]
    fn a_line_is_a_message_or_a_log_or_the_end() {
        let check = |line: &str, expected: Result<bool, &str>| match (parse(line.as_bytes()), expected) {
            (Ok(message), Ok(is_message)) => assert_eq!(message.is_some(), is_message, "{line}"),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (other, _) => panic!("{line}: {other:?}"),
        };
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Ok(true));
        check("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r", Ok(true));
        check("", Ok(false));
        check("listening", Ok(false));
        check(r#"{"level":"info"}"#, Ok(false));
        check(r#"{"jsonrpc":"2.0","method":"window/logMessage","params":3}"#, Ok(false));
        check(r#"{"jsonrpc":"2.0","id":1,"result":"#, Err("a message cannot be read"));
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ud800"}]}}"#, Err("hex escape"));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(130), "]".repeat(130));
        check(&deep, Err("recursion limit exceeded"));
    }
}
