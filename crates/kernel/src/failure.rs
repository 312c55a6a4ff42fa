//! What went wrong, in a form that policies and people can act on.

use alloc::string::String;

use crate::value::Value;

/// What kind of failure it is; the first four may pass by themselves and are retried unless a policy says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A passing fault: a broken connection, a server's 5xx.
    Transient,
    /// Too many requests.
    RateLimited,
    /// No answer in time.
    Timeout,
    /// What would do the work is not there at the moment.
    Unavailable,
    /// The work ran and said no.
    Failed,
    /// What was given or what came back is not of the agreed form.
    Invalid,
    /// A limit or a rule forbids it.
    Policy,
    /// A person said no.
    Denied,
    /// It was called off.
    Cancelled,
    /// The same inputs gave another result than before.
    Nondeterminism,
    /// A fault of ours.
    Internal,
}

impl Class {
    /// Every class, in the order of their numbers.
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

    /// The class's name in definitions, journals and answers.
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

    /// The class of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether a retry may help.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Transient | Self::RateLimited | Self::Timeout | Self::Unavailable)
    }
}

/// A failure: `{code, class, message, details}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What a program branches on, as `bash_exit_code:3`. No secrets, no data of users: codes are never erased.
    pub code: String,
    /// What a policy branches on.
    pub class: Class,
    /// What a person reads: what happened, where, what to do next.
    pub message: String,
    /// Whatever else is known, as the output up to the failure; null if nothing.
    pub details: Value,
}

impl Failure {
    /// A failure without details.
    pub fn new(class: Class, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), class, message: message.into(), details: Value::Null }
    }

    /// The same failure with details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// `{code, class, message, details}` as a value; `details` only where there are any.
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
