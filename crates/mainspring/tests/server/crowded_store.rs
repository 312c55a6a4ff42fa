//! A store whose subscriptions have more waiting executions than a queue may have, and that counts reads of journals.

use std::sync::atomic::{AtomicUsize, Ordering};

use mainspring_kernel::{key::ExecutionKey, stored_frame::StoredFrame};

use mainspring_store::{
    DueSubscription, DueTimes, EventCursor, EventQueue, Executions, Inbox, Journal, Membership, ReadLimit, Store,
    StoreError, memory::MemoryStore,
};

/// Counts as many waiting executions as it is asked for, and otherwise delegates to a store in memory.
#[derive(Default)]
pub(super) struct CrowdedStore {
    store: MemoryStore,
    /// Frames that were read.
    pub(super) frames_read: AtomicUsize,
}

impl Journal for CrowdedStore {
    mainspring_store::forward!(store: commit, head, due, set_wake_at, plan, late_receipts, receipt_proofs);
    mainspring_store::forward!(store: executor_key, executor_keys, notes, erase);

    fn frames(&self, execution: ExecutionKey, from: u64, limit: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        let frames = self.store.frames(execution, from, limit)?;
        self.frames_read.fetch_add(frames.len(), Ordering::SeqCst);
        Ok(frames)
    }
}

impl Inbox for CrowdedStore {
    mainspring_store::forward!(store: enqueue, inbox, notify, subscribe);
}

impl Membership for CrowdedStore {
    mainspring_store::forward!(store: is_shared, claim, partitions, repartition, cluster_view, heartbeat, acquire);
    mainspring_store::forward!(store: release, leave, remote_attempts, stop_remote, end_remote);
}

impl Executions for CrowdedStore {
    mainspring_store::forward!(store: execution, execution_by_id, execution_by_idempotency_key, executions);
    mainspring_store::forward!(store: count_executions, count_other_definitions, pending_organizations, pending_approvals);
    mainspring_store::forward!(store: rollout_executions, quarantine, quarantined, release_quarantine, force_end);
}

impl EventQueue for CrowdedStore {
    fn due_subscriptions(&self, due: DueTimes) -> Result<Vec<DueSubscription>, StoreError> {
        self.store.due_subscriptions(due)
    }

    fn due_events(&self, subscription: &str, due: DueTimes, limit: usize) -> Result<Vec<EventCursor>, StoreError> {
        self.store.due_events(subscription, due, limit)
    }

    fn count_events(&self, _: &str, most: usize) -> Result<usize, StoreError> {
        Ok(most)
    }

    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError> {
        self.store.move_events(read, to)
    }

    fn retry_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.store.retry_events(subscription)
    }

    fn remove_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.store.remove_events(subscription)
    }
}

impl Store for CrowdedStore {
    mainspring_store::forward!(store: catalogue, metadata, put_metadata_if_absent, can_read_inline);
    mainspring_store::forward!(store: is_of_unsealed_format, has_unsealed_resources, seals_resources);

    fn event_queue(&self) -> &dyn EventQueue {
        self
    }
}
