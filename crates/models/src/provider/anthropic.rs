//! The Messages API of Anthropic, version 2023-06-01.

use mainspring_kernel::value::Value;

use super::{Call, Provider, arguments, id_or, instructions, list, number, object, past_arguments, raw, raw_of, text};
use crate::{
    answer::{Answer, StopReason, ToolCall, Usage},
    error::{ModelError, quoted},
    request::{Message, PastAnswer, Request, ToolResult},
};

pub(super) fn call(request: &Request) -> Call {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            Value::map([
                ("name", tool.name.as_str().into()),
                ("description", tool.description.as_str().into()),
                ("input_schema", tool.input_schema.clone()),
            ])
        })
        .collect();
    let body = object([
        ("model", Some(request.model.as_str().into())),
        ("max_tokens", Some(request.max_tokens.into())),
        ("system", instructions(request)),
        ("messages", Some(request.messages.iter().map(message).collect::<Vec<_>>().into())),
        ("tools", (!tools.is_empty()).then(|| tools.into())),
        ("temperature", request.temperature.clone()),
    ]);
    Call { path: "/v1/messages".into(), headers: vec![("anthropic-version", "2023-06-01".into())], body }
}

fn message(message: &Message) -> Value {
    let (role, content): (&str, Value) = match message {
        Message::User(text) => ("user", text.as_str().into()),
        Message::Answer(answer) => ("assistant", past(answer)),
        Message::Results(results) => ("user", results.iter().map(result).collect::<Vec<_>>().into()),
    };
    Value::map([("role", role.into()), ("content", content)])
}

fn past(answer: &PastAnswer) -> Value {
    if let Some(content) = raw_of(&answer.raw, Provider::Anthropic) {
        return content.clone();
    }
    let mut blocks = Vec::new();
    if !answer.text.is_empty() {
        blocks.push(Value::map([("type", "text".into()), ("text", answer.text.as_str().into())]));
    }
    blocks.extend(answer.calls.iter().map(|call| {
        Value::map([
            ("type", "tool_use".into()),
            ("id", call.id.as_str().into()),
            ("name", call.name.as_str().into()),
            ("input", past_arguments(&call.arguments)),
        ])
    }));
    if blocks.is_empty() {
        // The API rejects a message without content.
        blocks.push(Value::map([("type", "text".into()), ("text", "(no text)".into())]));
    }
    blocks.into()
}

fn result(result: &ToolResult) -> Value {
    object([
        ("type", Some("tool_result".into())),
        ("tool_use_id", Some(result.id.as_str().into())),
        ("content", Some(result.text.as_str().into())),
        ("is_error", result.is_error.then(|| true.into())),
    ])
}

pub(super) fn answer(body: &Value) -> Result<Answer, ModelError> {
    if body.get("content").and_then(Value::as_list).is_none() {
        return Err(ModelError::AnswerInvalid("it has no `content`".into()));
    }
    let mut answer = Answer { model: text(body, "model").map(Into::into), ..Answer::default() };
    let mut is_plain = true;
    for block in list(body, "content") {
        match text(block, "type") {
            Some("text") => answer.text.push_str(text(block, "text").unwrap_or_default()),
            Some("tool_use") => answer.tool_calls.push(ToolCall {
                id: id_or(text(block, "id"), answer.tool_calls.len()),
                name: text(block, "name").unwrap_or_default().into(),
                arguments: arguments(block.get("input")),
            }),
            _ => is_plain = false,
        }
    }
    if !is_plain {
        let content: Vec<Value> = list(body, "content").iter().map(repeatable).collect();
        answer.raw = Some(raw(Provider::Anthropic, &content.into()));
    }
    answer.stop_reason = match text(body, "stop_reason") {
        Some("refusal") => return Err(ModelError::Refused(quoted(&answer.text))),
        Some("model_context_window_exceeded") => {
            return Err(ModelError::ContextTooLong("the answer reached the end of the context window".into()));
        }
        Some("max_tokens") => StopReason::MaxTokens,
        Some("tool_use") => StopReason::ToolCalls,
        Some("end_turn" | "stop_sequence" | "pause_turn") => StopReason::End,
        other => {
            return Err(ModelError::AnswerInvalid(format!(
                "its `stop_reason` is {}",
                other.map_or_else(|| "missing".into(), quoted)
            )));
        }
    };
    answer.usage = usage(body.get("usage")).unwrap_or_default();
    Ok(answer)
}

/// Returns a block as the next request repeats it. Arguments that are not an object are refused there.
fn repeatable(block: &Value) -> Value {
    match (block, block.get("input")) {
        (Value::Map(map), Some(input)) if input.as_map().is_none() => {
            let mut map = map.clone();
            map.insert("input".into(), past_arguments(input));
            Value::Map(map)
        }
        _ => block.clone(),
    }
}

fn usage(usage: Option<&Value>) -> Option<Usage> {
    let cached_input_tokens = number(usage, "cache_read_input_tokens")?;
    Some(Usage {
        input_tokens: number(usage, "input_tokens")?
            .saturating_add(cached_input_tokens)
            .saturating_add(number(usage, "cache_creation_input_tokens")?),
        output_tokens: number(usage, "output_tokens")?,
        cached_input_tokens,
    })
}
