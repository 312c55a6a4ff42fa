//! The round in progress.

use std::time::Duration;

/// A part of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::node) enum Phase {
    /// Work whose time has come.
    #[default]
    Due,
    /// Events in the order of their arrival.
    Arrived,
    /// Events of several organizations, which take turns.
    Queued,
    /// Inbox messages.
    Messages,
    /// Outputs of the shard.
    Outputs,
}

/// Progress of a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::node) struct Progress {
    pub(in crate::node) phase: Phase,
    pub(in crate::node) began: Duration,
    /// Events or messages left to handle in this phase.
    pub(in crate::node) left: usize,
    /// Something was handled in this phase.
    pub(in crate::node) has_begun: bool,
}

/// The round in progress.
#[derive(Debug, Default)]
pub(in crate::node) struct Round {
    pub(in crate::node) current: Progress,
    /// The phase that continues after outputs between two of its events.
    pub(in crate::node) interrupted: Option<Progress>,
}
