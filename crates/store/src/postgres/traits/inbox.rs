//! The inbox: messages to executions.

use crate::{
    EnqueueRequest, Inbox, InboxEntry, NotifyCallback, ReadLimit, StoreError,
    postgres::{PostgresStore, journal, notify},
};

impl Inbox for PostgresStore {
    fn enqueue(&self, request: &EnqueueRequest<'_>) -> Result<bool, StoreError> {
        self.with_session(async |session| journal::enqueue(session, request).await)
    }

    fn inbox(&self, partitions: &[u32], after: u64, bound: ReadLimit) -> Result<Vec<InboxEntry>, StoreError> {
        self.with_session(async |session| journal::inbox(session, partitions, after, bound).await)
    }

    fn notify(&self, partitions: &[u32]) {
        self.notifications.add(partitions);
    }

    fn subscribe(&self, notify: NotifyCallback) {
        notify::start_listening(&self.connections, notify);
    }
}
