//! The state of an execution: the fold of its records and nothing else.
//!
//! Replaying a journal gives exactly the state that the node had in memory. The types here answer questions about it;
//! `apply` is the only code that changes it.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};
use core::cmp::Reverse;

use crate::{
    cbor,
    decide_version::{BOUNDS_SINCE, DECIDE_VERSION, MEMORY_SINCE, SIGNAL_BYTES_SINCE},
    failure::Failure,
    hash::Hash,
    input::{
        Lineage, ORGANIZATION_IN_TRIGGER, Policy, Queue, ROOT_IN_TRIGGER, Timer, VERSION_IN_TRIGGER,
        WORKFLOW_IN_TRIGGER,
    },
    instance::{Instance, Scope},
    key::ExecutionKey,
    limits::{EXECUTION_MEMORY_BYTES_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX},
    plan::{AgentPart, Decision, Plan, Work},
    record::{DENIALS, Ending, Fault, Purpose, StopReason},
    value::{Map, Value},
    value_size,
};

mod accounts;
mod conversations;
mod view;

pub use accounts::Accounts;
pub(crate) use conversations::MESSAGES_OF_CALL;
pub use conversations::{Conversation, Conversations, Message, MessageRejection};
pub use view::View;

/// The effect of a step that starts another workflow, as in the recorded input of an agent's tool call.
pub const CHILD_EFFECT: &str = "subworkflow";

/// The state of one execution. Only [`apply`](crate::apply::apply) changes it.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Identity of the execution in the store.
    pub key: ExecutionKey,
    /// The plan that the execution runs.
    pub plan: Arc<Plan>,
    /// Time of the last turn, in milliseconds since 1970. Never decreases.
    pub now: u64,
    /// Parameters of the start; `None` before the start.
    pub start: Option<Started>,
    /// Position in the tree of executions that start each other.
    pub lineage: Lineage,
    /// The queue in which the execution waits for admission, if it is queued.
    pub queue: Option<Queue>,
    /// Version of the rules in `decide`: that of this build before the start, afterwards the pinned one.
    pub decide_version: u32,
    /// Step instances that are no longer pending. The instances of an ended round are removed, except failed and
    /// canceled ones.
    pub steps: BTreeMap<Instance, StepState>,
    /// Running blocks and loops.
    pub blocks: Blocks,
    /// Attempts, waits and timers that have not ended.
    pub open: OpenWork,
    /// Output variables by name.
    pub outputs: Map,
    /// Accepted signals and messages.
    pub signals: Signals,
    /// Numbers that are compared with limits.
    pub counts: Counts,
    /// Facts about the records so far.
    pub journal: JournalFacts,
    /// The end of the execution, and its limits in time and failures.
    pub end: EndState,
}

/// The blocks and loops that run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blocks {
    /// Running blocks.
    pub scopes: BTreeMap<Scope, ScopeState>,
    /// Running loops, by their step instances.
    pub loops: BTreeMap<Instance, LoopState>,
}

/// Work that an execution waits for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenWork {
    /// Step instances with a running attempt.
    pub attempts: BTreeSet<Instance>,
    /// The step instances in `attempts` whose child execution waits for approvals only.
    pub held_children: BTreeSet<Instance>,
    /// Step instances that wait for a person, a time, a signal or their next attempt.
    pub waits: BTreeSet<Instance>,
    /// Pending timers with their due times in milliseconds since 1970.
    pub timers: BTreeSet<(u64, Timer)>,
}

/// The signals and the messages that an execution has accepted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signals {
    /// Signals that no step has consumed yet, in order of arrival.
    pub kept: Vec<Signal>,
    /// Deduplication ids of all signals accepted so far.
    pub seen: BTreeSet<String>,
    /// Conversations of agents, with their messages.
    pub conversations: Conversations,
}

