//! A store that returns little at a time and does not always answer.

use super::*;

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

impl Store for Awkward {
    fn notify(&self, partitions: &[u32]) {
        self.faults.notifications.lock().unwrap().extend(partitions);
    }

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

    fn catalogue(&self) -> &dyn Catalogue {
        self.store.catalogue()
    }

    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.store.claim(partition, holder)
    }

    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        self.store.commit(batch)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.store.head(execution)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, most: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
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

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.store.stop_remote(attempt)
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.store.end_remote(node, attempts)?;
        self.faults.ends.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.store.leave(node)
    }

    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.faults.posts.fetch_add(1, Ordering::SeqCst);
        pass(&self.faults.post_is_shut)?;
        self.store.enqueue(request)
    }

    fn inbox(&self, partitions: &[u32], after: u64, most: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        self.store.inbox(partitions, after, most)
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        self.store.set_wake_at(execution, head, wake_at)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        assert!(self.faults.may_quarantine.load(Ordering::SeqCst), "{execution} is quarantined: {reason}");
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
        pass(&self.faults.list_is_shut)?;
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
        pass(&self.faults.list_is_shut)?;
        let rows = self.store.executions(filter, before, limit);
        self.faults.lists.fetch_add(1, Ordering::SeqCst);
        rows
    }
}
