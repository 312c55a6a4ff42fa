//! Session keys: `agent:A:workflow:W:run:X` of an execution, with `:node:S:attempt:N` after it of a step attempt.

use std::fmt;

use crate::limits::SESSION_PART_BYTES_MAX;

/// The key of the session of an execution, or of a step attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    agent: String,
    workflow: String,
    run: String,
    attempt: Option<StepAttempt>,
}

/// The part of a session key about a step attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepAttempt {
    /// The id of the step.
    pub node: String,
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
}

/// A refused session key, pattern, or part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionKeyError {
    /// The text does not have the form of a session key.
    Form(String),
    /// The part with this name is empty, too long, or has a colon, white space or a control character.
    Part(&'static str, String),
    /// The attempt is not a number from 1 on without leading zeros.
    Attempt(String),
}

impl fmt::Display for SessionKeyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(
                out,
                "`{text}` is not a session key; write agent:A:workflow:W:run:X, with :node:S:attempt:N for a step"
            ),
            Self::Part(name, text) => write!(
                out,
                "`{text}` cannot be the {name} of a session key; use 1 to {SESSION_PART_BYTES_MAX} bytes without \
                 colons, white space and control characters"
            ),
            Self::Attempt(text) => write!(out, "`{text}` is not the number of an attempt; the first is 1"),
        }
    }
}

impl std::error::Error for SessionKeyError {}

impl SessionKey {
    /// Returns the key of the session of an execution.
    pub fn of_execution(agent: &str, workflow: &str, run: &str) -> Result<Self, SessionKeyError> {
        let (agent, workflow, run) = (part("agent", agent)?, part("workflow", workflow)?, part("run", run)?);
        Ok(Self { agent, workflow, run, attempt: None })
    }

    /// Returns the key of the session of a step attempt of this execution.
    pub fn with_attempt(&self, node: &str, attempt: u32) -> Result<Self, SessionKeyError> {
        if attempt == 0 {
            return Err(SessionKeyError::Attempt("0".into()));
        }
        Ok(Self { attempt: Some(StepAttempt { node: part("node", node)?, attempt }), ..self.clone() })
    }

    /// Parses a key. [`fmt::Display`] writes exactly the parsed text.
    pub fn parse(text: &str) -> Result<Self, SessionKeyError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (agent, workflow, run, rest) = match parts.as_slice() {
            ["agent", agent, "workflow", workflow, "run", run, rest @ ..] => (agent, workflow, run, rest),
            _ => return Err(SessionKeyError::Form(text.into())),
        };
        let key = Self::of_execution(agent, workflow, run)?;
        match rest {
            [] => Ok(key),
            ["node", node, "attempt", attempt] => key.with_attempt(node, number(attempt)?),
            _ => Err(SessionKeyError::Form(text.into())),
        }
    }

    /// The part after `agent`.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The part after `workflow`.
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// The part after `run`, the id of the execution.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The step attempt; `None` for the session of an execution.
    pub fn attempt(&self) -> Option<&StepAttempt> {
        self.attempt.as_ref()
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "agent:{}:workflow:{}:run:{}", self.agent, self.workflow, self.run)?;
        match &self.attempt {
            Some(StepAttempt { node, attempt }) => write!(out, ":node:{node}:attempt:{attempt}"),
            None => Ok(()),
        }
    }
}

/// A pattern of session keys, such as `agent:*:workflow:nightly-*:run:*`.
///
/// A `*` stands for any text within a part. A pattern without `:node:` matches keys of executions only, and one with it
/// those of step attempts only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPattern {
    agent: String,
    workflow: String,
    run: String,
    node_and_attempt: Option<(String, String)>,
}

impl SessionPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, SessionKeyError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (agent, workflow, run, rest) = match parts.as_slice() {
            ["agent", agent, "workflow", workflow, "run", run, rest @ ..] => (agent, workflow, run, rest),
            _ => return Err(SessionKeyError::Form(text.into())),
        };
        let node_and_attempt = match rest {
            [] => None,
            ["node", node, "attempt", "*"] => Some((part("node", node)?, "*".to_owned())),
            ["node", node, "attempt", attempt] => Some((part("node", node)?, number(attempt)?.to_string())),
            _ => return Err(SessionKeyError::Form(text.into())),
        };
        let (agent, workflow, run) = (part("agent", agent)?, part("workflow", workflow)?, part("run", run)?);
        Ok(Self { agent, workflow, run, node_and_attempt })
    }

    /// Returns whether the pattern matches keys of step attempts, and not those of executions.
    pub fn is_of_attempts(&self) -> bool {
        self.node_and_attempt.is_some()
    }

    /// Returns whether a key matches.
    pub fn matches(&self, key: &SessionKey) -> bool {
        let parts = [(&self.agent, &key.agent), (&self.workflow, &key.workflow), (&self.run, &key.run)];
        let is_same_attempt = match (&self.node_and_attempt, &key.attempt) {
            (None, None) => true,
            (Some((node, attempt)), Some(key)) => {
                matches_part(node, &key.node) && matches_part(attempt, &key.attempt.to_string())
            }
            _ => false,
        };
        is_same_attempt && parts.into_iter().all(|(pattern, text)| matches_part(pattern, text))
    }
}

/// Compares from left to right: the texts between two `*` match at their first occurrence.
fn matches_part(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(end)
}

fn part(name: &'static str, text: &str) -> Result<String, SessionKeyError> {
    let is_allowed = |character: char| character != ':' && !character.is_whitespace() && !character.is_control();
    match (1..=SESSION_PART_BYTES_MAX).contains(&text.len()) && text.chars().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => Err(SessionKeyError::Part(name, text.to_owned())),
    }
}

fn number(text: &str) -> Result<u32, SessionKeyError> {
    let is_canonical = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_canonical).ok_or_else(|| SessionKeyError::Attempt(text.into()))
}
