//! The script of a scripted model.
//!
//! ```yaml
//! answers:
//!   - toolCalls: [{name: issues.get, arguments: {id: 7}}]
//!   - when: crash            # the last message has to contain this
//!     text: '{"severity": "high"}'
//!     usage: {inputTokens: 120, outputTokens: 9}
//!     errors: [{status: 529, message: Overloaded}]   # the responses to the first requests for this answer
//!     stream: {deltaChars: 3, chunkBytes: 100, chunkDelayMs: 5}   # if the answer is asked for as a stream
//! ```

use std::fmt;

use mainspring_kernel::{
    definition::{Syntax, read},
    value::{Map, Value},
};

use crate::{
    answer::{StopReason, ToolCall, Usage},
    limits::{DEV_DELAY_MAX_MS, DEV_STREAM_BYTES_MAX, SCRIPT_BYTES_MAX},
};

/// The answers of a scripted model, and its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The answers, by the number of answers before them in the conversation.
    pub(super) answers: Vec<Scripted>,
    /// The key that requests have to carry; `None` accepts any.
    pub(super) key: Option<String>,
}

/// One answer of a script.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Scripted {
    /// Text that the last message has to contain.
    pub(super) when: Option<String>,
    pub(super) text: String,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) stop_reason: StopReason,
    pub(super) usage: Usage,
    /// The delay before the answer.
    pub(super) delay_ms: u64,
    /// True if the request is never answered.
    pub(super) hangs: bool,
    /// The responses to the first requests for this answer.
    pub(super) errors: Vec<ScriptedError>,
    pub(super) stream: ScriptedStream,
}

/// The stream of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedStream {
    /// The characters of a piece of the text.
    pub(super) delta_chars: u64,
    /// The bytes that are sent at a time.
    pub(super) chunk_bytes: u64,
    pub(super) chunk_delay_ms: u64,
    /// The bytes after which the connection breaks.
    pub(super) cut_at_byte: Option<u64>,
    /// The bytes after which nothing more is sent.
    pub(super) hang_at_byte: Option<u64>,
}

impl Default for ScriptedStream {
    /// Some characters at a time, as models send them.
    fn default() -> Self {
        Self { delta_chars: 4, chunk_bytes: 1024, chunk_delay_ms: 0, cut_at_byte: None, hang_at_byte: None }
    }
}

/// An error response of a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedError {
    pub(super) status: u16,
    pub(super) message: String,
    /// `Retry-After`, in seconds.
    pub(super) retry_after_s: Option<u64>,
}

/// The reason why a script is rejected, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

const ANSWER_KEYS: [&str; 9] =
    ["delayMs", "errors", "hang", "stopReason", "stream", "text", "toolCalls", "usage", "when"];

const STREAM_KEYS: [&str; 5] = ["chunkBytes", "chunkDelayMs", "cutAtByte", "deltaChars", "hangAtByte"];

impl Script {
    /// Parses a script in YAML or JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, ScriptError> {
        if bytes.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError(format!("the script has more than {SCRIPT_BYTES_MAX} bytes")));
        }
        let document = read(bytes, Syntax::Guess).map_err(|found| {
            let place = found.place.map_or_else(String::new, |place| format!("line {}: ", place.line));
            ScriptError(format!("{place}{}", found.message))
        })?;
        let map = map(&document.value, "the script", &["answers", "key"])?;
        let key = map.get("key").map(|key| text(key, "key")).transpose()?;
        let answers = match map.get("answers").map(Value::as_list) {
            Some(Some(answers)) if !answers.is_empty() => answers,
            _ => return Err(ScriptError("`answers` has to be a list of at least one answer".into())),
        };
        let answers = answers.iter().enumerate().map(|(at, value)| answer(value, &format!("answers[{at}]")));
        Ok(Self { answers: answers.collect::<Result<_, _>>()?, key })
    }
}

fn answer(value: &Value, path: &str) -> Result<Scripted, ScriptError> {
    let map = map(value, path, &ANSWER_KEYS)?;
    let at = |key: &str| format!("{path}.{key}");
    let tool_calls = list(map, "toolCalls", path)?
        .iter()
        .enumerate()
        .map(|(number, call)| tool_call(call, number, &format!("{path}.toolCalls[{number}]")))
        .collect::<Result<Vec<_>, _>>()?;
    let errors = list(map, "errors", path)?
        .iter()
        .enumerate()
        .map(|(number, error)| scripted_error(error, &format!("{path}.errors[{number}]")))
        .collect::<Result<Vec<_>, _>>()?;
    let stop_reason = match map.get("stopReason").map(|word| text(word, &at("stopReason"))).transpose()?.as_deref() {
        None if tool_calls.is_empty() => StopReason::End,
        None | Some("tool_calls") => StopReason::ToolCalls,
        Some("end") => StopReason::End,
        Some("max_tokens") => StopReason::MaxTokens,
        Some(other) => {
            let help = "write end, tool_calls or max_tokens";
            return Err(ScriptError(format!("{}: `{other}` is no reason; {help}", at("stopReason"))));
        }
    };
    let hangs = match map.get("hang") {
        None => false,
        Some(Value::Bool(hangs)) => *hangs,
        Some(_) => return Err(ScriptError(format!("{} has to be true or false", at("hang")))),
    };
    let said = map.get("text").map(|said| text(said, &at("text"))).transpose()?;
    if said.is_none() && tool_calls.is_empty() && !hangs {
        return Err(ScriptError(format!("{path} has neither `text` nor `toolCalls`")));
    }
    Ok(Scripted {
        when: map.get("when").map(|when| text(when, &at("when"))).transpose()?,
        text: said.unwrap_or_default(),
        tool_calls,
        stop_reason,
        usage: usage(map.get("usage"), &at("usage"))?,
        delay_ms: whole(map, "delayMs", path, DEV_DELAY_MAX_MS)?.unwrap_or_default(),
        hangs,
        errors,
        stream: stream(map.get("stream"), &at("stream"))?,
    })
}

