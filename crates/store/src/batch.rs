//! The content of a commit and its outcome.

use std::sync::OnceLock;

use mainspring_kernel::{
    hash::Hash,
    key::ExecutionKey,
    receipt::Receipt,
    stored_frame::{Head, StoredFrame},
};

use crate::{
    audit::AuditEntry,
    budgets::AccountChange,
    executions::{ExecutionRow, GateRow, RowChange},
    inbox::InboxMessage,
    membership::Fence,
    rows::{Expected, LateReceipt, StoredExecutorKey, StoredPlan},
    sql::integer,
};

/// About the bytes of a proof in the store.
const PROOF_BYTES: usize = 240;

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
    /// The receipts in the frames, and those that came too late to count.
    pub receipts: PartReceipts,
    /// Entries of audit logs, appended in the order of the parts.
    pub audit: Vec<AuditEntry>,
    /// Gates that are no longer open, by step name and number; all listed ones at the end of an execution. Ignored
    /// without frames.
    pub gates_closed: Vec<(String, u32)>,
    /// Gates of this execution that were opened. A listed gate stays as it is. Ignored without frames, or if the
    /// execution ends.
    pub gates_opened: Vec<GateRow>,
}

/// Receipts to store, with the signatures that another thread adds.
#[derive(Debug, Clone, Default)]
pub struct PartReceipts {
    /// Receipts that came too late to count.
    pub late: Vec<LateReceipt>,
    /// The receipts of the frames and the late ones, in order, as they are to be signed.
    pub new: Vec<NewReceipt>,
    /// The changes of the organization's accounts by the receipts, leases and decisions in the frames. Ignored without
    /// frames.
    pub account: Option<Box<AccountChange>>,
    /// The signatures of `new`. Set once, before the commit and by another thread than the one that decides.
    pub signed: OnceLock<Signed>,
}

/// A receipt of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReceipt {
    /// The facts that are signed.
    pub receipt: Receipt,
    /// The index among the late receipts of the part; `None` for the receipt of a frame.
    pub late: Option<usize>,
}

/// The signatures of the receipts of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// A proof for each receipt, in the same order.
    pub proofs: Vec<Vec<u8>>,
    /// The key that signed them, until the store is known to have it. Writing it again changes nothing.
    pub key: Option<StoredExecutorKey>,
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
            receipts: PartReceipts::default(),
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
        let late: usize = self.receipts.late.iter().map(|late| late.body.len()).sum();
        frames + plans + messages + late + self.receipts.new.len() * PROOF_BYTES
    }

    /// Returns the frames, each with the proof of its receipt if it has one.
    pub(crate) fn frames_with_proofs(&self) -> impl Iterator<Item = (&StoredFrame, Option<&[u8]>)> {
        let sequence =
            |new: &NewReceipt| new.receipt.frame.filter(|_| new.late.is_none()).map(|(sequence, _)| sequence);
        let mut proofs = self.proofs().filter_map(move |(new, proof)| Some((sequence(new)?, proof))).peekable();
        // Both are in order.
        self.frames.iter().map(move |frame| {
            let proof = proofs.next_if(|(sequence, _)| *sequence == frame.sequence);
            (frame, proof.map(|(_, proof)| proof))
        })
    }

    /// Returns the late receipts, each with its proof if it has one.
    pub(crate) fn late_with_proofs(&self) -> impl Iterator<Item = (&LateReceipt, Option<&[u8]>)> {
        let mut proofs = self.proofs().filter_map(|(new, proof)| Some((new.late?, proof))).peekable();
        self.receipts.late.iter().enumerate().map(move |(index, late)| {
            let proof = proofs.next_if(|(of, _)| *of == index);
            (late, proof.map(|(_, proof)| proof))
        })
    }

    fn proofs(&self) -> impl Iterator<Item = (&NewReceipt, &[u8])> {
        let proofs = self.receipts.signed.get().map(|signed| signed.proofs.as_slice()).unwrap_or_default();
        self.receipts.new.iter().zip(proofs).map(|(new, proof)| (new, proof.as_slice()))
    }

    /// Returns the executor key that is to be stored with the part.
    pub(crate) fn executor_key(&self) -> Option<&StoredExecutorKey> {
        self.receipts.signed.get()?.key.as_ref()
    }
}

/// Returns whether the frames follow the expected head without gaps, up to the new head.
pub(crate) fn follows(part: &Part) -> bool {
    let first = part.expected.map_or(0, |expected| expected.sequence.saturating_add(1));
    let in_order = part.frames.iter().zip(first..).all(|(frame, sequence)| frame.sequence == sequence);
    in_order && part.frames.last().is_none_or(|frame| frame.sequence == part.head.sequence)
}

/// Returns whether this part ends the execution.
pub(crate) fn is_end(part: &Part) -> bool {
    part.change.as_ref().is_some_and(|change| change.completed_at.is_some())
        || part.row.as_ref().is_some_and(|row| part.expected.is_none() && row.completed_at.is_some())
}

/// Returns the next wake-up; an execution that ends has none.
pub(crate) fn wake_at(part: &Part) -> Option<i64> {
    part.wake_at.filter(|_| !is_end(part)).map(integer)
}
