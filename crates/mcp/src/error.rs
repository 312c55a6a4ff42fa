//! Errors of connections and calls, and the failures that steps get for them.

use std::{fmt, time::Duration};

use mainspring_effects::secrets::SecretError;
use mainspring_kernel::{
    failure::{Class, Failure},
    value::Value,
};

use crate::limits::{LOOKUP_SERVERS_MAX, MESSAGE_BYTES_MAX, QUOTED_BYTES_MAX};

/// The reason why a server or one of its tools cannot be used. `Display` is a sentence that names the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// The name of a tool matches no configured server.
    UnknownTool {
        /// The name in the step.
        tool: String,
        /// Names that would be right, nearest first.
        nearest: Vec<String>,
    },
    /// Several servers have a tool of this name.
    AmbiguousTool {
        /// The name in the step.
        tool: String,
        /// The full names, `SERVER.TOOL`.
        candidates: Vec<String>,
    },
    /// Servers cannot be searched for a tool that is named without its server.
    IncompleteLookup {
        /// The name in the step.
        tool: String,
        /// The full name at the one server that has it.
        found: Option<String>,
        /// The errors of the servers that cannot be searched.
        failed: Vec<String>,
    },
    /// Too many servers are configured for a tool that is named without its server.
    TooManyServers {
        /// The name in the step.
        tool: String,
        /// The number of configured servers.
        count: usize,
    },
    /// The process of a stdio server cannot be started.
    NotStarted(String, String),
    /// The server does not complete the handshake.
    NotConnected(String, String),
    /// The server does not answer in time.
    StartTimeout(String, Duration),
    /// The connection ended before the answer.
    ConnectionLost(String, String),
    /// The server answered with an error of the protocol: its code and its message.
    Rejected {
        /// Name of the server.
        server: String,
        /// Error code of JSON-RPC.
        code: i32,
        /// The server's message.
        message: String,
    },
    /// The server, or a proxy before it, rejected the request because of its load or a fault.
    HttpStatus {
        /// Name of the server.
        server: String,
        /// 429, or 500 to 599.
        status: u16,
        /// The delay that it requests.
        retry_after_ms: Option<u64>,
    },
    /// The server requires other credentials.
    NotAuthorized(String),
    /// An answer breaks the protocol or a limit.
    InvalidAnswer(String, String),
    /// The server asks for a form that cannot be shown.
    InvalidForm(String, String),
    /// The server needs input that is not supported: from a model, about the client, or from people where none can be
    /// asked.
    InputRequired(String),
    /// The tool is not the one that the execution has seen first. Nothing was called.
    ToolChanged {
        /// The name in the step.
        tool: String,
        /// Name of the server that has it now.
        server: String,
    },
    /// The tool that the execution has seen is not there any more. Nothing was called.
    ToolGone(String),
    /// The task of the call was canceled, by the server or by others.
    TaskCancelled(String),
    /// Too many calls of the organization wait for people.
    TooManyForms(usize),
    /// The arguments are not a JSON object.
    InvalidArguments(String),
    /// The arguments do not match the schema of the tool: its name, and the mismatches. Nothing was called.
    ArgumentsMismatch(String, String),
    /// Too many calls wait for the server.
    TooManyCalls(String, usize),
    /// A secret of the server's configuration cannot be used. Nothing was started.
    Secret {
        /// The name of the secret.
        name: String,
        /// The reason.
        error: SecretError,
    },
}

