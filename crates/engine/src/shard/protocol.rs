//! The protocol of the shard: a closed set of events in, and a closed set of outputs out. It contains types only.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{
    cbor::byte_count,
    effect::Attempt,
    failure::Failure,
    input::{Input, Parent, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    receipt::Via,
    record::Record,
    state::ExecutionStatus,
};
use mainspring_store::{AuditEntry, Batch, CommitError, Due, ExecutionRow, PartOutcome, RemoteAttempt, StoredPlan};

use crate::{
    evaluator::{Finished, Suspended},
    intake::{Charge, RequestSize},
    journal_loader::LoadAnswer,
    membership::{Handoff, LeaseRenewal},
    period_budgets::{Unbudgeted, WantedLease},
    trace_spans::Span,
};

/// Input of the shard.
#[derive(Debug)]
pub enum Event {
    /// A new execution, with its plan and its row.
    Start(Box<NewExecution>),
    /// An input for an execution.
    Take(ExecutionKey, PendingInput),
    /// The answer to [`Output::Load`], with the number of the request.
    Loaded(ExecutionKey, u64, Box<LoadAnswer>),
    /// The answer to [`Output::Commit`].
    Committed {
        /// The number of the commit.
        commit_id: u64,
        /// The result for each part, or the error of the whole commit.
        answer: Result<Vec<PartOutcome>, CommitError>,
    },
    /// The answer to [`Output::Reconcile`].
    AttemptRecovered {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The step instance of the attempt.
        instance: Instance,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The outcome of the recovery.
        recovery: AttemptRecovery,
    },
    /// An attempt that waited for a permit begins; see [`Shard::wait_for_permit`](super::Shard::wait_for_permit).
    Began {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The step instance.
        instance: Instance,
        /// Attempt number, from 1.
        attempt: u32,
    },
    /// The answer to [`Output::Evaluate`].
    Evaluated {
        /// The execution of the turn.
        execution: ExecutionKey,
        /// The number from [`Output::Evaluate`].
        evaluation: u64,
        /// The state and the decided turn, or a message about a fault of the engine.
        finished: Box<Finished>,
    },
    /// A forged message: not sealed with the installation's key. It is deleted from the inbox by this id.
    Discard(ExecutionKey, String),
    /// A child that may not start, and the failure that its parent receives.
    TurnAway(Box<NewExecution>, Failure),
    /// The same, for a child whose start message cannot be read.
    TurnChildAway {
        /// The key of the child.
        execution: ExecutionKey,
        /// The start message, which is deleted.
        message: ReceivedMessage,
        /// The step of the parent that waits for the child.
        parent: Parent,
        /// The failure that the parent receives.
        failure: Failure,
    },
    /// No budget of a day or a month applies to these executions for some time.
    Unbudgeted(Unbudgeted),
    /// The store has recorded a quarantine, with this reason.
    Quarantined(ExecutionKey, String),
    /// Executions whose wake-up time is close, as read from the store.
    Due(Vec<Due>),
    /// A heartbeat succeeded.
    LeaseRenewed(Box<LeaseRenewal>),
    /// The store has expired the lease of this node: all partitions are lost.
    LeaseExpired,
    /// Time has passed.
    Wake,
}

/// The recovered outcome of an attempt that this shard does not know to be running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptRecovery {
    /// It certainly never started.
    NeverStarted,
    /// It started, or may have started, and no longer runs.
    Interrupted,
    /// It still runs, and its receipt will follow.
    StillRunning,
}

