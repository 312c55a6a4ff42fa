//! Errors between this process and a server, and the table from error codes of the API to exit codes and help.

use mainspring_kernel::{
    failure::{Class, Failure},
    value::Value,
};

use super::address::Address;
use crate::error::{CliError, Exit};

/// A failed request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientError {
    /// The kind, for commands that handle it.
    pub(crate) kind: Kind,
    /// The error that is shown if no command handles the kind.
    pub(crate) cli_error: Box<CliError>,
}

/// The kind of a client error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No connection, so nothing was sent.
    Unreachable,
    /// The request was sent and the response was lost, so the result is unknown.
    Broken,
    /// The response does not follow the API.
    InvalidResponse,
    /// The server returned an error with this code.
    Problem(String),
}

/// Error codes of the API with exit code, class and help. Other codes, which a newer server may send, are
/// classified by the HTTP status.
const PROBLEMS: [(&str, Exit, Class, &str); 22] = [
    ("VALIDATION_ERROR", Exit::BadInput, Class::Invalid, ""),
    ("INVALID_DEFINITION", Exit::BadInput, Class::Invalid, ""),
    ("NOT_FOUND", Exit::BadInput, Class::Invalid, ""),
    ("PAYLOAD_TOO_LARGE", Exit::BadInput, Class::Invalid, "pass large data in files"),
    ("REPOSITORY_UNRESOLVED", Exit::BadInput, Class::Invalid, ""),
    (
        "UNAUTHORIZED",
        Exit::Contract,
        Class::Policy,
        "`mainspring login` stores a token; MAINSPRING_TOKEN takes precedence",
    ),
    ("FORBIDDEN", Exit::Contract, Class::Policy, "GET /api/me lists the permissions of the token"),
    ("CONFLICT", Exit::Contract, Class::Policy, ""),
    ("WORKFLOW_RUNTIME_DISABLED", Exit::Contract, Class::Policy, "an owner enables it with PATCH /api/organization"),
    ("WORKFLOW_DISABLED", Exit::Contract, Class::Policy, ""),
    ("TRIGGER_DISABLED", Exit::Contract, Class::Policy, ""),
    ("TRIGGER_OWNER_REMOVED", Exit::Contract, Class::Policy, ""),
    ("INVALID_RESUME_TOKEN", Exit::Contract, Class::Policy, ""),
    ("PRECONDITION_FAILED", Exit::Contract, Class::Policy, ""),
    ("RATE_LIMITED", Exit::Policy, Class::RateLimited, "try again later"),
    ("UNAVAILABLE", Exit::Failed, Class::Unavailable, "try again"),
    ("REQUEST_TIMEOUT", Exit::Failed, Class::Unavailable, "try again"),
    ("NOT_AVAILABLE", Exit::Failed, Class::Unavailable, ""),
    ("MODEL_FAILED", Exit::Failed, Class::Unavailable, ""),
    ("METHOD_NOT_ALLOWED", Exit::Failed, Class::Internal, ""),
    ("UNSUPPORTED_MEDIA_TYPE", Exit::Failed, Class::Internal, ""),
    ("INTERNAL_ERROR", Exit::Failed, Class::Internal, "the server's log has the details"),
];

/// Characters of a server's message that are shown.
const SENTENCE_CHARS_MAX: usize = 2_000;

impl ClientError {
    /// No connection to the address.
    pub(crate) fn unreachable(address: &Address, why: &str) -> Self {
        let message = format!(
            "the server {address} cannot be reached: {why}; check that it runs (`mainspring up`) and that the address is right"
        );
        Self::of(Kind::Unreachable, Exit::Failed, Class::Unavailable, "server_unreachable", message)
    }

    /// The connection broke before the response.
    pub(crate) fn broken(address: &Address, why: &str) -> Self {
        let message = format!(
            "no response from the server {address} after the request was sent: {why}; the result is unknown: check it with `mainspring show ID` or `mainspring list`"
        );
        Self::of(Kind::Broken, Exit::Failed, Class::Unavailable, "server_unreachable", message)
    }