/// Numbers that are compared with the limits of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts {
    /// Number of steps started.
    pub visits: u32,
    /// Number of attempts dispatched to executors and child executions.
    pub calls: u32,
    /// Number of rounds started, steps skipped, and steps that failed before they started. `visits` counts none of
    /// these.
    pub uncounted: u32,
    /// Number of executions reserved for children, minus those that they returned.
    pub executions: u32,
    /// Number of failed steps. Steps that contain other steps are not counted.
    pub node_failures: u32,
    /// Number of failed steps that were allowed several attempts and used all of them.
    pub retries_exhausted: u32,
    /// Number of notifications sent to the parent about waiting for approvals. Odd while the parent regards this
    /// execution as waiting.
    pub parent_notices: u32,
    /// Memory taken by the state, in bytes as counted by `apply`.
    pub memory_bytes: u64,
    /// The amounts that calls of agents have used and reserved.
    pub budgets: Accounts,
}

/// Facts about the records of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JournalFacts {
    /// Approximate size of the records, in bytes.
    pub bytes: u64,
    /// True if a payload of the records so far was erased.
    pub has_erased: bool,
    /// True if the last turn was split and has to be continued.
    pub is_split: bool,
    /// The digests of the tools that the execution has found, by name.
    pub pinned_tools: BTreeMap<String, Hash>,
    /// The last migration to another plan, if there was one.
    pub migration: Option<Migration>,
}

/// The end of an execution, and the limits that bring it about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EndState {
    /// Deadline of the execution, in milliseconds since 1970. `None` while it is suspended.
    pub deadline: Option<u64>,
    /// Time left until the deadline while it is suspended, in milliseconds.
    pub deadline_held: Option<u64>,
    /// The failure limit that was reached, if one was.
    pub bound_reached: Option<Fault>,
    /// True if a tolerated failure occurred.
    pub with_failures: bool,
    /// The pending or final result; `None` until the execution starts to end.
    pub ending: Option<Ending>,
    /// Progress of the steps of `finally`.
    pub cleanup: Cleanup,
    /// True if a user requested to cancel the execution.
    pub is_cancel_requested: bool,
    /// End of the execution, in milliseconds since 1970.
    pub ended_at: Option<u64>,
}

/// Progress of the steps of `finally`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cleanup {
    /// They have not started.
    #[default]
    Pending,
    /// They run.
    Running {
        /// `@ctx.outcome`.
        outcome: String,
    },
    /// The running ones are being stopped, and no further one starts.
    Halted,
    /// They have ended, or will not run.
    Ended,
}

/// Parameters with which an execution started.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// Public id of the execution.
    pub execution_id: String,
    /// Hash of the pinned definition, or of that of the last migration.
    pub workflow_hash: Hash,
    /// SHA-256 of the stored plan.
    pub plan_hash: Hash,
    /// Start of the execution, in milliseconds since 1970.
    pub at: u64,
    /// Limits of the execution.
    pub policy: Policy,
    /// `@ctx.attempt`.
    pub attempt: u32,
    /// User id of the caller who started it.
    pub by: String,
    /// `@input`.
    pub input: Value,
    /// `@vars`.
    pub variables: Value,
    /// The trigger, as in [`Start::trigger`](crate::input::Start::trigger).
    pub trigger: Value,
    /// Absolute path of the working directory of its steps.
    pub workspace: Option<String>,
}

/// A migration of an execution to another plan. The hashes of the plan are in [`Started`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Version of the definition in its catalogue, if it has one.
    pub version: Option<String>,
    /// User id of the caller.
    pub by: String,
    /// Time of the migration, in milliseconds since 1970.
    pub at: u64,
    /// The definitions and plans before, the oldest first.
    pub earlier: Vec<EarlierPlan>,
}

/// A plan with which an execution ran before a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierPlan {
    /// Time of the migration that replaced it, in milliseconds since 1970.
    pub until: u64,
    /// Hash of its definition.
    pub workflow_hash: Hash,
    /// SHA-256 of the stored plan.
    pub plan_hash: Hash,
}

