//! A store: the sum of its areas.

use crate::{
    catalogue::Catalogue, error::StoreError, event_queue::EventQueue, executions::Executions, inbox::Inbox,
    journal::Journal, membership::Membership,
};

/// Stores journals and the catalogue. Each operation documents the data that is durable when it returns. All operations
/// block: the caller chooses the thread.
pub trait Store: Journal + Inbox + Membership + Executions {
    /// Returns the resources of a server and its audit log, in the same store.
    fn catalogue(&self) -> &dyn Catalogue;

    /// Returns the queue of events, in the same store.
    fn event_queue(&self) -> &dyn EventQueue;

    /// Returns a metadata entry.
    fn metadata(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Stores a metadata entry unless one of this name exists, and returns the stored value. Durable.
    fn put_metadata_if_absent(&self, name: &str, value: &str) -> Result<String, StoreError>;

    /// Returns true if a read takes microseconds now and blocks on nothing, so that it needs no separate thread.
    fn can_read_inline(&self) -> bool {
        false
    }

    /// Checks that the files of the store are still on the disk under their names, if it has files. Operations that
    /// write do it before they acknowledge; call this while there is nothing to write. After the first error all writes
    /// are rejected.
    fn check_files(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns true if this process has upgraded the store from a format whose inbox messages had no seals.
    fn is_of_unsealed_format(&self) -> bool {
        false
    }

    /// Returns true if this process has upgraded the store from a format whose resources had no seals.
    fn has_unsealed_resources(&self) -> bool {
        false
    }

    /// Returns true if its catalogue seals resources: [`SealedStore`](crate::SealedStore).
    fn seals_resources(&self) -> bool {
        false
    }
}
