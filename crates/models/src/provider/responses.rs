//! The Responses API of OpenAI. Nothing is stored at the provider: each request has the whole conversation.

use mainspring_kernel::{json, value::Value};

use super::{Call, Provider, arguments, id_or, instructions, list, number, object, raw, raw_of, text};
use crate::{
    answer::{Answer, StopReason, ToolCall, Usage},
    error::{ModelError, quoted},
    request::{Message, PastAnswer, Request},
};

pub(super) fn call(request: &Request) -> Call {
    let mut input = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(text) => {
                input.push(Value::map([("role", "user".into()), ("content", Value::from(text.as_str()))]));
            }
            Message::Answer(answer) => past(answer, &mut input),
            Message::Results(results) => input.extend(results.iter().map(|result| {
                Value::map([
                    ("type", "function_call_output".into()),
                    ("call_id", result.id.as_str().into()),
                    ("output", result.text.as_str().into()),
                ])
            })),
        }
    }
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            Value::map([
                ("type", "function".into()),
                ("name", tool.name.as_str().into()),
                ("description", tool.description.as_str().into()),
                ("parameters", tool.input_schema.clone()),
                ("strict", false.into()),
            ])
        })
        .collect();
    let body = object([
        ("model", Some(request.model.as_str().into())),
        ("instructions", instructions(request)),
        ("input", Some(input.into())),
        ("tools", (!tools.is_empty()).then(|| tools.into())),
        ("temperature", request.temperature.clone()),
        ("max_output_tokens", Some(request.max_tokens.into())),
        ("store", Some(false.into())),
        ("include", Some(vec![Value::from("reasoning.encrypted_content")].into())),
    ]);
    Call { path: "/responses".into(), headers: Vec::new(), body }
}

fn past(answer: &PastAnswer, input: &mut Vec<Value>) {
    if let Some(items) = raw_of(&answer.raw, Provider::OpenAiResponses).and_then(Value::as_list) {
        input.extend(items.iter().cloned());
        return;
    }
    if !answer.text.is_empty() {
        input.push(Value::map([("role", "assistant".into()), ("content", Value::from(answer.text.as_str()))]));
    }
    input.extend(answer.calls.iter().map(|call| {
        Value::map([
            ("type", "function_call".into()),
            ("call_id", call.id.as_str().into()),
            ("name", call.name.as_str().into()),
            ("arguments", json::compact(&call.arguments).into()),
        ])
    }));
}

pub(super) fn answer(body: &Value) -> Result<Answer, ModelError> {
    let Some(output) = body.get("output").filter(|output| output.as_list().is_some()) else {
        return Err(ModelError::AnswerInvalid("it has no `output`".into()));
    };
    let mut answer = Answer { model: text(body, "model").map(Into::into), ..Answer::default() };
    let mut is_plain = true;
    for item in list(body, "output") {
        match text(item, "type") {
            Some("message") => read_message(item, &mut answer)?,
            Some("function_call") => answer.tool_calls.push(ToolCall {
                id: id_or(text(item, "call_id"), answer.tool_calls.len()),
                name: text(item, "name").unwrap_or_default().into(),
                arguments: arguments(item.get("arguments")),
            }),
            _ => is_plain = false,
        }
    }
    if !is_plain {
        answer.raw = Some(raw(Provider::OpenAiResponses, output));
    }
    let reason = body.get("incomplete_details").and_then(|details| text(details, "reason"));
    answer.stop_reason = match (text(body, "status"), reason) {
        (Some("incomplete"), Some("content_filter")) => return Err(ModelError::Filtered(quoted(&answer.text))),
        (Some("incomplete"), _) => StopReason::MaxTokens,
        (Some("completed"), _) if answer.tool_calls.is_empty() => StopReason::End,
        (Some("completed"), _) => StopReason::ToolCalls,
        (Some("failed"), _) => {
            let why = body.get("error").and_then(|error| text(error, "message")).unwrap_or("no reason is given");
            return Err(ModelError::Unavailable { message: quoted(why), retry_after_ms: None });
        }
        (other, _) => {
            return Err(ModelError::AnswerInvalid(format!(
                "its `status` is {}",
                other.map_or_else(|| "missing".into(), quoted)
            )));
        }
    };
    answer.usage = usage(body.get("usage")).unwrap_or_default();
    Ok(answer)
}

fn usage(usage: Option<&Value>) -> Option<Usage> {
    Some(Usage {
        input_tokens: number(usage, "input_tokens")?,
        output_tokens: number(usage, "output_tokens")?,
        cached_input_tokens: number(usage.and_then(|usage| usage.get("input_tokens_details")), "cached_tokens")?,
    })
}

fn read_message(item: &Value, answer: &mut Answer) -> Result<(), ModelError> {
    for part in list(item, "content") {
        match text(part, "type") {
            Some("refusal") => return Err(ModelError::Refused(quoted(text(part, "refusal").unwrap_or_default()))),
            _ => answer.text.push_str(text(part, "text").unwrap_or_default()),
        }
    }
    Ok(())
}
