//! The journal's vocabulary. A record states a fact that has happened; it is never a command.
//!
//! `decide` produces records and `apply` folds them into the state. Journals of older releases must stay readable, so
//! variants are only added, never changed or removed. `frame` has their binary form.

use alloc::{string::String, vec::Vec};

use crate::{
    budget::Usage,
    effect::PinnedTool,
    failure::{Class, Failure},
    hash::Hash,
    input::{Lineage, Policy, Queue},
    instance::Instance,
    leases::LeaseChange,
    plan::{Decision, PlanBytes},
    value::Value,
};

pub use crate::payload::Payload;

/// A failure in the journal. Policies read the code and the class, so these are never erased; the rest is a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// See [`Failure::code`].
    pub code: String,
    /// See [`Failure::class`].
    pub class: Class,
    /// `{message, details}`.
    pub text: Payload,
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let text = Value::map([("message", Value::Text(failure.message)), ("details", failure.details)]);
        Self { code: failure.code, class: failure.class, text: text.into() }
    }
}

impl Fault {
    /// Returns the failure, with a placeholder for the message if the text has been erased.
    pub fn failure(&self) -> Failure {
        let text = self.text.value();
        let message = match &self.text {
            Payload::Known(_) => text.get("message").and_then(Value::as_text).unwrap_or_default(),
            Payload::Erased => "(erased)",
        };
        let details = text.get("details").cloned().unwrap_or_default();
        Failure { code: self.code.clone(), class: self.class, message: message.into(), details }
    }
}

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The execution started. Its input, variables and context never change afterwards.
    Started {
        /// Public id of the execution.
        execution_id: String,
        /// Hash of the normalized definition. It is pinned for the lifetime of the execution.
        workflow_hash: Hash,
        /// Hash of the plan, pinned likewise.
        plan_hash: Hash,
        /// Version of the rules in `decide`, pinned likewise.
        decide_version: u32,
        /// Limits of the execution, defaults filled in.
        policy: Policy,
        /// `@ctx.attempt`.
        attempt: u32,
        /// User id of the caller who started it.
        by: String,
        /// `@input`.
        input: Payload,
        /// `@vars`.
        variables: Payload,
        /// `{trigger, workspace}`.
        context: Payload,
        /// Deadline of the execution, in milliseconds since 1970.
        deadline: Option<u64>,
    },
    /// Sets the execution's position in its tree of parent and child executions.
    LineageSet {
        /// The parent, the depth, and the workflows and number of executions that may be started.
        lineage: Lineage,
    },
    /// A step will not run.
    StepSkipped {
        /// The skipped step instance.
        instance: Instance,
        /// Reason for skipping it.
        reason: SkipReason,
    },
    /// A step started. Its parameters are resolved once and used by all attempts.
    StepStarted {
        /// The started step instance.
        instance: Instance,
        /// The resolved parameters.
        input: Payload,
        /// Idempotency key of the step's effect, the same for all attempts. `None` for a step without an effect.
        intent: Option<Hash>,
    },
    /// A conditional step chose a branch.
    BranchTaken {
        /// The conditional step.
        instance: Instance,
        /// The block to run; `None` if there is no block for the result of the condition.
        block: Option<u32>,
    },
    /// An attempt was dispatched.
    AttemptStarted {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
        /// End of the attempt's timeout, in milliseconds since 1970.
        timeout_at: Option<u64>,
    },
    /// A running attempt was asked to stop.
    AttemptStopping {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
        /// Reason for the stop request.
        reason: StopReason,
    },
    /// An attempt failed and its step continues with another attempt or a question to a person.
    AttemptFailed {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
        /// Failure of the attempt.
        fault: Fault,
        /// Start of the next attempt, in milliseconds since 1970. `None` if it starts at once, or if a person is asked
        /// first.
        retry_at: Option<u64>,
    },
    /// A step started to wait for a time or a signal.
    WaitStarted {
        /// The waiting step instance.
        instance: Instance,
        /// End of the sleep or of the signal timeout, in milliseconds since 1970. `None` for a signal without a
        /// timeout.
        until: Option<u64>,
    },
    /// An approval gate was opened.
    GateOpened {
        /// The step instance that the gate belongs to.
        instance: Instance,
        /// Number of the gate within the step instance, from 1.
        gate: u32,
        /// `{prompt, items}`.
        question: Payload,
        /// User ids that may decide. Empty if the owner and the admins may.
        approvers: Vec<String>,
        /// Number of distinct users that must approve.
        count: u32,
        /// Expiry of the gate, in milliseconds since 1970.
        expires_at: u64,
        /// Decision that applies when the gate expires.
        on_timeout: Decision,
        /// Subject of the question.
        purpose: Purpose,
    },
    /// A user decided at a gate, or the gate expired.
    GateDecided {
        /// The step instance that the gate belongs to.
        instance: Instance,
        /// Number of the gate within the step instance, from 1.
        gate: u32,
        /// Approval or denial.
        decision: Decision,
        /// User id of the decider; `None` if the gate expired.
        by: Option<String>,
        /// Reason given by the decider; null if none was given.
        reason: Payload,
    },
    /// A step completed successfully.
    StepCompleted {
        /// The completed step instance.
        instance: Instance,
        /// Output of the step.
        output: Payload,
    },
    /// A step failed and has no attempts left.
    StepFailed {
        /// The failed step instance.
        instance: Instance,
        /// Failure of the step.
        fault: Fault,
        /// Effect of the failure on the enclosing block.
        disposition: FailureDisposition,
    },
    /// A step was canceled.
    StepCancelled {
        /// The canceled step instance.
        instance: Instance,
        /// Reason code, such as `sibling_failed`.
        reason: String,
    },
    /// A function wrote to its console.
    StepLogged {
        /// The step instance that the function belongs to.
        instance: Instance,
        /// A list of `{level, text}`.
        lines: Payload,
    },
    /// The final answer of an agent was rejected, and the model gets another turn.
    AnswerRejected {
        /// The agent.
        instance: Instance,
        /// The message to the model.
        reason: Payload,
    },
    /// A message was accepted for a conversation. It is kept until an agent reads it.
    MessageKept {
        /// Name of the conversation.
        conversation: String,
        /// The step that sent it; `None` for a message of a person.
        from: Option<Instance>,
        /// User id of the person who sent it; `None` for a message of a step.
        by: Option<String>,
        /// Deduplication id of a person's message; empty for that of a step, which sends one.
        id: String,
        /// The text.
        content: Payload,
    },
    /// An agent read the first messages that its conversation keeps, as part of the model call that starts next.
    MessagesRead {
        /// The agent.
        instance: Instance,
        /// Number of messages.
        count: u32,
    },
    /// A loop started a round.
    RoundStarted {
        /// The loop.
        instance: Instance,
        /// Round number, from 0.
        round: u32,
    },
    /// A round of a loop ended, successfully or not.
    RoundEnded {
        /// The loop.
        instance: Instance,
        /// Round number, from 0.
        round: u32,
    },
    /// A failure limit of the workflow's policy was reached. Only failure handlers and cleanup steps still start; then
    /// the execution fails.
    FailureBoundReached {
        /// Failure of the execution; its code names the limit.
        fault: Fault,
    },
    /// A signal was accepted.
    SignalKept {
        /// Deduplication id of the signal.
        id: String,
        /// Name of the signal.
        name: String,
        /// Payload of the signal.
        payload: Payload,
    },
    /// A waiting step consumed a signal.
    SignalTaken {
        /// The waiting step instance.
        instance: Instance,
        /// Deduplication id of the signal.
        id: String,
    },
    /// A user requested to cancel the execution.
    CancelRequested {
        /// Reason code, such as `user_cancelled`.
        reason: String,
        /// User id of the caller.
        by: String,
    },
    /// The deadline of the execution was suspended: it waits for approvals only, or is queued.
    DeadlineHeld {
        /// Time left until the deadline, in milliseconds.
        remaining_ms: u64,
    },
    /// The suspended deadline of the execution resumed.
    DeadlineSet {
        /// New deadline, in milliseconds since 1970.
        at: u64,
    },
    /// The execution started to end; no further step starts.
    EndingBegun {
        /// Result of the execution.
        ending: Ending,
    },
    /// The child execution of a step started to wait for approvals only, or resumed.
    ChildWaits {
        /// The step that waits for the child.
        instance: Instance,
        /// Number of the child's notification, from 1. Odd: the child waits for approvals. Even: it runs again.
        count: u32,
    },
    /// The execution was queued by a concurrency limit; no step starts until it is admitted.
    Queued {
        /// The limit that it waits for.
        queue: Queue,
    },
    /// The execution left its queue and may run.
    Admitted,
    /// The parent was notified that this execution waits for approvals only, or that it runs again.
    ParentNotified,
    /// The steps of `finally` started: everything else has ended.
    FinallyBegun {
        /// `@ctx.outcome`: `completed`, `with_failures`, `failed`, `timed_out`, `denied` or `cancelled`.
        outcome: String,
        /// End of the time of these steps, in milliseconds since 1970.
        deadline: u64,
    },
    /// The steps of `finally` were skipped, or their rest was.
    FinallyHalted {
        /// Reason for skipping them.
        reason: HaltReason,
        /// User id of the caller who canceled; `None` if a limit was reached.
        by: Option<String>,
    },
    /// The steps of `finally` have ended, successfully or not.
    FinallyEnded,
    /// The execution has ended. No record follows.
    Ended {
        /// True if a tolerated failure occurred.
        with_failures: bool,
    },
    /// The turn reached the limits of a frame; the rest of the turn follows in the next frame.
    TurnSplit,
    /// The continuation of a split turn had nothing left to do.
    TurnJoined,
    /// A step that starts a child execution reserved part of its execution budget for the child.
    ExecutionsGiven {
        /// The step that starts the child.
        instance: Instance,
        /// Number of executions reserved, the child itself included.
        count: u32,
    },
    /// A child execution ended and returned the unused part of its budget.
    ExecutionsReturned {
        /// The step that waited for the child.
        instance: Instance,
        /// Number of executions returned.
        count: u32,
    },
    /// A call of an agent, or a child execution, reserved what it may use.
    BudgetReserved {
        /// The step instance of the call or the child.
        instance: Instance,
        /// The reserved amounts.
        amount: Usage,
    },
    /// A receipt released a reservation and counted what was used.
    BudgetSettled {
        /// The step instance of the call or the child.
        instance: Instance,
        /// The used amounts.
        amount: Usage,
    },
    /// People raised a budget.
    BudgetRaised {
        /// The agent with the budget; `None` for the budget of the execution.
        agent: Option<Instance>,
        /// The amounts that were added.
        amount: Usage,
    },
    /// A budget is used up to the percentage of its warning.
    BudgetWarned {
        /// The agent with the budget; `None` for the budget of the execution.
        agent: Option<Instance>,
        /// The amounts that are used.
        usage: Usage,
    },
    /// A call waits for a lease of the budgets of its period. The first call that waits for a number requests the lease.
    LeaseAwaited {
        /// The step instance of the call.
        instance: Instance,
        /// Number of the attempt that will start, from 1.
        attempt: u32,
        /// Number of the lease within the execution, from 1.
        lease: u32,
        /// The amounts that the call may use.
        amount: Usage,
    },
    /// A lease was granted, refused or returned.
    LeaseChanged {
        /// Number of the lease.
        lease: u32,
        /// The answer of the store, or a return.
        change: LeaseChange,
    },
    /// The execution found tools of tool servers for the first time. Later calls need the same ones.
    ToolsPinned {
        /// The tools with their digests.
        tools: Vec<PinnedTool>,
    },
    /// A call continues in a tool server, and its attempt does.
    AttemptContinued {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
        /// The executor's way to ask for the call.
        handle: Payload,
    },
    /// An attempt was dispatched again, to continue after its report or after the answer of a person.
    AttemptResumed {
        /// The step instance of the attempt.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
        /// End of the attempt's timeout, in milliseconds since 1970.
        timeout_at: Option<u64>,
    },
    /// The execution continues with another plan.
    Migrated {
        /// Hash of the normalized definition of the new plan.
        workflow_hash: Hash,
        /// SHA-256 of the new plan.
        plan_hash: Hash,
        /// Version of the definition in its catalogue, if it has one.
        version: Option<String>,
        /// Limits of the execution from now on.
        policy: Policy,
        /// User id of the caller.
        by: String,
        /// The cause, such as `proposal pr-…`.
        reason: String,
        /// The new plan in its stored form.
        plan: PlanBytes,
    },
    /// The evaluations of the turn reached their time limit; the rest of the turn follows in the next frame.
    TurnYielded {
        /// Number of evaluation results in the turn when the limit was reached.
        results: u32,
    },
}