/// A step instance.
#[derive(Debug, Clone, PartialEq)]
pub struct StepState {
    /// Current status.
    pub status: Status,
    /// Number of the last attempt, from 1; 0 if the step never started.
    pub attempt: u32,
    /// The resolved parameters; null after the step has ended.
    pub input: Value,
    /// Idempotency key of the step's effect.
    pub intent: Option<Hash>,
    /// Output of the completed step; null if the execution was already ending.
    pub output: Value,
    /// Failure of the last failed attempt.
    pub failure: Option<Failure>,
    /// True if the step's failure was tolerated.
    pub tolerated: bool,
    /// True if a failure edge handled the step's failure.
    pub is_handled: bool,
    /// True if the step started while the execution was already failing. Its successors then run as well.
    pub is_cleanup: bool,
    /// Reason for which the current attempt was asked to stop.
    pub stopping: Option<StopReason>,
    /// The open gate, or else the last one.
    pub gate: Option<GateState>,
    /// Memory taken by the step instance, in bytes as counted by `apply`.
    pub memory_bytes: u64,
    /// The child execution of the last attempt, if it has one.
    pub child: ChildState,
    /// The call of the last attempt in a tool server, if it reported one.
    pub call: CallState,
    /// Start and end of the step and of its last attempt.
    pub times: StepTimes,
}

/// Numbers about the child execution that an attempt runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChildState {
    /// Number of the last notification that the child of the current attempt sent about waiting for approvals.
    pub notices: u32,
    /// Number of executions reserved for the child of the last attempt, the child included, and not returned.
    pub executions: u32,
}

/// Reports of the last attempt about its call in a tool server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallState {
    /// The executor's way to ask for the call; null if it reported none.
    pub handle: Value,
    /// The answer to the last form: `{action}` or `{action, content}`; null if there is none.
    pub answer: Value,
    /// The last form with the decision of a person: `{question, decision, by, reason}`.
    pub answered: Value,
    /// `answered` of the attempt before, if an interruption may have lost the answer. The attempt gets it once, if it asks
    /// for the same.
    pub carried: Value,
    /// Number of reports of the attempt.
    pub reports: u32,
}

/// Times of a step instance, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepTimes {
    /// Start of the step.
    pub started_at: u64,
    /// Dispatch of the last attempt.
    pub handed_out_at: u64,
    /// End of the current attempt's timeout.
    pub timeout_at: Option<u64>,
    /// Time at which the open gate was opened, or the last one since the attempt was dispatched.
    pub asked_at: Option<u64>,
    /// Start of the next attempt or end of the wait.
    pub wake_at: Option<u64>,
    /// End of the step.
    pub ended_at: Option<u64>,
}

/// Status of a step instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Not started.
    #[default]
    Pending,
    /// An attempt or an inner block is running.
    Running,
    /// An attempt failed, and the next one is scheduled.
    Retrying,
    /// Waits for a time or a signal.
    Waiting,
    /// Waits for a decision at a gate.
    WaitingApproval,
    /// Ended successfully.
    Completed,
    /// Failed, with no attempts left.
    Failed,
    /// Will not run.
    Skipped,
    /// Canceled.
    Cancelled,
}

impl Status {
    /// The name in traces and API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::WaitingApproval => "waiting_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// True for the statuses that never change again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped | Self::Cancelled)
    }
}

/// An approval gate, open or decided.
#[derive(Debug, Clone, PartialEq)]
pub struct GateState {
    /// Number of the gate within its step instance, from 1.
    pub number: u32,
    /// True while the gate waits for decisions.
    pub is_open: bool,
    /// The question shown to approvers.
    pub prompt: String,
    /// Data shown with the question.
    pub items: Value,
    /// User ids that may decide. Empty if the owner and the admins may.
    pub approvers: Vec<String>,
    /// Number of approvals needed.
    pub count: u32,
    /// User ids that have approved.
    pub approved_by: Vec<String>,
    /// Expiry of the gate, in milliseconds since 1970.
    pub expires_at: u64,
    /// Decision that applies when the gate expires.
    pub on_timeout: Decision,
    /// Subject of the question.
    pub purpose: Purpose,
}

/// A running block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeState {
    /// Indexes in the block of the steps that are still pending.
    pub pending: BTreeSet<u32>,
    /// Number of its steps that have started and not ended.
    pub open: u32,
    /// Number of open steps that do not count against `max_parallel`: those that wait for a person, a time or a signal.
    /// A step between two attempts does count.
    pub waiting: u32,
    /// In a block with edges: for each step of the block, the number of incoming edges whose source has not ended.
    pub unsettled: Vec<u32>,
    /// In a block with edges: the pending steps without such edges, by priority and then in plan order.
    pub decidable: BTreeSet<(Reverse<i32>, u32)>,
    /// The step whose failure fails the block.
    pub failed: Option<Instance>,
    /// True if a failure in the block, at any depth, will fail it. No further step starts, except handlers and cleanup.
    pub is_failing: bool,
}