impl ToolError {
    /// Returns the class for retry policies and the code for programs.
    fn kind(&self) -> (Class, &'static str) {
        match self {
            Self::UnknownTool { .. } => (Class::Invalid, "tool_unknown"),
            Self::AmbiguousTool { .. } | Self::TooManyServers { .. } => (Class::Invalid, "tool_ambiguous"),
            Self::IncompleteLookup { .. } => (Class::Unavailable, "tool_server_not_connected"),
            Self::NotStarted(..) => (Class::Unavailable, "tool_server_not_started"),
            Self::NotConnected(..) => (Class::Unavailable, "tool_server_not_connected"),
            Self::StartTimeout(..) => (Class::Timeout, "tool_server_start_timeout"),
            Self::ConnectionLost(..) => (Class::Unavailable, "tool_connection_lost"),
            // JSON-RPC: -32602 invalid params, -32601 method not found, -32600 invalid request.
            Self::Rejected { code: -32602..=-32600, .. } => (Class::Invalid, "tool_call_invalid"),
            Self::Rejected { .. } => (Class::Failed, "tool_call_rejected"),
            Self::HttpStatus { status: 429, .. } => (Class::RateLimited, "tool_server_rate_limited"),
            Self::HttpStatus { .. } => (Class::Transient, "tool_server_http_error"),
            Self::NotAuthorized(_) => (Class::Failed, "tool_server_not_authorized"),
            Self::InvalidAnswer(..) => (Class::Invalid, "tool_answer_invalid"),
            Self::InvalidForm(..) => (Class::Invalid, "tool_form_invalid"),
            Self::ToolChanged { .. } => (Class::Policy, "tool_changed"),
            Self::ToolGone(_) => (Class::Policy, "tool_gone"),
            Self::TaskCancelled(_) => (Class::Failed, "tool_task_cancelled"),
            Self::TooManyForms(_) => (Class::RateLimited, "tool_forms_exceeded"),
            Self::InputRequired(_) => (Class::Policy, "tool_input_required"),
            Self::InvalidArguments(_) | Self::ArgumentsMismatch(..) => (Class::Invalid, "tool_arguments_invalid"),
            Self::TooManyCalls(..) => (Class::Unavailable, "tool_server_busy"),
            Self::Secret { error, .. } => error.kind(),
        }
    }

    /// Changes the texts that come from the server.
    pub(crate) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::NotStarted(server, why) => Self::NotStarted(server, change(why)),
            Self::NotConnected(server, why) => Self::NotConnected(server, change(why)),
            Self::ConnectionLost(server, why) => Self::ConnectionLost(server, change(why)),
            Self::InvalidAnswer(server, why) => Self::InvalidAnswer(server, change(why)),
            Self::InvalidForm(server, why) => Self::InvalidForm(server, change(why)),
            Self::Rejected { server, code, message } => Self::Rejected { server, code, message: change(message) },
            Self::ArgumentsMismatch(tool, why) => Self::ArgumentsMismatch(tool, change(why)),
            other => other,
        }
    }

    /// Returns the failure of a step.
    pub fn to_failure(&self, step: &str) -> Failure {
        let (class, code) = self.kind();
        let failure = Failure::new(class, code, format!("step `{step}`: {self}"));
        match self {
            Self::HttpStatus { retry_after_ms: Some(delay_ms), .. } => {
                failure.with_details(Value::map([("retryAfterMs", (*delay_ms).into())]))
            }
            _ => failure,
        }
    }
}

