//! The operations of a store and their types. Each operation says what is durable when it returns.

use std::{collections::BTreeSet, fmt, sync::Arc};

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    note::Note,
    stored_frame::{Head, StoredFrame},
};

use crate::{AuditEntry, Catalogue, QuarantineRelease, ReleaseOutcome};

/// A payload body above this size is stored once in the blob table, by its hash, however many frames refer to it.
pub const BLOB_BYTES_MIN: usize = 32 * 1024;

/// Default bound on the bytes of one read: the most that one turn of an execution writes, and two of the largest values
/// or definitions. Callers read longer results in several calls.
pub const READ_BYTES: usize = 8 * 1024 * 1024;

/// Stores journals and the catalogue. All operations block: the caller chooses the thread.
pub trait Store: Send + Sync {
    /// Makes `holder` the owner of a partition and returns the new epoch, larger than every earlier one of that
    /// partition. Durable: a commit with an older epoch is rejected from now on.
    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError>;

    /// Returns the number of partitions over which the store spreads its executions; see [`partition_of`].
    fn partitions(&self) -> Result<u32, StoreError>;

    /// Spreads all executions and inbox messages over another number of partitions, at least 1. Durable, all or
    /// nothing. Afterwards no partition has an owner and each has a larger epoch, so earlier owners are fenced off.
    /// Nodes that are alive do not know this yet: nothing can be [acquired](Self::acquire) until the last of their leases
    /// has expired.
    fn repartition(&self, partitions: u32) -> Result<(), StoreError>;

    /// Stores a metadata entry unless one of this name exists, and returns the stored value. Durable.
    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError>;

    /// Returns a metadata entry.
    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Returns the cluster view for a caller that is not a node: it holds no partitions.
    fn cluster_view(&self) -> Result<ClusterView, StoreError>;

    /// Records the heartbeat of a node, whose lease lasts `lease_ms` more milliseconds of the store's clock and covers
    /// all of its partitions. Durable. `None` if its previous lease has expired: its name cannot be used again, and
    /// another node may hold its partitions.
    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError>;

    /// Makes a living node the owner of those of the partitions that no living node holds, each with a new epoch as
    /// from [`claim`](Self::claim). Durable. Returns nothing for a node that is not alive.
    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError>;

    /// Releases partitions that a node holds under these fences; others are ignored. Durable, all or nothing.
    ///
    /// `running` are attempts of their executions that keep running at the node. They belong to the node until it
    /// [ends](Self::end_remote) them or its lease expires.
    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError>;

    /// Returns the attempts of an execution that keep running at living nodes which released it, with the names of the
    /// nodes.
    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError>;

    /// Requests the node of a running attempt to stop it, through its [cluster view](ClusterView::stop_requested). Durable.
    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError>;

    /// Records that attempts no longer run at a node; their results are in the inbox. Durable.
    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError>;

    /// Ends the lease of a node that shuts down, so that its partitions can be acquired at once. Durable.
    fn leave(&self, node: &str) -> Result<(), StoreError>;

    /// Returns true if several processes may use the store at the same time, each as a node. Otherwise the only process
    /// [claims](Self::claim) its partitions without leases.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns true if this process has upgraded the store from a format whose inbox messages had no seals.
    fn is_of_unsealed_format(&self) -> bool {
        false
    }

    /// Returns true if a read takes microseconds now and blocks on nothing, so that it needs no separate thread.
    fn can_read_inline(&self) -> bool {
        false
    }

    /// Returns the resources of a server and its audit log, in the same store.
    fn catalogue(&self) -> &dyn Catalogue;

    /// Notifies subscribers that messages wait in these partitions, if the store supports it. Notifications may be
    /// lost, late or spurious.
    fn notify(&self, _partitions: &[u32]) {}

    /// Calls `notify` with the partitions of each notification of any process from now on. It is dropped with the store.
    fn subscribe(&self, _notify: NotifyCallback) {}

    /// Returns the number of the newest durable frame, if the store numbers frames across executions in the order of
    /// their commits: a copy made before a commit has a lower one. `None` if it does not, and 0 before the first frame.
    fn newest_frame(&self) -> Option<u64> {
        None
    }

