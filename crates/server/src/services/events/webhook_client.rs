//! The HTTP client of outgoing webhooks.

use std::{fmt, sync::Arc, time::Duration};

use mainspring_effects::{CancelHandle, Executor};
use mainspring_kernel::effect::{Attempt, Outcome};
use mainspring_triggers::limits::DELIVERY_TIMEOUT_MS;
use tokio::time::timeout;

/// The HTTP client of deliveries: the executor of `http` steps, which refuses private addresses that the operator has not
/// allowed for the organization.
#[derive(Clone)]
pub struct WebhookClient {
    http: Arc<dyn Executor>,
    timeout: Duration,
}

impl WebhookClient {
    /// Deliveries through an executor of `http` attempts.
    pub fn new(http: Arc<dyn Executor>) -> Self {
        Self { http, timeout: Duration::from_millis(DELIVERY_TIMEOUT_MS) }
    }

    /// Replaces the time for one delivery, [`DELIVERY_TIMEOUT_MS`].
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sends a request once; `None` if the response did not arrive in time.
    pub(crate) async fn send(&self, attempt: &Attempt) -> Option<Outcome> {
        let (_keep, signal) = CancelHandle::pair();
        timeout(self.timeout, self.http.perform(attempt, signal)).await.ok()
    }
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WebhookClient")
    }
}