impl ToolError {
    /// Writes the errors of calls that have been reported.
    fn write_of_report(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolChanged { tool, server } => write!(
                out,
                "the tool `{tool}` is not the one that the execution has used before: the server `{server}` has changed \
                 its description or its schemas; review the tool (`mainspring tools`), and start a new execution"
            ),
            Self::ToolGone(tool) => write!(
                out,
                "the tool `{tool}`, which the execution has used before, is not there any more; `mainspring tools` lists \
                 the tools"
            ),
            Self::TaskCancelled(server) => {
                write!(out, "the tool server `{server}` has canceled the task of the call")
            }
            Self::InvalidForm(server, why) => {
                write!(out, "the tool server `{server}` asks for a form that cannot be shown: {}", quoted(why))
            }
            Self::TooManyForms(max) => write!(
                out,
                "{max} calls already wait for people to fill in forms of tool servers: answer them with `mainspring \
                 approvals`, or retry later"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ToolError {}

impl fmt::Display for ToolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool { tool, nearest } => {
                write!(out, "no configured tool server has the tool `{tool}`")?;
                match nearest.as_slice() {
                    [] => out.write_str(": `mainspring tools` lists the tools"),
                    [one] => write!(out, "; did you mean `{one}`?"),
                    many => write!(out, "; similar names: {}", quoted_list(many)),
                }
            }
            Self::AmbiguousTool { tool, candidates } => {
                write!(out, "several tool servers have the tool `{tool}`: write {}", quoted_list(candidates))
            }
            Self::IncompleteLookup { tool, found, failed } => write_incomplete(out, tool, found.as_deref(), failed),
            Self::TooManyServers { tool, count } => write!(
                out,
                "the tool `{tool}` is named without its server, which is possible with up to {LOOKUP_SERVERS_MAX} \
                 servers, and {count} are configured: write `SERVER.{tool}`"
            ),
            Self::NotStarted(server, why) => write!(out, "the tool server `{server}` cannot be started: {why}"),
            Self::NotConnected(server, why) => write!(out, "no connection to the tool server `{server}`: {why}"),
            Self::StartTimeout(server, after) => {
                write!(out, "the tool server `{server}` did not answer within {} s of its start", after.as_secs())
            }
            Self::ConnectionLost(server, why) => write!(
                out,
                "the connection to the tool server `{server}` ended before the answer, so the call may have had an \
                 effect: {why}"
            ),
            Self::Rejected { server, code, message } => {
                write!(out, "the tool server `{server}` rejected the call (JSON-RPC error {code}): {}", quoted(message))
            }
            Self::HttpStatus { server, status, .. } => {
                write!(out, "the tool server `{server}` answered with HTTP status {status}")
            }
            Self::NotAuthorized(server) => write!(
                out,
                "the tool server `{server}` does not accept the credentials: correct `headers` in its configuration"
            ),
            Self::InvalidAnswer(server, why) => {
                write!(out, "the answer of the tool server `{server}` is not valid: {why}")
            }
            Self::InputRequired(server) => write!(
                out,
                "the tool server `{server}` asks for input that cannot be given here: the answer of a model (sampling), \
                 folders (roots), or a form outside of an execution; give the input as arguments"
            ),
            Self::ToolChanged { .. }
            | Self::ToolGone(_)
            | Self::TaskCancelled(_)
            | Self::InvalidForm(..)
            | Self::TooManyForms(_) => self.write_of_report(out),
            Self::InvalidArguments(tool) => {
                write!(out, "the arguments of the tool `{tool}` are not an object: write `arguments: {{name: value}}`")
            }
            Self::ArgumentsMismatch(tool, why) => {
                write!(out, "the arguments do not match the schema of the tool `{tool}`: {}", quoted(why))
            }
            Self::TooManyCalls(server, max) => write!(
                out,
                "{max} calls already wait for the tool server `{server}`: lower `maxParallel`, or retry later"
            ),
            Self::Secret { name, error } => write!(out, "the secret `{name}` cannot be used: {error}"),
        }
    }
}

fn write_incomplete(out: &mut fmt::Formatter<'_>, tool: &str, found: Option<&str>, failed: &[String]) -> fmt::Result {
    let full_name = found.map_or_else(|| format!("SERVER.{tool}"), ToOwned::to_owned);
    write!(out, "the tool `{tool}` is named without its server, and not all servers can be searched: ")?;
    write!(out, "write `{full_name}`. {}", failed.iter().take(3).cloned().collect::<Vec<_>>().join("; "))?;
    match failed.len() {
        0..=3 => Ok(()),
        count => write!(out, "; {} more servers", count - 3),
    }
}

fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns text of a server for an error message: bounded, with control characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\t' => kept.push(' '),
            hidden if hidden.is_control() || is_bidirectional(hidden) => kept.extend(hidden.escape_unicode()),
            shown => kept.push(shown),
        }
        if kept.len() > QUOTED_BYTES_MAX {
            kept.push('…');
            break;
        }
    }
    kept
}

/// True for characters that change the direction of text, which can make a message look like another.
fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The reason for an answer that was too large to be read.
pub(crate) fn too_large() -> String {
    format!("a message has more than {} MiB", MESSAGE_BYTES_MAX / 1024 / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_bounded_and_has_no_control_characters() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected, "{text:?}");
        check("plain", "plain");
        check("two\nlines", "two lines");
        check("\u{1b}[31mred", "\\u{1b}[31mred");
        check("a\u{202e}b", "a\\u{202e}b");
        assert!(quoted(&"x".repeat(1_000_000)).len() < QUOTED_BYTES_MAX + 8);
    }
}
