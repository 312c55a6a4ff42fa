//! A memory store that calls a hook before each operation. The hook counts, waits, fails or panics.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, stored_frame::StoredFrame};
use mainspring_store::{
    Batch, ClusterView, CommitError, Due, EnqueueRequest, ExecutionRow, Executions, Fence, Filter, GateRow, Inbox,
    InboxEntry, Journal, Membership, Node, PartOutcome, ReadLimit, RemoteAttempt, Store, StoreError,
    memory::MemoryStore,
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

impl Journal for Hooked {
    mainspring_store::forward!(store: head, set_wake_at, late_receipts, receipt_proofs, executor_key, executor_keys, notes, erase);

    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        (self.hook)(Call::Commit).map_err(|error| CommitError::NotWritten(error.to_string()))?;
        let answers = self.store.commit(batch)?;
        (self.hook)(Call::Committed).map_err(|error| CommitError::Unknown(error.to_string()))?;
        Ok(answers)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, most: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        (self.hook)(Call::Frames(execution))?;
        self.store.frames(execution, from, most)
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        (self.hook)(Call::Due)?;
        self.store.due(partitions, until_ms, after, limit)
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        (self.hook)(Call::Plan(hash))?;
        self.store.plan(hash)
    }
}

impl Inbox for Hooked {
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

    fn notify(&self, _: &[u32]) {}
}

impl Membership for Hooked {
    mainspring_store::forward!(store: claim, partitions, repartition, cluster_view, release, leave, remote_attempts, stop_remote);

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        (self.hook)(Call::Heartbeat)?;
        self.store.heartbeat(node, lease_ms)
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        (self.hook)(Call::Take)?;
        self.store.acquire(node, partitions)
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        (self.hook)(Call::EndRemote)?;
        self.store.end_remote(node, attempts)?;
        Ok(())
    }
}

impl Executions for Hooked {
    mainspring_store::forward!(store: execution_by_id, execution_by_idempotency_key, count_executions, count_other_definitions, rollout_executions, pending_organizations, quarantined, release_quarantine, force_end);

    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        (self.hook)(Call::Row)?;
        self.store.execution(execution)
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

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        (self.hook)(Call::Approvals)?;
        self.store.pending_approvals(organization, after, limit)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        (self.hook)(Call::Quarantine(execution))?;
        self.store.quarantine(execution, reason)
    }
}

impl Store for Hooked {
    mainspring_store::forward!(store: catalogue, event_queue, metadata, put_metadata_if_absent, seals_resources);
}
