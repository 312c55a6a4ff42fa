//! What a store is found to be by somebody who changes nothing of it: it is not made, not brought to a newer format, and
//! not held up while others work on it.

use std::sync::Arc;

use crate::{Store, StoreError};

/// The format of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// What it has; 0 where nothing was made yet.
    pub found: u32,
    /// What this build writes, and the newest that it reads.
    pub readable: u32,
}

/// A store that is looked at, of this format or an older one. Each verb sees one moment; two see two. Blocking.
///
/// `Ok(None)` is the answer where the format of the store has no such thing.
pub trait Inspection {
    /// Which format it has.
    fn format(&self) -> Format;

    /// A word about the store as a whole.
    fn pinned(&self, name: &str) -> Result<Option<Option<String>>, StoreError>;

    /// Executions that were set aside, with the reasons.
    fn quarantined(&self, limit: usize) -> Result<Option<Listed>, StoreError>;

    /// Executions whose next wake-up was to be before a time, the longest overdue first.
    fn overdue(&self, before_ms: u64, limit: usize) -> Result<Option<Listed>, StoreError>;

    /// Gates that were opened before a time and wait for people, the oldest first.
    fn waiting_since(&self, before_ms: u64, limit: usize) -> Result<Option<Listed>, StoreError>;

    /// Nodes that the store knows.
    fn nodes(&self) -> Result<Option<Vec<NodeSeen>>, StoreError>;

    /// The time of the newest frame, in milliseconds since 1970; `Some(0)` while there is none.
    fn newest_frame_ms(&self) -> Result<Option<u64>, StoreError>;

    /// The same store by its usual contract, of which every verb that writes is refused; only of the newest format.
    fn store(self: Box<Self>) -> Option<Arc<dyn Store>>;
}

/// Things of a kind: how many, and the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Named>,
}

/// An execution, and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name; its key where it stands in no catalogue.
    pub id: String,
    /// The time that it was asked for by.
    pub at_ms: Option<u64>,
    /// The reason that was given.
    pub why: Option<String>,
}

/// A node as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub place: String,
    /// Its release.
    pub release: String,
    /// Whether its lease holds, by the store's clock.
    pub is_alive: bool,
}
