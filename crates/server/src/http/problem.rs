//! Errors of the API: the body `{error, code, details}`, and the one table from codes to HTTP statuses.

use std::fmt;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use mainspring_engine::{EngineError, journal_loader::LoadError};
use mainspring_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json_;
use utoipa::ToSchema;

/// Seconds in `Retry-After` of 503 and 429, unless a better value is known. Failovers and queues of requests take about
/// as long, and executions are counted in the same interval.
const RETRY_AFTER_S: &str = "1";

/// Machine-readable error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The request is invalid; `details` names the field or the position.
    ValidationError,
    /// The definition does not compile; `details` has all diagnostics.
    InvalidDefinition,
    /// The credential is missing, unknown or expired.
    Unauthorized,
    /// The credential lacks a permission.
    Forbidden,
    /// The resource does not exist, or belongs to another organization.
    NotFound,
    /// The route does not support the method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// The state of the resource does not permit the request.
    Conflict,
    /// The runtime is disabled for the organization.
    WorkflowRuntimeDisabled,
    /// The workflow is disabled and cannot be started.
    WorkflowDisabled,
    /// The trigger is disabled and starts nothing.
    TriggerDisabled,
    /// The owner of the trigger's workflow is no longer a member, so that the trigger starts nothing.
    TriggerOwnerRemoved,
    /// No open gate has this resume token: it is wrong, used or expired.
    InvalidResumeToken,
    /// The resource has changed since the version in `If-Match`.
    PreconditionFailed,
    /// The body is larger than the limit of the route.
    PayloadTooLarge,
    /// The `Content-Type` of the body is not supported.
    UnsupportedMediaType,
    /// The repository of the execution cannot be resolved to a commit.
    RepositoryUnresolved,
    /// Too many requests; `Retry-After` has the wait in seconds.
    RateLimited,
    /// The feature is not part of this build, or is not set up.
    NotAvailable,
    /// A language model failed, or its answers cannot be used.
    ModelFailed,
    /// The server failed; its log has the cause.
    InternalError,
    /// The store or the engine does not respond; retry later.
    Unavailable,
}

/// All codes with their statuses.
pub(crate) const STATUSES: [(Code, StatusCode); 22] = [
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
    (Code::TriggerDisabled, StatusCode::CONFLICT),
    (Code::TriggerOwnerRemoved, StatusCode::CONFLICT),
    (Code::InvalidResumeToken, StatusCode::CONFLICT),
    (Code::PreconditionFailed, StatusCode::PRECONDITION_FAILED),
    (Code::PayloadTooLarge, StatusCode::PAYLOAD_TOO_LARGE),
    (Code::UnsupportedMediaType, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    (Code::RepositoryUnresolved, StatusCode::UNPROCESSABLE_ENTITY),
    (Code::RateLimited, StatusCode::TOO_MANY_REQUESTS),
    (Code::NotAvailable, StatusCode::NOT_IMPLEMENTED),
    (Code::ModelFailed, StatusCode::BAD_GATEWAY),
    (Code::InternalError, StatusCode::INTERNAL_SERVER_ERROR),
    (Code::Unavailable, StatusCode::SERVICE_UNAVAILABLE),
];

impl Code {
    /// The code in lower case, as `not_found`: a label of metrics.
    pub(crate) fn label(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.as_ref().and_then(Json_::as_str).unwrap_or_default().to_ascii_lowercase()
    }

    /// HTTP status of the code.
    pub fn status(self) -> StatusCode {
        let found = STATUSES.iter().find(|(code, _)| *code == self);
        found.map_or(StatusCode::INTERNAL_SERVER_ERROR, |(_, status)| *status)
    }
}

/// An error response.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Machine-readable code.
    pub code: Code,
    /// A sentence: what happened, and what to do.
    pub message: String,
    /// Structured details; null for none.
    pub details: Json_,
    /// Cause, for the log only: messages of the store and the system may contain addresses and data.
    pub reason: Option<String>,
}

/// Response extension of 500 and 503: the cause, for the log.
#[derive(Debug, Clone)]
pub(crate) struct Failed(pub String);

/// An error response.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProblemBody {
    /// Message: what happened, and what to do.
    pub error: String,
    /// Machine-readable code.
    pub code: Code,
    /// Structured details of the error; null if there are none.
    #[schema(value_type = Option<Object>)]
    pub details: Json_,
}

