//! A store that passes each committed batch to a callback, and otherwise delegates to another store.

use std::sync::Arc;

use mainspring_store::{Batch, CommitError, Executions, Inbox, Journal, Membership, PartOutcome, Store};

/// The callback: the batch and the answer for each part.
pub(super) type CommitCallback = Box<dyn Fn(&Batch, &[PartOutcome]) + Send + Sync>;

/// The wrapping store. The callback runs on the committing thread, and so delays the next commit.
pub(super) struct ObservedStore {
    store: Arc<dyn Store>,
    callback: CommitCallback,
}

impl ObservedStore {
    pub(super) fn new(store: Arc<dyn Store>, callback: CommitCallback) -> Self {
        Self { store, callback }
    }
}

impl Journal for ObservedStore {
    mainspring_store::forward!(store: head, frames, due, set_wake_at, plan, late_receipts, receipt_proofs, executor_key, executor_keys, notes, erase);

    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        let answers = self.store.commit(batch)?;
        (self.callback)(batch, &answers);
        Ok(answers)
    }
}

impl Inbox for ObservedStore {
    mainspring_store::forward!(store: enqueue, inbox, notify, subscribe);
}

impl Membership for ObservedStore {
    mainspring_store::forward!(store: is_shared, claim, partitions, repartition, cluster_view, heartbeat, acquire, release, leave, remote_attempts, stop_remote, end_remote);
}

impl Executions for ObservedStore {
    mainspring_store::forward!(store: execution, execution_by_id, execution_by_idempotency_key, executions, count_executions, count_other_definitions, rollout_executions, pending_organizations, pending_approvals, quarantine, quarantined, release_quarantine, force_end);
}

impl Store for ObservedStore {
    mainspring_store::forward!(store: catalogue, event_queue, metadata, put_metadata_if_absent, can_read_inline, is_of_unsealed_format, has_unsealed_resources, seals_resources);
}