impl Event {
    /// True for a cancel of an execution.
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(self, Self::Take(_, PendingInput { input: Input::Cancel { .. }, .. }))
    }

    /// The inbox message that contained the event.
    pub(crate) fn message_mut(&mut self) -> Option<&mut ReceivedMessage> {
        match self {
            Self::Start(new_execution) => new_execution.message.as_mut(),
            Self::Take(_, queued) => queued.message.as_mut(),
            Self::TurnChildAway { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The size of the event as a request of a caller.
    pub(crate) fn size(&self) -> RequestSize {
        match self {
            Self::Start(new_execution) => {
                let plans: usize = new_execution.stored_plans.iter().map(|plan| plan.bytes.len()).sum();
                let start = &new_execution.start;
                let values = [&start.input, &start.variables, &start.trigger];
                RequestSize::Bytes(plans + values.into_iter().map(byte_count).sum::<usize>())
            }
            Self::Take(_, queued) => match &queued.input {
                Input::Decide { .. } | Input::Cancel { .. } | Input::SkipCleanup { .. } => RequestSize::Control,
                Input::Signal { payload, .. } | Input::Message { content: payload, .. } => {
                    RequestSize::Bytes(byte_count(payload))
                }
                Input::Migrate { plan, .. } => RequestSize::Bytes(plan.0.len()),
                _ => RequestSize::Bytes(0),
            },
            _ => RequestSize::Bytes(0),
        }
    }

    /// True for an event of a single execution.
    pub(crate) fn is_of_execution(&self) -> bool {
        !matches!(
            self,
            Self::Committed { .. }
                | Self::Due(_)
                | Self::Unbudgeted(_)
                | Self::LeaseRenewed(_)
                | Self::LeaseExpired
                | Self::Wake
        )
    }

    pub(crate) fn execution(&self) -> ExecutionKey {
        match self {
            Self::Start(new_execution) | Self::TurnAway(new_execution, _) => new_execution.execution,
            Self::Take(execution, _)
            | Self::TurnChildAway { execution, .. }
            | Self::Loaded(execution, ..)
            | Self::AttemptRecovered { execution, .. }
            | Self::Began { execution, .. }
            | Self::Evaluated { execution, .. }
            | Self::Discard(execution, _)
            | Self::Quarantined(execution, _) => *execution,
            Self::Committed { .. }
            | Self::Due(_)
            | Self::Unbudgeted(_)
            | Self::LeaseRenewed(_)
            | Self::LeaseExpired
            | Self::Wake => ExecutionKey([0; 16]),
        }
    }
}

/// A new execution, ready to start.
#[derive(Debug)]
pub struct NewExecution {
    /// A new key, from which the partition follows.
    pub execution: ExecutionKey,
    /// The plan to execute.
    pub plan: Arc<Plan>,
    /// The stored form of the plan, and of the plans of all possible children.
    pub stored_plans: Vec<StoredPlan>,
    /// The start input.
    pub start: Box<Start>,
    /// The row of the execution in the catalogue.
    pub row: ExecutionRow,
    /// The inbox message that contained the start.
    pub message: Option<ReceivedMessage>,
    /// The caller that waits for the reply.
    pub ticket: Option<Ticket>,
    /// The entry of the audit log, if the start changes anything. A start from the inbox was audited when it was
    /// enqueued.
    pub audit: Option<Box<AuditEntry>>,
}

/// An input that waits for its execution.
#[derive(Debug)]
pub struct PendingInput {
    /// The fact to process.
    pub input: Input,
    /// The inbox message that contained the input. The commit of the turn deletes it.
    pub message: Option<ReceivedMessage>,
    /// The caller that waits for the reply.
    pub ticket: Option<Ticket>,
    /// The entry of the audit log, if the input changes anything. An input from the inbox was audited when it was
    /// enqueued.
    pub audit: Option<Box<AuditEntry>>,
}

impl PendingInput {
    /// An input without a caller that waits for the reply.
    pub fn without_reply(input: Input) -> Self {
        Self { input, message: None, ticket: None, audit: None }
    }

    /// The way by which the input reached this node.
    pub(crate) fn via(&self) -> Via {
        if self.message.is_some() { Via::Inbox } else { Via::Executor }
    }
}

/// An inbox message that contained an input.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// The id of the row in the inbox.
    pub id: String,
    /// The message's share of the bound of received messages, until its result is durable or refused.
    pub(crate) charge: Option<Charge>,
    /// The message's share of the bound of messages for executions that cannot process input at present.
    pub(crate) held_up: Option<Charge>,
}

impl From<String> for ReceivedMessage {
    fn from(id: String) -> Self {
        Self { id, charge: None, held_up: None }
    }
}

impl From<&str> for ReceivedMessage {
    fn from(id: &str) -> Self {
        id.to_owned().into()
    }
}

/// Identifies a caller that waits for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A request of the shard to its driver. The driver performs outputs in their order.
#[derive(Debug)]
pub enum Output {
    /// Commit this batch. At most one commit is in flight.
    Commit {
        /// The number that the answer repeats.
        commit_id: u64,
        /// The batch, shared with the shard, which submits it again if nothing of it was written.
        batch: Arc<Batch>,
    },
    /// Read the journal of an execution. The answer repeats the number.
    Load(ExecutionKey, u64),
    /// Perform an attempt. Its receipt returns as an input.
    Perform {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The step instance of the attempt.
        instance: Instance,
        /// The work to perform.
        attempt: Attempt,
    },
    /// Ask an attempt to stop. Nothing happens if it no longer runs here.
    Stop {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The step instance of the attempt.
        instance: Instance,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Kill an attempt at once, since the next owner of its execution may start it again. Nothing happens if it no
    /// longer runs here.
    Kill {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The step instance of the attempt.
        instance: Instance,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Recover an attempt that this shard does not know to be running. The answer is [`Event::AttemptRecovered`].
    Reconcile {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The step instance of the attempt.
        instance: Instance,
        /// The attempt as recorded in the journal.
        attempt: Attempt,
    },
    /// Request a lease of the budgets for this day and month. The answer returns as an input.
    Lease(WantedLease),
    /// Process a turn outside the shard: its evaluations, or all of it.
    Evaluate {
        /// The execution of the turn.
        execution: ExecutionKey,
        /// The number that the answer repeats.
        evaluation: u64,
        /// The state and the rest of the turn.
        suspended: Box<Suspended>,
    },
    /// Inbox messages for executions in these partitions are durable.
    MessagesEnqueued(BTreeSet<u32>),
    /// Read the inbox again: received messages were not consumed, since the commit of their turns was not written.
    RescanInbox,
    /// These partitions were acquired. Their inbox and their due executions are to be read.
    Acquired(Vec<u32>),
    /// Partitions were released: the next heartbeat records it in the store.
    Handoff(Handoff),
    /// These partitions were lost.
    Lost(Vec<u32>),
    /// Enqueue an input for an execution that another node owns, or none. Then record the end of the attempt, if the
    /// store lists it as running here.
    PassOn(ExecutionKey, Input, Option<RemoteAttempt>),
    /// Ask the node that performs an attempt to stop it.
    StopRemote(RemoteAttempt),
    /// Activate an execution that another one waits for.
    Activate(ExecutionKey),
    /// The receipt of an attempt is durable, so its process record can be removed.
    Forget {
        /// The execution of the attempt.
        execution: ExecutionKey,
        /// The name of the step instance.
        step: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// A reply to a caller.
    Reply(Ticket, Reply),
    /// A durable frame, for subscribers.
    Notify(Arc<CommittedFrame>),
    /// Quarantine an execution, for this reason.
    Quarantine(ExecutionKey, String),
    /// The store refused to write. The next flush submits the commit again.
    Stalled(String),
    /// This process cannot continue: the disk or the ownership of the store is lost.
    Fatal(String),
}

impl Output {
    /// True for an output that is performed even if its execution is no longer owned here. Durable frames are shown,
    /// running attempts are stopped and process records are removed. New work starts only if `is_handoff`: the partition
    /// was then released and not lost.
    pub(super) fn stays_without(&self, is_gone: &impl Fn(&ExecutionKey) -> bool, is_handoff: bool) -> bool {
        match self {
            Self::Perform { execution, .. } => is_handoff || !is_gone(execution),
            Self::Reconcile { execution, .. }
            | Self::Evaluate { execution, .. }
            | Self::Load(execution, _)
            | Self::Activate(execution)
            | Self::Quarantine(execution, _) => !is_gone(execution),
            Self::Lease(wanted) => !is_gone(&wanted.execution),
            // The new owner repeats the request if the attempt is still to be stopped.
            Self::StopRemote(attempt) => !is_gone(&attempt.execution),
            Self::Commit { .. }
            | Self::Forget { .. }
            | Self::Stop { .. }
            | Self::Kill { .. }
            | Self::MessagesEnqueued(_)
            | Self::RescanInbox
            | Self::Acquired(_)
            | Self::Handoff(_)
            | Self::Lost(_)
            | Self::PassOn(..)
            | Self::Reply(..)
            | Self::Notify(_)
            | Self::Stalled(_)
            | Self::Fatal(_) => true,
        }
    }
}

/// The reply to a caller.
pub type Reply = Result<Taken, ShardError>;

/// The input was processed, and the result is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// False for a repeated or late input.
    pub changed: bool,
}

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardError {
    /// No such execution exists.
    NoSuchExecution,
    /// The execution is quarantined, for this reason.
    Quarantined(String),
    /// The execution belongs to another node or, during a handoff, to none. A message in its inbox is delivered to it.
    NotHere,
    /// Another execution has the name or the idempotency key.
    Exists(ExecutionKey),
    /// The store failed, with this message.
    Store(String),
    /// The organization has reached its bound of unfinished executions, which is this number.
    TooMany(u32),
}

/// A durable frame, for subscribers.
#[derive(Debug, Clone)]
pub struct CommittedFrame {
    /// The execution of the frame.
    pub execution: ExecutionKey,
    /// The sequence of the frame in the journal.
    pub sequence: u64,
    /// The time of the turn, in Unix milliseconds.
    pub now: u64,
    /// The facts of the turn, in order.
    pub records: Vec<Record>,
    /// The status after the turn.
    pub status: ExecutionStatus,
    /// The plan of the execution.
    pub plan: Arc<Plan>,
    /// The organization whose limits count the execution, if this frame queues or ends it.
    pub place_of: Option<String>,
    /// The spans that end with this frame, if the shard makes spans.
    pub spans: Vec<Arc<Span>>,
}

/// The open work of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// Active executions in memory: they have an open attempt, a load or a commit in progress.
    pub live: Vec<ExecutionKey>,
    /// Executions with a timer of any kind.
    pub timed: Vec<ExecutionKey>,
}