    /// Checks that the files of the store are still on the disk under their names, if it has files. Operations that
    /// write do it before they acknowledge; call this while there is nothing to write. After the first error all writes
    /// are rejected.
    fn check_files(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Writes a batch in one transaction. When it returns `Ok`, each part with [`PartOutcome::Durable`] is on disk
    /// completely, and nothing of each refused part is. Answers are in the order of the parts.
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError>;

    /// Returns the head of a journal, with the reason if it is quarantined; `None` for an unknown execution.
    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError>;

    /// Returns frames from a sequence on, in order, with their values. A frame whose stored packing (not its content in
    /// the sense of the kernel) cannot be decoded is an error that names it.
    ///
    /// The bound counts bytes as stored, so two stores may stop at different frames. The journal ends where nothing is
    /// returned, or at its [head](Self::head).
    fn frames(&self, execution: ExecutionKey, from: u64, limit: ReadLimit) -> Result<Vec<StoredFrame>, StoreError>;

    /// Returns executions of some partitions that are due by `until_ms`, sorted by time and key, at most `limit`, after
    /// `after`. A `wake_at` of 0 means open work. Quarantined executions are left out.
    ///
    /// The last one of a page is the `after` of the next, so that a caller which skips some of a page still reaches the
    /// others.
    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError>;

    /// Puts a message into an execution's inbox, with the rows that it needs. Durable. A second message with the same
    /// execution and id is a repetition and changes nothing, even after the first was consumed if the store still knows
    /// of it (it need not). False, and nothing is written, if the number of partitions has changed.
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError>;

    /// Returns waiting messages of some partitions in order of arrival, after the arrival number `after` (0 for the
    /// first). The bound counts the bytes of bodies and ids.
    ///
    /// If several processes write at the same time, a message may become visible after one with a larger number: rescan
    /// from the beginning at intervals.
    fn inbox(&self, partitions: &[u32], after: u64, limit: ReadLimit) -> Result<Vec<InboxEntry>, StoreError>;

    /// Returns a plan by its hash.
    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Sets the wake-up time of an execution, if it has this head and has not ended. Durable. False, and nothing is
    /// written, otherwise. It repairs a column that was changed from outside; each commit writes the column anyway.
    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError>;

    /// Quarantines an execution with a reason, so that no node loads it. Durable. Its journal does not change.
    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError>;

    /// Releases an execution from quarantine, and removes the message that notice its parent of the quarantine from the
    /// inbox. Durable, with the audit entries, all or nothing.
    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError>;

    /// Ends a quarantined execution without its journal: its row becomes `failed` with [`FORCED_END`], its gates and
    /// inbox messages are removed, and the note of the end is stored. The journal does not change. Durable, all or
    /// nothing. False, and nothing is written, if the execution is unknown, not quarantined, or has ended.
    fn force_end(&self, audited: &AuditedNotes<'_>) -> Result<bool, StoreError>;

    /// Returns quarantined executions that were not [ended](Self::force_end), of one organization or of all, sorted by
    /// key, at most `limit`, after `after`.
    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError>;

    /// Permanently removes body and salt of payloads of one execution, each with its note, and the bodies of all late
    /// receipts of the execution, which need no note. Returns the number of removed payloads and receipts: missing and
    /// previously erased ones do not count and get no note. Durable, all or nothing; audit entries are written only if
    /// something was removed.
    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError>;

    /// Returns the notes beside an execution's journal, those of erasures first, by frame and position.
    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError>;

    /// Returns the late receipts of an execution in order of arrival.
    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError>;

    /// Returns the catalogue's row of an execution.
    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns the execution with an external name.
    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns the execution that was started with an idempotency key, among those of one origin.
    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns open approval gates of one organization or of all executions, at most `limit`, after `after`: those of
    /// the newest execution first, sorted by step name and number within an execution.
    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError>;

    /// Returns the organizations with a `pending` execution that is not quarantined. The cost grows with the number of
    /// organizations, not with the number of pending executions.
    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError>;

    /// Counts executions of an organization with one of these statuses that are not quarantined, up to `most`.
    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError>;

    /// Returns rows of the catalogue, the newest key first, at most `limit`, below `before`.
    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError>;
}

/// The bound of one read: it stops at `rows` rows, or at the row with which the rows reach `bytes` bytes together. So
/// the first row is always returned, however large, and the caller needs little more memory than `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Maximum number of rows.
    pub rows: usize,
    /// The row that reaches this sum is the last; at least 1.
    pub bytes: usize,
}

impl ReadLimit {
    /// Makes a bound of so many rows and [`READ_BYTES`].
    pub const fn of(rows: usize) -> Self {
        Self { rows, bytes: READ_BYTES }
    }

