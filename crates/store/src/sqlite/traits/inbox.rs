//! The inbox: messages to executions.

use crate::{
    EnqueueRequest, Inbox, InboxEntry, ReadLimit, StoreError,
    sqlite::{SqliteStore, audit, commit, journal, membership},
};

impl Inbox for SqliteStore {
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.write(|connection| {
            let is_so = membership::partitions(connection)? == request.partitions;
            if is_so {
                commit::put_plans(connection, request.plans)?;
            }
            if is_so && commit::enqueue(connection, request.message)? {
                audit::append(connection, &request.sealing, &request.audit.iter().collect::<Vec<_>>())?;
            }
            Ok(is_so)
        })
    }

    fn inbox(&self, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        self.read(|connection| journal::inbox(connection, partitions, after, bound))
    }
}
