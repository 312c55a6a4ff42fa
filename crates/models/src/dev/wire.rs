//! The formats of the providers as a server sees them.

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::script::Scripted;
use crate::{answer::StopReason, provider::Provider, tools::wire_name};

/// The parts of a request that a script depends on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Incoming {
    pub(super) model: String,
    /// The number of answers in the conversation.
    pub(super) answers_before: usize,
    /// The text of the last message.
    pub(super) last_message: String,
    /// True if the answer is asked for as a stream.
    pub(super) streams: bool,
}

/// The end of the path of a stream of Gemini.
const GEMINI_STREAM: &str = ":streamGenerateContent";

/// Returns the format of a path.
pub(super) fn provider_of(path: &str) -> Option<Provider> {
    match path {
        _ if path.ends_with("/v1/messages") => Some(Provider::Anthropic),
        _ if path.ends_with("/chat/completions") => Some(Provider::OpenAi),
        _ if path.ends_with("/responses") => Some(Provider::OpenAiResponses),
        _ if path.ends_with(":generateContent") || path.ends_with(GEMINI_STREAM) => Some(Provider::Gemini),
        _ => None,
    }
}

/// Reads a request. The error is a sentence.
pub(super) fn read(provider: Provider, path: &str, body: &Value) -> Result<Incoming, String> {
    let key = match provider {
        Provider::Anthropic | Provider::OpenAi => "messages",
        Provider::OpenAiResponses => "input",
        Provider::Gemini => "contents",
    };
    let messages = body.get(key).and_then(Value::as_list).filter(|messages| !messages.is_empty());
    let Some(messages) = messages else { return Err(format!("`{key}` has to be a list of at least one message")) };
    let model = match provider {
        Provider::Gemini => path
            .rsplit_once('/')
            .and_then(|(_, last)| last.strip_suffix(":generateContent").or_else(|| last.strip_suffix(GEMINI_STREAM))),
        _ => body.get("model").and_then(Value::as_text),
    };
    let Some(model) = model else { return Err("`model` is missing".into()) };
    if provider == Provider::Anthropic && body.get("max_tokens").and_then(Value::as_u64).is_none() {
        return Err("`max_tokens` is missing".into());
    }
    let is_answer: Vec<bool> = messages.iter().map(|message| is_answer(provider, message)).collect();
    // An answer of the Responses API is a run of items.
    let first_of_run = |at: &usize| is_answer[*at] && (*at == 0 || !is_answer[*at - 1]);
    let answers_before = (0..messages.len()).filter(first_of_run).count();
    let last_message = messages.last().map(text_of).unwrap_or_default();
    let streams = path.ends_with(GEMINI_STREAM) || body.get("stream").and_then(Value::as_bool) == Some(true);
    Ok(Incoming { model: model.into(), answers_before, last_message, streams })
}

fn is_answer(provider: Provider, message: &Value) -> bool {
    let word = |key: &str| message.get(key).and_then(Value::as_text).unwrap_or_default();
    match provider {
        Provider::Gemini => word("role") == "model",
        Provider::OpenAiResponses => {
            word("role") == "assistant" || matches!(word("type"), "function_call" | "reasoning")
        }
        Provider::Anthropic | Provider::OpenAi => word("role") == "assistant",
    }
}

