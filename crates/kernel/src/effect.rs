//! The interface to executors: attempts, which the kernel asks for, and outcomes, which come back.
//!
//! The kernel performs no effects. An executor may crash, so an outcome may also say that the result is unknown.

use alloc::{boxed::Box, string::String};

use crate::{budget::Usage, failure::Failure, hash::Hash, key::ExecutionKey, secret::SecretUses, value::Value};

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
    /// Kind of effect: `bash`, `http`, `tool`, `agent`, `agent_message`.
    pub effect: String,
    /// The resolved parameters, with the names that the effect defines.
    pub params: Value,
    /// Idempotency key of the step, the same for all attempts.
    pub intent: Hash,
    /// True if each attempt has an idempotency key of its own, for services that answer a repeated key with the stored
    /// failure.
    pub key_per_attempt: bool,
    /// Dispatch of the attempt, in milliseconds since 1970.
    pub handed_out_at: u64,
    /// Absolute path of the working directory. `None` if the execution has no workspace.
    pub workspace: Option<String>,
    /// The secrets that the attempt uses. `params` has their names alone.
    pub secrets: SecretUses,
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
