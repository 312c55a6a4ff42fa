//! The event stream of an execution. A broken stream is reopened after the last received event.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mainspring_kernel::{json, value::Value};
use tokio::{
    sync::mpsc::{self, Receiver},
    time::{sleep, timeout},
};

use super::{Client, ClientError, address::route};
use crate::output::terminal::Terminal;

/// Bytes of one event. The largest contain the message of a failure.
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Events that are read ahead of their display.
const ON_THE_WAY: usize = 256;

/// The time without data after which a stream counts as broken. A server sends a comment every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// The pause before each attempt to reopen a stream without having received anything; the client fails after the
/// last. The sum is about a minute, enough for a server to restart.
const PAUSES_MS: [u64; 12] = [0, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000];

/// The kind of an event with the texts of models, which has no position and is not stored.
pub(crate) const PROGRESS: &str = "step.progress";

/// The kind of an execution's last event.
pub(crate) const FINISHED: &str = "execution.finished";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The position: the sequence of the frame, and the index of the event in it.
    pub(crate) place: (u64, u32),
    /// The kind, such as `step.started`.
    pub(crate) kind: String,
    /// The whole event.
    pub(crate) data: Value,
}

/// Failed attempts before a lost connection is reported.
const SAID_AFTER: usize = 3;

/// Reads the events of an execution until its last one, in the background. A permanent error is the last item. Progress is
/// part of them if `has_progress` is true and the server has it.
pub(crate) fn watch(
    client: &Client,
    id: &str,
    terminal: Terminal,
    has_progress: bool,
) -> Receiver<Result<Event, ClientError>> {
    let (to, from) = mpsc::channel(ON_THE_WAY);
    let route = |query: &[(&str, &str)]| route(&["api", "executions", id, "events"], query);
    let (plain, with_progress) = (route(&[]), route(&[("progress", "true")]));
    let (route, plain) = if has_progress { (with_progress, Some(plain)) } else { (plain, None) };
    let client = client.clone();
    tokio::spawn(async move {
        let mut watching = Watching { client, route, plain, last: None, has_come: false, to };
        let mut in_vain = 0;
        while in_vain < PAUSES_MS.len() {
            if in_vain == SAID_AFTER {
                terminal.note(&format!("the connection to {} is lost; trying again", watching.client.address()));
            }
            sleep(Duration::from_millis(PAUSES_MS[in_vain])).await;
            watching.has_come = false;
            match watching.send_once().await {
                Ok(Over::Finished | Over::Unread) => return,
                Ok(Over::BrokenOff) => {}
                // A server of an older release refuses the parameter.
                Err(error) if !error.is_transient() && watching.plain.is_some() => {
                    watching.route = watching.plain.take().unwrap_or_default();
                    continue;
                }
                Err(error) if !error.is_transient() || in_vain + 1 == PAUSES_MS.len() => {
                    let _ = watching.to.send(Err(error)).await;
                    return;
                }
                Err(_) => {}
            }
            in_vain = if watching.has_come { 1 } else { in_vain + 1 };
        }
        let why = "its stream of events breaks off again and again";
        let _ = watching.to.send(Err(ClientError::unreachable(watching.client.address(), why))).await;
    });
    from
}

/// The reader of an execution's events.
struct Watching {
    client: Client,
    route: String,
    /// The route without progress, if the other one has it.
    plain: Option<String>,
    /// The position of the last received event.
    last: Option<(u64, u32)>,
    /// True if the current stream has sent anything. The keep-alive comments of a waiting execution count.
    has_come: bool,
    to: mpsc::Sender<Result<Event, ClientError>>,
}

/// The reason why one stream ended.
enum Over {
    /// The last event was received.
    Finished,
    /// The stream broke before the last event.
    BrokenOff,
    /// The receiver was dropped.
    Unread,
}

impl Watching {
    /// Reads one stream until it ends.
    async fn send_once(&mut self) -> Result<Over, ClientError> {
        let last = self.last.map(|(frame, index)| format!("{frame}.{index}"));
        let mut body = self.client.stream(&self.route, last.as_deref()).await?.into_body();
        let mut lines = Lines::default();
        while let Some(bytes) = more(&mut body).await {
            self.has_come = true;
            for message in lines.take(&bytes).map_err(|what| self.client.invalid_response(what))? {
                let event = self.event(&message)?;
                if event.kind == PROGRESS {
                    // Progress that is not read in time is left out.
                    let _ = self.to.try_send(Ok(event));
                    continue;
                }
                // A server may repeat events, and a repeated one is not shown again.
                if self.last.is_some_and(|last| event.place <= last) {
                    continue;
                }
                self.last = Some(event.place);
                let is_last = event.kind == FINISHED;
                if self.to.send(Ok(event)).await.is_err() {
                    return Ok(Over::Unread);
                }
                if is_last {
                    return Ok(Over::Finished);
                }
            }
        }
        Ok(Over::BrokenOff)
    }

