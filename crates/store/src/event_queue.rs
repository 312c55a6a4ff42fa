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
    /// Returns the subscriptions with a due execution, sorted by id. The cost grows with the number of subscriptions, not
    /// with the number of executions.
    fn due_subscriptions(&self, due: DueTimes) -> Result<Vec<DueSubscription>, StoreError>;

    /// Returns the due executions of a subscription, at most `limit`: those due by `now_ms` by time and key, then those
    /// later than `latest_ms`.
    fn due_events(&self, subscription: &str, due: DueTimes, limit: usize) -> Result<Vec<EventCursor>, StoreError>;

    /// Counts the executions of a subscription that have events to send, up to `most`.
    fn count_events(&self, subscription: &str, most: usize) -> Result<usize, StoreError>;

    /// Moves a cursor from the position and the number of attempts that were read. The row is removed if the new position
    /// is behind the newest frame, also one that was committed since. Durable. False, and nothing is written, if the row
    /// has changed or does not exist.
    fn move_events(&self, read: &EventCursor, to: &EventCursor) -> Result<bool, StoreError>;

    /// Makes all executions of a subscription due at once, without failed attempts. Durable.
    fn retry_events(&self, subscription: &str) -> Result<(), StoreError>;

    /// Removes all rows of a subscription, unless it takes part in commits: then it was enabled in the meantime, and the
    /// rows are those of later events. Durable.
    fn remove_events(&self, subscription: &str) -> Result<(), StoreError>;
}

/// The times at which an execution is due, in milliseconds since 1970: by `now_ms`, and later than `latest_ms`. No delay
/// is as long, so such a time was written before the clock was set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTimes {
    /// The present time.
    pub now_ms: u64,
    /// The end of the longest delay.
    pub latest_ms: u64,
}

impl DueTimes {
    /// The executions that are due by a time.
    pub fn by(now_ms: u64) -> Self {
        Self { now_ms, latest_ms: u64::MAX }
    }

    /// True if a time is due.
    pub fn includes(&self, due_at: u64) -> bool {
        due_at <= self.now_ms || due_at > self.latest_ms
    }
}

/// A subscription with a due execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueSubscription {
    /// Its id, unique in the store.
    pub id: String,
    /// The id of the organization, as in its rows.
    pub organization: String,
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
    /// The time of the next attempt, in milliseconds since 1970; 0 for at once. Without failed attempts it is the time at
    /// which events were sent last, so that executions take turns.
    pub due_at: u64,
    /// The number of failed attempts of the next event.
    pub attempts: u32,
    /// The time of the first of them, in milliseconds since 1970.
    pub failing_since: Option<u64>,
}
