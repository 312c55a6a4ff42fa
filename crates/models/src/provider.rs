//! The formats of providers. Each is a pair of functions: from a request to the parameters of an HTTP request, and from
//! the body of a response to an answer.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use mainspring_kernel::value::{Map, Value};

use crate::{
    answer::{Answer, StopReason},
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

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_list).unwrap_or_default()
}

fn number(value: Option<&Value>, key: &str) -> u64 {
    value.and_then(|value| value.get(key)).and_then(Value::as_u64).unwrap_or_default()
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
