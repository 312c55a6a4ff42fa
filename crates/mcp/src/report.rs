//! The reports of attempts, and the answers of people as servers get them.

use mainspring_kernel::{
    cbor,
    effect::{Outcome, Report},
    limits::HANDLE_BYTES_MAX,
    value::{Map, Value},
};
use rmcp::model::InputResponses;

use crate::{
    error::ToolError,
    forms::{self, result_of},
    handle::Handle,
};

/// Returns the report of an attempt whose server asks for a form, as `{message, form}`.
pub(crate) fn asked(server: &str, tool: &str, form: Value, handle: &Handle) -> Result<Outcome, ToolError> {
    forms::check(server, &form)?;
    let mut question = Map::from([("server".to_owned(), server.into()), ("tool".to_owned(), tool.into())]);
    if let Value::Map(form) = form {
        question.extend(form);
    }
    let (question, handle) = (Value::Map(question), bounded(server, handle)?);
    Ok(Outcome::Reported(Box::new(Report::Asked { question, handle })))
}

/// Returns the report of an attempt whose call continues.
pub(crate) fn continued(server: &str, handle: &Handle) -> Result<Outcome, ToolError> {
    Ok(Outcome::Reported(Box::new(Report::Continued(bounded(server, handle)?))))
}

/// Returns a handle as journals keep it.
fn bounded(server: &str, handle: &Handle) -> Result<Value, ToolError> {
    let handle = handle.to_value();
    match cbor::byte_count(&handle) <= HANDLE_BYTES_MAX {
        true => Ok(handle),
        false => {
            let why = format!("it describes the rest of the call in more than {HANDLE_BYTES_MAX} bytes");
            Err(ToolError::InvalidAnswer(server.to_owned(), why))
        }
    }
}

/// Returns the answers of people for a server.
pub(crate) fn responses(answers: &Map) -> InputResponses {
    let of = |(key, answer): (&String, &Value)| {
        (key.clone(), serde_json::to_value(result_of(answer)).unwrap_or(serde_json::Value::Null))
    };
    answers.iter().map(of).collect()
}
