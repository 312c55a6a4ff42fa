//! What goes wrong, as the caller reads it: `{error, code, details}`, with one table from codes to statuses.

use std::fmt;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use mainspring_engine::{EngineError, load::LoadError};
use mainspring_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json_;
use utoipa::ToSchema;

/// After how many seconds a request that was answered with 503 or 429 may be repeated, unless something better is known: a
/// failover and a queue of requests both take about as long, and executions are counted as often.
const RETRY_AFTER_S: &str = "1";

/// What a caller can branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The request is not what the route takes; `details` says where.
    ValidationError,
    /// The definition does not compile; `details` has every diagnostic.
    InvalidDefinition,
    /// No credential, or none that is known, or one that has expired.
    Unauthorized,
    /// The credential may not do this.
    Forbidden,
    /// There is no such thing, or it is another organisation's.
    NotFound,
    /// The route does not take this method.
    MethodNotAllowed,
    /// The body has not come in time.
    RequestTimeout,
    /// What is asked for does not go with how things stand.
    Conflict,
    /// The organisation has the runtime of workflows turned off.
    WorkflowRuntimeDisabled,
    /// The workflow is disabled: nothing starts it.
    WorkflowDisabled,
    /// The resume token opens no gate that waits: it is wrong, used or expired.
    InvalidResumeToken,
    /// The thing has changed since the version that `If-Match` names.
    PreconditionFailed,
    /// The body is larger than the route takes.
    PayloadTooLarge,
    /// The body is not JSON by its `Content-Type`.
    UnsupportedMediaType,
    /// Too many requests; `Retry-After` says when there is room again.
    RateLimited,
    /// This build cannot do it yet.
    NotAvailable,
    /// A mistake of the server.
    InternalError,
    /// The store or the engine does not answer at the moment.
    Unavailable,
}

/// Every code with its status: the one table.
pub(crate) const STATUSES: [(Code, StatusCode); 18] = [
    (Code::ValidationError, StatusCode::BAD_REQUEST),
    (Code::InvalidDefinition, StatusCode::BAD_REQUEST),
    (Code::Unauthorized, StatusCode::UNAUTHORIZED),
    (Code::Forbidden, StatusCode::FORBIDDEN),
    (Code::NotFound, StatusCode::NOT_FOUND),
    (Code::MethodNotAllowed, StatusCode::METHOD_NOT_ALLOWED),
    (Code::RequestTimeout, StatusCode::REQUEST_TIMEOUT),
    (Code::Conflict, StatusCode::CONFLICT),
    (Code::WorkflowRuntimeDisabled, StatusCode::CONFLICT),
    (Code::WorkflowDisabled, StatusCode::CONFLICT),
    (Code::InvalidResumeToken, StatusCode::CONFLICT),
    (Code::PreconditionFailed, StatusCode::PRECONDITION_FAILED),
    (Code::PayloadTooLarge, StatusCode::PAYLOAD_TOO_LARGE),
    (Code::UnsupportedMediaType, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    (Code::RateLimited, StatusCode::TOO_MANY_REQUESTS),
    (Code::NotAvailable, StatusCode::NOT_IMPLEMENTED),
    (Code::InternalError, StatusCode::INTERNAL_SERVER_ERROR),
    (Code::Unavailable, StatusCode::SERVICE_UNAVAILABLE),
];

impl Code {
    /// Its name in small letters, as `not_found`: a label of metrics.
    pub(crate) fn word(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.as_ref().and_then(Json_::as_str).unwrap_or_default().to_ascii_lowercase()
    }

    /// The status that it is answered with.
    pub fn status(self) -> StatusCode {
        let found = STATUSES.iter().find(|(code, _)| *code == self);
        found.map_or(StatusCode::INTERNAL_SERVER_ERROR, |(_, status)| *status)
    }
}

/// An answer that says what is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// What to branch on.
    pub code: Code,
    /// A sentence: what happened, and what to do.
    pub message: String,
    /// Places and data, if there are any.
    pub details: Json_,
    /// The reason for the log alone: words of the store and of the system, which name addresses, files and what is in them.
    pub reason: Option<String>,
}

/// Marks a response with 500 or 503: why the request was not worked on, for the log.
#[derive(Debug, Clone)]
pub(crate) struct Failed(pub String);

/// The form of a [`Problem`].
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProblemBody {
    /// A sentence: what happened, and what to do.
    pub error: String,
    /// What to branch on.
    pub code: Code,
    /// Places and data; null if there are none.
    #[schema(value_type = Option<Object>)]
    pub details: Json_,
}

/// What a handler answers.
pub type Answer<T> = Result<T, Problem>;

