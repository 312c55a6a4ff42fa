//! The outcome of a step from the result of a tool.

use mainspring_kernel::{
    effect::Outcome,
    failure::{Class, Failure},
    json,
    limits::OUTPUT_BYTES_MAX,
    value::Value,
};
use rmcp::model::{CallToolResult, ContentBlock};

use crate::{
    error::{ToolError, quoted},
    json::from_json,
};

/// Returns the outcome of a completed call: the structured content if there is any, the list of content blocks
/// otherwise. A text block is never read as JSON, since its text may come from anywhere.
///
/// A result with `isError` is a failure with the class `failed`, the code `tool_error`, the server's text as message and
/// the result as details.
pub(crate) fn outcome(server: &str, tool: &str, step: &str, result: &CallToolResult) -> Result<Outcome, ToolError> {
    let invalid = |why: String| ToolError::InvalidAnswer(server.to_owned(), why);
    let blocks = || {
        let blocks = serde_json::to_value(&result.content).map_err(|error| invalid(error.to_string()))?;
        from_json(&blocks).map_err(&invalid)
    };
    let value = match &result.structured_content {
        Some(structured) => from_json(structured).map_err(&invalid)?,
        None => blocks()?,
    };
    let bytes = json::compact(&value).len();
    if result.is_error == Some(true) {
        let text = text_of(&result.content);
        let message = match text.as_str() {
            "" => format!("step `{step}`: the tool `{tool}` of the server `{server}` failed without a text"),
            text => format!("step `{step}`: the tool `{tool}` of the server `{server}` failed: {}", quoted(text)),
        };
        let details = if bytes <= OUTPUT_BYTES_MAX { Value::map([("content", value)]) } else { Value::Null };
        return Ok(Outcome::Failed(Failure::new(Class::Failed, "tool_error", message).with_details(details)));
    }
    match bytes <= OUTPUT_BYTES_MAX {
        true => Ok(Outcome::Done(value)),
        false => Err(invalid(format!("its result has {bytes} bytes, more than {OUTPUT_BYTES_MAX}"))),
    }
}

/// Returns the text blocks of a result, one per line.
fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Reads a result that `rmcp` does not know, such as one with a new kind of content block. Its blocks are kept as they
/// are.
pub(crate) fn unknown_form(server: &str, result: &serde_json::Value) -> Result<Outcome, ToolError> {
    let invalid = |why: String| ToolError::InvalidAnswer(server.to_owned(), why);
    let is_error = result.get("isError").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let value = match (result.get("structuredContent"), result.get("content")) {
        (Some(structured), _) => from_json(structured),
        (None, Some(content)) if content.is_array() => from_json(content),
        _ => Err("it is not the result of a tool".to_owned()),
    };
    let value = value.map_err(&invalid)?;
    let bytes = json::compact(&value).len();
    if bytes > OUTPUT_BYTES_MAX {
        return Err(invalid(format!("its result has {bytes} bytes, more than {OUTPUT_BYTES_MAX}")));
    }
    match is_error {
        false => Ok(Outcome::Done(value)),
        true => {
            let message = format!("a tool of the server `{server}` failed");
            let failure = Failure::new(Class::Failed, "tool_error", message);
            Ok(Outcome::Failed(failure.with_details(Value::map([("content", value)]))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: &str, expected: &str) {
        let result: CallToolResult = serde_json::from_str(result).unwrap();
        let said = match outcome("s", "t", "x", &result) {
            Ok(Outcome::Done(value)) => format!("done {}", json::canonical(&value)),
            Ok(Outcome::Failed(failure)) => format!("failed {} {}", failure.code, failure.message),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("error {error}"),
        };
        assert!(said.contains(expected), "{said} does not contain {expected}");
    }

    #[test]
    fn results_become_outcomes() {
        check(
            r#"{"content": [{"type": "text", "text": "{\"a\": 1}"}]}"#,
            r#"done [{"text":"{\"a\": 1}","type":"text"}]"#,
        );
        check(r#"{"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}"#, r#"done {"a":1}"#);
        check(r#"{"content": [], "structuredContent": null}"#, "done null");
        check(r#"{"content": []}"#, "done []");
        check(r#"{"isError": true, "content": [{"type": "text", "text": "no\u001b[2J"}]}"#, "tool_error step `x`");
        check(r#"{"isError": true, "content": [{"type": "text", "text": "no\u001b[2J"}]}"#, "no\\u{1b}[2J");
        check(r#"{"isError": true, "content": []}"#, "failed without a text");
    }

    #[test]
    fn a_large_result_is_an_error() {
        let large = "x".repeat(OUTPUT_BYTES_MAX + 1);
        check(&format!(r#"{{"content": [{{"type": "text", "text": "{large}"}}]}}"#), "more than 262144");
    }
}
