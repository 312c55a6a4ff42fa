//! Failures of agents.

use std::fmt;

use mainspring_effects::secrets::SecretError;
use mainspring_kernel::{
    diagnostic::is_obeyed,
    failure::{Class, Failure},
};

use crate::limits::{ANSWER_BYTES_MAX, PERMISSIONS_WAITING_MAX, QUOTED_BYTES_MAX, RUNNING_MAX};

/// The reason why an agent gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentError {
    /// No agent of this name is configured. The names of those that are.
    Unknown(String),
    /// A secret of its configuration cannot be used.
    Secret { name: String, error: SecretError },
    /// Its process cannot be started. A sentence.
    NotStarted(String),
    /// Its process ended, or closed its output.
    Ended,
    /// Its process ended before a session was open. The end of its standard error.
    EndedEarly(String),
    /// It did not answer the handshake in time.
    Silent,
    /// It speaks another version of the protocol.
    Version(String),
    /// It requires an account or a key.
    Unauthenticated(String),
    /// It broke the protocol or a bound. A clause.
    Protocol(String),
    /// It answered a request with an error.
    Rejected { method: &'static str, code: i64, message: String },
    /// It ended the turn without an answer, for this reason.
    Stopped(String),
    /// Its answer is too large.
    TooLarge,
    /// Too many agents of the organization run.
    TooMany,
    /// The execution is of an older release, and cannot keep a session.
    NoReports,
    /// The execution has no workspace.
    NoWorkspace,
}

impl AgentError {
    fn kind(&self) -> (Class, &'static str) {
        match self {
            Self::Unknown(_) => (Class::Invalid, "runner_unknown"),
            Self::Secret { error, .. } => error.kind(),
            Self::NotStarted(_) | Self::Ended | Self::EndedEarly(_) | Self::Silent => {
                (Class::Unavailable, "runner_unavailable")
            }
            Self::Version(_) | Self::Protocol(_) => (Class::Invalid, "runner_protocol"),
            Self::Unauthenticated(_) => (Class::Invalid, "runner_unauthenticated"),
            Self::Rejected { .. } | Self::Stopped(_) => (Class::Failed, "runner_failed"),
            Self::TooLarge => (Class::Policy, "runner_answer_too_large"),
            Self::TooMany => (Class::RateLimited, "runners_exceeded"),
            Self::NoReports => (Class::Unavailable, "reports_need_upgrade"),
            Self::NoWorkspace => (Class::Invalid, "runner_no_workspace"),
        }
    }

    /// Returns the failure of a step.
    pub(crate) fn to_failure(&self, step: &str, runner: &str) -> Failure {
        let (class, code) = self.kind();
        Failure::new(class, code, format!("step `{step}`: the agent `{runner}` {self}"))
    }

    /// Changes the texts of the agent.
    pub(crate) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::NotStarted(why) => Self::NotStarted(change(why)),
            Self::EndedEarly(said) => Self::EndedEarly(change(said)),
            Self::Version(version) => Self::Version(change(version)),
            Self::Unauthenticated(said) => Self::Unauthenticated(change(said)),
            Self::Protocol(why) => Self::Protocol(change(why)),
            Self::Rejected { method, code, message } => Self::Rejected { method, code, message: change(message) },
            Self::Stopped(reason) => Self::Stopped(change(reason)),
            other => other,
        }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(names) if names.is_empty() => {
                out.write_str("is not configured: add `agents: {NAME: {command: PROGRAM, args: [...]}}` to config.yaml")
            }
            Self::Unknown(names) => write!(out, "is not configured; there are {names}"),
            Self::Secret { name, error } => write!(out, "needs the secret `{name}`, which cannot be used: {error}"),
            Self::NotStarted(why) => write!(out, "cannot be started: {why}"),
            Self::Ended => out.write_str("ended before its answer"),
            Self::EndedEarly(said) if said.is_empty() => {
                out.write_str("ended before it opened a session, without a message: run its command by hand")
            }
            Self::EndedEarly(said) => write!(out, "ended before it opened a session; its last lines: {}", quoted(said)),
            Self::Silent => out.write_str(
                "did not answer the handshake in time: check that its command speaks the Agent Client Protocol",
            ),
            Self::Version(version) => write!(
                out,
                "speaks version {} of the Agent Client Protocol, and this release version 1: take a matching agent",
                quoted(version)
            ),
            Self::Unauthenticated(said) => write!(
                out,
                "requires an account or an API key: give it a key in `env` of its configuration, as a secret. It says {}",
                quoted(said)
            ),
            Self::Protocol(why) => write!(out, "broke the protocol: {why}; report it to the author of the agent"),
            Self::Rejected { method, code, message } => {
                write!(out, "answered `{method}` with the error {code}: {}", quoted(message))
            }
            Self::Stopped(reason) => write!(out, "stopped without a final answer, for the reason {}", quoted(reason)),
            Self::TooLarge => write!(
                out,
                "gave an answer of more than {ANSWER_BYTES_MAX} bytes: let it write a file and answer with its name"
            ),
            Self::TooMany => write!(
                out,
                "has to wait, since {RUNNING_MAX} agents of the organization run: try again later, or lower `maxParallel`"
            ),
            Self::NoReports => out.write_str(
                "needs a newer release on every node, which keeps its session: upgrade the nodes, and start the execution again",
            ),
            Self::NoWorkspace => out.write_str(
                "needs a workspace, and this execution has none: start the server with `--scripts contained`",
            ),
        }
    }
}

/// The message for an agent with too many requests at a time.
pub(crate) fn too_many_requests() -> String {
    format!("more than {PERMISSIONS_WAITING_MAX} permission requests wait for an answer")
}

/// Quotes a text of an agent: cut, and with hidden characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    match text.len() > QUOTED_BYTES_MAX {
        true => format!("{:?}…", &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]),
        false => format!("{text:?}"),
    }
}

/// Escapes characters that are not seen or that change how other text looks. Line ends stay.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            hidden if is_obeyed(hidden) => shown.extend(hidden.escape_unicode()),
            other => shown.push(other),
        }
    }
    shown
}
