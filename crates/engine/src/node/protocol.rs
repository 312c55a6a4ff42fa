//! The protocol of the node: a closed set of events in, and a closed set of outputs out. It contains types only.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    input::Input,
    instance::Instance,
    key::ExecutionKey,
};
use mainspring_store::{Batch, CommitError, Due, PartOutcome, RemoteAttempt, StoreError};

use crate::{
    admission::{Drained, Found},
    evaluator::Suspended,
    membership::{Heartbeat, NodeSession},
    node::{
        page::{Page, PageRequest},
        quarantine_requests::{NotifiedParents, UnnotifiedParents},
    },
    period_budgets::WantedLease,
    shard::{CommittedFrame, Event, Handoff, Reply, Ticket},
};

/// Input of a node.
#[derive(Debug)]
pub enum NodeEvent {
    /// An event for an execution, without a caller that waits.
    Shard(Event),
    /// An event of the shard whose reply a caller waits for.
    Ask(Ticket, Event),
    /// The answer to [`NodeOutput::Commit`].
    Committed {
        /// The number of the commit.
        commit_id: u64,
        /// The result for each part, or the error of the whole commit.
        answer: Result<Vec<PartOutcome>, CommitError>,
    },
    /// The answer to [`NodeOutput::Heartbeat`], with the handoff of the request.
    Heartbeat(Handoff, Heartbeat),
    /// The answer to [`NodeOutput::ReadInbox`].
    Page(Box<Page>),
    /// The answer to [`NodeOutput::Rejoin`].
    Rejoined(Box<NodeSession>),
    /// The heartbeat could not be sent, for a reason of this machine.
    HeartbeatNotSent(String),
    /// A page of the answer to [`NodeOutput::ReadDue`]: executions whose wake-up time is close.
    Due(Vec<Due>),
    /// The answer to [`NodeOutput::ReadDue`] is complete.
    DueRead,
    /// A notification: these partitions have inbox messages, or an organization in them changed.
    Notified(Vec<u32>),
    /// The wake-up socket received a message: the inbox has a message.
    WokenUp,
    /// An attempt has ended.
    Ended(ExecutionKey, Instance, u32, Outcome),
    /// The answer to [`NodeOutput::Forward`], with the number of the request. True if the receipt is enqueued.
    Forwarded(u64, bool),
    /// Activates an execution: loads it and continues its work.
    Activate(ExecutionKey),
    /// The answer to [`NodeOutput::Quarantine`], with the organization that the execution counted for.
    QuarantineRecorded(ExecutionKey, Result<Option<String>, StoreError>),
    /// The answer to [`NodeOutput::ReadQuarantined`]. `None` if the store does not answer.
    QuarantinedRead(Option<Vec<ExecutionKey>>),
    /// The answer to [`NodeOutput::NotifyParents`].
    NotifiedParents(NotifiedParents),
    /// The answer to [`NodeOutput::ReadQueues`]: organizations with queued executions.
    Organizations(BTreeSet<String>),
    /// The answer to [`NodeOutput::ReadOrganization`].
    OrganizationRead(String, Found),
    /// The answer to [`NodeOutput::CountUnfinished`]: the bound and the number of unfinished executions. `None` if the
    /// store does not answer.
    UnfinishedCounted(String, Option<(u32, u64)>),
    /// The limits of an organization have changed.
    BoundsChanged(String),
    /// The node cannot continue, for a reason that its driver found.
    Fatal(String),
    /// Stops all attempts and starts no new work.
    Drain,
}

