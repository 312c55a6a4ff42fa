//! The incarnation of a node, the time of its next heartbeat, and released partitions that the store has not recorded.

use std::collections::{BTreeSet, VecDeque};

use mainspring_store::{CommitError, PartOutcome, RemoteAttempt};

use crate::{
    clock::MonotonicMs,
    membership::{Heartbeat, NodeSession},
    node::protocol::HeartbeatRequest,
    shard::Handoff,
};

/// The partitions of this node, as callers of the engine see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ownership {
    pub(crate) partitions: u32,
    pub(crate) held: BTreeSet<u32>,
    /// The condition that keeps the node from working, if any.
    pub(crate) problem: Option<NodeProblem>,
}

/// A condition that prevents a node from working: the component, which all readers may see, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblem {
    /// `store`, `clock` or `machine`.
    pub component: &'static str,
    /// The reason, which can name addresses and files of the store.
    pub why: String,
}

impl NodeProblem {
    pub(in crate::node) fn of(component: &'static str, why: impl Into<String>) -> Self {
        Self { component, why: why.into() }
    }
}

/// The state of a node among others.
#[derive(Debug)]
pub(in crate::node) struct Membership {
    pub(in crate::node) session: NodeSession,
    /// The number of names that this process has had.
    pub(in crate::node) incarnation: u32,
    /// The time of the next heartbeat. `None` while one is in progress.
    pub(in crate::node) next_at: Option<MonotonicMs>,
    /// Results of heartbeats. They do not wait behind other events.
    pub(in crate::node) answers: VecDeque<(Handoff, Heartbeat)>,
    /// Released partitions that the store has not recorded.
    pub(in crate::node) pending_handoff: Handoff,
    pub(in crate::node) writes: Writes,
    /// The last heartbeat failed.
    pub(in crate::node) is_store_unreachable: bool,
}

impl Membership {
    pub(in crate::node) fn new(session: NodeSession) -> Self {
        Self {
            session,
            incarnation: 1,
            next_at: Some(MonotonicMs(0)),
            answers: VecDeque::new(),
            pending_handoff: Handoff::default(),
            writes: Writes::default(),
            is_store_unreachable: false,
        }
    }

    pub(in crate::node) fn name(&self) -> &str {
        self.session.name()
    }

    pub(in crate::node) fn session(&self) -> &NodeSession {
        &self.session
    }

    pub(in crate::node) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub(in crate::node) fn next_at(&self) -> Option<MonotonicMs> {
        if self.answers.is_empty() { self.next_at } else { Some(MonotonicMs(0)) }
    }

    /// True if the next heartbeat names this attempt as running here.
    pub(in crate::node) fn is_handing_over(&self, attempt: &RemoteAttempt) -> bool {
        self.pending_handoff.running.contains(attempt)
    }

    /// Queues the result of a heartbeat.
    pub(in crate::node) fn answer(&mut self, handoff: Handoff, result: Heartbeat) {
        self.answers.push_back((handoff, result));
    }

    /// Handles the result of a commit.
    pub(in crate::node) fn written(&mut self, now: MonotonicMs, answer: &Result<Vec<PartOutcome>, CommitError>) {
        self.writes.answered(now, answer);
    }

    pub(in crate::node) fn is_due(&self, now: MonotonicMs) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    /// Returns the heartbeat to send, or the duration of the silence of a node that cannot write.
    pub(in crate::node) fn due(
        &mut self,
        now: MonotonicMs,
        has_to_write: bool,
        is_leaving: bool,
    ) -> Result<HeartbeatRequest, u64> {
        self.next_at = None;
        if !has_to_write {
            self.writes.forget();
        }
        if !self.is_store_unreachable
            && !is_leaving
            && let Some(for_ms) = self.writes.silence(now, self.session.terms().lease_ms)
        {
            return Err(for_ms);
        }
        Ok(HeartbeatRequest { session: self.session.clone(), handoff: self.pending_handoff.clone(), is_leaving })
    }
}

/// Tracks how long a node with pending writes has written nothing.
#[derive(Debug, Default)]
pub(in crate::node) struct Writes {
    /// Time of the first failed commit since the last answered one.
    pub(in crate::node) fails_since: Option<MonotonicMs>,
    /// Consecutive times at which the node dropped all partitions for this reason.
    pub(in crate::node) silences: u32,
}

/// Longest silence of a node that cannot write, in leases. The silence doubles each time, since the node acquires
/// partitions again afterwards.
pub(in crate::node) const SILENT_LEASES_MAX: u64 = 8;

impl Writes {
    /// Handles the result of a commit. A commit refused for its content shows that the store works.
    pub(in crate::node) fn answered(&mut self, now: MonotonicMs, answer: &Result<Vec<PartOutcome>, CommitError>) {
        match answer {
            Ok(_) => *self = Self::default(),
            Err(CommitError::Refused(_)) => self.fails_since = None,
            Err(_) => {
                self.fails_since.get_or_insert(now);
            }
        }
    }

    /// Returns the milliseconds of the silence, if nothing was written for the length of a lease.
    pub(in crate::node) fn silence(&mut self, now: MonotonicMs, lease_ms: u64) -> Option<u64> {
        self.fails_since.take_if(|since| now.0 >= since.0.saturating_add(lease_ms))?;
        let leases = (2 << self.silences.min(8)).min(SILENT_LEASES_MAX);
        self.silences += 1;
        Some(lease_ms.saturating_mul(leases))
    }

    /// Resets the failure time: no write is pending, or the node has joined again.
    pub(in crate::node) fn forget(&mut self) {
        self.fails_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_writes_stop_heartbeats_for_growing_intervals() {
        let failed = || Err(CommitError::NotWritten("it may only read".into()));
        let mut writes = Writes::default();
        assert_eq!(writes.silence(MonotonicMs(99_000), 10_000), None, "nothing to write is no failure");
        writes.answered(MonotonicMs(100_000), &failed());
        writes.answered(MonotonicMs(105_000), &failed());
        assert_eq!(writes.silence(MonotonicMs(109_999), 10_000), None);
        assert_eq!(writes.silence(MonotonicMs(110_000), 10_000), Some(20_000));
        for (round, expected) in [(2, 40_000), (3, 80_000), (4, 80_000), (100, 80_000)] {
            writes.answered(MonotonicMs(round * 100_000), &failed());
            assert_eq!(writes.silence(MonotonicMs(round * 100_000 + 10_000), 10_000), Some(expected));
        }
        writes.answered(MonotonicMs(1), &failed());
        writes.answered(MonotonicMs(2), &Err(CommitError::Refused("duplicate key".into())));
        assert_eq!(
            writes.silence(MonotonicMs(99_000), 10_000),
            None,
            "what is refused for its content is no store that fails"
        );
        writes.answered(MonotonicMs(3), &Ok(vec![]));
        writes.answered(MonotonicMs(4), &failed());
        assert_eq!(
            writes.silence(MonotonicMs(10_004), 10_000),
            Some(20_000),
            "a commit that is written begins the count anew"
        );
    }
}
