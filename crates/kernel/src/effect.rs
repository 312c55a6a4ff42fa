//! The interface to executors: attempts, which the kernel requests, and outcomes, which executors return.
//!
//! The kernel performs no effects. An executor may crash, so the result of an outcome may also be unknown.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt::Display, mem::take};

use crate::{
    budget::Usage,
    cbor,
    failure::{Class, Failure},
    hash::Hash,
    key::ExecutionKey,
    limits::{
        FAILURE_CODE_BYTES_MAX, FAILURE_MESSAGE_BYTES_MAX, RESULT_DEPTH_MAX, VALUE_BYTES_MAX, VALUE_MEMORY_BYTES_MAX,
    },
    secret::SecretUses,
    value::Value,
    value_size::of_value,
};

/// Code of the failure of an attempt whose receipt cannot be decoded.
pub const RECEIPT_UNDECODABLE: &str = "receipt_undecodable";

/// Variable that is `true` in the environment of every step of an execution (second specification, "Session
/// Bootstrapping").
pub const SESSION_VARIABLE: &str = "IS_WORKFLOW_SESSION";

/// Variable with the id of the workflow, or without an id its name. Not set if the workflow has neither.
pub const WORKFLOW_VARIABLE: &str = "WORKFLOW_ID";

/// Variable with the public id of the execution.
pub const EXECUTION_VARIABLE: &str = "WORKFLOW_EXECUTION_ID";

/// The variables of a session. A definition cannot set them for its steps.
pub const SESSION_VARIABLES: [&str; 3] = [SESSION_VARIABLE, WORKFLOW_VARIABLE, EXECUTION_VARIABLE];

/// One attempt at a step's effect, with everything that an executor needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The execution that the attempt belongs to.
    pub execution: ExecutionKey,
    /// Key of the root of the execution tree; the trace id derives from it.
    pub root: ExecutionKey,
    /// Public id of the execution, which the effect finds in its environment.
    pub execution_id: String,
    /// Organization of the execution. `None` for executions of the command line.
    pub organization: Option<String>,
    /// Id of the workflow in the catalogue of a server, or the name in its definition where there is no catalogue.
    pub workflow_id: Option<String>,
    /// Name of the step instance, such as `fetch[3].parse`.
    pub step: String,
    /// Attempt number, from 1.
    pub number: u32,
    /// Kind of effect: `bash`, `http`, `tool`, `agent`, `agent_message`, `propose_change`.
    pub effect: String,
    /// The resolved parameters, with the names that the effect defines.
    pub params: Value,
    /// Idempotency key of the step, the same for all attempts.
    pub intent: Hash,
    /// Properties of its step and its execution.
    pub flags: AttemptFlags,
    /// Dispatch of the attempt, in milliseconds since 1970.
    pub handed_out_at: u64,
    /// Absolute path of the working directory. `None` if the execution has no workspace.
    pub workspace: Option<String>,
    /// The secrets that the attempt uses. `params` has their names alone.
    pub secrets: SecretUses,
    /// Reports of the attempt and the execution so far. `None` where nothing can be reported: in executions under
    /// older rules, and outside of executions.
    pub progress: Option<Box<Progress>>,
}

/// Properties of an attempt that come from its step and its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptFlags {
    /// True if each attempt has an idempotency key of its own, for services that answer a repeated key with the stored
    /// failure.
    pub key_per_attempt: bool,
    /// True if the start has pinned a repository. Scripts then run in its files, or not at all.
    pub has_repository: bool,
}

/// The reports that concern an attempt. Its executor continues from them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// The pinned tools with their digests: the called tool alone, or all of the execution for a call of a model.
    pub pins: BTreeMap<String, Hash>,
    /// The call that continues in a tool server, as its executor has reported it. Null if there is none.
    pub handle: Value,
    /// The answer to the form of the last report: `{action}` or `{action, content}`. Null if there is none.
    pub answer: Value,
    /// True if the attempt is dispatched only to be stopped: its executor sends nothing but the end of its call or task.
    pub is_stopping: bool,
}

/// A report of an attempt before its end. It continues once the report is durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Tools that the execution uses for the first time. Nothing was called.
    Tools(Vec<PinnedTool>),
    /// The call continues in a tool server. The handle is the executor's way to ask for it.
    Continued(Value),
    /// A tool server asks people to fill in a form before the call continues.
    Asked {
        /// `{server, tool, message, form}`, as [`Form`](crate::form::Form) reads it.
        question: Value,
        /// The executor's way to continue the call.
        handle: Value,
    },
}

