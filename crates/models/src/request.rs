//! The request to a model without the form of a provider, built from the parameters of an attempt.

use mainspring_kernel::{json, value::Value};

use crate::{error::ModelError, tools::ToolDefinition};

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The model as the provider names it.
    pub model: String,
    /// The instructions, apart from the conversation.
    pub instructions: String,
    /// The conversation. It begins with a message of the user.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDefinition>,
    /// The temperature; `None` sends none.
    pub temperature: Option<Value>,
    /// Maximum tokens of the answer.
    pub max_tokens: u64,
    /// The seed of the sampling, where the provider has one.
    pub seed: Option<u64>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A message to the model.
    User(String),
    /// An earlier answer of the model.
    Answer(PastAnswer),
    /// The results of the tool calls of the answer before, in the order of the calls.
    Results(Vec<ToolResult>),
}

/// An earlier answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct PastAnswer {
    /// The text; empty for none.
    pub text: String,
    /// Its tool calls, with the names that providers accept.
    pub calls: Vec<PastCall>,
    /// The provider's own form, with the name of the provider.
    pub raw: Option<Value>,
}

/// A tool call of an earlier answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool in the form of requests.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: Value,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The name of the tool in the form of requests.
    pub name: String,
    /// The result as text.
    pub text: String,
    /// True if the call failed.
    pub is_error: bool,
}

/// Builds the conversation from the parameters of an attempt: `goal`, `context`, and `turns` with earlier answers.
/// `wire_name` translates the name of a tool to that in requests.
pub(crate) fn messages(params: &Value, wire_name: &dyn Fn(&str) -> String) -> Result<Vec<Message>, ModelError> {
    let Some(goal) = params.get("goal").and_then(Value::as_text) else {
        return Err(ModelError::RequestInvalid("`goal` is missing or not text".into()));
    };
    let mut first = goal.to_owned();
    match params.get("context") {
        None | Some(Value::Null) => {}
        Some(Value::Text(context)) => first.push_str(&format!("\n\nContext:\n{context}")),
        Some(context) => first.push_str(&format!("\n\nContext:\n{}", json::compact(context))),
    }
    let mut messages = vec![Message::User(first)];
    for turn in params.get("turns").and_then(Value::as_list).unwrap_or_default() {
        add_turn(&mut messages, turn, wire_name);
    }
    Ok(messages)
}

fn add_turn(messages: &mut Vec<Message>, turn: &Value, wire_name: &dyn Fn(&str) -> String) {
    let answer = turn.get("answer").unwrap_or(&Value::Null);
    let calls = answer.get("toolCalls").and_then(Value::as_list).unwrap_or_default();
    let field = |call: &Value, key: &str| call.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
    let calls: Vec<_> = calls
        .iter()
        .map(|call| PastCall {
            id: field(call, "id"),
            name: wire_name(&field(call, "name")),
            arguments: call.get("arguments").cloned().unwrap_or_default(),
        })
        .collect();
    let results = turn.get("results").and_then(Value::as_list).unwrap_or_default();
    let results: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(at, call)| {
            let (text, is_error) = result_text(results.get(at).unwrap_or(&Value::Null));
            ToolResult { id: call.id.clone(), name: call.name.clone(), text, is_error }
        })
        .collect();
    let text = match answer {
        Value::Text(text) => text.clone(),
        other => other.get("text").and_then(Value::as_text).unwrap_or_default().to_owned(),
    };
    messages.push(Message::Answer(PastAnswer { text, calls, raw: answer.get("raw").cloned() }));
    if !results.is_empty() {
        messages.push(Message::Results(results));
    }
    if let Some(rejected) = turn.get("rejected").and_then(Value::as_text) {
        messages.push(Message::User(rejected.to_owned()));
    }
}

/// Returns the text of a result, and true for a failure. The text blocks of a tool server are joined; other values are
/// sent as JSON.
fn result_text(result: &Value) -> (String, bool) {
    if let Some(error) = result.get("error") {
        let part = |key: &str| error.get(key).and_then(Value::as_text).unwrap_or_default();
        return (format!("{}: {}", part("code"), part("message")), true);
    }
    let output = result.get("output").unwrap_or(&Value::Null);
    let blocks = output.as_list().unwrap_or_default();
    let texts: Option<Vec<&str>> = blocks.iter().map(block_text).collect();
    match (output, texts) {
        (Value::Text(text), _) => (text.clone(), false),
        (_, Some(texts)) if !texts.is_empty() => (texts.join("\n"), false),
        _ => (json::compact(output), false),
    }
}

fn block_text(block: &Value) -> Option<&str> {
    let is_text = block.get("type").and_then(Value::as_text) == Some("text");
    block.get("text").and_then(Value::as_text).filter(|_| is_text)
}
