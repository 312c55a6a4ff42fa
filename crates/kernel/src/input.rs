//! Inputs: the only way in which the outside world reaches an execution.
//!
//! An input starts an execution or reports a fact to it: a receipt, a due timer, a decision, a signal, a cancel
//! request, a notification from a child. `decide` turns each into records and actions. An input that is stale, repeated
//! or late is answered and changes nothing.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    budget::Budget,
    effect::Outcome,
    hash::Hash,
    instance::Instance,
    key::ExecutionKey,
    leases::LeaseChange,
    plan::{Decision, PlanBytes},
    value::Value,
    value_size,
};

/// An input of one execution. Each is processed once.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Starts the execution.
    Start(Box<Start>),
    /// Reports the outcome of an attempt.
    Receipt {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
        /// Outcome of the attempt.
        outcome: Outcome,
    },
    /// Reports a due timer.
    Timer(Timer),
    /// Delivers a user's decision at an approval gate.
    Decide {
        /// The step instance that the gate belongs to.
        instance: Instance,
        /// Number of the gate within the step instance, from 1.
        gate: u32,
        /// Approval or denial.
        decision: Decision,
        /// User id of the authenticated caller.
        by: String,
        /// Reason given by the caller; null if none was given.
        reason: Value,
    },
    /// Delivers a named signal.
    Signal {
        /// Deduplication id. A second signal with the same id is ignored.
        id: String,
        /// Name of the signal.
        name: String,
        /// Payload of the signal.
        payload: Value,
    },
    /// Delivers a person's message to a conversation.
    Message {
        /// Deduplication id. A second message with the same id is ignored.
        id: String,
        /// Name of the conversation. `None` for the only one of the workflow.
        conversation: Option<String>,
        /// The text.
        content: Value,
        /// True if the agent's open model call is canceled, so that the message is read at once.
        interrupt: bool,
        /// User id of the authenticated caller.
        by: String,
    },
    /// Admits a queued execution.
    Admit,
    /// Cancels the execution.
    Cancel {
        /// Reason code, such as `user_cancelled`.
        reason: String,
        /// User id of the authenticated caller.
        by: String,
    },
    /// Skips the steps of `finally` that have not ended. Before the execution ends, these are all of them.
    SkipCleanup {
        /// User id of the authenticated caller.
        by: String,
    },
    /// Reports the answer of the store to a request for a lease.
    Lease {
        /// Number of the lease within the execution, from 1.
        lease: u32,
        /// The answer.
        change: LeaseChange,
    },
    /// Has the execution continue with another plan, if every step that has begun has its counterpart there.
    Migrate {
        /// The plan in its stored form, with the rules for its calls as a start would pin them.
        plan: PlanBytes,
        /// Version of the definition in its catalogue, if it has one.
        version: Option<String>,
        /// User id of the authenticated caller.
        by: String,
        /// The cause, such as `proposal pr-…`.
        reason: String,
    },
    /// Continues a turn that was split because it reached the limits of a frame.
    Continue,
    /// Reports that a child execution waits for approvals only, or runs again.
    ChildWaits {
        /// The step that waits for the end of the child.
        instance: Instance,
        /// Attempt number of that step, from 1.
        attempt: u32,
        /// Number of the child's notification, from 1. Odd: the child waits for approvals. Even: it runs again.
        count: u32,
    },
}

/// Trigger key of the organization id. A child execution inherits it.
pub const ORGANIZATION_IN_TRIGGER: &str = "organizationId";

/// Trigger key of the root execution's key, in the trigger of a child execution.
pub const ROOT_IN_TRIGGER: &str = "rootExecutionKey";

/// Trigger key of the kind of initiator, if that differs from the trigger's type. A child execution inherits it.
pub const INITIATOR_IN_TRIGGER: &str = "initiatorType";

/// Trigger key of the workflow id in the organization's catalogue.
pub const WORKFLOW_IN_TRIGGER: &str = "workflowId";

/// Trigger key of the workflow's name in the catalogue.
pub const NAME_IN_TRIGGER: &str = "workflowName";

/// Trigger key of the catalogue entries of the workflows that may be started: an object from workflow names to objects
/// with [`WORKFLOW_IN_TRIGGER`], [`NAME_IN_TRIGGER`] and [`VERSION_IN_TRIGGER`]. A child execution inherits this map,
/// and copies its own entry to the top level of its trigger.
pub const WORKFLOWS_IN_TRIGGER: &str = "workflows";

