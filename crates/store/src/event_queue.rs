//! The queue of events: executions with frames whose events were not sent to a subscription.
//!
//! The queue has no events: they are derived from the journal. A commit adds a row for each execution with new frames and
//! each subscription of its organization, in its transaction, so no event is lost between the two.

use mainspring_kernel::key::ExecutionKey;

use crate::error::StoreError;

/// The kind of the resources that are subscriptions.
pub const SUBSCRIPTION_KIND: &str = "event subscription";

/// The field and the value of the key by which a subscription takes part in commits.
pub const RECORDING_KEY: (&str, &str) = ("records", "events");

/// Stores the positions of subscriptions in journals. Blocking, like [`Store`](crate::Store).
pub trait EventQueue: Send + Sync {
    /// Returns the ids of the subscriptions with an execution that is due by `until_ms`, sorted. The cost grows with the
    /// number of subscriptions, not with the number of executions.
    fn due_subscriptions(&self, until_ms: u64) -> Result<Vec<String>, StoreError>;

    /// Returns the executions of a subscription that are due by `until_ms`, sorted by time and key, at most `limit`.
    fn due_events(&self, subscription: &str, until_ms: u64, limit: usize) -> Result<Vec<EventCursor>, StoreError>;

    /// Counts the executions of a subscription that have events to send, up to `most`.
    fn count_events(&self, subscription: &str, most: usize) -> Result<usize, StoreError>;

    /// Moves a cursor from the position and the number of attempts that were read. The row is removed if the new position
    /// is behind the newest frame, also one that was committed since. Durable. False, and nothing is written, if the row
    /// has changed or does not exist.
    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError>;

    /// Removes all rows of a subscription. Durable.
    fn remove_events(&self, subscription: &str) -> Result<(), StoreError>;
}

/// The position of a subscription in the journal of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCursor {
    /// The id of the subscription, unique in the store.
    pub subscription: String,
    /// The owner of the journal.
    pub execution: ExecutionKey,
    /// The organization of both.
    pub organization: String,
    /// The frame of the next event.
    pub sequence: u64,
    /// The index of the next event in its frame.
    pub position: u32,
    /// The newest frame of the execution.
    pub newest: u64,
    /// The time of the next attempt, in milliseconds since 1970; 0 for at once.
    pub due_at: u64,
    /// The number of failed attempts of the next event.
    pub attempts: u32,
    /// The time of the first of them, in milliseconds since 1970.
    pub failing_since: Option<u64>,
}
