//! Whatever reaches an execution from outside. This is the one way in.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{effect::Outcome, hash::Hash, instance::Instance, key::ExecutionKey, plan::Decision, value::Value};

/// Something for an execution to take in, once.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// It begins.
    Start(Box<Start>),
    /// What became of an attempt.
    Receipt {
        /// Whose.
        instance: Instance,
        /// Which try.
        attempt: u32,
        /// The result.
        outcome: Outcome,
    },
    /// A time has come.
    Timer(Timer),
    /// Somebody has decided at a gate.
    Decide {
        /// Whose gate.
        instance: Instance,
        /// Which of its gates, counted from 1.
        gate: u32,
        /// How.
        decision: Decision,
        /// Who, by the credential.
        by: String,
        /// Why, if said; null otherwise.
        reason: Value,
    },
    /// A named message.
    Signal {
        /// The message's identity: the second of the same is no message.
        id: String,
        /// Its name.
        name: String,
        /// What it brings.
        payload: Value,
    },
    /// One that stands in a queue may begin its work.
    Admit,
    /// It is called off.
    Cancel {
        /// A word for it, as `user_cancelled`.
        reason: String,
        /// Who, by the credential.
        by: String,
    },
    /// The rest of a turn that was too long for one frame.
    Continue,
    /// A child has begun to wait for nothing but people, or goes on.
    ChildWaits {
        /// The step that waits for the child's end.
        instance: Instance,
        /// Which try.
        attempt: u32,
        /// How often the child has told this, from 1: with an odd number it waits.
        count: u32,
    },
}

/// Where a trigger says to which organisation an execution belongs. A child belongs to that of its parent.
pub const ORGANIZATION_IN_TRIGGER: &str = "organizationId";

/// Where a trigger says who began it, by kind, if that is not its own type. A child has it of its parent.
pub const INITIATOR_IN_TRIGGER: &str = "initiatorType";

/// Where a trigger says which workflow runs, by its id in the organisation's catalogue.
pub const WORKFLOW_IN_TRIGGER: &str = "workflowId";

/// Where a trigger says what the catalogue calls the workflow.
pub const NAME_IN_TRIGGER: &str = "workflowName";

/// Where a trigger says what the catalogue knows of the workflows that may be started, by the names under which they are: an
/// object of objects, each with [`WORKFLOW_IN_TRIGGER`], [`NAME_IN_TRIGGER`] and [`VERSION_IN_TRIGGER`]. A child's trigger
/// says of itself what stands here under its name, and has the rest of its parent.
pub const WORKFLOWS_IN_TRIGGER: &str = "workflows";

/// Where the trigger of a child says which execution has started it, by its name outside.
pub const PARENT_IN_TRIGGER: &str = "parentExecutionId";

/// Where a trigger says which it is, by its id there.
pub const TRIGGER_IN_TRIGGER: &str = "triggerId";

/// Where a trigger says which version of the workflow it is, by the catalogue.
pub const VERSION_IN_TRIGGER: &str = "workflowVersion";

/// How an execution begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The execution's name outside.
    pub execution_id: String,
    /// The normalised definition.
    pub workflow_hash: Hash,
    /// The plan that it runs.
    pub plan_hash: Hash,
    /// `@input`.
    pub input: Value,
    /// `@vars`, an object.
    pub variables: Value,
    /// What started it: `{type, metadata}` and whatever else the trigger says. Snapshotted, never changed.
    pub trigger: Value,
    /// Bounds that go before those of the definition.
    pub policy: Policy,
    /// How often this work was dispatched, from 1: `@ctx.attempt`.
    pub attempt: u32,
    /// Who started it, by the credential.
    pub by: String,
    /// The absolute path of the folder where its steps work, if it has one.
    pub workspace: Option<String>,
    /// Where it comes from and what it may start; `None` for one that comes from outside and starts nothing.
    pub lineage: Option<Lineage>,
    /// The queue in which it waits until it is admitted; `None` for one whose work begins at once.
    pub queue: Option<Queue>,
}

/// What an execution waits for before its work begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// As many executions of whoever started it are running as may.
    User,
    /// As many of its organisation.
    Organization,
    /// As many of its workflow.
    Workflow,
    /// Whoever counts them has not looked yet.
    Admission,
}

impl Queue {
    /// The word in the catalogue and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Organization => "organization",
            Self::Workflow => "workflow",
            Self::Admission => "admission",
        }
    }
}

/// An execution's place among those that start each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lineage {
    /// Who waits for its end.
    pub parent: Option<Parent>,
    /// How many executions above it wait for each other, at least 1 for one that another execution has started.
    pub depth: u32,
    /// The workflows that it, and whatever it starts, may start: pinned when the first of the family began.
    pub workflows: Vec<Pinned>,
    /// How many executions it may start, directly and through those it starts; `None` for one that was started by the
    /// rules up to version 4.
    pub executions: Option<u32>,
}

/// The step that waits for an execution's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its execution.
    pub execution: ExecutionKey,
    /// The step instance.
    pub instance: Instance,
    /// Which try.
    pub attempt: u32,
}

/// What a workflow's name means to a family of executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// The name.
    pub name: String,
    /// The normalised definition.
    pub workflow_hash: Hash,
    /// Its plan.
    pub plan_hash: Hash,
}

/// Bounds on an execution, once the defaults are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Visits of steps.
    pub max_steps: u32,
    /// Branches at a time.
    pub max_parallel: u32,
    /// Milliseconds for the whole; `None` for no bound.
    pub timeout_ms: Option<u64>,
    /// Bytes of one step's output in its binary form; `None` for
    /// [`OUTPUT_BYTES_MAX`](crate::limits::OUTPUT_BYTES_MAX).
    pub max_output_bytes: Option<u32>,
}

/// What a time was set for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The end of the execution's time.
    Deadline,
    /// The end of an attempt's time.
    Attempt(Instance, u32),
    /// The beginning of an attempt.
    Retry(Instance, u32),
    /// The end of a sleep.
    Sleep(Instance),
    /// The end of a gate's time to be decided.
    Gate(Instance, u32),
}
