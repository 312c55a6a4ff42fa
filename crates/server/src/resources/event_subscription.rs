//! A subscription: an endpoint to which the events of an organization are sent.

use mainspring_store::{RECORDING_KEY, SUBSCRIPTION_KIND};
use serde::{Deserialize, Serialize};

use crate::resources::{
    repository::{Resource, Versioned},
    trigger_state::Stopped,
};

/// Stored form of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSubscription {
    /// Display name.
    pub name: String,
    /// Address of the endpoint.
    pub url: String,
    /// Patterns of the types of events: `workflow.step.failed`, `workflow.step.*`.
    pub types: Vec<String>,
    /// Ids of the workflows; `None` for all executions of the organization.
    pub workflows: Option<Vec<String>>,
    /// False if a member has disabled it.
    pub enabled: bool,
    /// Time at which it stopped taking part in commits because too many executions were waiting, in milliseconds since
    /// 1970.
    pub overflowed_at: Option<u64>,
    /// The secret, encrypted.
    pub secret: String,
    /// The secret before the last rotation.
    pub previous: Option<PreviousSecret>,
    /// Id of the member who created it.
    pub created_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
}

/// A secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviousSecret {
    /// The secret, encrypted.
    pub secret: String,
    /// Deliveries are signed with it until this time, in milliseconds since 1970.
    pub until: u64,
}

impl EventSubscription {
    /// True if commits add executions to its queue.
    pub fn is_recording(&self) -> bool {
        self.enabled && self.overflowed_at.is_none()
    }
}

impl Resource for EventSubscription {
    const KIND: &'static str = SUBSCRIPTION_KIND;
    const DISPLAY_NAME: &'static str = "event subscription";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        let (field, value) = RECORDING_KEY;
        self.is_recording().then(|| (field, value.to_string(), false)).into_iter().collect()
    }
}

impl Versioned for EventSubscription {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}

/// The state of a subscription that its deliveries change. It is a resource of its own, so that a delivery does not change
/// the ETag of the subscription. Its id is that of the subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionState {
    /// Failed attempts since the last success.
    pub failures: u32,
    /// Time of the first of them, in milliseconds since 1970.
    pub failing_since: Option<u64>,
    /// No attempt is made before this time, in milliseconds since 1970.
    pub not_before: u64,
    /// The last failed attempt.
    pub last_failure: Option<LastFailure>,
    /// Reason why the server has paused it.
    pub paused: Option<Stopped>,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastFailure {
    /// Milliseconds since 1970.
    pub at: u64,
    /// Id of the event.
    pub event: String,
    /// Error code.
    pub error: String,
}

impl Resource for SubscriptionState {
    const KIND: &'static str = "event subscription state";
    const DISPLAY_NAME: &'static str = "state of an event subscription";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}

/// An event that was not delivered in the time of its retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedEvent {
    /// Id of the subscription.
    pub subscription: String,
    /// Id of the event.
    pub event: String,
    /// Its type, as `workflow.step.failed`.
    pub event_type: String,
    /// Key of the execution.
    pub execution: String,
    /// Its id in the API.
    pub execution_id: String,
    /// Position of the event in the journal: its frame, and its index there.
    pub position: (u64, u32),
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the first attempt, in milliseconds since 1970.
    pub failing_since: u64,
    /// Time of the last attempt, in milliseconds since 1970.
    pub failed_at: u64,
    /// Error code of the last attempt.
    pub error: String,
}

impl Resource for FailedEvent {
    const KIND: &'static str = "failed event";
    const DISPLAY_NAME: &'static str = "failed delivery";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("subscription", self.subscription.clone(), false)]
    }
}