    /// Returns whether the bound was reached, so that there may be more rows.
    pub const fn is_reached(self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows || rows > 0 && bytes >= self.bytes
    }

    /// Returns whether these messages reached the bound, so that there may be more.
    pub fn is_reached_by(self, messages: &[InboxEntry]) -> bool {
        self.is_reached(messages.len(), messages.iter().map(InboxEntry::byte_count).sum())
    }

    /// Takes rows up to the bound.
    pub(crate) fn take<T>(self, rows: impl Iterator<Item = T>, byte_count: impl Fn(&T) -> usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for row in rows {
            if self.is_reached(taken.len(), bytes) {
                break;
            }
            bytes += byte_count(&row);
            taken.push(row);
        }
        taken
    }
}

impl Default for ReadLimit {
    fn default() -> Self {
        Self::of(0)
    }
}

/// The callback for notifications, with the affected partitions.
pub type NotifyCallback = Box<dyn Fn(&[u32]) + Send + Sync>;

/// Returns the partition of an execution in a store with so many partitions. It uses the last eight bytes of the key,
/// which are random or a hash in every kind of key.
pub fn partition_of(execution: ExecutionKey, partitions: u32) -> u32 {
    let [.., a, b, c, d, e, f, g, h] = execution.0;
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]) % u64::from(partitions.max(1))) as u32
}

/// The content of one commit. Each part is of another execution.
///
/// The messages consumed by all parts are removed from inboxes before new ones are added.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The leases that justify the commit: they must include every part's partition.
    pub fences: Vec<Fence>,
    /// One part for each execution.
    pub parts: Vec<Part>,
    /// The key that seals the heads of audit logs, if parts have audit entries.
    pub sealing: [u8; 32],
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

impl<'a> EnqueueRequest<'a> {
    /// Makes a message without other rows.
    pub fn of(message: &'a InboxMessage, partitions: u32) -> Self {
        Self { message, plans: &[], partitions, audit: &[], sealing: [0; 32] }
    }
}

/// Notes to store, with their audit entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditedNotes<'a> {
    /// The notes, all of one execution.
    pub notes: &'a [Note],
    /// Audit entries that are written together with the notes.
    pub audit: &'a [AuditEntry],
    /// The key that seals the heads of audit logs.
    pub sealing: [u8; 32],
}

impl<'a> AuditedNotes<'a> {
    /// Makes notes without audit entries.
    pub fn of(notes: &'a [Note]) -> Self {
        Self { notes, audit: &[], sealing: [0; 32] }
    }
}

/// The error of an execution that an operator has ended in quarantine.
pub const FORCED_END: &str = "ended_by_operator";

/// A quarantined execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedRow {
    /// The quarantined execution.
    pub execution: ExecutionKey,
    /// Its external name, if it has a row in the catalogue.
    pub id: Option<String>,
    /// The organization that it belongs to, if any.
    pub organization: Option<String>,
    /// The reason of the quarantine.
    pub reason: String,
}

/// The proof of a lease: the epoch of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The partition that the lease covers.
    pub partition: u32,
    /// The epoch that [`Store::claim`] or [`Store::acquire`] returned.
    pub epoch: u64,
}

/// A process that shares a store with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Names one incarnation of a process. A name is never reused, not even by the same process after its lease has
    /// expired.
    pub name: String,
    /// Its host and process, for people.
    pub address: String,
    /// Its release, for people.
    pub release: String,
    /// The newest version of decide that it supports.
    pub decide_version: u32,
    /// False while its clock is wrong or it is about to leave: the other nodes then share the partitions. A store that
    /// is not [shared](Store::is_shared) need not store it and always returns true.
    pub accepts_partitions: bool,
}

/// An attempt that keeps running at a node which has released its execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteAttempt {
    /// The execution that the attempt belongs to.
    pub execution: ExecutionKey,
    /// The name of the step instance.
    pub step: String,
    /// The attempt's number.
    pub number: u32,
}

