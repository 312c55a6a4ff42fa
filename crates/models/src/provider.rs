//! The formats of providers. Each is a pair of functions: from a request to the parameters of an HTTP request, and from
//! the body of a response to an answer.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use mainspring_kernel::value::{Map, Value};

use crate::{
    answer::{Answer, StopReason, Usage},
    error::ModelError,
    request::Request,
};

/// The format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The Messages API of Anthropic.
    Anthropic,
    /// Chat Completions of OpenAI, which Ollama, vLLM and most gateways speak as well.
    OpenAi,
    /// The Responses API of OpenAI.
    OpenAiResponses,
    /// `generateContent` of Google Gemini.
    Gemini,
}

/// An HTTP request in the form of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The path, which is added to the base address.
    pub path: String,
    /// The headers apart from that of the key.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON value that is sent.
    pub body: Value,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses, Self::Gemini];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the provider of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// The address of the provider's own service.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// Returns the header that carries the key.
    pub fn key_header(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Anthropic => ("x-api-key", key.into()),
            Self::OpenAi | Self::OpenAiResponses => ("authorization", format!("Bearer {key}")),
            Self::Gemini => ("x-goog-api-key", key.into()),
        }
    }

    /// Builds the HTTP request.
    pub fn call(self, request: &Request, base_url: &str) -> Call {
        match self {
            Self::Anthropic => anthropic::call(request),
            Self::OpenAi => chat::call(request, base_url == self.base_url()),
            Self::OpenAiResponses => responses::call(request),
            Self::Gemini => gemini::call(request),
        }
    }

    /// Asks for the answer as a stream of events.
    pub fn streamed(self, mut call: Call) -> Call {
        if let (true, Value::Map(body)) = (self != Self::Gemini, &mut call.body) {
            body.insert("stream".into(), true.into());
        }
        match (self, &mut call.body) {
            // Without this option, a stream has no token counts.
            (Self::OpenAi, Value::Map(body)) => {
                body.insert("stream_options".into(), Value::map([("include_usage", true.into())]));
            }
            (Self::Gemini, _) => {
                call.path = call.path.replace(":generateContent", ":streamGenerateContent?alt=sse");
            }
            _ => {}
        }
        // A compressed stream arrives in larger pieces, and could not be bounded while it arrives.
        call.headers.extend([("accept", "text/event-stream".to_owned()), ("accept-encoding", "identity".to_owned())]);
        call
    }

    /// Reads the body of a successful response.
    pub fn answer(self, body: &Value) -> Result<Answer, ModelError> {
        if body.as_map().is_none() {
            return Err(ModelError::AnswerInvalid(format!("its body is {} and not a JSON object", body.kind())));
        }
        let mut answer = match self {
            Self::Anthropic => anthropic::answer(body),
            Self::OpenAi => chat::answer(body),
            Self::OpenAiResponses => responses::answer(body),
            Self::Gemini => gemini::answer(body),
        }?;
        // No request is empty, and neither is the count of an answer that says something. A provider that reports such a number
        // has not counted, and then the call costs what was reserved for it.
        let says_nothing = answer.text.is_empty() && answer.tool_calls.is_empty();
        if answer.usage.input_tokens == 0 || answer.usage.output_tokens == 0 && !says_nothing {
            answer.usage = Usage::default();
        }
        if answer.stop_reason == StopReason::MaxTokens {
            // The arguments of the last call may be cut off, and the calls of one answer belong together.
            (answer.tool_calls, answer.raw) = (Vec::new(), None);
        }
        Ok(answer)
    }
}

/// Returns the provider's own form of an earlier answer, if this provider gave it.
fn raw_of(raw: &Option<Value>, provider: Provider) -> Option<&Value> {
    let raw = raw.as_ref()?;
    let is_own = raw.get("provider").and_then(Value::as_text) == Some(provider.name());
    raw.get("content").filter(|_| is_own)
}

