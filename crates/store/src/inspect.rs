//! Read-only access to a store, for diagnosis: the store is not created, not upgraded, and not blocked for its users.

use std::sync::Arc;

use crate::{error::StoreError, store::Store};

/// The format of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The format that the store has; 0 if it was not created yet.
    pub found: u32,
    /// The format that this build writes, the newest that it reads.
    pub readable: u32,
}

/// A store that is inspected, of this format or an older one. Each call sees one consistent state; two calls may see
/// two. Blocking.
///
/// `Ok(None)` means that the format of the store has no such data.
pub trait Inspection {
    /// Returns the format of the store.
    fn format(&self) -> Format;

    /// Returns a metadata entry.
    fn metadata(&self, name: &str) -> Result<Option<Option<String>>, StoreError>;

    /// Returns quarantined executions with the reasons.
    fn quarantined(&self, limit: usize) -> Result<Option<InspectedExecutions>, StoreError>;

    /// Returns executions whose wake-up was due before a time, the longest overdue first.
    fn overdue(&self, before_ms: u64, limit: usize) -> Result<Option<InspectedExecutions>, StoreError>;

    /// Returns gates that were opened before a time and are still open, the oldest first.
    fn waiting_since(&self, before_ms: u64, limit: usize) -> Result<Option<InspectedExecutions>, StoreError>;

    /// Returns the nodes that the store knows.
    fn nodes(&self) -> Result<Option<Vec<InspectedNode>>, StoreError>;

    /// Returns the time of the newest frame, in milliseconds since 1970; `Some(0)` without any.
    fn newest_frame_ms(&self) -> Result<Option<u64>, StoreError>;

    /// Returns the same store with its usual contract, in which every write is refused; only for the newest format.
    fn store(self: Box<Self>) -> Option<Arc<dyn Store>>;
}

/// The number of matching items, and the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InspectedExecutions {
    /// The total number.
    pub count: u64,
    /// The first of them.
    pub first: Vec<InspectedExecution>,
}

/// An execution with a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedExecution {
    /// Its external name; its key if it has no row in the catalogue.
    pub id: String,
    /// The time by which it was selected.
    pub at_ms: Option<u64>,
    /// The reason of the quarantine, or the step name of an open gate.
    pub reason: Option<String>,
}

/// A node as recorded in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedNode {
    /// The name of its incarnation.
    pub name: String,
    /// Its host and process.
    pub address: String,
    /// The version of Mainspring that it runs.
    pub release: String,
    /// True if its lease has not expired, by the store's clock.
    pub is_alive: bool,
}