/// A tool as an execution saw it first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedTool {
    /// The name by which the execution calls it.
    pub name: String,
    /// Hash of its server, its description and its schemas.
    pub digest: Hash,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The effect succeeded, with this result.
    Done(Value),
    /// The effect failed or could not be started.
    Failed(Failure),
    /// The attempt stopped on request. Holds partial results, or null.
    Stopped(Value),
    /// The executor or its node crashed. It is unknown if the effect took place.
    Interrupted,
    /// The child execution was canceled, for the given reason code.
    Cancelled(String),
    /// The child execution ended, and reports the executions of its tree.
    Child {
        /// Result of the child.
        end: ChildEnd,
        /// Number of executions used from the budget: the child itself and its descendants.
        executions: u32,
    },
    /// The child execution ended, and reports the executions of its tree and what its agents have used.
    ChildWithUsage {
        /// Result of the child.
        end: ChildEnd,
        /// Number of executions used from the budget: the child itself and its descendants.
        executions: u32,
        /// The amounts that the agents of the child and of its descendants have used.
        usage: Box<Usage>,
        /// The amounts by which people have raised budgets there.
        raised: Box<Usage>,
    },
    /// The attempt has not ended. It reports what has to be durable before it continues.
    Reported(Box<Report>),
}

/// Result of a child execution, as its parent receives it.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEnd {
    /// The child completed with this output.
    Done(Value),
    /// The child failed.
    Failed(Failure),
    /// The child was canceled, for the given reason code.
    Cancelled(String),
}

impl From<ChildEnd> for Outcome {
    fn from(end: ChildEnd) -> Self {
        match end {
            ChildEnd::Done(output) => Self::Done(output),
            ChildEnd::Failed(failure) => Self::Failed(failure),
            ChildEnd::Cancelled(reason) => Self::Cancelled(reason),
        }
    }
}

impl Outcome {
    /// Replaces an outcome that no journal can contain. A result that is nested too deep, or too large, becomes
    /// the failure [`RECEIPT_UNDECODABLE`]. A failure keeps its code, and loses details beyond these bounds.
    ///
    /// Every outcome passes through this before it becomes an input, from an executor as well as from the inbox. A frame that
    /// contains another one could be written, and not be read.
    #[must_use]
    pub fn decodable(mut self) -> Self {
        match &mut self {
            Self::Done(value) => {
                if let Some(why) = unstorable(value) {
                    return Self::Failed(undecodable(&why));
                }
            }
            Self::Failed(failure) => bound(failure),
            Self::Stopped(details) => {
                if unstorable(details).is_some() {
                    *details = Value::Null;
                }
            }
            Self::Child { end, .. } | Self::ChildWithUsage { end, .. } => {
                let refused = match end {
                    ChildEnd::Done(value) => unstorable(value),
                    ChildEnd::Failed(failure) => {
                        bound(failure);
                        None
                    }
                    ChildEnd::Cancelled(_) => None,
                };
                if let Some(why) = refused {
                    *end = ChildEnd::Failed(undecodable(&why));
                }
            }
            Self::Reported(report) => {
                let refused = match &**report {
                    Report::Tools(_) => None,
                    Report::Continued(handle) => unstorable(handle),
                    Report::Asked { question, handle } => unstorable(question).or_else(|| unstorable(handle)),
                };
                if let Some(why) = refused {
                    return Self::Failed(undecodable(&why));
                }
            }
            Self::Interrupted | Self::Cancelled(_) => {}
        }
        self
    }
}

/// Returns the failure of an attempt whose receipt cannot be decoded for this reason. The effect may have taken place, so it
/// is not retried unless a policy says so.
pub fn undecodable(why: &dyn Display) -> Failure {
    let message = format!("the result arrived and cannot be decoded: {why}; the effect may have taken place");
    Failure::new(Class::Invalid, RECEIPT_UNDECODABLE, message)
}

/// Returns the bound that a value exceeds.
fn unstorable(value: &Value) -> Option<String> {
    if value.is_deeper_than(RESULT_DEPTH_MAX) {
        return Some(format!("it is nested more than {RESULT_DEPTH_MAX} deep"));
    }
    let bytes = cbor::byte_count(value);
    if bytes > VALUE_BYTES_MAX {
        return Some(format!("it takes {bytes} bytes, more than {VALUE_BYTES_MAX}"));
    }
    let memory = of_value(value);
    (memory > VALUE_MEMORY_BYTES_MAX)
        .then(|| format!("it takes {memory} bytes of memory, more than {VALUE_MEMORY_BYTES_MAX}"))
}

/// Cuts a failure to what a journal can contain.
fn bound(failure: &mut Failure) {
    if unstorable(&failure.details).is_some() {
        failure.details = Value::Null;
    }
    if failure.code.len() > FAILURE_CODE_BYTES_MAX {
        failure.code = RECEIPT_UNDECODABLE.to_string();
    }
    if failure.message.len() > FAILURE_MESSAGE_BYTES_MAX {
        let text = take(&mut failure.message);
        failure.message = text[..text.floor_char_boundary(FAILURE_MESSAGE_BYTES_MAX)].to_string();
    }
}