    /// The response does not follow the API.
    pub(crate) fn invalid_response(address: &Address, what: &str) -> Self {
        let message = format!(
            "invalid response from {address}: {what}; check that it is a Mainspring server, not older than this program"
        );
        Self::of(Kind::InvalidResponse, Exit::Failed, Class::Invalid, "server_not_understood", message)
    }

    /// An error response: classified by its code, or by the HTTP status if the code is unknown.
    pub(crate) fn of_response(address: &Address, status: u16, body: Option<&Value>) -> Self {
        let text = |key: &str| body.and_then(|body| body.get(key)).and_then(Value::as_text);
        let (Some(code), Some(sentence)) = (text("code"), text("error")) else {
            return Self::invalid_response(address, &format!("status {status} without an error of the Mainspring API"));
        };
        let known = PROBLEMS.iter().find(|(known, ..)| *known == code);
        let (exit, class, help) = match known {
            Some((_, exit, class, help)) => (*exit, *class, *help),
            None if status < 500 => (Exit::Contract, Class::Policy, ""),
            None => (Exit::Failed, Class::Unavailable, ""),
        };
        // The server's message explains the header, which is of no use on a command line.
        let sentence = if code == "UNAUTHORIZED" { "the token is unknown or has expired" } else { sentence };
        let sentence: String = sentence.chars().take(SENTENCE_CHARS_MAX).collect();
        let sentence = sentence.trim_end().trim_end_matches('.');
        let message = if help.is_empty() { sentence.to_string() } else { format!("{sentence}; {help}") };
        let details = body.and_then(|body| body.get("details")).cloned().unwrap_or_default();
        let failure = Failure::new(class, code.to_ascii_lowercase(), message).with_details(details);
        Self { kind: Kind::Problem(code.to_string()), cli_error: Box::new(CliError { exit, failure }) }
    }

    /// True if the server returned this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        matches!(&self.kind, Kind::Problem(own) if own == code)
    }

    /// True if the error is transient, so that the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.kind, Kind::Unreachable | Kind::Broken) || self.is("UNAVAILABLE") || self.is("RATE_LIMITED")
    }

    /// The same error with another code and message.
    pub(crate) fn with_message(mut self, code: &str, message: impl Into<String>) -> CliError {
        self.cli_error.failure.code = code.into();
        self.cli_error.failure.message = message.into();
        *self.cli_error
    }

    fn of(kind: Kind, exit: Exit, class: Class, code: &str, message: String) -> Self {
        Self { kind, cli_error: Box::new(CliError { exit, failure: Failure::new(class, code, message) }) }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        *error.cli_error
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;

    /// The error codes in the OpenAPI description.
    fn codes() -> Vec<String> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/openapi.json");
        let described = json::read(&std::fs::read(file).unwrap()).unwrap().value;
        let way = ["components", "schemas", "Code"];
        let code = way.iter().try_fold(&described, |value, key| value.get(key)).unwrap();
        let mut found = Vec::new();
        texts(code, &mut found);
        found.retain(|text| text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'));
        found
    }

    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Text(text) => found.push(text.clone()),
            Value::List(list) => list.iter().for_each(|value| texts(value, found)),
            Value::Map(map) => map.values().for_each(|value| texts(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_code_of_the_server_has_an_exit_code() {
        let body =
            |code: &str| Value::map([("code", Value::from(code)), ("error", "No.".into()), ("details", Value::Null)]);
        let address = Address::parse("http://127.0.0.1").unwrap();
        for (code, exit, ..) in PROBLEMS {
            let error = ClientError::of_response(&address, 400, Some(&body(code)));
            assert!(error.is(code) && error.cli_error.exit == exit, "{code}");
        }
        let codes = codes();
        assert_eq!(codes.len(), PROBLEMS.len(), "{codes:?}");
        for code in codes {
            assert!(PROBLEMS.iter().any(|(known, ..)| *known == code), "{code}");
        }
        assert_eq!(ClientError::of_response(&address, 418, Some(&body("NEW"))).cli_error.exit, Exit::Contract);
        assert_eq!(ClientError::of_response(&address, 599, Some(&body("NEW"))).cli_error.exit, Exit::Failed);
        assert_eq!(ClientError::of_response(&address, 500, None).kind, Kind::InvalidResponse);
    }
}
