//! Failures: a code for programs, a class for retry policies, and a message for people.

use alloc::string::String;

use crate::value::Value;

/// Kind of a failure. Failures of the first four classes can pass, and are retried unless a policy says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A temporary fault, such as a broken connection or an HTTP 5xx response.
    Transient,
    /// The service rejected the request because there were too many.
    RateLimited,
    /// No result within the timeout.
    Timeout,
    /// The executor or service is temporarily not available.
    Unavailable,
    /// The effect ran and reported a failure.
    Failed,
    /// An input or a result has the wrong form.
    Invalid,
    /// A limit or a policy forbids it.
    Policy,
    /// A person denied it.
    Denied,
    /// It was canceled.
    Cancelled,
    /// The same inputs gave a different result than before.
    Nondeterminism,
    /// A bug in the engine.
    Internal,
}

impl Class {
    /// All classes. Frames store a class as its index here, so the order is fixed.
    pub const ALL: [Self; 11] = [
        Self::Transient,
        Self::RateLimited,
        Self::Timeout,
        Self::Unavailable,
        Self::Failed,
        Self::Invalid,
        Self::Policy,
        Self::Denied,
        Self::Cancelled,
        Self::Nondeterminism,
        Self::Internal,
    ];

    /// The name in definitions, journals and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimited => "rate_limited",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::Policy => "policy",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Nondeterminism => "nondeterminism",
            Self::Internal => "internal",
        }
    }

    /// Returns the class of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// True if a retry may succeed.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Transient | Self::RateLimited | Self::Timeout | Self::Unavailable)
    }
}

/// A failure: `{code, class, message, details}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Stable identifier for programs, such as `bash_exit_code:3`. It contains no secrets and no user data, because
    /// codes are never erased.
    pub code: String,
    /// Class, used by retry policies.
    pub class: Class,
    /// Message for people: the problem, the step, and the remedy.
    pub message: String,
    /// Further data, such as the output up to the failure; null if there is none.
    pub details: Value,
}

impl Failure {
    /// Creates a failure without details.
    pub fn new(class: Class, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), class, message: message.into(), details: Value::Null }
    }

    /// The error of a cancelled execution. A reason of one word is its code; any other is the message.
    pub fn of_cancel(reason: &str) -> Self {
        match crate::plan::is_code(reason) {
            true => Self::new(Class::Cancelled, reason, alloc::format!("the execution was cancelled: {reason}")),
            false => Self::new(Class::Cancelled, "execution_cancelled", reason),
        }
    }

    /// Replaces the details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// Returns `{code, class, message, details}` as a value; without `details` if they are null.
    pub fn to_value(&self) -> Value {
        let mut map = crate::value::Map::new();
        map.insert("code".into(), self.code.as_str().into());
        map.insert("class".into(), self.class.name().into());
        map.insert("message".into(), self.message.as_str().into());
        if self.details != Value::Null {
            map.insert("details".into(), self.details.clone());
        }
        Value::Map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_one_word_is_the_code_of_a_cancel() {
        let (word, sentence) = (Failure::of_cancel("user_cancelled"), Failure::of_cancel("a newer release is out"));
        assert_eq!((&*word.code, &*word.message), ("user_cancelled", "the execution was cancelled: user_cancelled"));
        assert_eq!((&*sentence.code, &*sentence.message), ("execution_cancelled", "a newer release is out"));
    }
}