/// Result of handlers.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    /// An error without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Json_::Null, reason: None }
    }

    /// Sets the details.
    pub fn with(mut self, details: Json_) -> Self {
        self.details = details;
        self
    }

    /// Sets the cause, which is logged and not sent.
    pub fn because(mut self, reason: impl fmt::Display) -> Self {
        self.reason = Some(reason.to_string());
        self
    }

    /// The message with the cause, for logs and for local commands.
    pub fn full_message(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{} {reason}", self.message),
            None => self.message.clone(),
        }
    }

    /// The log extension of this problem, for responses that replace its body; `None` unless the server failed.
    pub(crate) fn failed(&self) -> Option<Failed> {
        matches!(self.code, Code::InternalError | Code::Unavailable).then(|| Failed(self.full_message()))
    }

    /// An invalid field of the request.
    pub fn field(field: &str, message: impl fmt::Display) -> Self {
        Self::new(Code::ValidationError, format!("{field}: {message}")).with(serde_json::json!({ "field": field }))
    }

    /// A missing resource. Resources of other organizations give the same response.
    pub fn not_found(kind: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no such {kind}."))
    }

    /// Conflict with a concurrent change of the same resource.
    pub fn concurrent_change() -> Self {
        Self::new(Code::Conflict, "A concurrent request has changed this resource. Read it again and repeat.")
    }

    /// The resource is in another state than the one that the caller has seen.
    pub fn stale() -> Self {
        Self::new(Code::PreconditionFailed, "It has changed since: read it again for its new ETag.")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let is_over_soon = matches!(self.code, Code::Unavailable | Code::RateLimited);
        // The authentication middleware logs failures, because it limits the rate of log lines.
        let failed = self.failed();
        let body = ProblemBody { error: self.message, code: self.code, details: self.details };
        let mut response = (status, Json(body)).into_response();
        failed.map(|failed| response.extensions_mut().insert(failed));
        if is_over_soon {
            // RFC 9110, 10.2.3: clients wait for so many seconds.
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
                (Code::InternalError, "The server cannot read its stored data. Inform its operator.")
            }
            StoreError::Newer { .. } => {
                (Code::Unavailable, "The store was upgraded, and this node cannot read it. Try again at another node.")
            }
            StoreError::Unavailable(_) => (Code::Unavailable, "The store does not answer. Try again in a second."),
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
                let text = "The server cannot read the journal of this execution. Inform its operator.";
                Self::new(Code::InternalError, text).because(message)
            }
            EngineError::Stopped(_) => {
                let text = "The engine of this node has stopped. Try again at another node, or after its restart.";
                Self::new(Code::Unavailable, text).because(message)
            }
            EngineError::NotHere | EngineError::Busy => Self::new(Code::Unavailable, message),
            EngineError::TooMany(_) => Self::new(Code::RateLimited, message),
            EngineError::Folder { .. }
            | EngineError::DirInUse { .. }
            | EngineError::Unsealed(_)
            | EngineError::UnsealedResources(_)
            | EngineError::Key { .. }
            | EngineError::OtherKey { .. } => {
                let text = "This node cannot use its files. Try again at another node, or inform its operator.";
                Self::new(Code::Unavailable, text).because(message)
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
    fn messages_of_the_store_and_the_system_are_only_logged() {
        let secret = || "10.0.0.7:5432 /var/lib".to_string();
        let store = [StoreError::Unavailable(secret()), StoreError::Damaged(secret())];
        let path = std::path::PathBuf::from(secret());
        let engine = [
            EngineError::Stopped(secret()),
            EngineError::Load(LoadError::Broken(secret())),
            EngineError::Load(LoadError::Store(StoreError::Unavailable(secret()))),
            EngineError::Folder { path: path.clone(), why: secret() },
            EngineError::DirInUse { path: path.clone(), pid: None },
            EngineError::Key { path, why: secret() },
            EngineError::OtherKey { place: secret() },
        ];
        let all = store.into_iter().map(Problem::from).chain(engine.into_iter().map(Problem::from));
        for problem in all {
            assert!(
                !problem.message.contains("10.0.0.7") && problem.full_message().contains("10.0.0.7"),
                "{problem:?}"
            );
            let response = problem.into_response();
            assert!(response.extensions().get::<Failed>().is_some_and(|Failed(why)| why.contains("10.0.0.7")));
        }
    }

    /// Reading a journal fails in the same way.
    #[test]
    fn an_unavailable_store_is_not_an_internal_error() {
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
