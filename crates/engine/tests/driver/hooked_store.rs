//! A memory store that calls a hook before each operation. The hook counts, waits, fails or panics.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored_frame::StoredFrame};
use mainspring_store::{
    AuditedNotes, Batch, Catalogue, ClusterView, CommitError, Due, EnqueueRequest, ExecutionRow, Expected, Fence,
    Filter, GateRow, HeadRow, InboxEntry, LateReceipt, Node, Origin, PartOutcome, QuarantineRelease, QuarantinedRow,
    ReadLimit, ReleaseOutcome, RemoteAttempt, Store, StoreError, memory::MemoryStore,
};

/// The operations with a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Inbox,
    Due,
    Plan(Hash),
    Frames(ExecutionKey),
    Quarantine(ExecutionKey),
    Row,
    Executions,
    Heartbeat,
    Post,
    EndRemote,
    Commit,
    /// After a commit was written.
    Committed,
    Take,
    Approvals,
}

/// Called before each [`Call`]. An error becomes the answer of the store.
pub(crate) type Hook = Box<dyn Fn(Call) -> Result<(), StoreError> + Send + Sync>;

pub(crate) struct Hooked {
    store: MemoryStore,
    hook: Hook,
    /// Ids of messages that the test has removed from the inbox.
    pub(crate) removed: Arc<Mutex<BTreeSet<String>>>,
}

impl Hooked {
    pub(crate) fn on(
        store: &MemoryStore,
        hook: impl Fn(Call) -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self { store: store.clone(), hook: Box::new(hook), removed: Arc::default() }
    }
}

impl Store for Hooked {
    fn notify(&self, _: &[u32]) {}

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        (self.hook)(Call::Due)?;
        self.store.due(partitions, until_ms, after, limit)
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        (self.hook)(Call::Plan(hash))?;
        self.store.plan(hash)
    }

    fn catalogue(&self) -> &dyn Catalogue {
        self.store.catalogue()
    }

    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.store.claim(partition, holder)
    }

    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        (self.hook)(Call::Commit).map_err(|error| CommitError::NotWritten(error.to_string()))?;
        let answers = self.store.commit(batch)?;
        (self.hook)(Call::Committed).map_err(|error| CommitError::Unknown(error.to_string()))?;
        Ok(answers)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.store.head(execution)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, most: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        (self.hook)(Call::Frames(execution))?;
        self.store.frames(execution, from, most)
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

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        (self.hook)(Call::Heartbeat)?;
        self.store.heartbeat(node, lease_ms)
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        (self.hook)(Call::Take)?;
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
        (self.hook)(Call::EndRemote)?;
        self.store.end_remote(node, attempts)?;
        Ok(())
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.store.leave(node)
    }

    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        (self.hook)(Call::Post)?;
        self.store.enqueue(request)
    }

    fn inbox(&self, partitions: &[u32], after: u64, most: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        (self.hook)(Call::Inbox)?;
        let mut arrived = self.store.inbox(partitions, after, most)?;
        arrived.retain(|arrived| !self.removed.lock().unwrap().contains(&arrived.message.id));
        Ok(arrived)
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        self.store.set_wake_at(execution, head, wake_at)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        (self.hook)(Call::Quarantine(execution))?;
        self.store.quarantine(execution, reason)
    }

    fn release_quarantine(&self, release: &QuarantineRelease<'_>) -> Result<ReleaseOutcome, StoreError> {
        self.store.release_quarantine(release)
    }

    fn force_end(&self, noted: &AuditedNotes<'_>) -> Result<bool, StoreError> {
        self.store.force_end(noted)
    }

    fn quarantined(
        &self,
        organization: Option<&str>,
        after: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<QuarantinedRow>, StoreError> {
        self.store.quarantined(organization, after, limit)
    }

    fn erase(&self, execution: ExecutionKey, noted: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        self.store.erase(execution, noted)
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.store.notes(execution)
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        self.store.late_receipts(execution)
    }

    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        (self.hook)(Call::Row)?;
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
        (self.hook)(Call::Approvals)?;
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
        (self.hook)(Call::Executions)?;
        self.store.executions(filter, before, limit)
    }
}