/// A running loop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoopState {
    /// Number of rounds. `None` for a loop with a condition.
    pub count: Option<u32>,
    /// Number of rounds started.
    pub begun: u32,
    /// Number of rounds started and not ended.
    pub open: u32,
    /// Outputs by round. A loop with a condition keeps only the output of the last round.
    pub outputs: Vec<Value>,
    /// Memory taken by the loop, in bytes as counted by `apply`.
    pub memory_bytes: u64,
    /// Size of the outputs, in encoded bytes.
    pub output_bytes: u64,
    /// For an agent, the hash of its turns and of those that it continues.
    pub conversation: Hash,
    /// For an agent, the messages that it read before its first turn.
    pub opening: Vec<Value>,
    /// For an agent, the number of turns begun when it last read messages.
    pub read_in: u32,
    /// The step whose failure fails the loop.
    pub failed: Option<Instance>,
    /// True if a failure inside will fail the loop. No further round starts.
    pub is_failing: bool,
}

/// An accepted signal that no step has consumed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Deduplication id.
    pub id: String,
    /// Name of the signal.
    pub name: String,
    /// Payload of the signal.
    pub payload: Value,
    /// Size of the payload, in encoded bytes.
    pub byte_count: usize,
}

/// Reason for which a signal is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRejection {
    /// A signal with the same id was accepted before. The sender can treat this as success.
    Repeated,
    /// The execution is ending, so no step will consume the signal.
    Ending,
    /// The kept signals have reached their limit in number or bytes.
    Full,
}

impl SignalRejection {
    /// Returns the reason as a clause whose subject is the execution.
    pub fn words(self) -> &'static str {
        match self {
            Self::Repeated => "has had a signal of this identity",
            Self::Ending => "is ending or has ended, and waits for no signals any more",
            Self::Full => "keeps as many signals as it may until its steps have taken some",
        }
    }
}

/// Progress of an execution, as the API shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionStatus {
    /// Not started, or queued.
    Pending,
    /// Some step runs, or waits for something other than an approval.
    Running,
    /// Waits for approvals only.
    WaitingApproval,
    /// Cancel requested; some attempts have not stopped yet.
    CancelRequested,
    /// Ended successfully.
    Completed,
    /// Ended with a failure.
    Failed,
    /// Canceled.
    Cancelled,
}

impl ExecutionStatus {
    /// The name in the catalogue and in API responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::WaitingApproval => "waiting_approval",
            Self::CancelRequested => "cancel_requested",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// True if the execution has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl State {
    /// Returns the workflow that the attempts of a step start, and true if the step waits for its end. `None` for any
    /// other step.
    pub fn started_workflow(&self, instance: &Instance) -> Option<(&str, bool)> {
        match &self.plan.step(instance.step).work {
            Work::Subworkflow { workflow, waits, .. } => Some((workflow.as_str(), *waits)),
            Work::Effect { .. } if self.plan.agent_part(instance.step) == Some(AgentPart::Call) => {
                let input = &self.steps.get(instance)?.input;
                let is_child = input.get("effect").and_then(Value::as_text) == Some(CHILD_EFFECT);
                let workflow = input.get("params")?.get("workflow")?.as_text()?;
                is_child.then_some((workflow, true))
            }
            _ => None,
        }
    }

    /// Returns the id of the workflow in its catalogue. The name of the definition identifies it if there is no
    /// catalogue.
    pub fn workflow(&self) -> Option<&str> {
        let said = |key| self.start.as_ref().and_then(|start| start.trigger.get(key)).and_then(Value::as_text);
        match said(ORGANIZATION_IN_TRIGGER) {
            Some(_) => said(WORKFLOW_IN_TRIGGER),
            None => self.plan.name.as_deref(),
        }
    }

    /// Returns the version of the definition in its catalogue: that of the last migration, or else of the start.
    pub fn workflow_version(&self) -> Option<&str> {
        if let Some(migration) = &self.journal.migration {
            return migration.version.as_deref().or(self.plan.version.as_deref());
        }
        let trigger = self.start.as_ref().map(|start| &start.trigger);
        let version = trigger.and_then(|trigger| trigger.get(VERSION_IN_TRIGGER)).and_then(Value::as_text);
        version.or(self.plan.version.as_deref())
    }

