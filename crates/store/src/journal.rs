//! Journals: heads, frames, plans, late receipts and notes, and the commit that writes to all tables.

use std::sync::Arc;

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    note::Note,
    stored_frame::{Head, StoredFrame},
};

use crate::{
    batch::{Batch, PartOutcome},
    error::{CommitError, StoreError},
    read_limit::ReadLimit,
    rows::{AuditedNotes, Expected, LateReceipt, StoredExecutorKey},
};

/// A payload body above this size is stored once in the blob table, by its hash, however many frames refer to it.
pub const BLOB_BYTES_MIN: usize = 32 * 1024;

/// Stores journals.
pub trait Journal: Send + Sync {
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

    /// Returns the number of the newest durable frame, if the store numbers frames across executions in the order of
    /// their commits: a copy made before a commit has a lower one. `None` if it does not, and 0 before the first frame.
    fn newest_frame(&self) -> Option<u64> {
        None
    }

    /// Returns executions of some partitions that are due by `until_ms`, sorted by time and key, at most `limit`, after
    /// `after`. A `wake_at` of 0 means open work. Quarantined executions are left out.
    ///
    /// The last one of a page is the `after` of the next, so that a caller which skips some of a page still reaches the
    /// others.
    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError>;

    /// Sets the wake-up time of an execution, if it has this head and has not ended. Durable. False, and nothing is
    /// written, otherwise. It repairs a column that was changed from outside; each commit writes the column anyway.
    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError>;

    /// Returns a plan by its hash.
    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Returns the late receipts of an execution in order of arrival.
    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError>;

    /// Returns the proofs of receipts in frames from a sequence on, each with the sequence, in order.
    fn receipt_proofs(
        &self,
        execution: ExecutionKey,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError>;

    /// Returns the certificate of an executor key.
    fn executor_key(&self, id: Hash) -> Result<Option<StoredExecutorKey>, StoreError>;

    /// Returns executor keys, sorted by id, at most `limit`, after `after`.
    fn executor_keys(&self, after: Option<Hash>, limit: usize) -> Result<Vec<StoredExecutorKey>, StoreError>;

    /// Returns the notes beside an execution's journal, those of erasures first, by frame and position.
    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError>;

    /// Permanently removes body and salt of payloads of one execution, each with its note, and the bodies of all late
    /// receipts of the execution with their proofs, which need no note. Returns the number of removed payloads and receipts: missing and
    /// previously erased ones do not count and get no note. Durable, all or nothing; audit entries are written only if
    /// something was removed.
    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError>;
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
