//! Answers that arrive as a stream of events. A stream is assembled to the body that the provider would have sent without
//! one, so that a single function reads both forms.
//!
//! A stream that ends before its answer is complete may have been paid for, and gives no part of an answer.

mod anthropic;
mod chat;
mod events;
mod gemini;
mod responses;

use mainspring_effects::{http::BodyReader, partial::PartialText};
use mainspring_kernel::{
    cbor, json,
    limits::OUTPUT_BYTES_MAX,
    value::{Map, Value},
};

use crate::{
    error::{ModelError, of_status, quoted},
    limits::{
        ANSWER_BYTES_MAX, STREAM_BYTES_MAX, STREAM_EVENTS_MAX, STREAM_PART_BYTES, USAGE_ENTRIES_MAX,
        USAGE_ENTRY_BYTES_MAX,
    },
    provider::Provider,
};
use events::Events;

/// An answer that is being received.
pub struct AnswerStream {
    events: Events,
    assembly: Box<dyn Assembly>,
    growth: Growth,
    bytes_left: usize,
    events_left: usize,
    /// The reason why no more is read.
    over: Option<Ending>,
    /// True if the response is a stream.
    has_arrived: bool,
    partial: Option<PartialText>,
}

/// The end of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The answer is complete: the body of the response that has no stream.
    Whole(Value),
    /// The provider sent an error, or the stream cannot be read.
    Failed(ModelError),
    /// The answer is not complete. It may have been paid for.
    Cut,
}

/// Assembles the events of one format.
trait Assembly: Send {
    /// Reads the data of an event. True if the answer is complete.
    fn take(&mut self, data: &Value, growth: &mut Growth) -> Result<bool, ModelError>;

    /// True if the answer is complete without an end event of the provider. Asked at the end of the response.
    fn may_end(&self) -> bool;

    /// Returns the body of the response that has no stream.
    fn body(&mut self) -> Value;
}

/// The size of an answer, and the text that is new since the last read.
#[derive(Debug, Default)]
struct Growth {
    bytes: usize,
    /// True once the model has sent some text.
    has_begun: bool,
    text: String,
}

impl Growth {
    /// Counts bytes that the answer keeps.
    fn add(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES_MAX { Err(too_large("the answer", ANSWER_BYTES_MAX)) } else { Ok(()) }
    }

    /// Counts a new part of the answer, so that many empty ones are bounded as well.
    fn add_part(&mut self, part: &Value) -> Result<(), ModelError> {
        self.has_begun = true;
        self.add(STREAM_PART_BYTES.saturating_add(cbor::byte_count(part)))
    }

    /// Extends a text of the answer.
    fn extend(&mut self, text: &mut String, more: &str) -> Result<(), ModelError> {
        self.has_begun |= !more.is_empty();
        self.extend_silent(text, more)
    }

    /// Extends a text that is not part of the model's output.
    fn extend_silent(&mut self, text: &mut String, more: &str) -> Result<(), ModelError> {
        self.add(more.len())?;
        text.push_str(more);
        Ok(())
    }

    /// Extends a text that people read.
    fn say(&mut self, text: &mut String, more: &str) -> Result<(), ModelError> {
        self.extend(text, more)?;
        self.text.push_str(more);
        Ok(())
    }
}

impl AnswerStream {
    /// Begins an answer in the format of a provider. Its text is shown while it grows.
    pub fn new(provider: Provider, partial: Option<PartialText>) -> Self {
        let assembly: Box<dyn Assembly> = match provider {
            Provider::Anthropic => Box::<anthropic::Message>::default(),
            Provider::OpenAi => Box::<chat::Completion>::default(),
            Provider::OpenAiResponses => Box::<responses::Response>::default(),
            Provider::Gemini => Box::<gemini::Content>::default(),
        };
        Self {
            events: Events::default(),
            assembly,
            growth: Growth::default(),
            bytes_left: STREAM_BYTES_MAX,
            events_left: STREAM_EVENTS_MAX,
            over: None,
            has_arrived: false,
            partial,
        }
    }

    /// Returns the end. `is_whole` is true if the response ended by itself, and false if its connection broke.
    pub fn end(mut self, is_whole: bool) -> Ending {
        let has_rest = !self.events.is_between();
        let mut is_torn = !is_whole;
        if let (None, true, true) = (&self.over, is_whole, has_rest) {
            // The last event may be without its empty line. One that is cut off is not JSON.
            match self.events.rest().filter(|data| is_end_mark(data) || json::data(data).is_ok()) {
                Some(data) => self.take(&data),
                None => is_torn = true,
            }
        }
        match self.over {
            Some(ending) => ending,
            None if !is_torn && self.assembly.may_end() => bounded(self.assembly.body()),
            None => Ending::Cut,
        }
    }

    /// Reads the data of an event.
    fn take(&mut self, data: &[u8]) {
        if self.over.is_some() {
            return;
        }
        self.over = match self.read_event(data) {
            Ok(false) => None,
            Ok(true) => Some(bounded(self.assembly.body())),
            Err(error) => Some(self.failed(error)),
        };
    }

    fn read_event(&mut self, data: &[u8]) -> Result<bool, ModelError> {
        self.events_left = self.events_left.checked_sub(1).ok_or_else(|| {
            let why = format!("the stream of the answer has more than {STREAM_EVENTS_MAX} events");
            ModelError::AnswerTooLarge(format!("{why}: {HELP}"))
        })?;
        if data.is_empty() {
            return Ok(false);
        }
        if is_end_mark(data) {
            return Ok(true);
        }
        let data = json::data(data).map_err(|error| invalid(format!("an event is not JSON ({error})")))?;
        if data.as_map().is_none() {
            return Err(invalid(format!("an event is {} and not a JSON object", data.kind())));
        }
        if let Some(error) = data.get("error").filter(|error| **error != Value::Null) {
            return Err(provider_error(error));
        }
        self.assembly.take(&data, &mut self.growth)
    }