    /// Returns the hashes of the definition and of the plan that the execution had at a time, in milliseconds since 1970.
    pub(crate) fn hashes_at(&self, at: u64) -> Option<(Hash, Hash)> {
        let earlier = self.journal.migration.iter().flat_map(|migration| &migration.earlier);
        let then = earlier.into_iter().find(|earlier| at < earlier.until);
        let now = self.start.as_ref().map(|start| (start.workflow_hash, start.plan_hash));
        then.map(|then| (then.workflow_hash, then.plan_hash)).or(now)
    }

    /// Creates the state of an execution that has not started.
    pub fn new(key: ExecutionKey, plan: Arc<Plan>) -> Self {
        Self {
            key,
            plan,
            now: 0,
            start: None,
            lineage: Lineage::default(),
            queue: None,
            decide_version: DECIDE_VERSION,
            steps: BTreeMap::new(),
            blocks: Blocks::default(),
            open: OpenWork::default(),
            outputs: Map::new(),
            signals: Signals::default(),
            counts: Counts::default(),
            journal: JournalFacts::default(),
            end: EndState::default(),
        }
    }

    /// Returns the root of the execution tree. A child that an older release started knows only its parent, which is then
    /// returned.
    pub fn root(&self) -> ExecutionKey {
        if self.lineage.depth == 0 {
            return self.key;
        }
        let trigger = self.start.as_ref().and_then(|start| start.trigger.get(ROOT_IN_TRIGGER));
        let stored = trigger.and_then(Value::as_text).and_then(ExecutionKey::parse);
        stored.or(self.lineage.parent.as_ref().map(|parent| parent.execution)).unwrap_or(self.key)
    }

    /// Derives the status of the execution.
    pub fn status(&self) -> ExecutionStatus {
        match (&self.end.ending, self.end.ended_at) {
            _ if self.start.is_none() || self.queue.is_some() => ExecutionStatus::Pending,
            (Some(Ending::Completed { .. }), Some(_)) => ExecutionStatus::Completed,
            (Some(Ending::Failed { .. }), Some(_)) => ExecutionStatus::Failed,
            (Some(Ending::Cancelled { .. }), Some(_)) => ExecutionStatus::Cancelled,
            _ if self.waits_only_for_people() => ExecutionStatus::WaitingApproval,
            (Some(Ending::Cancelled { .. }), None) => ExecutionStatus::CancelRequested,
            _ => ExecutionStatus::Running,
        }
    }

    /// True if the execution is ending and running attempts are asked to stop. A completing execution waits for them
    /// instead, since decide version 5.
    pub fn is_stopping(&self) -> bool {
        match &self.end.cleanup {
            Cleanup::Running { .. } => return false,
            Cleanup::Halted => return true,
            Cleanup::Pending | Cleanup::Ended => {}
        }
        match &self.end.ending {
            Some(Ending::Completed { .. }) => self.decide_version < BOUNDS_SINCE,
            Some(ending) => ending.stops(),
            None => false,
        }
    }

    /// True while the steps of `finally` run: everything else has ended, and its result is settled.
    pub fn is_cleaning_up(&self) -> bool {
        matches!(self.end.cleanup, Cleanup::Running { .. })
    }

