//! The settings of sandboxes that no file has.

use std::sync::Arc;

use super::limits::Timing;
use crate::live_progress::LiveProgress;

/// Receives messages for the operator of the node.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The settings of [`SandboxRunner`](super::SandboxRunner).
#[derive(Clone)]
pub struct SandboxOptions {
    /// True if scripts get the trace context (`TRACEPARENT`).
    pub traces: bool,
    /// The times after which an unresponsive sandbox is ended.
    pub timing: Timing,
    /// Receives the reason for each sandbox that ends by itself or is ended for its behavior.
    pub log: Log,
    /// Receives the progress of scripts.
    pub progress: Arc<LiveProgress>,
}
