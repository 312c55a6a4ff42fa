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

/// Builds the conversation from the parameters of an attempt: `goal`, `context`, `turns` with earlier answers, `messages`
/// that were read before the first of them, and `past` with the parts of other agents. `wire_name` translates the name of a
/// tool to that in requests.
pub(crate) fn messages(params: &Value, wire_name: &dyn Fn(&str) -> String) -> Result<Vec<Message>, ModelError> {
    let list = |key: &str| params.get(key).and_then(Value::as_list).unwrap_or_default();
    // Providers refuse tool calls in requests that describe no tools.
    let has_tools = !list("tools").is_empty();
    let mut messages = Vec::new();
    for part in list("past") {
        add_part(&mut messages, part, has_tools, wire_name)?;
    }
    add_part(&mut messages, params, true, wire_name)?;
    Ok(messages)
}

/// Adds the messages of one agent.
fn add_part(
    messages: &mut Vec<Message>,
    part: &Value,
    has_tools: bool,
    wire_name: &dyn Fn(&str) -> String,
) -> Result<(), ModelError> {
    let Some(goal) = part.get("goal").and_then(Value::as_text) else {
        return Err(ModelError::RequestInvalid("`goal` is missing or not text".into()));
    };
    let mut first = goal.to_owned();
    match part.get("context") {
        None | Some(Value::Null) => {}
        Some(Value::Text(context)) => first.push_str(&format!("\n\nContext:\n{context}")),
        Some(context) => first.push_str(&format!("\n\nContext:\n{}", json::compact(context))),
    }
    add_user(messages, &first);
    add_user_messages(messages, part);
    for turn in part.get("turns").and_then(Value::as_list).unwrap_or_default() {
        add_turn(messages, turn, has_tools, wire_name);
    }
    Ok(())
}

/// Adds a message of the user. Providers expect user and model to alternate.
fn add_user(messages: &mut Vec<Message>, text: &str) {
    match messages.last_mut() {
        Some(Message::User(last)) => {
            last.push_str("\n\n");
            last.push_str(text);
        }
        _ => messages.push(Message::User(text.to_owned())),
    }
}

fn add_user_messages(messages: &mut Vec<Message>, part: &Value) {
    let read = part.get("messages").and_then(Value::as_list).unwrap_or_default();
    read.iter().filter_map(Value::as_text).for_each(|text| add_user(messages, text));
}

fn add_turn(messages: &mut Vec<Message>, turn: &Value, has_tools: bool, wire_name: &dyn Fn(&str) -> String) {
    let answer = turn.get("answer").unwrap_or(&Value::Null);
    if answer.get("stopReason").and_then(Value::as_text) == Some("interrupted") {
        // A message has interrupted the call, so there is no answer.
        return add_user_messages(messages, turn);
    }
    let calls = answer.get("toolCalls").and_then(Value::as_list).unwrap_or_default();
    let field = |call: &Value, key: &str| call.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
    let calls: Vec<_> = calls
        .iter()
        .filter(|_| has_tools)
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
    let raw = answer.get("raw").filter(|_| has_tools).cloned();
    if has_tools || !text.is_empty() {
        messages.push(Message::Answer(PastAnswer { text, calls, raw }));
    }
    if !results.is_empty() {
        messages.push(Message::Results(results));
    }
    if let Some(rejected) = turn.get("rejected").and_then(Value::as_text) {
        add_user(messages, rejected);
    }
    add_user_messages(messages, turn);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(params: &str) -> String {
        let params = json::value(params.as_bytes()).expect("JSON");
        let messages = messages(&params, &|name| name.replace('.', "_")).expect("a conversation");
        let words = messages.iter().map(|message| match message {
            Message::User(text) => format!("user {}", text.replace('\n', "|")),
            Message::Answer(answer) => {
                let raw = if answer.raw.is_some() { " raw" } else { "" };
                format!("model {} calls {}{raw}", answer.text, answer.calls.len())
            }
            Message::Results(results) => format!("results {}", results.len()),
        });
        words.collect::<Vec<_>>().join("; ")
    }

    const CALL: &str = r#"{"answer": {"text": "look", "raw": {"p": 1}, "toolCalls": [{"id": "a", "name": "s.get", "arguments": {}}]},
        "results": [{"output": 1}], "messages": ["one", "two"]}"#;

    #[test]
    fn messages_keep_their_positions() {
        let turns = format!(r#"[{CALL}, {{"answer": {{"text": "done"}}, "rejected": "no", "messages": ["three"]}}]"#);
        assert_eq!(
            picture(&format!(r#"{{"goal": "g", "messages": ["zero"], "tools": ["s.*"], "turns": {turns}}}"#)),
            "user g||zero; model look calls 1 raw; results 1; user one||two; model done calls 0; user no||three"
        );
    }

    /// Providers refuse an answer without content, and expect the user and the model to alternate.
    #[test]
    fn an_interrupted_call_leaves_no_answer() {
        let turns = r#"[{"answer": {"text": "", "toolCalls": [], "stopReason": "interrupted"}, "results": [], "messages": ["stop"]}]"#;
        assert_eq!(picture(&format!(r#"{{"goal": "g", "turns": {turns}}}"#)), "user g||stop");
    }

    #[test]
    fn the_parts_of_other_agents_come_first() {
        let past = format!(
            r#"[{{"goal": "first", "context": "c", "messages": ["m"], "turns": [{CALL}, {{"answer": {{"text": "done"}}}}]}}]"#
        );
        let with =
            |tools: &str| picture(&format!(r#"{{"goal": "second", "tools": [{tools}], "past": {past}, "turns": []}}"#));
        assert_eq!(
            with(r#""s.get""#),
            "user first||Context:|c||m; model look calls 1 raw; results 1; user one||two; model done calls 0; user second"
        );
        // Providers refuse tool calls in requests without tools.
        assert_eq!(
            with(""),
            "user first||Context:|c||m; model look calls 0; user one||two; model done calls 0; user second"
        );
    }
}
