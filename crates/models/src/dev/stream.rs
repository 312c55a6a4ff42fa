//! The streams of the providers as a server sends them, made from the body of the response without a stream.

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use crate::provider::{Provider, list};

/// Returns the events of an answer. Texts and arguments are split into pieces of a number of characters.
pub fn stream_of(provider: Provider, body: &Value, piece_chars: usize) -> String {
    let chars = piece_chars.max(1);
    match provider {
        Provider::Anthropic => anthropic(body, chars),
        Provider::OpenAi => chat(body, chars),
        Provider::OpenAiResponses => responses(body, chars),
        Provider::Gemini => gemini(body, chars),
    }
}

fn pieces(text: &str, chars: usize) -> impl Iterator<Item = String> + use<> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters.chunks(chars).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// An event whose name is the type in its data.
fn named(data: &Value) -> String {
    let kind = data.get("type").and_then(Value::as_text).unwrap_or_default();
    format!("event: {kind}\ndata: {}\n\n", json::compact(data))
}

fn unnamed(data: &Value) -> String {
    format!("data: {}\n\n", json::compact(data))
}

/// A copy of an object with other values for some keys.
fn with<const N: usize>(value: &Value, changes: [(&str, Value); N]) -> Value {
    let mut map = value.as_map().cloned().unwrap_or_default();
    map.extend(changes.map(|(key, value)| (key.to_owned(), value)));
    Value::Map(map)
}

fn field(value: &Value, key: &str) -> Value {
    value.get(key).cloned().unwrap_or_default()
}

fn words(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_owned()
}

fn anthropic(body: &Value, chars: usize) -> String {
    let usage = field(body, "usage");
    let start = with(
        body,
        [
            ("content", Value::List(Vec::new())),
            ("stop_reason", Value::Null),
            ("usage", with(&usage, [("output_tokens", 1u32.into())])),
        ],
    );
    let mut out = named(&Value::map([("type", "message_start".into()), ("message", start)]));
    out += &named(&Value::map([("type", Value::from("ping"))]));
    for (at, block) in list(body, "content").iter().enumerate() {
        let of = |kind: &str, key: &str, value: Value| {
            named(&Value::map([("type", kind.into()), ("index", (at as u64).into()), (key, value)]))
        };
        let mut empty = block.clone();
        let mut deltas = Vec::new();
        for (key, kind) in [("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")] {
            if let Some(Value::Text(text)) = block.get(key) {
                empty = with(&empty, [(key, "".into())]);
                // A signature is sent in one piece.
                let chars = if key == "signature" { usize::MAX } else { chars };
                deltas.extend(
                    pieces(text, chars).map(|piece| Value::map([("type", Value::from(kind)), (key, piece.into())])),
                );
            }
        }
        if let Some(input) = block.get("input") {
            empty = with(&empty, [("input", Value::Map(Map::new()))]);
            deltas.extend(
                pieces(&json::compact(input), chars).map(|piece| {
                    Value::map([("type", Value::from("input_json_delta")), ("partial_json", piece.into())])
                }),
            );
        }
        out += &of("content_block_start", "content_block", empty);
        out.extend(deltas.into_iter().map(|delta| of("content_block_delta", "delta", delta)));
        out += &named(&Value::map([("type", "content_block_stop".into()), ("index", (at as u64).into())]));
    }
    let end = Value::map([("stop_reason", field(body, "stop_reason")), ("stop_sequence", Value::Null)]);
    let usage = Value::map([("output_tokens", field(&usage, "output_tokens"))]);
    out += &named(&Value::map([("type", "message_delta".into()), ("delta", end), ("usage", usage)]));
    out + &named(&Value::map([("type", Value::from("message_stop"))]))
}

