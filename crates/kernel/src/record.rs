//! The journal's vocabulary: what has happened, never what is to be done. Variants are only added.

use alloc::{string::String, vec::Vec};

use crate::{
    failure::{Class, Failure},
    hash::Hash,
    input::{Lineage, Policy, Queue},
    instance::Instance,
    plan::Decision,
    value::Value,
};

/// Data that can be erased without breaking the chain: frames hold its salted hash.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// The data.
    Known(Value),
    /// It was erased.
    Erased,
}

static NULL: Value = Value::Null;

impl Payload {
    /// The data; null where it was erased.
    pub fn value(&self) -> &Value {
        match self {
            Self::Known(value) => value,
            Self::Erased => &NULL,
        }
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self::Known(value)
    }
}

/// A failure as it is journalled: code and class for policies, the rest as a payload.
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
    /// The failure, as far as it was not erased.
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
    /// The execution began. What it began with never changes.
    Started {
        /// Its name outside.
        execution_id: String,
        /// The pinned definition.
        workflow_hash: Hash,
        /// The pinned plan.
        plan_hash: Hash,
        /// The pinned version of decide.
        decide_version: u32,
        /// The bounds.
        policy: Policy,
        /// `@ctx.attempt`.
        attempt: u32,
        /// Who started it.
        by: String,
        /// `@input`.
        input: Payload,
        /// `@vars`.
        variables: Payload,
        /// `{trigger, workspace}`.
        context: Payload,
        /// The end of its time.
        deadline: Option<u64>,
    },
    /// The execution belongs to a family.
    LineageSet {
        /// Its place there.
        lineage: Lineage,
    },
    /// A step is not to run.
    StepSkipped {
        /// Which.
        instance: Instance,
        /// Why.
        reason: SkipReason,
    },
    /// A step began: its parameters are resolved, once for all attempts.
    StepStarted {
        /// Which.
        instance: Instance,
        /// The resolved parameters.
        input: Payload,
        /// The identity of its work in the world, if it has any there.
        intent: Option<Hash>,
    },
    /// A conditional has chosen.
    BranchTaken {
        /// Which conditional.
        instance: Instance,
        /// The block it runs; `None` if there is none for the answer.
        block: Option<u32>,
    },
    /// An attempt is handed out.
    AttemptStarted {
        /// Whose.
        instance: Instance,
        /// Which, from 1.
        attempt: u32,
        /// The end of its time.
        timeout_at: Option<u64>,
    },
    /// An attempt is asked to stop.
    AttemptStopping {
        /// Whose.
        instance: Instance,
        /// Which.
        attempt: u32,
        /// Why.
        reason: StopReason,
    },
    /// An attempt failed, and its step has not ended by that.
    AttemptFailed {
        /// Whose.
        instance: Instance,
        /// Which.
        attempt: u32,
        /// Why.
        fault: Fault,
        /// When the next begins; `None` if it begins at once or somebody is asked first.
        retry_at: Option<u64>,
    },
    /// A step waits for time or for a signal.
    WaitStarted {
        /// Which.
        instance: Instance,
        /// The time, if it waits for time.
        until: Option<u64>,
    },
    /// People are asked.
    GateOpened {
        /// Where.
        instance: Instance,
        /// Which of the instance's gates, from 1.
        gate: u32,
        /// `{prompt, items}`.
        question: Payload,
        /// Who may decide; empty for the owner and the admins.
        approvers: Vec<String>,
        /// How many different people must approve.
        count: u32,
        /// When it is decided by itself.
        expires_at: u64,
        /// How, then.
        on_timeout: Decision,
        /// What for.
        purpose: Purpose,
    },
    /// Somebody has decided, or nobody has in time.
    GateDecided {
        /// Where.
        instance: Instance,
        /// Which.
        gate: u32,
        /// How.
        decision: Decision,
        /// Who; `None` for the timeout.
        by: Option<String>,
        /// Why, if said.
        reason: Payload,
    },
    /// A step ended well.
    StepCompleted {
        /// Which.
        instance: Instance,
        /// Its output.
        output: Payload,
    },
    /// A step failed for good.
    StepFailed {
        /// Which.
        instance: Instance,
        /// Why.
        fault: Fault,
        /// What becomes of the failure.
        fate: FailureFate,
    },
    /// A step was called off.
    StepCancelled {
        /// Which.
        instance: Instance,
        /// A word for why.
        reason: String,
    },
    /// A function has written to its console.
    StepLogged {
        /// Whose.
        instance: Instance,
        /// A list of `{level, text}`.
        lines: Payload,
    },
    /// A round of a loop began.
    RoundStarted {
        /// Which loop.
        instance: Instance,
        /// Which round, from 0.
        round: u32,
    },
    /// A round of a loop ended, well or not.
    RoundEnded {
        /// Which loop.
        instance: Instance,
        /// Which round.
        round: u32,
    },
    /// More has failed than the policy bears: nothing new starts but what cleans up, then the execution fails.
    FailureBoundReached {
        /// Which bound.
        fault: Fault,
    },
    /// A signal arrived.
    SignalKept {
        /// Its identity.
        id: String,
        /// Its name.
        name: String,
        /// What it brings.
        payload: Payload,
    },
    /// A wait took a signal.
    SignalTaken {
        /// The wait.
        instance: Instance,
        /// The signal.
        id: String,
    },
    /// Somebody asked to cancel the execution.
    CancelRequested {
        /// A word for why.
        reason: String,
        /// Who.
        by: String,
    },
    /// Only people are waited for: the execution's time stands still.
    DeadlineHeld {
        /// What is left of it, in milliseconds.
        remaining_ms: u64,
    },
    /// The execution's time runs on.
    DeadlineSet {
        /// Its end.
        at: u64,
    },
    /// The execution is to end; nothing new starts.
    EndingBegun {
        /// How.
        ending: Ending,
    },
    /// The child of a step has begun to wait for nothing but people, or goes on.
    ChildWaits {
        /// The step.
        instance: Instance,
        /// How often the child has told this, from 1: with an odd number it waits.
        count: u32,
    },
    /// The execution waits in a queue: nothing of it begins.
    Queued {
        /// Which.
        queue: Queue,
    },
    /// It waits there no more.
    Admitted,
    /// The parent is told that nothing but people is waited for, or that this is over.
    ParentTold,
    /// The execution has ended. Nothing follows.
    Ended {
        /// Whether a failure was let through on the way.
        with_failures: bool,
    },
    /// The turn was too long for one frame; the rest follows.
    TurnSplit,
    /// Nothing was left of a turn that was cut short.
    TurnJoined,
    /// An attempt that starts another execution has given it a share of the executions that may be started.
    ExecutionsGiven {
        /// The step.
        instance: Instance,
        /// How many, the started one included.
        count: u32,
    },
    /// An execution that was waited for has ended, and has not used all of its share.
    ExecutionsReturned {
        /// The step.
        instance: Instance,
        /// How many it has not used.
        count: u32,
    },
    /// The evaluations of the turn took as long as they may; the rest follows.
    TurnYielded {
        /// The results of the turn when its time was over.
        results: u32,
    },
}

