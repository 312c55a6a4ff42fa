//! A store whose subscriptions have more waiting executions than a queue may have.

use mainspring_store::{
    EventCursor, EventQueue, Executions, Inbox, Journal, Membership, Store, StoreError, memory::MemoryStore,
};

/// Counts as many waiting executions as it is asked for, and otherwise delegates to a store in memory.
#[derive(Default)]
pub(super) struct CrowdedStore {
    store: MemoryStore,
}

impl Journal for CrowdedStore {
    mainspring_store::forward!(store: commit, head, frames, due, set_wake_at, plan, late_receipts, receipt_proofs);
    mainspring_store::forward!(store: executor_key, executor_keys, notes, erase);
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
    fn due_subscriptions(&self, until_ms: u64) -> Result<Vec<String>, StoreError> {
        self.store.due_subscriptions(until_ms)
    }

    fn due_events(&self, subscription: &str, until_ms: u64, limit: usize) -> Result<Vec<EventCursor>, StoreError> {
        self.store.due_events(subscription, until_ms, limit)
    }

    fn count_events(&self, _: &str, most: usize) -> Result<usize, StoreError> {
        Ok(most)
    }

    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError> {
        self.store.move_events(read, to)
    }

    fn remove_events(&self, subscription: &str) -> Result<(), StoreError> {
        self.store.remove_events(subscription)
    }
}

impl Store for CrowdedStore {
    mainspring_store::forward!(store: catalogue, metadata, put_metadata_if_absent, can_read_inline);
    mainspring_store::forward!(store: is_of_unsealed_format);

    fn event_queue(&self) -> &dyn EventQueue {
        self
    }
}
