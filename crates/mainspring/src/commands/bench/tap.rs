//! A store that passes each committed batch to a callback, and otherwise delegates to another store.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored::StoredFrame};
use mainspring_store::{
    Answer, Arrived, Batch, Catalogue, CommitError, Due, ExecutionRow, Expected, Fence, Filter, GateRow, HeadRow,
    Heard, Late, Most, Node, Noted, Origin, Posting, QuarantinedRow, Release, ReleaseAnswer, RemoteAttempt, Store,
    StoreError, Table,
};

/// The callback: the batch and the answer for each part.
pub(super) type Look = Box<dyn Fn(&Batch, &[Answer]) + Send + Sync>;

/// The wrapping store. The callback runs on the committing thread, and so delays the next commit.
pub(super) struct Tapped {
    store: Arc<dyn Store>,
    look: Look,
}

impl Tapped {
    pub(super) fn new(store: Arc<dyn Store>, look: Look) -> Self {
        Self { store, look }
    }
}

impl Store for Tapped {
    fn commit(&self, batch: &Batch) -> Result<Vec<Answer>, CommitError> {
        let answers = self.store.commit(batch)?;
        (self.look)(batch, &answers);
        Ok(answers)
    }

    fn is_at_hand(&self) -> bool {
        self.store.is_at_hand()
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

    fn pin(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.store.pin(name, value)
    }

    fn pinned(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.store.pinned(name)
    }

    fn table(&self) -> Result<Table, StoreError> {
        self.store.table()
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn beat(&self, node: &Node, lease_ms: u64) -> Result<Option<Table>, StoreError> {
        self.store.beat(node, lease_ms)
    }

    fn take(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        self.store.take(node, partitions)
    }

    fn give_up(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.store.give_up(node, fences, running)
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

    fn hint(&self, partitions: &[u32]) {
        self.store.hint(partitions);
    }

    fn listen(&self, heard: Heard) {
        self.store.listen(heard);
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.store.head(execution)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, most: Most) -> Result<Vec<StoredFrame>, StoreError> {
        self.store.frames(execution, from, most)
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.store.due(partitions, until_ms, after, limit)
    }

    fn post(&self, posting: &Posting<'_>) -> Result<bool, StoreError> {
        self.store.post(posting)
    }

    fn inbox(&self, partitions: &[u32], after: u64, most: Most) -> Result<Vec<Arrived>, StoreError> {
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

    fn release(&self, release: &Release<'_>) -> Result<ReleaseAnswer, StoreError> {
        self.store.release(release)
    }

    fn force_end(&self, noted: &Noted<'_>) -> Result<bool, StoreError> {
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

    fn erase(&self, execution: ExecutionKey, noted: &Noted<'_>) -> Result<usize, StoreError> {
        self.store.erase(execution, noted)
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.store.notes(execution)
    }

    fn late(&self, execution: ExecutionKey) -> Result<Vec<Late>, StoreError> {
        self.store.late(execution)
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