/// Marks the provider's own form of an answer with its name.
fn raw(provider: Provider, content: &Value) -> Value {
    Value::map([("provider", provider.name().into()), ("content", content.clone())])
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_text)
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_list).unwrap_or_default()
}

/// Reads a number of tokens, 0 if it is missing. `None` for a negative number, a fraction, and one that is too large: nothing
/// beside it can be believed either.
fn number(value: Option<&Value>, key: &str) -> Option<u64> {
    match value.and_then(|value| value.get(key)) {
        None | Some(Value::Null) => Some(0),
        Some(number) => number.as_u64(),
    }
}

/// An object of the given entries without the absent ones.
fn object<const N: usize>(entries: [(&str, Option<Value>); N]) -> Value {
    Value::Map(entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map>())
}

/// The arguments of a call, which some providers send as text of JSON. Text that is not JSON stays text.
fn arguments(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Text(text)) if text.trim().is_empty() => Value::Map(Map::new()),
        Some(Value::Text(text)) => {
            mainspring_kernel::json::data(text.as_bytes()).unwrap_or_else(|_| Value::text(text.as_str()))
        }
        Some(Value::Null) | None => Value::Map(Map::new()),
        Some(other) => other.clone(),
    }
}

/// The arguments of an earlier call as an object, which providers require.
fn past_arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Map(_) => arguments.clone(),
        other => Value::map([("value", other.clone())]),
    }
}

fn id_or(id: Option<&str>, at: usize) -> String {
    id.filter(|id| !id.is_empty()).map_or_else(|| format!("call_{at}"), Into::into)
}

fn instructions(request: &Request) -> Option<Value> {
    (!request.instructions.is_empty()).then(|| request.instructions.as_str().into())
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    /// The usage in an answer of each provider to which `input` and `output` were reported.
    fn usages(input: &str, output: &str, text: &str) -> [(u64, u64); 4] {
        let (input, output) = (format!(": {input}"), format!(": {output}"));
        let bodies = [
            format!(
                r#"{{"content": [{{"type": "text", "text": "{text}"}}], "stop_reason": "end_turn",
                    "usage": {{"input_tokens"{input}, "output_tokens"{output}}}}}"#
            ),
            format!(
                r#"{{"choices": [{{"finish_reason": "stop", "message": {{"content": "{text}"}}}}],
                    "usage": {{"prompt_tokens"{input}, "completion_tokens"{output}}}}}"#
            ),
            format!(
                r#"{{"status": "completed", "output": [{{"type": "message", "content": [{{"type": "output_text", "text": "{text}"}}]}}],
                    "usage": {{"input_tokens"{input}, "output_tokens"{output}}}}}"#
            ),
            format!(
                r#"{{"candidates": [{{"finishReason": "STOP", "content": {{"parts": [{{"text": "{text}"}}]}}}}],
                    "usageMetadata": {{"promptTokenCount"{input}, "candidatesTokenCount"{output}}}}}"#
            ),
        ];
        let mut bodies = bodies.iter();
        Provider::ALL.map(|provider| {
            let body = json::value(bodies.next().expect("one for each").as_bytes()).expect("JSON");
            let usage = provider.answer(&body).unwrap_or_else(|error| panic!("{provider:?}: {error:?}")).usage;
            (usage.input_tokens, usage.output_tokens)
        })
    }

    #[test]
    fn a_usage_with_an_impossible_number_is_not_counted() {
        assert_eq!(usages("40", "2", "hi"), [(40, 2); 4]);
        assert_eq!(usages("40.0", "2", "hi"), [(40, 2); 4]);
        assert_eq!(usages("40", "0", ""), [(40, 0); 4]);
        for number in ["-5", "1.5", "1e300", "18446744073709551616", "\"40\"", "true", "null", "0"] {
            assert_eq!(usages(number, "2", "hi"), [(0, 0); 4], "input {number}");
            assert_eq!(usages("40", number, "hi"), [(0, 0); 4], "output {number}");
        }
    }
}
