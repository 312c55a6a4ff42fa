//! The reasons why a model gave no usable answer, as failures of a step.

use mainspring_kernel::{
    failure::{Class, Failure},
    value::Value,
};

use crate::limits::QUOTED_CHARS_MAX;

/// Texts by which providers report a conversation that is too long; they share no code.
const TOO_LONG: [&str; 5] =
    ["prompt is too long", "context_length_exceeded", "context length", "context window", "maximum number of tokens"];

/// A reason why a call of a model has no usable answer. Holds no header and no key.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelError {
    /// No model has the name, or there is no default.
    Unknown(String),
    /// The key of a model cannot be read.
    KeyMissing(String),
    /// The parameters of the step are invalid.
    RequestInvalid(String),
    /// The provider did not accept the key.
    NotAuthorized(String),
    /// The provider rejected the request because there were too many.
    RateLimited {
        /// The message of the provider.
        message: String,
        /// The delay that the provider requests, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The provider is overloaded or has a fault.
    Unavailable {
        /// The message of the provider.
        message: String,
        /// The delay that the provider requests, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The provider rejected the request.
    Rejected(String),
    /// The conversation does not fit into the context window of the model.
    ContextTooLong(String),
    /// The model refused to answer.
    Refused(String),
    /// A filter of the provider blocked the request or the answer.
    Filtered(String),
    /// The answer does not have the form of the provider.
    AnswerInvalid(String),
    /// The answer is larger than the bound.
    AnswerTooLarge(String),
}

impl ModelError {
    /// Returns the failure of a step.
    pub fn to_failure(&self, step: &str) -> Failure {
        let mut details = Value::Null;
        let mut with_delay = |delay_ms: &Option<u64>| {
            if let Some(delay_ms) = delay_ms {
                details = Value::map([("retryAfterMs", (*delay_ms).into())]);
            }
        };
        let (class, code, message) = match self {
            Self::Unknown(why) => (Class::Invalid, "model_unknown", why.clone()),
            Self::KeyMissing(why) => (Class::Invalid, "model_key_missing", why.clone()),
            Self::RequestInvalid(why) => (Class::Invalid, "model_request_invalid", why.clone()),
            Self::NotAuthorized(why) => {
                (Class::Failed, "model_not_authorized", format!("the provider does not accept the key: {why}"))
            }
            Self::RateLimited { message, retry_after_ms } => {
                with_delay(retry_after_ms);
                (Class::RateLimited, "model_rate_limited", format!("the provider limits the rate: {message}"))
            }
            Self::Unavailable { message, retry_after_ms } => {
                with_delay(retry_after_ms);
                (Class::Unavailable, "model_unavailable", format!("the provider has no answer now: {message}"))
            }
            Self::Rejected(why) => {
                (Class::Invalid, "model_request_rejected", format!("the provider rejected the request: {why}"))
            }
            Self::ContextTooLong(why) => (
                Class::Policy,
                "model_context_too_long",
                format!("the conversation does not fit into the model's context: {why}"),
            ),
            Self::Refused(why) => (Class::Policy, "model_refused", format!("the model refused to answer: {why}")),
            Self::Filtered(why) => {
                (Class::Policy, "model_content_filtered", format!("a content filter of the provider intervened: {why}"))
            }
            Self::AnswerInvalid(why) => {
                (Class::Invalid, "model_answer_invalid", format!("the provider's answer cannot be read: {why}"))
            }
            Self::AnswerTooLarge(why) => (Class::Policy, "model_answer_too_large", why.clone()),
        };
        Failure::new(class, code, format!("step `{step}`: {message}")).with_details(details)
    }
}

/// Shortens a provider's text, and removes control characters.
pub(crate) fn quoted(text: &str) -> String {
    let clean = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    clean.take(QUOTED_CHARS_MAX).collect()
}

/// Translates a status with the body of an error.
pub(crate) fn of_status(status: u16, body: &Value, retry_after_ms: Option<u64>) -> ModelError {
    let error = body.get("error").unwrap_or(body);
    let part = |key: &str| error.get(key).and_then(Value::as_text).unwrap_or_default();
    let said = match (part("message"), error) {
        ("", Value::Text(text)) => quoted(text),
        (message, _) => quoted(message),
    };
    let message = if said.is_empty() { format!("status {status}") } else { format!("{said} (status {status})") };
    let code = format!("{} {}", part("code"), part("type"));
    let is_too_long = || TOO_LONG.iter().any(|text| said.to_lowercase().contains(text) || code.contains(text));
    match status {
        401 | 403 => ModelError::NotAuthorized(message),
        429 if code.contains("insufficient_quota") => ModelError::NotAuthorized(message),
        429 => ModelError::RateLimited { message, retry_after_ms },
        408 | 425 | 500..600 => ModelError::Unavailable { message, retry_after_ms },
        413 => ModelError::ContextTooLong(message),
        400 | 422 if is_too_long() => ModelError::ContextTooLong(message),
        400 if code.contains("content_filter") => ModelError::Filtered(message),
        _ => ModelError::Rejected(message),
    }
}
