//! Inboxes: inputs that wait for executions of any node.

use mainspring_kernel::key::ExecutionKey;

use crate::{audit::AuditEntry, error::StoreError, read_limit::ReadLimit, rows::StoredPlan};

/// Stores inbox messages, and notifies the nodes that receive them.
pub trait Inbox: Send + Sync {
    /// Puts a message into an execution's inbox, with the rows that it needs. Durable. A second message with the same
    /// execution and id is a repetition and changes nothing, even after the first was consumed if the store still has a
    /// record of it (not required). False, and nothing is written, if the number of partitions has changed.
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError>;

    /// Returns waiting messages of some partitions in order of arrival, after the arrival number `after` (0 for the
    /// first). The bound counts the bytes of bodies and ids.
    ///
    /// If several processes write at the same time, a message may become visible after one with a larger number: rescan
    /// from the beginning at intervals.
    fn inbox(&self, partitions: &[u32], after: u64, limit: ReadLimit) -> Result<Vec<InboxEntry>, StoreError>;

    /// Notifies subscribers that messages wait in these partitions, if the store supports it. Notifications may be
    /// lost, late or spurious.
    fn notify(&self, _partitions: &[u32]) {}

    /// Calls `notify` with the partitions of each notification of any process from now on. It is dropped with the store.
    fn subscribe(&self, _notify: NotifyCallback) {}
}

/// An inbox message: an input for an execution that it has not consumed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxMessage {
    /// The receiving execution. It need not exist yet: a message may start it.
    pub execution: ExecutionKey,
    /// The partition of the receiving execution.
    pub partition: u32,
    /// The message id, unique for its execution.
    pub id: String,
    /// An input in the kernel's encoding.
    pub body: Vec<u8>,
    /// The time when it was sent, in milliseconds since 1970.
    pub enqueued_at: u64,
}

/// An inbox message with its position in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// A number that grows with every message of a store.
    pub number: u64,
    /// The row without its number.
    pub message: InboxMessage,
}

/// An inbox message with the rows that are written together with it.
#[derive(Debug, Clone, Copy)]
pub struct EnqueueRequest<'a> {
    /// Stored under its execution and id, once.
    pub message: &'a InboxMessage,
    /// The plans that it needs, except those that the store certainly has.
    pub plans: &'a [StoredPlan],
    /// The number of partitions from which the message's partition was computed.
    pub partitions: u32,
    /// Audit entries that are written together with the message.
    pub audit: &'a [AuditEntry],
    /// The key that seals the heads of audit logs.
    pub sealing: [u8; 32],
}

/// The callback for notifications, with the affected partitions.
pub type NotifyCallback = Box<dyn Fn(&[u32]) + Send + Sync>;

impl InboxMessage {
    /// Bytes of the body and the id.
    pub fn byte_count(&self) -> usize {
        self.body.len() + self.id.len()
    }
}

impl InboxEntry {
    /// The bytes that [`ReadLimit`] counts.
    pub fn byte_count(&self) -> usize {
        self.message.byte_count()
    }
}

impl<'a> EnqueueRequest<'a> {
    /// Makes a message without other rows.
    pub fn of(message: &'a InboxMessage, partitions: u32) -> Self {
        Self { message, plans: &[], partitions, audit: &[], sealing: [0; 32] }
    }
}

impl ReadLimit {
    /// Returns whether these messages reached the bound, so that there may be more.
    pub fn is_reached_by(self, messages: &[InboxEntry]) -> bool {
        self.is_reached(messages.len(), messages.iter().map(InboxEntry::byte_count).sum())
    }
}