/// All texts of a message, at any depth.
fn text_of(message: &Value) -> String {
    match message {
        Value::Text(text) => text.clone(),
        Value::List(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Map(map) => {
            let content = ["content", "parts", "text", "output", "functionResponse", "response", "error"];
            content.iter().filter_map(|key| map.get(*key)).map(text_of).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Builds the body of a response.
pub(super) fn answer(provider: Provider, model: &str, id: u64, answer: &Scripted) -> Value {
    match provider {
        Provider::Anthropic => anthropic(model, id, answer),
        Provider::OpenAi => chat(model, id, answer),
        Provider::OpenAiResponses => responses(model, id, answer),
        Provider::Gemini => gemini(model, answer),
    }
}

/// Builds the body of an error response.
pub(super) fn error(provider: Provider, status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500..600 => "api_error",
        _ => "invalid_request_error",
    };
    let error = Value::map([("type", kind.into()), ("message", message.into()), ("code", u32::from(status).into())]);
    match provider {
        Provider::Anthropic => Value::map([("type", "error".into()), ("error", error)]),
        _ => Value::map([("error", error)]),
    }
}

fn anthropic(model: &str, id: u64, answer: &Scripted) -> Value {
    let mut content = Vec::new();
    if !answer.text.is_empty() {
        content.push(Value::map([("type", "text".into()), ("text", answer.text.as_str().into())]));
    }
    content.extend(answer.tool_calls.iter().map(|call| {
        Value::map([
            ("type", "tool_use".into()),
            ("id", call.id.as_str().into()),
            ("name", wire_name(&call.name).into()),
            ("input", call.arguments.clone()),
        ])
    }));
    let stop = match answer.stop_reason {
        StopReason::End => "end_turn",
        StopReason::ToolCalls => "tool_use",
        StopReason::MaxTokens => "max_tokens",
    };
    let usage = Value::map([
        (
            "input_tokens",
            (answer.usage.input_tokens - answer.usage.cached_input_tokens.min(answer.usage.input_tokens)).into(),
        ),
        ("cache_read_input_tokens", answer.usage.cached_input_tokens.into()),
        ("output_tokens", answer.usage.output_tokens.into()),
    ]);
    Value::map([
        ("id", format!("msg_{id}").into()),
        ("type", "message".into()),
        ("role", "assistant".into()),
        ("model", model.into()),
        ("content", content.into()),
        ("stop_reason", stop.into()),
        ("usage", usage),
    ])
}

fn chat(model: &str, id: u64, answer: &Scripted) -> Value {
    let calls = answer.tool_calls.iter().map(|call| {
        let function =
            Value::map([("name", wire_name(&call.name).into()), ("arguments", json::compact(&call.arguments).into())]);
        Value::map([("id", call.id.as_str().into()), ("type", "function".into()), ("function", function)])
    });
    let calls: Vec<Value> = calls.collect();
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), answer.text.as_str().into());
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    let finish = match answer.stop_reason {
        StopReason::End => "stop",
        StopReason::ToolCalls => "tool_calls",
        StopReason::MaxTokens => "length",
    };
    let choice = Value::map([("index", 0u32.into()), ("message", message.into()), ("finish_reason", finish.into())]);
    let details = Value::map([("cached_tokens", answer.usage.cached_input_tokens.into())]);
    let usage = Value::map([
        ("prompt_tokens", answer.usage.input_tokens.into()),
        ("completion_tokens", answer.usage.output_tokens.into()),
        ("prompt_tokens_details", details),
    ]);
    Value::map([
        ("id", format!("chatcmpl-{id}").into()),
        ("object", "chat.completion".into()),
        ("model", model.into()),
        ("choices", vec![choice].into()),
        ("usage", usage),
    ])
}

fn responses(model: &str, id: u64, answer: &Scripted) -> Value {
    let mut output = Vec::new();
    if !answer.text.is_empty() {
        let part = Value::map([("type", "output_text".into()), ("text", answer.text.as_str().into())]);
        output.push(Value::map([
            ("type", "message".into()),
            ("role", "assistant".into()),
            ("content", vec![part].into()),
        ]));
    }
    output.extend(answer.tool_calls.iter().map(|call| {
        Value::map([
            ("type", "function_call".into()),
            ("call_id", call.id.as_str().into()),
            ("name", wire_name(&call.name).into()),
            ("arguments", json::compact(&call.arguments).into()),
        ])
    }));
    let is_cut = answer.stop_reason == StopReason::MaxTokens;
    let details = Value::map([("cached_tokens", answer.usage.cached_input_tokens.into())]);
    let usage = Value::map([
        ("input_tokens", answer.usage.input_tokens.into()),
        ("output_tokens", answer.usage.output_tokens.into()),
        ("input_tokens_details", details),
    ]);
    Value::map([
        ("id", format!("resp_{id}").into()),
        ("object", "response".into()),
        ("model", model.into()),
        ("status", if is_cut { "incomplete" } else { "completed" }.into()),
        (
            "incomplete_details",
            if is_cut { Value::map([("reason", Value::from("max_output_tokens"))]) } else { Value::Null },
        ),
        ("output", output.into()),
        ("usage", usage),
    ])
}

fn gemini(model: &str, answer: &Scripted) -> Value {
    let mut parts = Vec::new();
    if !answer.text.is_empty() {
        parts.push(Value::map([("text", Value::from(answer.text.as_str()))]));
    }
    parts.extend(answer.tool_calls.iter().map(|call| {
        let function = Value::map([("name", wire_name(&call.name).into()), ("args", call.arguments.clone())]);
        Value::map([("functionCall", function)])
    }));
    let finish = if answer.stop_reason == StopReason::MaxTokens { "MAX_TOKENS" } else { "STOP" };
    let content = Value::map([("role", "model".into()), ("parts", parts.into())]);
    let candidate = Value::map([("content", content), ("finishReason", finish.into())]);
    let usage = Value::map([
        ("promptTokenCount", answer.usage.input_tokens.into()),
        ("candidatesTokenCount", answer.usage.output_tokens.into()),
        ("cachedContentTokenCount", answer.usage.cached_input_tokens.into()),
    ]);
    Value::map([("candidates", vec![candidate].into()), ("usageMetadata", usage), ("modelVersion", model.into())])
}
