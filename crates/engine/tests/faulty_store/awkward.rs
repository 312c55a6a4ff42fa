//! A store that returns little at a time and does not always answer.

use super::*;
use mainspring_store::{Executions, Inbox, Journal, Membership};

/// A store with small pages and temporarily unreadable plans, beside other writers.
pub(super) struct Awkward {
    pub(super) store: MemoryStore,
    pub(super) due_at_a_time: usize,
    /// Number of further reads of plans that fail.
    pub(super) plans_fail: AtomicU32,
    pub(super) faults: Arc<StoreFaults>,
}

/// The operations that the store refuses at present, and counts of its calls.
#[derive(Default)]
pub(super) struct StoreFaults {
    pub(super) take_is_shut: AtomicBool,
    pub(super) post_is_shut: AtomicBool,
    pub(super) release_is_shut: AtomicBool,
    pub(super) list_is_shut: AtomicBool,
    /// Quarantines are expected. Otherwise one fails the test.
    pub(super) may_quarantine: AtomicBool,
    pub(super) lists: AtomicU32,
    pub(super) notifications: Mutex<BTreeSet<u32>>,
    pub(super) ends: AtomicU32,
    pub(super) posts: AtomicU32,
    pub(super) remote_reads: AtomicU32,
    pub(super) heartbeats: AtomicU32,
}

impl Awkward {
    pub(super) fn on(store: &MemoryStore) -> Self {
        let (plans_fail, faults) = (AtomicU32::new(0), Arc::default());
        Self { store: store.clone(), due_at_a_time: usize::MAX, plans_fail, faults }
    }
}

pub(super) fn pass(is_shut: &AtomicBool) -> Result<(), StoreError> {
    match is_shut.load(Ordering::SeqCst) {
        true => Err(StoreError::Unavailable("the disk does not answer".into())),
        false => Ok(()),
    }
}

impl Journal for Awkward {
    mainspring_store::forward!(store: commit, head, frames, set_wake_at, late_receipts, receipt_proofs, executor_key, executor_keys, notes, erase);

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.store.due(partitions, until_ms, after, limit.min(self.due_at_a_time))
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        let fails = self.plans_fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match fails {
            Ok(_) => Err(StoreError::Unavailable("the disk does not answer".into())),
            Err(_) => self.store.plan(hash),
        }
    }
}

impl Inbox for Awkward {
    mainspring_store::forward!(store: inbox);

    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.faults.posts.fetch_add(1, Ordering::SeqCst);
        pass(&self.faults.post_is_shut)?;
        self.store.enqueue(request)
    }

    fn notify(&self, partitions: &[u32]) {
        self.faults.notifications.lock().unwrap().extend(partitions);
    }
}

impl Membership for Awkward {
    mainspring_store::forward!(store: claim, partitions, repartition, cluster_view, leave, stop_remote);

    fn heartbeat(&self, node: &Node, lease_ms: u64) -> Result<Option<ClusterView>, StoreError> {
        self.faults.heartbeats.fetch_add(1, Ordering::SeqCst);
        self.store.heartbeat(node, lease_ms)
    }

    fn acquire(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        pass(&self.faults.take_is_shut)?;
        self.store.acquire(node, partitions)
    }

    fn release(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        pass(&self.faults.release_is_shut)?;
        self.store.release(node, fences, running)
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        let remote = self.store.remote_attempts(execution);
        self.faults.remote_reads.fetch_add(1, Ordering::SeqCst);
        remote
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.store.end_remote(node, attempts)?;
        self.faults.ends.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl Executions for Awkward {
    mainspring_store::forward!(store: execution, execution_by_id, execution_by_idempotency_key, count_executions, count_other_definitions, rollout_executions, pending_approvals, quarantined, release_quarantine, force_end);

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        pass(&self.faults.list_is_shut)?;
        let rows = self.store.executions(filter, before, limit);
        self.faults.lists.fetch_add(1, Ordering::SeqCst);
        rows
    }

    fn pending_organizations(&self) -> Result<BTreeSet<String>, StoreError> {
        pass(&self.faults.list_is_shut)?;
        self.store.pending_organizations()
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        assert!(self.faults.may_quarantine.load(Ordering::SeqCst), "{execution} is quarantined: {reason}");
        self.store.quarantine(execution, reason)
    }
}

impl Store for Awkward {
    mainspring_store::forward!(store: catalogue, event_queue, metadata, put_metadata_if_absent, seals_resources);
}
