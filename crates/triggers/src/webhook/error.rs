//! Rejected requests and refused configurations.

use std::fmt;

/// A request that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// A required header is missing.
    MissingHeader(String),
    /// A header occurs more than once, so that another reader could use another value.
    RepeatedHeader(String),
    /// A header does not have the form of the scheme.
    MalformedHeader(String),
    /// The time of the signature is too far from now: seconds, positive if the request is too old.
    OutsideTolerance(i64),
    /// No signature matches any secret.
    WrongSignature,
}

impl fmt::Display for Rejection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingHeader(name) => write!(out, "the header `{name}` is missing"),
            Self::RepeatedHeader(name) => write!(out, "the header `{name}` occurs more than once"),
            Self::MalformedHeader(name) => write!(out, "the header `{name}` does not have the form of the scheme"),
            Self::OutsideTolerance(seconds @ 0..) => write!(out, "the request was signed {seconds} s ago"),
            Self::OutsideTolerance(seconds) => {
                write!(out, "the request was signed {} s in the future", seconds.unsigned_abs())
            }
            Self::WrongSignature => write!(out, "no signature matches a secret of this webhook"),
        }
    }
}

impl std::error::Error for Rejection {}

/// A refused configuration of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationError {
    /// There is no secret.
    NoSecret,
    /// There are more secrets than this.
    TooManySecrets(usize),
    /// The secret at this position is empty.
    EmptySecret(usize),
    /// The secret at this position is not base64 after `whsec_`, as Standard Webhooks requires.
    NotBase64(usize),
    /// The signed content does not have the request body.
    BodyNotSigned,
    /// A placeholder of the signed content that does not exist, or a brace without its counterpart.
    UnknownPlaceholder(String),
    /// The scheme names a header for the time, and the signature does not cover it; or the reverse.
    TimeNotSigned,
    /// An empty or invalid header name.
    InvalidHeader(String),
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret => write!(out, "the webhook has no secret; give at least one"),
            Self::TooManySecrets(max) => write!(out, "the webhook has more than {max} secrets; remove expired ones"),
            Self::EmptySecret(position) => write!(out, "secret {position} is empty; give a random text"),
            Self::NotBase64(position) => {
                write!(out, "secret {position} is not `whsec_` and base64; copy it as the sender shows it")
            }
            Self::BodyNotSigned => write!(out, "the signed content lacks `{{body}}`; a signature must cover the body"),
            Self::UnknownPlaceholder(text) => {
                write!(out, "`{text}` is not a placeholder; the signed content has `{{body}}` and `{{timestamp}}`")
            }
            Self::TimeNotSigned => write!(
                out,
                "a header for the time and `{{timestamp}}` in the signed content require each other; give both or none"
            ),
            Self::InvalidHeader(name) => write!(out, "`{name}` is not the name of a header"),
        }
    }
}

impl std::error::Error for ConfigurationError {}