/// A request of a node to its driver. The driver performs outputs in their order.
#[derive(Debug)]
pub enum NodeOutput {
    /// Commit this batch after a pause. At most one commit is in flight.
    Commit {
        /// The number that the answer repeats.
        commit_id: u64,
        /// The parts of all executions that changed.
        batch: Arc<Batch>,
        /// Milliseconds to wait before it, since the last commit was not written.
        pause_ms: u64,
    },
    /// Read the journal of an execution. The answer repeats the number.
    Load(ExecutionKey, u64),
    /// Perform an attempt. The answer is [`NodeEvent::Ended`].
    Perform(ExecutionKey, Instance, Attempt),
    /// Ask an attempt of this process to stop.
    Stop(AttemptId),
    /// Kill an attempt of this process at once, since the next owner of its execution may start it again.
    Kill(AttemptId),
    /// Recover an attempt that this process does not perform. The answer is [`Event::AttemptRecovered`].
    Reconcile(ExecutionKey, Instance, Attempt),
    /// Request a lease from the store. The answer is an [`Event::Take`]; a request that fails is repeated.
    Lease(WantedLease),
    /// Remove the process record of an attempt: its execution, the name of the step instance, and its number.
    Forget(ExecutionKey, String, u32),
    /// Process a turn outside of the node: its evaluations, or all of it.
    Evaluate(ExecutionKey, u64, Box<Suspended>),
    /// A reply to a caller.
    Reply(Ticket, Reply),
    /// A caller receives no reply, since the node is draining.
    Unanswered(Ticket),
    /// A durable frame, for subscribers.
    Notify(Arc<CommittedFrame>),
    /// Send a heartbeat, without waiting for any other work.
    Heartbeat(HeartbeatRequest),
    /// Create the next incarnation of the node, since the lease of the present one has expired.
    Rejoin,
    /// Read a page of inbox messages.
    ReadInbox(PageRequest),
    /// Read the executions in these partitions that are due until a time, in Unix milliseconds.
    ReadDue(Vec<u32>, u64),
    /// Notify the nodes that own these partitions.
    NotifyNodes(Vec<u32>),
    /// Enqueue a receipt for an execution that another node owns.
    Forward(ForwardRequest),
    /// Record that attempts ended which the store lists as running at the node of this name.
    EndRemote(String, Vec<RemoteAttempt>),
    /// Ask the node that performs an attempt to stop it. A lost request is repeated after the next heartbeat.
    StopRemote(RemoteAttempt),
    /// Record a quarantine and its reason in the store.
    Quarantine(ExecutionKey, String),
    /// Read the quarantined executions of the store.
    ReadQuarantined,
    /// Notify the parents of quarantined executions.
    NotifyParents(UnnotifiedParents),
    /// Read the limits and the unfinished executions of an organization.
    ReadOrganization(String, Vec<Drained>),
    /// Count the unfinished executions of an organization.
    CountUnfinished(String),
    /// Read the organizations with queued executions.
    ReadQueues,
    /// Send admissions to executions of other nodes. A lost one is sent again after the next read of the organization.
    Admit(Vec<ExecutionKey>),
    /// An observation for logs and metrics.
    Report(Report),
    /// The node cannot continue, for this reason.
    Fatal(String),
}

/// The name of an attempt: its execution, its step instance and its number, from 1.
pub type AttemptId = (ExecutionKey, Instance, u32);

/// A heartbeat to send.
#[derive(Debug)]
pub struct HeartbeatRequest {
    /// The incarnation of the node that sends it.
    pub session: NodeSession,
    /// The partitions to release with it.
    pub handoff: Handoff,
    /// True if the node is draining.
    pub is_leaving: bool,
}

/// A receipt to enqueue.
#[derive(Debug, Clone)]
pub struct ForwardRequest {
    /// The number that the answer repeats.
    pub number: u64,
    /// The execution that receives it.
    pub execution: ExecutionKey,
    /// The outcome of the attempt, as an input.
    pub receipt: Arc<Input>,
    /// The attempt, if the store lists it as running at a node, and the name of that node. Its end is recorded after the
    /// receipt is enqueued: a node that sees the end finds the receipt.
    pub remote: Option<(String, RemoteAttempt)>,
}

/// An observation for logs and metrics. It requires no action.
#[derive(Debug)]
pub enum Report {
    /// The node owns these partitions from now on.
    Acquired(Vec<u32>),
    /// The node has lost these partitions.
    Lost(Vec<u32>),
    /// The node has released these partitions, with this number of running attempts.
    Released(Vec<u32>, usize),
    /// The owned partitions or the condition of the node may have changed.
    OwnershipChanged,
    /// The node has released all partitions, since it could not write. It sends no heartbeat for this time.
    Silent {
        /// The duration in milliseconds.
        for_ms: u64,
        /// The reason.
        why: &'static str,
    },
    /// An execution is quarantined, for this reason.
    Quarantined(ExecutionKey, String),
    /// A message was not sealed with the installation's key and is discarded: its execution and its id.
    Forged(ExecutionKey, String),
    /// The receipt of an execution was forwarded, or forwarding it was abandoned.
    Forwarded {
        /// The execution that receives it.
        execution: ExecutionKey,
        /// The outcome of the attempt, as an input.
        receipt: Arc<Input>,
        /// True if the receipt is enqueued.
        is_enqueued: bool,
    },
    /// An organization could not be read, for this reason.
    OrganizationUnread(String, String),
}

/// The result of one step of a node.
#[expect(
    clippy::large_enum_variant,
    reason = "a step lives for one iteration; a box would cost an allocation for each output"
)]
#[derive(Debug)]
pub enum Step {
    /// Perform this output, then continue with the next step.
    Perform(NodeOutput),
    /// Continue with the next step.
    Worked,
    /// The round is complete. The next step begins another one, at the latest after [`Node::next_wake`].
    ///
    /// [`Node::next_wake`]: super::Node::next_wake
    RoundOver,
}
