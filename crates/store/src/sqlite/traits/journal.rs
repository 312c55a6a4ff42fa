//! Journals: commits, frames, heads and late receipts.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use mainspring_kernel::{hash::Hash, key::ExecutionKey, note::Note, stored_frame::StoredFrame};

use crate::{
    AuditedNotes, Batch, CommitError, Due, Expected, HeadRow, Journal, LateReceipt, PartOutcome, ReadLimit, StoreError,
    StoredExecutorKey,
    sqlite::{SqliteStore, commit, connection, erase, error, journal, notes},
};

impl Journal for SqliteStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<PartOutcome>, CommitError> {
        let connection = self.writer().map_err(|error| CommitError::NotWritten(error.to_string()))?;
        self.check(&connection).map_err(CommitError::Fatal)?;
        let work = || -> rusqlite::Result<(Vec<PartOutcome>, u64)> {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            commit::write(&connection, batch)
        };
        let (answers, newest) = work().map_err(|error| {
            connection::roll_back(&connection);
            error::before_commit(&self.path, &error)
        })?;
        let began = Instant::now();
        let ended = connection.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        self.sync_time.record(began.elapsed());
        ended.map_err(|error| {
            connection::roll_back(&connection);
            error::at_commit(&self.path, &error)
        })?;
        self.check(&connection).map_err(CommitError::Fatal)?;
        self.newest_frame.fetch_max(newest, Ordering::AcqRel);
        Ok(answers)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.read(|connection| journal::head(connection, execution))
    }

    fn frames(&self, execution: ExecutionKey, from: u64, bound: ReadLimit) -> Result<Vec<StoredFrame>, StoreError> {
        self.read(|connection| journal::frames(connection, execution, from, bound))
    }

    fn newest_frame(&self) -> Option<u64> {
        Some(self.newest_frame_number())
    }

    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.read(|connection| journal::due(connection, partitions, until_ms, after, limit))
    }

    fn set_wake_at(&self, execution: ExecutionKey, head: Expected, wake_at: Option<u64>) -> Result<bool, StoreError> {
        self.write(|connection| journal::set_wake_at(connection, execution, head, wake_at))
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.read(|connection| journal::plan(connection, hash))
    }

    fn late_receipts(&self, execution: ExecutionKey) -> Result<Vec<LateReceipt>, StoreError> {
        self.read(|connection| journal::late_receipts(connection, execution))
    }

    fn receipt_proofs(
        &self,
        execution: ExecutionKey,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.read(|connection| journal::receipt_proofs(connection, execution, from, limit))
    }

    fn executor_key(&self, id: Hash) -> Result<Option<StoredExecutorKey>, StoreError> {
        self.read(|connection| journal::executor_key(connection, id))
    }

    fn executor_keys(&self, after: Option<Hash>, limit: usize) -> Result<Vec<StoredExecutorKey>, StoreError> {
        self.read(|connection| journal::executor_keys(connection, after, limit))
    }

    fn notes(&self, execution: ExecutionKey) -> Result<Vec<Note>, StoreError> {
        self.read(|connection| notes::list(connection, execution))
    }

    fn erase(&self, execution: ExecutionKey, audited: &AuditedNotes<'_>) -> Result<usize, StoreError> {
        let found = self.write(|connection| erase::erase(connection, execution, audited))?;
        let cleared = erase::clear_log(&*self.writer()?).map_err(|error| error::of_store(&self.path, &error))?;
        if cleared {
            return Ok(found);
        }
        Err(StoreError::Unavailable(format!(
            "{}: the value is erased, but its bytes are still in the WAL, because a reader uses it: erase again",
            self.path.display()
        )))
    }
}
