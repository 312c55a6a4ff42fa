//! The messages of the protocol that are used (JSON-RPC 2.0, and version 1 of the Agent Client Protocol).

use mainspring_kernel::value::Value;

use crate::{error::AgentError, limits::ID_BYTES_MAX};

/// The version of the protocol.
pub(crate) const VERSION: u64 = 1;

/// JSON-RPC: the method does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC: the request has the wrong form, or comes at the wrong time.
pub(crate) const INVALID_REQUEST: i64 = -32600;

/// Agent Client Protocol: the agent needs an account.
pub(crate) const AUTH_REQUIRED: i64 = -32000;

/// A message of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// A request, which gets an answer with its id.
    Request { id: Value, method: String, params: Value },
    /// A message that gets no answer.
    Notification { method: String, params: Value },
    /// The answer to a request, by its number.
    Response { id: u64, result: Result<Value, (i64, String)> },
}

impl Message {
    /// Reads a message.
    pub(crate) fn read(value: Value) -> Result<Self, AgentError> {
        let wrong = |why: &str| AgentError::Protocol(why.to_owned());
        let Value::Map(mut map) = value else { return Err(wrong("it sent a message that is no object")) };
        let id = map.remove("id");
        let params = map.remove("params").unwrap_or_default();
        if let Some(method) = map.remove("method") {
            let Value::Text(method) = method else { return Err(wrong("it sent a method that is no text")) };
            return match id {
                None => Ok(Self::Notification { method, params }),
                Some(id) if is_id(&id) => Ok(Self::Request { id, method, params }),
                Some(_) => Err(wrong("it sent a request whose id is neither a number nor a short text")),
            };
        }
        let id = id.as_ref().and_then(Value::as_u64).ok_or_else(|| wrong("it answered a request that was not sent"))?;
        let result = match (map.remove("result"), map.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => {
                let code = error.get("code").and_then(Value::as_number).and_then(|code| code.as_whole());
                let code = code.and_then(|code| i64::try_from(code).ok()).unwrap_or_default();
                let message = error.get("message").and_then(Value::as_text).unwrap_or("without a message");
                Err((code, message.to_owned()))
            }
            _ => return Err(wrong("it sent an answer without exactly one of a result and an error")),
        };
        Ok(Self::Response { id, result })
    }
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::Number(_) => true,
        Value::Text(text) => text.len() <= ID_BYTES_MAX,
        _ => false,
    }
}

fn message(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::map([("jsonrpc", "2.0".into())].into_iter().chain(fields))
}

/// `{jsonrpc, id, method, params}`, whose answer has the number.
pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    message([("id", id.into()), ("method", method.into()), ("params", params)])
}

/// `{jsonrpc, method, params}`, which gets no answer.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    message([("method", method.into()), ("params", params)])
}

/// `{jsonrpc, id, result}`.
pub(crate) fn response(id: Value, result: Value) -> Value {
    message([("id", id), ("result", result)])
}

/// `{jsonrpc, id, error}`.
pub(crate) fn refusal(id: Value, code: i64, why: &str) -> Value {
    message([("id", id), ("error", Value::map([("code", code.into()), ("message", why.into())]))])
}

/// The parameters of `initialize`. No capability is announced: the agent works in its container by itself, and neither files
/// nor terminals of the client are offered.
pub(crate) fn initialize() -> Value {
    let files = Value::map([("readTextFile", false.into()), ("writeTextFile", false.into())]);
    let capabilities = Value::map([("fs", files), ("terminal", false.into())]);
    let client = Value::map([
        ("name", "mainspring".into()),
        ("title", "Mainspring".into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
    ]);
    Value::map([("protocolVersion", VERSION.into()), ("clientCapabilities", capabilities), ("clientInfo", client)])
}

/// The parameters of `session/new`, and with an id those of `session/load`.
pub(crate) fn session(cwd: &str, id: Option<&str>) -> Value {
    let fields = [("cwd", Value::from(cwd)), ("mcpServers", Value::List(Vec::new()))];
    Value::map(fields.into_iter().chain(id.map(|id| ("sessionId", id.into()))))
}

/// The parameters of `session/prompt`.
pub(crate) fn prompt(session: &str, texts: &[String]) -> Value {
    let block = |text: &String| Value::map([("type", "text".into()), ("text", text.as_str().into())]);
    let blocks: Vec<Value> = texts.iter().map(block).collect();
    Value::map([("sessionId", session.into()), ("prompt", blocks.into())])
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    #[test]
    fn messages_are_read_or_refused() {
        let check = |text: &str, expected: &str| {
            let read = Message::read(json::value(text.as_bytes()).unwrap());
            let said = format!("{read:?}");
            assert!(said.contains(expected), "{text}: {said}");
        };
        check(r#"{"id": 1, "method": "a"}"#, "Request");
        check(r#"{"id": "x", "method": "a"}"#, "Request");
        check(r#"{"method": "a"}"#, "Notification");
        check(r#"{"id": 1, "result": null}"#, "Response");
        check(r#"{"id": 1, "error": {"code": -32000, "message": "m"}}"#, "-32000");
        check(r#"{"id": [1], "method": "a"}"#, "whose id");
        check(r#"{"id": "1", "result": 1}"#, "not sent");
        check(r#"{"id": 1, "result": 1, "error": {}}"#, "exactly one");
        check(r#"{"id": 1}"#, "exactly one");
        check(r#"{"method": 1}"#, "no text");
        check("[]", "no object");
        check("{}", "not sent");
    }
}
