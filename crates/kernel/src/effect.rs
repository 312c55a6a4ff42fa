//! The border to the world: what the kernel asks of it and what comes back.

use alloc::string::String;

use crate::{failure::Failure, hash::Hash, key::ExecutionKey, value::Value};

/// One try at a step's effect, ready to be performed.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The execution it belongs to.
    pub execution: ExecutionKey,
    /// The first of the executions that have started each other: their trace is named for it.
    pub root: ExecutionKey,
    /// The execution's name outside, which is given to the effect's environment.
    pub execution_id: String,
    /// The organization that the execution belongs to; none for one of the command line.
    pub organization: Option<String>,
    /// The step instance, as `fetch[3].parse`.
    pub step: String,
    /// Which try, counted from 1.
    pub number: u32,
    /// What kind of effect: `bash`, `tool`, `agent`, `agent_message`.
    pub effect: String,
    /// The resolved parameters, by the effect's own names.
    pub params: Value,
    /// The identity of the work, the same over all attempts: the idempotency key given to the world.
    pub intent: Hash,
    /// Whether each attempt is given a key of its own: for services that repeat a stored failure.
    pub key_per_attempt: bool,
    /// When the attempt was handed out, in milliseconds since 1970.
    pub handed_out_at: u64,
    /// Where the work happens: an absolute path, or nothing if the execution has no workspace.
    pub workspace: Option<String>,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was done, and this is its result.
    Done(Value),
    /// It ran, or could not be run, and this is why.
    Failed(Failure),
    /// It was asked to stop and has stopped; what was known by then.
    Stopped(Value),
    /// Whoever performed it died; whether it was done is unknown.
    Interrupted,
    /// It was another execution, and that was cancelled; a word for why.
    Cancelled(String),
    /// It was another execution, which tells how many executions it was.
    Child {
        /// How it ended.
        end: ChildEnd,
        /// The executions that have begun: itself, and those that it has started, directly and through others.
        executions: u32,
    },
}

/// How an execution ended that another one waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEnd {
    /// Well, with this output.
    Done(Value),
    /// It failed, and this is why.
    Failed(Failure),
    /// It was cancelled; a word for why.
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