/// Reason codes of denied and expired gates.
pub(crate) const DENIALS: [&str; 2] = ["approval_denied", "approval_timeout"];

/// The result with which an execution ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The execution completed.
    Completed {
        /// Output of the execution.
        output: Payload,
    },
    /// The execution failed.
    Failed {
        /// Failure of the execution.
        fault: Fault,
        /// The failed step instance. `None` if a limit, a deadline or the input caused the failure.
        instance: Option<Instance>,
        /// True if running attempts are stopped. Otherwise the execution waits for them.
        stops: bool,
    },
    /// The execution was canceled.
    Cancelled {
        /// Reason code: that of the cancel request, `approval_denied` or `approval_timeout`.
        reason: String,
    },
}

impl Ending {
    /// True if running attempts are stopped rather than awaited. The answer for `Completed` holds for decide versions
    /// up to 4 only; [`State::is_stopping`](crate::state::State::is_stopping) takes the version into account.
    pub fn stops(&self) -> bool {
        match self {
            Self::Failed { stops, .. } => *stops,
            Self::Completed { .. } | Self::Cancelled { .. } => true,
        }
    }
}

/// Reason for which a step is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// The step's `when` condition is false.
    ConditionFalse,
    /// No edge into the step was taken, or a failure blocks one.
    NoEdgeTaken,
    /// The execution is failing, and the step is neither a failure handler nor a cleanup step.
    ExecutionFailing,
}