/// The cluster view: the store as its nodes see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The number of partitions.
    pub partitions: u32,
    /// The leases of the requesting node, by partition.
    pub held: Vec<Fence>,
    /// The partitions that living nodes hold, with their names, by partition.
    pub holders: Vec<(u32, String)>,
    /// The living nodes, by name.
    pub nodes: Vec<Node>,
    /// Attempts at the requesting node that the owners of their executions want to stop.
    pub stop_requested: Vec<RemoteAttempt>,
    /// The store's clock at the time of the response, in milliseconds since 1970.
    pub clock_ms: u64,
}

/// The part of a batch for one execution.
#[derive(Debug, Clone)]
pub struct Part {
    /// The execution that the part advances or creates.
    pub execution: ExecutionKey,
    /// The partition of the execution's head.
    pub partition: u32,
    /// The head that this part continues; `None` for a new execution.
    pub expected: Option<Expected>,
    /// The frames after the head, in sequence. If there are none, only messages and late receipts change.
    pub frames: Vec<StoredFrame>,
    /// The head after the frames. Ignored without frames.
    pub head: Head,
    /// The next wake-up: 0 for open work, the time of the next durable timer, or `None` if only an input from outside
    /// can continue the execution. Ignored without frames.
    pub wake_at: Option<u64>,
    /// The catalogue's row of a new execution.
    pub row: Option<ExecutionRow>,
    /// The changes to the row of an existing one.
    pub change: Option<RowChange>,
    /// The plans of it and of the executions that it starts, except those that the store certainly has.
    pub plans: Vec<StoredPlan>,
    /// The ids of this execution's messages that were consumed.
    pub consumed: Vec<String>,
    /// Messages to other executions.
    pub messages: Vec<InboxMessage>,
    /// Receipts that came too late to count.
    pub late_receipts: Vec<LateReceipt>,
    /// Entries of audit logs, appended in the order of the parts.
    pub audit: Vec<AuditEntry>,
    /// Gates that are no longer open, by step name and number; all listed ones at the end of an execution. Ignored
    /// without frames.
    pub gates_closed: Vec<(String, u32)>,
    /// Gates of this execution that were opened. A listed gate stays as it is. Ignored without frames, or if the
    /// execution ends.
    pub gates_opened: Vec<GateRow>,
}

impl Part {
    /// Makes a part that changes nothing, of an execution that does not exist.
    pub fn empty(execution: ExecutionKey, partition: u32) -> Self {
        Self {
            execution,
            partition,
            expected: None,
            frames: Vec::new(),
            head: Head { sequence: 0, hash: Hash::default(), seal: Hash::default() },
            wake_at: None,
            row: None,
            change: None,
            plans: Vec::new(),
            consumed: Vec::new(),
            messages: Vec::new(),
            late_receipts: Vec::new(),
            audit: Vec::new(),
            gates_closed: Vec::new(),
            gates_opened: Vec::new(),
        }
    }

    /// Returns about the number of bytes to write: frames with their values, plans, messages and late receipts. The
    /// rest of the rows is bounded and small.
    pub fn byte_count(&self) -> usize {
        let frames: usize = self.frames.iter().map(StoredFrame::byte_count).sum();
        let plans: usize = self.plans.iter().map(|plan| plan.bytes.len()).sum();
        let messages: usize = self.messages.iter().map(InboxMessage::byte_count).sum();
        let late: usize = self.late_receipts.iter().map(|late| late.body.len()).sum();
        frames + plans + messages + late
    }
}

/// The head on which a part was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The sequence of the last frame.
    pub sequence: u64,
    /// The hash of the last frame, which covers all earlier ones.
    pub hash: Hash,
}

/// The result of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartOutcome {
    /// It is on disk.
    Durable,
    /// Not written, with the reason.
    Refused(Refusal),
}

/// The reason why a part was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The partition has a newer owner, or no fence of the batch covers it.
    Fence,
    /// The fence is valid, but the head is in another partition than the part. The owner of the newest epoch knows the
    /// partitions, so something other than Mainspring has changed the head.
    Partition,
    /// The journal has another head; or, for a new execution, the key exists.
    Sequence,
    /// The execution has ended, so nothing can follow.
    Ended,
    /// Another execution has this external name.
    IdTaken(ExecutionKey),
    /// Another execution was started with this idempotency key.
    IdempotencyKeyTaken(ExecutionKey),
}

