//! A store that passes each committed batch to a callback, and otherwise delegates to another store.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored_frame::StoredFrame};
use mainspring_store::{
    AuditedNotes, Batch, Catalogue, ClusterView, CommitError, Due, EnqueueRequest, ExecutionRow, Expected, Fence,
    Filter, GateRow, HeadRow, InboxEntry, LateReceipt, Node, NotifyCallback, Origin, PartOutcome, QuarantineRelease,
    QuarantinedRow, ReadLimit, ReleaseOutcome, RemoteAttempt, Store, StoreError,
};

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

impl Store for ObservedStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        let answers = self.store.commit(batch)?;
        (self.callback)(batch, &answers);
        Ok(answers)
    }

    fn can_read_inline(&self) -> bool {
        self.store.can_read_inline()
    }

    fn catalogue(&self) -> &dyn Catalogue {
        self.store.catalogue()
    }

    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.store.claim(partition, holder)
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        self.store.partitions()
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        self.store.repartition(partitions)
    }

    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.store.put_metadata_if_absent(name, value)
    }

    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.store.metadata(name)
    }

    fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        self.store.cluster_view()
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        self.store.heartbeat(node, lease_ms)
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        self.store.acquire(node, partitions)
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.store.release(node, fences, running)
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        self.store.remote_attempts(execution)
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.store.stop_remote(attempt)
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.store.end_remote(node, attempts)
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.store.leave(node)
    }

    fn notify(&self, partitions: &[u32]) {
        self.store.notify(partitions);
    }

    fn subscribe(&self, notify: NotifyCallback) {
        self.store.subscribe(notify);
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.store.head(execution)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, most: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        self.store.frames(execution, from, most)
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.store.due(partitions, until_ms, after, limit)
    }

    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.store.enqueue(request)
    }

    fn inbox(&self, partitions: &[u32], after: u64, most: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        self.store.inbox(partitions, after, most)
    }

    fn is_of_unsealed_format(&self) -> bool {
        self.store.is_of_unsealed_format()
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.store.plan(hash)
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        self.store.set_wake_at(execution, head, wake_at)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        self.store.quarantine(execution, reason)
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        self.store.release_quarantine(release)
    }

    fn force_end(&self, entry: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        self.store.force_end(entry)
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        self.store.quarantined(organization, after, limit)
    }

    fn erase(&self, execution: ExecutionKey, entry: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        self.store.erase(execution, entry)
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.store.notes(execution)
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        self.store.late_receipts(execution)
    }

    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution(execution)
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution_by_id(id)
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution_by_idempotency_key(of, key)
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        self.store.pending_approvals(organization, after, limit)
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        self.store.pending_organizations()
    }

    fn count_executions(&self, organization: &str, statuses: &[&str], most: usize) -> Result<usize, StoreError> {
        self.store.count_executions(organization, statuses, most)
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.store.executions(filter, before, limit)
    }
}