/// Trigger key of the parent's public execution id, in the trigger of a child execution.
pub const PARENT_IN_TRIGGER: &str = "parentExecutionId";

/// Trigger key of the repository whose commit the start has pinned: `{sourceRepoFullName, ref, commitSha, url}`, and the
/// name of a secret. A child execution inherits it with the workspace.
pub const REPOSITORY_IN_TRIGGER: &str = "repository";

/// Trigger key of the id of the trigger itself.
pub const TRIGGER_IN_TRIGGER: &str = "triggerId";

/// Trigger key of the workflow's version in the catalogue.
pub const VERSION_IN_TRIGGER: &str = "workflowVersion";

/// Parameters of a new execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Public id of the execution.
    pub execution_id: String,
    /// Hash of the normalized definition.
    pub workflow_hash: Hash,
    /// SHA-256 of the stored plan.
    pub plan_hash: Hash,
    /// `@input`.
    pub input: Value,
    /// `@vars`; an object.
    pub variables: Value,
    /// Cause of the execution: `{type, metadata}` and further keys of the trigger. Copied at the start and never
    /// changed.
    pub trigger: Value,
    /// Limits of the execution. They take precedence over those of the definition.
    pub policy: Policy,
    /// Number of times that this work has been dispatched, from 1: `@ctx.attempt`.
    pub attempt: u32,
    /// User id of the authenticated caller.
    pub by: String,
    /// Absolute path of the working directory of its steps, if it has one.
    pub workspace: Option<String>,
    /// Position in the tree of executions. `None` for an execution without a parent that may not start others.
    pub lineage: Option<Lineage>,
    /// The queue in which it waits for admission. `None` if it runs at once.
    pub queue: Option<Queue>,
}

impl Start {
    /// Bytes of memory that its values take, counted as those of a state are.
    pub fn memory_bytes(&self) -> u64 {
        value_size::of_values(&self.input, &self.variables, &self.trigger)
    }
}

/// The concurrency limit for which a queued execution waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// The limit on running executions of the user who started it.
    User,
    /// The limit on running executions of its organization.
    Organization,
    /// The limit on running executions of its workflow.
    Workflow,
    /// Not known yet: the limits have not been checked.
    Admission,
}

impl Queue {
    /// The name in the catalogue and in API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Organization => "organization",
            Self::Workflow => "workflow",
            Self::Admission => "admission",
        }
    }
}

/// Position of an execution in the tree of executions that start each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lineage {
    /// The step that waits for the end of this execution, if one does.
    pub parent: Option<Parent>,
    /// Length of the chain of ancestors that wait for each other. 0 for a root, at least 1 for every child.
    pub depth: u32,
    /// Workflows that this execution and its descendants may start. Pinned when the root started.
    pub workflows: Vec<Pinned>,
    /// Number of executions that it may start, directly and through descendants. `None` for an execution that started
    /// under decide versions up to 4.
    pub executions: Option<u32>,
    /// The budget of its agents and those of its descendants. `None` if nothing limits them.
    pub budget: Option<Budget>,
}

/// The step that waits for the end of a child execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Key of the parent execution.
    pub execution: ExecutionKey,
    /// The waiting step instance.
    pub instance: Instance,
    /// Attempt number of that step, from 1.
    pub attempt: u32,
}

/// The version that a workflow name stands for within one tree of executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// Name by which steps start the workflow.
    pub name: String,
    /// Hash of the normalized definition.
    pub workflow_hash: Hash,
    /// SHA-256 of the stored plan.
    pub plan_hash: Hash,
}

/// Limits of an execution, after defaults are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Maximum number of step visits.
    pub max_steps: u32,
    /// Maximum number of branches that run at the same time.
    pub max_parallel: u32,
    /// Timeout of the whole execution, in milliseconds; `None` for no timeout.
    pub timeout_ms: Option<u64>,
    /// Maximum size of one step's output, in encoded bytes; `None` for
    /// [`OUTPUT_BYTES_MAX`](crate::limits::OUTPUT_BYTES_MAX).
    pub max_output_bytes: Option<u32>,
}

/// Purpose of a timer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// Deadline of the execution.
    Deadline,
    /// Timeout of an attempt.
    Attempt(Instance, u32),
    /// Start of the next attempt, with its number.
    Retry(Instance, u32),
    /// End of a sleep, or of a wait for a signal.
    Sleep(Instance),
    /// Expiry of an approval gate.
    Gate(Instance, u32),
}
