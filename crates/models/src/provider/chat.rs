//! Chat Completions of OpenAI, and of the many servers that speak the same format.

use mainspring_kernel::{json, value::Value};

use super::{Call, arguments, id_or, list, number, object, text};
use crate::{
    answer::{Answer, StopReason, ToolCall, Usage},
    error::{ModelError, quoted},
    request::{Message, PastAnswer, Request},
};

/// Builds the request. OpenAI has replaced `max_tokens` by `max_completion_tokens`, which other servers do not know.
pub(super) fn call(request: &Request, is_openai: bool) -> Call {
    let mut messages = Vec::new();
    if !request.instructions.is_empty() {
        messages.push(Value::map([("role", "system".into()), ("content", Value::from(request.instructions.as_str()))]));
    }
    for message in &request.messages {
        match message {
            Message::User(text) => {
                messages.push(Value::map([("role", "user".into()), ("content", Value::from(text.as_str()))]));
            }
            Message::Answer(answer) => messages.push(past(answer)),
            Message::Results(results) => messages.extend(results.iter().map(|result| {
                Value::map([
                    ("role", "tool".into()),
                    ("tool_call_id", result.id.as_str().into()),
                    ("content", result.text.as_str().into()),
                ])
            })),
        }
    }
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            let function = Value::map([
                ("name", tool.name.as_str().into()),
                ("description", tool.description.as_str().into()),
                ("parameters", tool.input_schema.clone()),
            ]);
            Value::map([("type", "function".into()), ("function", function)])
        })
        .collect();
    let tokens_key = if is_openai { "max_completion_tokens" } else { "max_tokens" };
    let body = object([
        ("model", Some(request.model.as_str().into())),
        ("messages", Some(messages.into())),
        ("tools", (!tools.is_empty()).then(|| tools.into())),
        ("temperature", request.temperature.clone()),
        ("seed", request.seed.map(Into::into)),
        (tokens_key, Some(request.max_tokens.into())),
    ]);
    Call { path: "/chat/completions".into(), headers: Vec::new(), body }
}

fn past(answer: &PastAnswer) -> Value {
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .map(|call| {
            let function =
                Value::map([("name", call.name.as_str().into()), ("arguments", json::compact(&call.arguments).into())]);
            Value::map([("id", call.id.as_str().into()), ("type", "function".into()), ("function", function)])
        })
        .collect();
    object([
        ("role", Some("assistant".into())),
        ("content", Some(answer.text.as_str().into())),
        ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
    ])
}

pub(super) fn answer(body: &Value) -> Result<Answer, ModelError> {
    let Some(choice) = list(body, "choices").first() else {
        return Err(ModelError::AnswerInvalid("it has no `choices`".into()));
    };
    let Some(message) = choice.get("message").filter(|message| message.as_map().is_some()) else {
        return Err(ModelError::AnswerInvalid("its choice has no `message`".into()));
    };
    if let Some(refusal) = text(message, "refusal").filter(|refusal| !refusal.is_empty()) {
        return Err(ModelError::Refused(quoted(refusal)));
    }
    let mut answer = Answer {
        text: text(message, "content").unwrap_or_default().into(),
        model: text(body, "model").map(Into::into),
        ..Answer::default()
    };
    for (at, call) in list(message, "tool_calls").iter().enumerate() {
        let Some(function) = call.get("function") else {
            return Err(ModelError::AnswerInvalid(format!("its tool call {at} has no `function`")));
        };
        answer.tool_calls.push(ToolCall {
            id: id_or(text(call, "id"), at),
            name: text(function, "name").unwrap_or_default().into(),
            arguments: arguments(function.get("arguments")),
        });
    }
    answer.stop_reason = match text(choice, "finish_reason") {
        Some("content_filter") => return Err(ModelError::Filtered(quoted(&answer.text))),
        Some("length") => StopReason::MaxTokens,
        // Some servers say `stop` where they ask for tool calls.
        Some("tool_calls" | "function_call" | "stop") if !answer.tool_calls.is_empty() => StopReason::ToolCalls,
        Some("stop" | "tool_calls") => StopReason::End,
        other => {
            return Err(ModelError::AnswerInvalid(format!(
                "its `finish_reason` is {}",
                other.map_or_else(|| "missing".into(), quoted)
            )));
        }
    };
    answer.usage = usage(body.get("usage")).unwrap_or_default();
    Ok(answer)
}

fn usage(usage: Option<&Value>) -> Option<Usage> {
    Some(Usage {
        input_tokens: number(usage, "prompt_tokens")?,
        output_tokens: number(usage, "completion_tokens")?,
        cached_input_tokens: number(usage.and_then(|usage| usage.get("prompt_tokens_details")), "cached_tokens")?,
    })
}