    fn event(&self, message: &Message) -> Result<Event, ClientError> {
        let unknown = || self.client.invalid_response("an event of an execution has no place in its journal");
        let place =
            message.id.split_once('.').and_then(|(frame, index)| Some((frame.parse().ok()?, index.parse().ok()?)));
        let read = json::value(message.data.as_bytes());
        let data = read.map_err(|error| self.client.invalid_response(&format!("an event is not JSON: {error}")))?;
        let kind = data.get("type").and_then(Value::as_text).unwrap_or(&message.kind).to_string();
        let place = place.or((kind == PROGRESS).then_some((0, 0)));
        Ok(Event { place: place.ok_or_else(unknown)?, kind, data })
    }
}

/// The next bytes; `None` if the stream ended, broke or timed out.
async fn more(body: &mut Incoming) -> Option<Bytes> {
    loop {
        let frame = timeout(SILENCE_MAX, body.frame()).await.ok()??.ok()?;
        if let Ok(bytes) = frame.into_data() {
            return Some(bytes);
        }
    }
}

/// A message of a server-sent event stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Message {
    id: String,
    kind: String,
    data: String,
}

/// Parses server-sent events by the HTML standard, section 9.2.6. Lines end with LF, CRLF or CR.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    /// True after a CR: a following LF belongs to the same line ending.
    after_return: bool,
    message: Message,
    has_data: bool,
    size: usize,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Message>, &'static str> {
        let mut messages = Vec::new();
        for byte in bytes {
            let is_rest_of_end = *byte == b'\n' && self.after_return;
            self.after_return = *byte == b'\r';
            match byte {
                b'\n' if is_rest_of_end => {}
                b'\n' | b'\r' => messages.extend(self.end_of_line()?),
                _ => {
                    self.size += 1;
                    if self.size > EVENT_BYTES_MAX {
                        return Err("it sends an event without end");
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(messages)
    }

    /// Applies a line, and returns the message if an empty line completes it.
    fn end_of_line(&mut self) -> Result<Option<Message>, &'static str> {
        let line = String::from_utf8(std::mem::take(&mut self.line)).map_err(|_| "its events are not UTF-8")?;
        if line.is_empty() {
            self.size = 0;
            let message = std::mem::take(&mut self.message);
            // The last id stays valid for following messages without one.
            self.message.id.clone_from(&message.id);
            return Ok(std::mem::take(&mut self.has_data).then_some(message));
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => self.message.id = value.into(),
            "event" => self.message.kind = value.into(),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: &[(&str, &str, &str)]) {
        let expected: Vec<Message> = expected
            .iter()
            .map(|(id, kind, data)| Message { id: (*id).into(), kind: (*kind).into(), data: (*data).into() })
            .collect();
        assert_eq!(Lines::default().take(text).unwrap(), expected);
        // The result does not depend on the boundaries of the chunks.
        let mut lines = Lines::default();
        let pieces: Vec<Message> = text.iter().flat_map(|byte| lines.take(&[*byte]).unwrap()).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn messages_are_parsed_with_any_line_ending() {
        check(b"id: 0.0\nevent: a\ndata: {}\n\n", &[("0.0", "a", "{}")]);
        check(
            b"id:0.0\r\nevent:a\r\ndata:{}\r\n\r\nid: 1.0\rdata: 1\rdata: 2\r\r",
            &[("0.0", "a", "{}"), ("1.0", "", "1\n2")],
        );
        check(b": breath\n\n\n\ndata\n\nid: 3.0\n\ndata: x\n\n", &[("", "", ""), ("3.0", "", "x")]);
        check(b"retry: 5\nother: 1\ndata: a: b\n\ndata: cut off", &[("", "", "a: b")]);
    }

    #[test]
    fn invalid_streams_are_refused() {
        assert!(Lines::default().take(b"data: \xff\n").is_err());
        let mut lines = Lines::default();
        let piece = vec![b'x'; 1024 * 1024];
        assert!((0..9).any(|_| lines.take(&piece).is_err()));
    }
}
