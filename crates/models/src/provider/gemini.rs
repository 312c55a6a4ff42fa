//! `generateContent` of Google Gemini, version v1beta.

use mainspring_kernel::value::Value;

use super::{Call, Provider, arguments, id_or, list, number, object, past_arguments, raw, raw_of, text};
use crate::{
    answer::{Answer, StopReason, ToolCall, Usage},
    error::{ModelError, quoted},
    request::{Message, PastAnswer, Request, ToolResult},
};

pub(super) fn call(request: &Request) -> Call {
    let text_parts = |text: &str| Value::from(vec![Value::map([("text", Value::from(text))])]);
    let contents: Vec<Value> = request
        .messages
        .iter()
        .map(|message| {
            let (role, parts) = match message {
                Message::User(text) => ("user", text_parts(text)),
                Message::Answer(answer) => ("model", past(answer)),
                Message::Results(results) => ("user", results.iter().map(result).collect::<Vec<_>>().into()),
            };
            Value::map([("role", role.into()), ("parts", parts)])
        })
        .collect();
    let functions: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            Value::map([
                ("name", tool.name.as_str().into()),
                ("description", tool.description.as_str().into()),
                ("parametersJsonSchema", tool.input_schema.clone()),
            ])
        })
        .collect();
    let tools = Value::from(vec![Value::map([("functionDeclarations", Value::from(functions))])]);
    let generation = object([
        ("temperature", request.temperature.clone()),
        ("maxOutputTokens", Some(request.max_tokens.into())),
        ("seed", request.seed.map(Into::into)),
    ]);
    let instructions = Value::map([("parts", text_parts(&request.instructions))]);
    let body = object([
        ("systemInstruction", (!request.instructions.is_empty()).then_some(instructions)),
        ("contents", Some(contents.into())),
        ("tools", (!request.tools.is_empty()).then_some(tools)),
        ("generationConfig", Some(generation)),
    ]);
    Call { path: format!("/v1beta/models/{}:generateContent", request.model), headers: Vec::new(), body }
}

fn past(answer: &PastAnswer) -> Value {
    if let Some(parts) = raw_of(&answer.raw, Provider::Gemini) {
        return parts.clone();
    }
    let mut parts = Vec::new();
    if !answer.text.is_empty() || answer.calls.is_empty() {
        parts.push(Value::map([("text", Value::from(answer.text.as_str()))]));
    }
    parts.extend(answer.calls.iter().map(|call| {
        let function = Value::map([("name", call.name.as_str().into()), ("args", past_arguments(&call.arguments))]);
        Value::map([("functionCall", function)])
    }));
    parts.into()
}

fn result(result: &ToolResult) -> Value {
    let key = if result.is_error { "error" } else { "output" };
    let response = Value::map([(key, Value::from(result.text.as_str()))]);
    let function = Value::map([("name", result.name.as_str().into()), ("response", response)]);
    Value::map([("functionResponse", function)])
}

pub(super) fn answer(body: &Value) -> Result<Answer, ModelError> {
    if let Some(reason) = body.get("promptFeedback").and_then(|feedback| text(feedback, "blockReason")) {
        return Err(ModelError::Filtered(format!("the request was blocked: {}", quoted(reason))));
    }
    let Some(candidate) = list(body, "candidates").first() else {
        return Err(ModelError::AnswerInvalid("it has no `candidates`".into()));
    };
    let mut answer = Answer { model: text(body, "modelVersion").map(Into::into), ..Answer::default() };
    let content = candidate.get("content").unwrap_or(&Value::Null);
    let mut is_plain = true;
    for part in list(content, "parts") {
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        is_plain &= !is_thought && part.get("thoughtSignature").is_none();
        if let Some(function) = part.get("functionCall") {
            answer.tool_calls.push(ToolCall {
                id: id_or(text(function, "id"), answer.tool_calls.len()),
                name: text(function, "name").unwrap_or_default().into(),
                arguments: arguments(function.get("args")),
            });
        } else if !is_thought {
            answer.text.push_str(text(part, "text").unwrap_or_default());
        }
    }
    if let (false, Some(parts)) = (is_plain, content.get("parts")) {
        answer.raw = Some(raw(Provider::Gemini, parts));
    }
    answer.stop_reason = match text(candidate, "finishReason") {
        Some("STOP") if answer.tool_calls.is_empty() => StopReason::End,
        Some("STOP") => StopReason::ToolCalls,
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        Some(reason @ ("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII")) => {
            return Err(ModelError::Filtered(reason.into()));
        }
        other => {
            return Err(ModelError::AnswerInvalid(format!(
                "its `finishReason` is {}",
                other.map_or_else(|| "missing".into(), quoted)
            )));
        }
    };
    answer.usage = usage(body.get("usageMetadata")).unwrap_or_default();
    Ok(answer)
}

fn usage(usage: Option<&Value>) -> Option<Usage> {
    let thoughts = number(usage, "thoughtsTokenCount")?;
    Some(Usage {
        input_tokens: number(usage, "promptTokenCount")?,
        output_tokens: number(usage, "candidatesTokenCount")?.saturating_add(thoughts),
        cached_input_tokens: number(usage, "cachedContentTokenCount")?,
    })
}