    /// Returns the name of the pending result, as `@ctx.outcome` has it.
    pub(crate) fn outcome(&self) -> &'static str {
        match &self.end.ending {
            None | Some(Ending::Completed { .. }) if self.end.with_failures => "with_failures",
            None | Some(Ending::Completed { .. }) => "completed",
            Some(Ending::Failed { fault, .. }) if fault.code.starts_with("execution_timeout:") => "timed_out",
            Some(Ending::Failed { .. }) => "failed",
            Some(Ending::Cancelled { reason }) if DENIALS.contains(&reason.as_str()) => "denied",
            Some(Ending::Cancelled { .. }) => "cancelled",
        }
    }

    fn waits_only_for_people(&self) -> bool {
        let is_gate = |instance| self.step_status(instance) == Status::WaitingApproval;
        let waits = !self.open.waits.is_empty() || !self.open.held_children.is_empty();
        waits && !self.journal.is_split && !self.has_work_out() && self.open.waits.iter().all(is_gate)
    }

    /// Returns the status of a step instance. An instance without a state of its own is pending while it can still
    /// start, and skipped otherwise.
    pub fn step_status(&self, instance: &Instance) -> Status {
        if let Some(step) = self.steps.get(instance) {
            return step.status;
        }
        let Some(owner) = instance.scope(&self.plan).owner(&self.plan) else {
            return Status::Pending;
        };
        let passed_by = self.step_status(&owner).is_final() || self.took_another_branch(&owner, instance);
        if passed_by { Status::Skipped } else { Status::Pending }
    }

    fn took_another_branch(&self, owner: &Instance, instance: &Instance) -> bool {
        let is_conditional = matches!(self.plan.step(owner.step).work, Work::Conditional { .. });
        let scope = instance.scope(&self.plan);
        is_conditional && self.steps.contains_key(owner) && !self.blocks.scopes.contains_key(&scope)
    }

    /// Returns the open gates in plan order.
    pub fn open_gates(&self) -> impl Iterator<Item = (&Instance, &GateState)> {
        self.open.waits.iter().filter_map(|instance| {
            let gate = self.steps.get(instance)?.gate.as_ref()?;
            gate.is_open.then_some((instance, gate))
        })
    }

    /// Returns the reason for which a signal would not be accepted; `None` if it would be kept or consumed at once.
    pub fn signal_rejection(&self, id: &str, name: &str, payload: &Value) -> Option<SignalRejection> {
        if self.signals.seen.contains(id) {
            return Some(SignalRejection::Repeated);
        }
        if self.end.ending.is_some() && !self.is_cleaning_up() {
            return Some(SignalRejection::Ending);
        }
        let are_too_many = self.signals.kept.len() >= SIGNALS_KEPT_MAX;
        let takes_memory =
            self.counts.memory_bytes + value_size::of_signal(id, name, payload) > EXECUTION_MEMORY_BYTES_MAX;
        if takes_memory && self.decide_version >= MEMORY_SINCE {
            return Some(SignalRejection::Full);
        }
        let is_full = if self.decide_version < SIGNAL_BYTES_SINCE {
            are_too_many
        } else {
            let bytes: usize = self.signals.kept.iter().map(|kept| kept.byte_count).sum();
            let are_too_large = bytes + cbor::byte_count(payload) > SIGNALS_KEPT_BYTES_MAX;
            (are_too_many || are_too_large) && self.wait_for_signal(name).is_none()
        };
        is_full.then_some(SignalRejection::Full)
    }

    /// Returns the first step instance, in plan order, that waits for a signal of this name.
    pub fn wait_for_signal(&self, name: &str) -> Option<&Instance> {
        self.open.waits.iter().find(|instance| {
            self.step_status(instance) == Status::Waiting
                && matches!(&self.plan.step(instance.step).work, Work::Signal { name: waited } if waited == name)
        })
    }

    /// Returns the output of a completed execution.
    pub fn output(&self) -> Option<&Value> {
        match &self.end.ending {
            Some(Ending::Completed { output }) if self.end.ended_at.is_some() => Some(output.value()),
            _ => None,
        }
    }

    /// Returns the timer that is due first.
    pub fn next_timer(&self) -> Option<&(u64, Timer)> {
        self.open.timers.first()
    }

    /// True if an attempt is running whose result will arrive without a person. A child that waits for approvals does
    /// not count: it sends a notification when it runs again.
    pub fn has_work_out(&self) -> bool {
        let awaits_lease = self.counts.budgets.leases.requested.is_some() && self.end.ended_at.is_none();
        awaits_lease || self.open.attempts.len() > self.open.held_children.len()
    }

    /// Returns the time at which a node without this state in memory must load the execution: 0 if there is work to do
    /// now, else the first timer. `None` if only an external input can advance it.
    pub fn wake_at(&self) -> Option<u64> {
        if self.end.ended_at.is_some() {
            return None;
        }
        if self.has_work_out() || self.journal.is_split {
            return Some(0);
        }
        self.open.timers.first().map(|(at, _)| *at)
    }
}
