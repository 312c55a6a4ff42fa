//! Journals: commits, frames, heads and late receipts.

use std::sync::Arc;

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored_frame::StoredFrame};

use crate::{
    AuditedNotes, Batch, CommitError, Due, Expected, HeadRow, Journal, LateReceipt, PartOutcome, ReadLimit, StoreError,
    StoredExecutorKey,
    postgres::{PostgresStore, commit, connections::Who, erase, journal, notes},
};

impl Journal for PostgresStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        if batch.parts.is_empty() {
            return Ok(Vec::new());
        }
        self.connections.driver.wait(commit::commit(&self.connections, batch))
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.with_session(async |session| journal::head(session, execution).await)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, bound: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        self.with_session(async |session| journal::frames(session, execution, from, bound).await)
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.with_session(async |session| journal::due(session, partitions, until_ms, after, limit).await)
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        self.with_session(async |session| journal::set_wake_at(session, execution, head, wake_at).await)
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.with_session(async |session| journal::plan(session, hash).await)
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        self.with_session(async |session| journal::late_receipts(session, execution).await)
    }

    fn receipt_proofs(
        &self,
        execution: ExecutionKey,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.with_session(async |session| journal::receipt_proofs(session, execution, from, limit).await)
    }

    fn executor_key(&self, id: Hash) -> Result<Option<StoredExecutorKey>, StoreError> {
        self.with_session(async |session| journal::executor_key(session, id).await)
    }

    fn executor_keys(&self, after: Option<Hash>, limit: usize) -> Result<Vec<StoredExecutorKey>, StoreError> {
        self.with_session(async |session| journal::executor_keys(session, after, limit).await)
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.with_session(async |session| notes::list(session, execution).await)
    }

    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        self.once(Who::Others, async |session| erase::erase(session, execution, audited).await)
    }
}