/// How an execution ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Well.
    Completed {
        /// Its output.
        output: Payload,
    },
    /// Badly.
    Failed {
        /// Why.
        fault: Fault,
        /// The step that failed it, if one did.
        instance: Option<Instance>,
        /// Whether what runs is stopped, or awaited.
        stops: bool,
    },
    /// Called off.
    Cancelled {
        /// A word for why: the canceller's, `approval_denied`, `approval_timeout`.
        reason: String,
    },
}

impl Ending {
    /// Whether what runs is stopped, or awaited, by the rules up to version 4. See
    /// [`State::is_stopping`](crate::state::State::is_stopping).
    pub fn stops(&self) -> bool {
        match self {
            Self::Failed { stops, .. } => *stops,
            Self::Completed { .. } | Self::Cancelled { .. } => true,
        }
    }
}

/// Why a step does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Its `when` does not hold.
    ConditionFalse,
    /// No edge leads to it: none was taken, or one is blocked by a failure.
    NoEdgeTaken,
    /// The execution is going to fail, and the step is not there to clean up.
    ExecutionFailing,
}

impl SkipReason {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ConditionFalse => "its condition does not hold",
            Self::NoEdgeTaken => "no edge leads to it",
            Self::ExecutionFailing => "the execution is failing",
        }
    }
}

/// What becomes of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureFate {
    /// It fails what contains the step.
    Fails,
    /// It is let through: the outcome says so.
    LetThrough,
    /// A failure edge takes it up: it leaves no mark.
    Handled,
}

/// Why an attempt is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Its time is over.
    Timeout,
    /// The execution is ending.
    Ending,
}

/// What people are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To let the execution go on: an approval step.
    Approval,
    /// Whether an attempt with an unknown outcome is to be repeated.
    Interrupted,
}

impl Record {
    /// Whether it ends its step instance.
    pub fn ends_step(&self) -> bool {
        use Record::{StepCancelled, StepCompleted, StepFailed, StepSkipped};
        matches!(self, StepCompleted { .. } | StepFailed { .. } | StepCancelled { .. } | StepSkipped { .. })
    }

    /// The step instance that it is about, if it is about one.
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
            | Self::RoundStarted { instance, .. }
            | Self::RoundEnded { instance, .. }
            | Self::ChildWaits { instance, .. }
            | Self::ExecutionsGiven { instance, .. }
            | Self::ExecutionsReturned { instance, .. }
            | Self::SignalTaken { instance, .. } => Some(instance),
            Self::Started { .. }
            | Self::LineageSet { .. }
            | Self::SignalKept { .. }
            | Self::CancelRequested { .. }
            | Self::DeadlineHeld { .. }
            | Self::DeadlineSet { .. }
            | Self::EndingBegun { .. }
            | Self::FailureBoundReached { .. }
            | Self::ParentTold
            | Self::Queued { .. }
            | Self::Admitted
            | Self::Ended { .. }
            | Self::TurnSplit
            | Self::TurnYielded { .. }
            | Self::TurnJoined => None,
        }
    }
}