impl SkipReason {
    /// Returns the reason as a clause for messages.
    pub fn description(self) -> &'static str {
        match self {
            Self::ConditionFalse => "its condition does not hold",
            Self::NoEdgeTaken => "no edge leads to it",
            Self::ExecutionFailing => "the execution is failing",
        }
    }
}

/// Disposition of a step's failure: the consequence for the enclosing block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureDisposition {
    /// The enclosing block fails.
    Failed,
    /// The failure is tolerated: the block continues, and the execution's result reports that a step failed.
    Tolerated,
    /// A failure edge handles the failure, and the result does not report it.
    Handled,
}

/// Reason for which an attempt is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The attempt's timeout expired.
    Timeout,
    /// The execution is ending.
    Ending,
    /// A message interrupts the model call of an agent.
    Message,
}

/// Reason for which the steps of `finally` do not run, or not to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltReason {
    /// A second cancel.
    Cancelled,
    /// Their time was up.
    Timeout,
    /// They reached a limit on steps, calls, memory or journal size.
    Limit,
}

impl HaltReason {
    /// Returns the name for traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Limit => "limit",
        }
    }
}

/// Subject of an approval gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Permission to continue, for an approval step.
    Approval,
    /// Permission to repeat an attempt with an unknown outcome.
    Interrupted,
    /// Permission for a call, because a policy requires it.
    Call,
    /// Permission to raise a budget, and to continue.
    Budget,
    /// The answer to a question that a model asks. It is the reason of the decision.
    Question,
    /// The content of a form that a tool server asks for. It is the reason of the decision, as `{content}`.
    Form,
}