/// The reason why a batch has no answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitError {
    /// Certainly nothing was written, because of the store: it is unreachable, full, or read-only. The same batch may
    /// succeed later.
    NotWritten(String),
    /// Certainly nothing was written, because of the batch: a row that contradicts it, or a value or size that the
    /// store rejects. Other parts may be written; the same batch would be refused again.
    Refused(String),
    /// Certainly nothing was written, because of a state shared with other writers: a lock that was not released in
    /// time, or a damaged row of a whole organization. Other parts may be written now, and the same parts later.
    Blocked(String),
    /// It may or may not be on disk: read the heads before any other commit.
    Unknown(String),
    /// The disk failed (fsync): nothing that this process assumes about it is certain.
    Fatal(String),
}

/// A head with the other columns of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRow {
    /// The end of the journal.
    pub head: Head,
    /// The partition that the execution belongs to.
    pub partition: u32,
    /// As in [`Part::wake_at`].
    pub wake_at: Option<u64>,
    /// True if the execution has ended.
    pub ended: bool,
    /// The reason of the quarantine, if it is quarantined.
    pub quarantined: Option<String>,
}

/// An execution with a wake-up time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The execution to wake up.
    pub execution: ExecutionKey,
    /// The wake-up time in milliseconds since 1970; 0 for at once.
    pub wake_at: u64,
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

impl InboxEntry {
    /// The bytes that [`ReadLimit`] counts.
    pub fn byte_count(&self) -> usize {
        self.message.byte_count()
    }
}

impl InboxMessage {
    /// Bytes of the body and the id.
    pub fn byte_count(&self) -> usize {
        self.body.len() + self.id.len()
    }
}

/// A compiled plan, stored once under its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPlan {
    /// The hash of the bytes.
    pub hash: Hash,
    /// The plan in the kernel's encoding.
    pub bytes: Arc<[u8]>,
}

/// An open approval gate as it is listed. Its question and the permitted approvers are in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRow {
    /// The execution that waits at the gate.
    pub execution: ExecutionKey,
    /// The name of the step instance.
    pub step: String,
    /// The number of the gate within that, from 1.
    pub gate: u32,
    /// The organization of the execution.
    pub organization: Option<String>,
    /// In milliseconds since 1970.
    pub opened_at: u64,
    /// The time of its timeout, in milliseconds since 1970.
    pub expires_at: u64,
    /// The decision at its timeout: `approve`, `deny`, …
    pub on_timeout: String,
}

/// A receipt that came too late to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReceipt {
    /// The time of its arrival, in milliseconds since 1970.
    pub at: u64,
    /// An input in the kernel's encoding; empty once it was erased.
    pub body: Vec<u8>,
}

impl LateReceipt {
    /// Decodes a row: an erased receipt is overwritten with zeros, with which no input starts.
    pub(crate) fn of_row(at: u64, body: Vec<u8>) -> Self {
        let is_erased = body.iter().all(|byte| *byte == 0);
        Self { at, body: if is_erased { Vec::new() } else { body } }
    }
}

/// An execution in the catalogue: the columns to list and search. Payloads are only in the journal, where they can be
/// erased. The columns follow `workflow_executions` of the second specification where they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// The execution.
    pub key: ExecutionKey,
    /// Its external name, unique in the store; the text form of the key if none was given.
    pub id: String,
    /// Its organization; `None` for one that a command line started.
    pub organization: Option<String>,
    /// The workflow's id in the catalogue of its organization.
    pub workflow_id: Option<String>,
    /// The id there of the trigger that started it.
    pub trigger_id: Option<String>,
    /// The execution that has started it and waits for it. `None` also in rows of older releases.
    pub parent: Option<ExecutionKey>,
    /// The external name of the execution that has started it, waiting or not. `None` also in rows of older releases.
    pub parent_id: Option<String>,
    /// The workflow's name in the catalogue at the time of the start. `None` also in rows of older releases.
    pub workflow_name: Option<String>,
    /// The workflow's name, if its definition has one.
    pub workflow: Option<String>,
    /// The definition's `version`.
    pub workflow_version: Option<String>,
    /// `sha256:…` of the definition.
    pub workflow_hash: String,
    /// The plan's hash.
    pub plan_hash: Hash,
    /// `pending`, `running`, `waiting_approval`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// `with_failures` for a completed one in which a failure was tolerated.
    pub outcome: Option<String>,
    /// The code of the error or the reason of the end, without a message.
    pub error: Option<String>,
    /// `manual`, `webhook`, `schedule`, `event`; `subworkflow` if another execution has started it and waits for it,
    /// `subworkflow_detached` if that does not wait.
    pub trigger_type: String,
    /// The kind of its initiator: `manual`, `webhook`, `schedule`.
    pub initiator_type: String,
    /// The initiator's user id.
    pub initiator_user_id: Option<String>,
    /// Unique among the executions of one [origin](ExecutionRow::origin).
    pub idempotency_key: Option<String>,
    /// The session that it is bound to.
    pub session_id: Option<String>,
    /// The partition of its head and inbox.
    pub partition: u32,
    /// The number of times that it was assigned to a node, from 1.
    pub attempt_count: u32,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Milliseconds since 1970; `None` until it has ended.
    pub completed_at: Option<u64>,
}