fn tool_call(value: &Value, number: usize, path: &str) -> Result<ToolCall, ScriptError> {
    let map = map(value, path, &["arguments", "id", "name"])?;
    let Some(name) = map.get("name") else { return Err(ScriptError(format!("{path}.name is missing"))) };
    Ok(ToolCall {
        id: map.get("id").map(|id| text(id, &format!("{path}.id"))).transpose()?.unwrap_or(format!("call_{number}")),
        name: text(name, &format!("{path}.name"))?,
        arguments: map.get("arguments").cloned().unwrap_or_else(|| Value::Map(Map::new())),
    })
}

fn scripted_error(value: &Value, path: &str) -> Result<ScriptedError, ScriptError> {
    let map = map(value, path, &["message", "retryAfterSeconds", "status"])?;
    let status = whole(map, "status", path, 599)?.and_then(|status| u16::try_from(status).ok());
    let Some(status) = status.filter(|status| *status >= 400) else {
        return Err(ScriptError(format!("{path}.status has to be a status from 400 to 599")));
    };
    let message = map.get("message").map(|message| text(message, &format!("{path}.message"))).transpose()?;
    let retry_after_s = whole(map, "retryAfterSeconds", path, 86_400)?;
    Ok(ScriptedError { status, message: message.unwrap_or_else(|| "scripted error".into()), retry_after_s })
}

fn stream(value: Option<&Value>, path: &str) -> Result<ScriptedStream, ScriptError> {
    let Some(value) = value else { return Ok(ScriptedStream::default()) };
    let (map, usual) = (map(value, path, &STREAM_KEYS)?, ScriptedStream::default());
    let bytes = |key: &str| whole(map, key, path, DEV_STREAM_BYTES_MAX);
    Ok(ScriptedStream {
        delta_chars: bytes("deltaChars")?.unwrap_or(usual.delta_chars),
        chunk_bytes: bytes("chunkBytes")?.unwrap_or(usual.chunk_bytes),
        chunk_delay_ms: whole(map, "chunkDelayMs", path, DEV_DELAY_MAX_MS)?.unwrap_or_default(),
        cut_at_byte: bytes("cutAtByte")?,
        hang_at_byte: bytes("hangAtByte")?,
    })
}

fn usage(value: Option<&Value>, path: &str) -> Result<Usage, ScriptError> {
    let Some(value) = value else { return Ok(Usage { input_tokens: 10, output_tokens: 5, cached_input_tokens: 0 }) };
    let map = map(value, path, &["cachedInputTokens", "inputTokens", "outputTokens"])?;
    let tokens = |key: &str| Ok(whole(map, key, path, u64::from(u32::MAX))?.unwrap_or_default());
    Ok(Usage {
        input_tokens: tokens("inputTokens")?,
        output_tokens: tokens("outputTokens")?,
        cached_input_tokens: tokens("cachedInputTokens")?,
    })
}

fn map<'a>(value: &'a Value, path: &str, known: &[&str]) -> Result<&'a Map, ScriptError> {
    let Some(map) = value.as_map() else {
        let keys = known.join(", ");
        return Err(ScriptError(format!("{path} has to be an object with the keys {keys}, and is {}", value.kind())));
    };
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(ScriptError(format!("{path} has the unknown key `{key}`; the keys are {}", known.join(", ")))),
        None => Ok(map),
    }
}

fn list<'a>(map: &'a Map, key: &str, path: &str) -> Result<&'a [Value], ScriptError> {
    match map.get(key) {
        None => Ok(&[]),
        Some(value) => value.as_list().ok_or_else(|| ScriptError(format!("{path}.{key} has to be a list"))),
    }
}

fn text(value: &Value, path: &str) -> Result<String, ScriptError> {
    value.as_text().map(Into::into).ok_or_else(|| ScriptError(format!("{path} is {} and no text", value.kind())))
}

fn whole(map: &Map, key: &str, path: &str, max: u64) -> Result<Option<u64>, ScriptError> {
    match map.get(key).map(|value| value.as_u64().filter(|number| *number <= max)) {
        None => Ok(None),
        Some(Some(number)) => Ok(Some(number)),
        Some(None) => Err(ScriptError(format!("{path}.{key} has to be a whole number up to {max}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_place() {
        let check = |text: &str, expected: &str| {
            let error = Script::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("answers: []", "at least one answer");
        check("answers: [{txt: a}]", "answers[0] has the unknown key `txt`");
        check("answers: [{when: a}]", "answers[0] has neither `text` nor `toolCalls`");
        check("answers: [{text: a}, {toolCalls: [{arguments: {}}]}]", "answers[1].toolCalls[0].name is missing");
        check("answers: [{text: a, errors: [{status: 200}]}]", "answers[0].errors[0].status");
        check("answers: [{text: a, delayMs: -1}]", "answers[0].delayMs");
        check("answers: [{text: a, stream: {chunk: 1}}]", "answers[0].stream has the unknown key `chunk`");
        check("answers: [{text: a, stopReason: tired}]", "`tired` is no reason");
        check("answers: [\n", "line ");
    }
}