impl Record {
    /// True if the record ends its step instance.
    pub fn ends_step(&self) -> bool {
        use Record::{StepCancelled, StepCompleted, StepFailed, StepSkipped};
        matches!(self, StepCompleted { .. } | StepFailed { .. } | StepCancelled { .. } | StepSkipped { .. })
    }

    /// Returns the step instance of the record, or `None` if the record concerns the whole execution.
    pub fn instance(&self) -> Option<&Instance> {
        match self {
            Self::StepSkipped { instance, .. }
            | Self::StepStarted { instance, .. }
            | Self::BranchTaken { instance, .. }
            | Self::AttemptStarted { instance, .. }
            | Self::AttemptStopping { instance, .. }
            | Self::AttemptFailed { instance, .. }
            | Self::WaitStarted { instance, .. }
            | Self::GateOpened { instance, .. }
            | Self::GateDecided { instance, .. }
            | Self::StepCompleted { instance, .. }
            | Self::StepFailed { instance, .. }
            | Self::StepCancelled { instance, .. }
            | Self::StepLogged { instance, .. }
            | Self::AnswerRejected { instance, .. }
            | Self::MessagesRead { instance, .. }
            | Self::RoundStarted { instance, .. }
            | Self::RoundEnded { instance, .. }
            | Self::ChildWaits { instance, .. }
            | Self::ExecutionsGiven { instance, .. }
            | Self::ExecutionsReturned { instance, .. }
            | Self::LeaseAwaited { instance, .. }
            | Self::AttemptContinued { instance, .. }
            | Self::AttemptResumed { instance, .. }
            | Self::SignalTaken { instance, .. } => Some(instance),
            Self::Started { .. }
            | Self::LineageSet { .. }
            | Self::SignalKept { .. }
            | Self::MessageKept { .. }
            | Self::CancelRequested { .. }
            | Self::DeadlineHeld { .. }
            | Self::DeadlineSet { .. }
            | Self::EndingBegun { .. }
            | Self::FailureBoundReached { .. }
            | Self::ParentNotified
            | Self::Queued { .. }
            | Self::BudgetReserved { .. }
            | Self::BudgetSettled { .. }
            | Self::BudgetRaised { .. }
            | Self::BudgetWarned { .. }
            | Self::LeaseChanged { .. }
            | Self::ToolsPinned { .. }
            | Self::Migrated { .. }
            | Self::Admitted
            | Self::FinallyBegun { .. }
            | Self::FinallyHalted { .. }
            | Self::FinallyEnded
            | Self::Ended { .. }
            | Self::TurnSplit
            | Self::TurnYielded { .. }
            | Self::TurnJoined => None,
        }
    }
}