impl Problem {
    /// A problem without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Json_::Null, reason: None }
    }

    /// With details.
    pub fn with(mut self, details: Json_) -> Self {
        self.details = details;
        self
    }

    /// With a reason that goes to the log and not to the caller.
    pub fn because(mut self, reason: impl fmt::Display) -> Self {
        self.reason = Some(reason.to_string());
        self
    }

    /// The message with the reason, for logs and for who has the store in hand.
    pub fn whole(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{} {reason}", self.message),
            None => self.message.clone(),
        }
    }

    /// The mark of a response that says this problem in other words, where the server failed.
    pub(crate) fn failed(&self) -> Option<Failed> {
        matches!(self.code, Code::InternalError | Code::Unavailable).then(|| Failed(self.whole()))
    }

    /// A field of the request that is not what it must be.
    pub fn field(field: &str, message: impl fmt::Display) -> Self {
        Self::new(Code::ValidationError, format!("{field}: {message}")).with(serde_json::json!({ "field": field }))
    }

    /// There is no such thing; the same words whether it is another's or nobody's.
    pub fn not_found(noun: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no such {noun}."))
    }

    /// Another request has changed the same thing at the same moment.
    pub fn raced() -> Self {
        Self::new(Code::Conflict, "Something else has changed this at the same moment. Read it again and repeat.")
    }

    /// It is of another version than the one that the caller has seen.
    pub fn stale() -> Self {
        Self::new(Code::PreconditionFailed, "It has changed since: read it again for its new ETag.")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let is_over_soon = matches!(self.code, Code::Unavailable | Code::RateLimited);
        // Failures are logged at the door, which knows how often it was.
        let failed = self.failed();
        let body = ProblemBody { error: self.message, code: self.code, details: self.details };
        let mut response = (status, Json(body)).into_response();
        failed.map(|failed| response.extensions_mut().insert(failed));
        if is_over_soon {
            // RFC 9110, 10.2.3: clients wait so many seconds in place of a guess.
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        response.extensions_mut().insert(self.code);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (code, message) = match error {
            StoreError::Damaged(_) => {
                (Code::InternalError, "The server cannot read what it has stored. Tell its operator.")
            }
            StoreError::Newer { .. } => {
                (Code::Unavailable, "The store was upgraded, and this node cannot read it. Try again at another node.")
            }
            StoreError::Unavailable(_) => (Code::Unavailable, "The store does not answer. Try again in a moment."),
        };
        Self::new(code, message).because(error)
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Store(error) | EngineError::Load(LoadError::Store(error)) => error.into(),
            EngineError::NoSuchExecution => Self::not_found("execution"),
            EngineError::NoOpenGate(_) => Self::new(Code::InvalidResumeToken, message),
            EngineError::NoSuchStep(_) => Self::field("steps", message),
            EngineError::Quarantined(_)
            | EngineError::NotQuarantined
            | EngineError::NotEnded
            | EngineError::Exists(_) => Self::new(Code::Conflict, message),
            EngineError::Load(_) => {
                let told = "The server cannot read the journal of this execution. Tell its operator.";
                Self::new(Code::InternalError, told).because(message)
            }
            EngineError::Stopped(_) => {
                let told =
                    "The engine of this node has stopped. Try again at another node, or when it was started anew.";
                Self::new(Code::Unavailable, told).because(message)
            }
            EngineError::NotHere | EngineError::Busy => Self::new(Code::Unavailable, message),
            EngineError::TooMany(_) => Self::new(Code::RateLimited, message),
            EngineError::Folder { .. }
            | EngineError::Held { .. }
            | EngineError::Unsealed(_)
            | EngineError::Key { .. }
            | EngineError::OtherKey { .. } => {
                let told = "This node cannot use its files. Try again at another node, or tell its operator.";
                Self::new(Code::Unavailable, told).because(message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_one_status_and_a_name_of_its_own() {
        let names: BTreeSet<String> = STATUSES.iter().map(|(code, _)| serde_json::to_string(code).unwrap()).collect();
        assert_eq!(names.len(), STATUSES.len());
        assert_eq!(serde_json::to_string(&Code::WorkflowRuntimeDisabled).unwrap(), "\"WORKFLOW_RUNTIME_DISABLED\"");
    }

    #[test]
    fn words_of_the_store_and_of_the_system_go_to_the_log_alone() {
        let secret = || "10.0.0.7:5432 /var/lib".to_string();
        let store = [StoreError::Unavailable(secret()), StoreError::Damaged(secret())];
        let path = std::path::PathBuf::from(secret());
        let engine = [
            EngineError::Stopped(secret()),
            EngineError::Load(LoadError::Broken(secret())),
            EngineError::Load(LoadError::Store(StoreError::Unavailable(secret()))),
            EngineError::Folder { path: path.clone(), why: secret() },
            EngineError::Held { path: path.clone(), pid: None },
            EngineError::Key { path, why: secret() },
            EngineError::OtherKey { place: secret() },
        ];
        let all = store.into_iter().map(Problem::from).chain(engine.into_iter().map(Problem::from));
        for problem in all {
            assert!(!problem.message.contains("10.0.0.7") && problem.whole().contains("10.0.0.7"), "{problem:?}");
            let response = problem.into_response();
            assert!(response.extensions().get::<Failed>().is_some_and(|Failed(why)| why.contains("10.0.0.7")));
        }
    }

    /// Also where a journal was to be read.
    #[test]
    fn a_store_that_does_not_answer_is_no_mistake_of_the_server() {
        let silent = StoreError::Unavailable("no".into());
        let (read, broken) = (LoadError::Store(silent.clone()), LoadError::Broken("no".into()));
        for (error, code) in [
            (EngineError::Store(silent), Code::Unavailable),
            (EngineError::Load(read), Code::Unavailable),
            (EngineError::Load(broken), Code::InternalError),
        ] {
            assert_eq!(Problem::from(error).code, code);
        }
    }
}