fn chat(body: &Value, chars: usize) -> String {
    let choice = list(body, "choices").first().cloned().unwrap_or_default();
    let message = field(&choice, "message");
    let chunk = |choices: Vec<Value>, usage: Value| {
        let changes = [("object", "chat.completion.chunk".into()), ("choices", Value::List(choices)), ("usage", usage)];
        unnamed(&with(body, changes))
    };
    let said = |delta: Value, finish: Value| {
        let choice = Value::map([("index", 0u32.into()), ("delta", delta), ("finish_reason", finish)]);
        chunk(vec![choice], Value::Null)
    };
    let role = Value::map([("role", Value::from("assistant")), ("content", "".into())]);
    let mut out = said(role, Value::Null);
    for key in ["content", "refusal"] {
        out.extend(
            pieces(&words(&message, key), chars).map(|piece| said(Value::map([(key, piece.into())]), Value::Null)),
        );
    }
    for (at, call) in list(&message, "tool_calls").iter().enumerate() {
        let at = at as u64;
        let function = field(call, "function");
        let first =
            with(&with(call, [("index", at.into())]), [("function", with(&function, [("arguments", "".into())]))]);
        let delta = |call: Value| Value::map([("tool_calls", Value::List(vec![call]))]);
        out += &said(delta(first), Value::Null);
        out.extend(pieces(&words(&function, "arguments"), chars).map(|piece| {
            let function = Value::map([("arguments", Value::from(piece))]);
            said(delta(Value::map([("index", at.into()), ("function", function)])), Value::Null)
        }));
    }
    out += &said(Value::Map(Map::new()), field(&choice, "finish_reason"));
    out += &chunk(Vec::new(), field(body, "usage"));
    out + "data: [DONE]\n\n"
}

fn responses(body: &Value, chars: usize) -> String {
    let created = with(body, [("status", "in_progress".into()), ("output", Value::List(Vec::new()))]);
    let created = with(&created, [("usage", Value::Null)]);
    let mut out = named(&Value::map([("type", "response.created".into()), ("response", created)]));
    for (at, item) in list(body, "output").iter().enumerate() {
        let of = |kind: &str, key: &str, value: Value| {
            named(&Value::map([("type", kind.into()), ("output_index", (at as u64).into()), (key, value)]))
        };
        let begun = Value::map([("type", field(item, "type")), ("status", "in_progress".into())]);
        out += &of("response.output_item.added", "item", begun);
        for part in list(item, "content") {
            let said = pieces(&words(part, "text"), chars);
            out.extend(said.map(|piece| of("response.output_text.delta", "delta", piece.into())));
        }
        let arguments = pieces(&words(item, "arguments"), chars);
        out.extend(arguments.map(|piece| of("response.function_call_arguments.delta", "delta", piece.into())));
        out += &of("response.output_item.done", "item", item.clone());
    }
    let kind = format!("response.{}", words(body, "status"));
    out + &named(&Value::map([("type", kind.into()), ("response", body.clone())]))
}

fn gemini(body: &Value, chars: usize) -> String {
    let candidate = list(body, "candidates").first().cloned().unwrap_or_default();
    let chunk = |parts: Vec<Value>, finish: Option<Value>| {
        let content = Value::map([("role", "model".into()), ("parts", Value::List(parts))]);
        let mut candidate = Value::map([("content", content), ("index", 0u32.into())]);
        if let Some(finish) = finish {
            candidate = with(&candidate, [("finishReason", finish)]);
        }
        unnamed(&with(body, [("candidates", Value::List(vec![candidate]))]))
    };
    let mut out = String::new();
    for part in candidate.get("content").map(|content| list(content, "parts")).unwrap_or_default() {
        match (part.get("text").and_then(Value::as_text), part.get("thoughtSignature")) {
            (Some(text), None) => {
                out.extend(pieces(text, chars).map(|piece| chunk(vec![with(part, [("text", piece.into())])], None)));
            }
            // A signature belongs to the whole part.
            _ => out += &chunk(vec![part.clone()], None),
        }
    }
    out + &chunk(vec![Value::map([("text", Value::from(""))])], candidate.get("finishReason").cloned())
}