impl ExecutionRow {
    /// Returns the execution that has started it, by its external name; by its key in rows of releases that stored no
    /// names.
    pub fn started_by(&self) -> Option<String> {
        self.parent_id.clone().or_else(|| self.parent.map(|parent| parent.to_string()))
    }

    /// Returns the scope in which its idempotency key is unique.
    pub fn origin(&self) -> Origin<'_> {
        let Self { organization, workflow_id, workflow, .. } = self;
        Origin {
            organization: organization.as_deref(),
            workflow_id: workflow_id.as_deref(),
            workflow: workflow.as_deref(),
        }
    }
}

/// The scope of idempotency keys: an organization, or none, and a workflow, by its id if it has one, else by its name.
/// Unnamed workflows without an id share one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin<'a> {
    /// See [`ExecutionRow::organization`].
    pub organization: Option<&'a str>,
    /// See [`ExecutionRow::workflow_id`].
    pub workflow_id: Option<&'a str>,
    /// See [`ExecutionRow::workflow`]. Ignored if there is an id.
    pub workflow: Option<&'a str>,
}

impl<'a> Origin<'a> {
    /// Makes the origin of a workflow's name without an organization.
    pub fn named(workflow: Option<&'a str>) -> Self {
        Self { workflow, ..Self::default() }
    }
}

/// The changes of a commit to a row of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The new status.
    pub status: String,
    /// See [`ExecutionRow::outcome`].
    pub outcome: Option<String>,
    /// See [`ExecutionRow::error`].
    pub error: Option<String>,
    /// Set by the change that ends it, which closes the journal.
    pub completed_at: Option<u64>,
}

/// Selects rows of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// One of these statuses; empty for any.
    pub statuses: Vec<String>,
    /// Only executions of the workflow with this name.
    pub workflow: Option<String>,
    /// Only executions of this organization.
    pub organization: Option<String>,
    /// Only executions of the workflow with this id.
    pub workflow_id: Option<String>,
    /// The user id of the initiator.
    pub initiator: Option<String>,
    /// Excludes quarantined executions.
    pub excludes_quarantined: bool,
}

/// Returns whether a status is final.
pub fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// The reason why a store could not complete an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// A newer release wrote the store.
    Newer {
        /// The format of the store.
        found: u32,
        /// The newest format this build reads.
        readable: u32,
    },
    /// The store's files are damaged; the text names the frame if one is known.
    Damaged(String),
    /// No space, no permission, no such folder: the operating system's message, and the path.
    Unavailable(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { found, readable } => write!(
                out,
                "the store has format {found} and this build reads up to {readable}: use the release that wrote it, or a newer one"
            ),
            Self::Damaged(what) => write!(out, "the store is damaged: {what}"),
            Self::Unavailable(why) => write!(out, "the store cannot be used: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for CommitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritten(why) => write!(out, "nothing was written: {why}"),
            Self::Refused(why) => write!(out, "the store refused what was to be written: {why}"),
            Self::Blocked(why) => write!(out, "nothing was written, as something shared was in the way: {why}"),
            Self::Unknown(why) => write!(out, "whether it was written is unknown: {why}"),
            Self::Fatal(why) => write!(out, "the disk failed: {why}"),
        }
    }
}

impl std::error::Error for CommitError {}