    /// The end by an error. A provider that fails in the middle of an answer may have charged for it, so the call is not
    /// simply made again.
    fn failed(&self, error: ModelError) -> Ending {
        match error {
            ModelError::RateLimited { .. } | ModelError::Unavailable { .. } if self.growth.has_begun => Ending::Cut,
            ModelError::Rejected(why) | ModelError::ContextTooLong(why) | ModelError::NotAuthorized(why)
                if self.growth.has_begun =>
            {
                Ending::Failed(ModelError::AnswerInvalid(format!("the provider ended it with an error: {why}")))
            }
            error => Ending::Failed(error),
        }
    }

    /// True if the response is a stream.
    pub fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    /// True once the model has sent some text.
    pub fn has_begun(&self) -> bool {
        self.growth.has_begun
    }
}

impl BodyReader for AnswerStream {
    fn reads(&mut self, content_type: &str) -> bool {
        self.has_arrived = content_type == "text/event-stream";
        self.has_arrived
    }

    fn read(&mut self, bytes: &[u8]) -> bool {
        let taken = &bytes[..bytes.len().min(self.bytes_left)];
        let is_larger = taken.len() < bytes.len();
        self.bytes_left -= taken.len();
        match self.events.take(taken) {
            Ok(events) => events.iter().for_each(|data| self.take(data)),
            Err(error) if self.over.is_none() => self.over = Some(Ending::Failed(error)),
            Err(_) => {}
        }
        if is_larger && self.over.is_none() {
            self.over = Some(Ending::Failed(too_large("the stream of the answer", STREAM_BYTES_MAX)));
        }
        let text = std::mem::take(&mut self.growth.text);
        if let Some(partial) = self.partial.as_mut().filter(|_| !text.is_empty()) {
            partial.push(&text);
        }
        self.over.is_none()
    }
}

/// The remedy for a stream that cannot be read.
const HELP: &str = "ask for less, or set `stream: false` at the model";

/// An error of a stream in a form that is not understood.
fn invalid(why: impl std::fmt::Display) -> ModelError {
    ModelError::AnswerInvalid(format!("{why}; if its server always streams so, set `stream: false` at the model"))
}

fn too_large(part: &str, bytes_max: usize) -> ModelError {
    ModelError::AnswerTooLarge(format!("{part} takes more than {bytes_max} bytes: {HELP}"))
}

/// The body, unless it is larger as a value than a step may keep.
fn bounded(body: Value) -> Ending {
    match cbor::byte_count(&body) > OUTPUT_BYTES_MAX {
        true => Ending::Failed(too_large("the answer as a value", OUTPUT_BYTES_MAX)),
        false => Ending::Whole(body),
    }
}

/// The end of a stream of Chat Completions.
fn is_end_mark(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}

/// The statuses that providers would have answered without a stream, by words in the type, the status or the code of an
/// error. The first that matches counts.
const STATUSES: [(&str, u16); 15] = [
    ("overloaded", 529),
    ("rate_limit", 429),
    ("resource_exhausted", 429),
    ("quota", 429),
    ("authentication", 401),
    ("permission", 403),
    ("unavailable", 503),
    ("timeout", 504),
    ("too_large", 413),
    ("context_length", 400),
    ("content_filter", 400),
    ("not_found", 404),
    ("invalid", 400),
    ("billing", 402),
    ("server_error", 500),
];

/// Translates an error that a provider sent in the stream.
fn provider_error(error: &Value) -> ModelError {
    let number = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let text = |key: &str| error.get(key).and_then(Value::as_text).unwrap_or_default().to_ascii_lowercase();
    let words = format!("{} {} {}", text("type"), text("status"), text("code"));
    let named = || STATUSES.iter().find(|(word, _)| words.contains(word)).map(|(_, status)| *status);
    let status = number.filter(|code| (400..600).contains(code)).or_else(named).unwrap_or(500);
    of_status(status, &Value::map([("error", error.clone())]), None)
}

/// Returns a text of an event, empty if it is missing or null.
fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, ModelError> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::Text(text)) => Ok(text),
        Some(other) => Err(invalid(format!("`{}` of an event is {} and not text", quoted(key), other.kind()))),
    }
}

/// Returns the index of a part.
fn index(value: &Value) -> Result<Option<usize>, ModelError> {
    match value.get("index") {
        None | Some(Value::Null) => Ok(None),
        Some(index) => match index.as_u64().and_then(|index| usize::try_from(index).ok()) {
            Some(index) => Ok(Some(index)),
            None => Err(invalid("the `index` of an event is not a whole number")),
        },
    }
}

/// Takes over entries of usage that are not null. A hostile stream could otherwise add keys in every event, so their number
/// and size are bounded; all providers stay far below.
fn merge(into: &mut Map, from: &Value) {
    let entries = from.as_map().into_iter().flatten().filter(|(_, value)| **value != Value::Null);
    for (key, value) in entries {
        let is_small = key.len() + cbor::byte_count(value) <= USAGE_ENTRY_BYTES_MAX;
        if is_small && (into.len() < USAGE_ENTRIES_MAX || into.contains_key(key)) {
            into.insert(key.clone(), value.clone());
        }
    }
}
