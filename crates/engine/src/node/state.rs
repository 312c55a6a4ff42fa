//! The state of a node. The folder beside this file has its parts, which do not know the node. The other files of
//! [`node`](super) have the methods of the node.

pub(super) mod admission;
pub(super) mod events;
pub(super) mod inbox;
pub(super) mod membership;
pub(super) mod quarantine;
pub(super) mod recovery;
pub(super) mod round;

use std::collections::VecDeque;

use mainspring_store::{CommitError, PartOutcome};

use super::{pace::Pace, protocol::NodeOutput, shares::Shares};
use crate::{
    clock::{ClockReading, MonotonicMs},
    options::EngineScope,
    shard::Shard,
};
use admission::AdmissionControl;
use events::Events;
use inbox::Inbox;
use membership::{Membership, NodeProblem};
use quarantine::QuarantineProgress;
use recovery::Recovery;
use round::Round;

/// Milliseconds between two polls of the inbox, for messages whose wake-up was lost.
pub(crate) const INBOX_POLL_INTERVAL_MS: u64 = 1_000;

/// Milliseconds between two reads of timers from the store, in addition to notifications: recovery is level-triggered.
pub(super) const TIMER_POLL_INTERVAL_MS: u64 = 20_000;

/// The use of the store: by this process alone, or by several nodes.
#[derive(Debug)]
pub(super) enum StoreAccess {
    Exclusive,
    Shared(Box<Membership>),
}

/// A node; see the [module](super).
#[derive(Debug)]
pub struct Node {
    pub(super) shard: Shard,
    pub(super) access: StoreAccess,
    pub(super) scope: EngineScope,
    pub(super) events: Events,
    pub(super) inbox: Inbox,
    pub(super) recovery: Recovery,
    pub(super) quarantine: QuarantineProgress,
    /// Admission under concurrency limits. `None` if this node has no limits.
    pub(super) admission: Option<AdmissionControl>,
    pub(super) commits: Commits,
    pub(super) schedule: Schedule,
    pub(super) round: Round,
    pub(super) status: Status,
    /// Outputs that precede those of the shard.
    pub(super) outputs: VecDeque<NodeOutput>,
    /// The clocks at the step in progress.
    pub(super) now: ClockReading,
}

/// Progress of the commits.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) is_in_flight: bool,
    /// A result that was not handled yet.
    pub(super) answer: Option<(u64, Result<Vec<PartOutcome>, CommitError>)>,
    /// Pause before the next commit, since the last one was not written.
    pub(super) pause_ms: u64,
    /// Commits in a row with an unknown outcome.
    pub(super) unknown: u32,
    /// The store refuses to write.
    pub(super) is_stalled: bool,
}

/// Times of the next polls of the store and of the next part of a split turn, and the order of organizations.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) inbox_at: MonotonicMs,
    pub(super) timers_at: MonotonicMs,
    pub(super) pace: Pace,
    pub(super) shares: Shares,
}

#[derive(Debug, Default)]
pub(super) struct Status {
    /// No new work starts.
    pub(super) is_draining: bool,
    /// The node cannot continue: the outputs of the shard are not performed any more.
    pub(super) is_over: bool,
    /// The condition that keeps the node from working.
    pub(super) problem: Option<NodeProblem>,
}
