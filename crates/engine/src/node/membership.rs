//! Membership of a node in a cluster: the schedule of heartbeats, their results, and released partitions that the store
//! has not recorded yet. The shard and [`lease`](crate::lease) decide which partitions change their owner.

use std::collections::{BTreeSet, VecDeque};

use mainspring_store::{CommitError, PartOutcome, RemoteAttempt, StoreError};

use super::{HeartbeatRequest, Node, NodeOutput, Report, StoreAccess, recovery::TRY_AGAIN_MS};
use crate::{
    clock::MonotonicMs,
    membership::{Heartbeat, NodeSession},
    shard::{Event, Handoff},
};

/// The partitions of this node, as callers of the engine see them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ownership {
    pub(crate) partitions: u32,
    pub(crate) held: BTreeSet<u32>,
    /// The condition that keeps the node from working, if any.
    pub(crate) problem: Option<NodeProblem>,
}

/// A condition that keeps a node from working: a component for readers who may not see the reason, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblem {
    /// `store`, `clock` or `machine`.
    pub component: &'static str,
    /// The reason, which can name addresses and files of the store.
    pub why: String,
}

impl NodeProblem {
    pub(super) fn of(component: &'static str, why: impl Into<String>) -> Self {
        Self { component, why: why.into() }
    }
}

/// The state of a node among others.
#[derive(Debug)]
pub(super) struct Membership {
    session: NodeSession,
    /// The number of names that this process has had.
    incarnation: u32,
    /// The time of the next heartbeat. `None` while one is in progress.
    next_at: Option<MonotonicMs>,
    /// Results of heartbeats. They do not wait behind other events.
    answers: VecDeque<(Handoff, Heartbeat)>,
    /// Released partitions that the store has not recorded.
    pending_handoff: Handoff,
    writes: Writes,
    /// The last heartbeat failed.
    is_store_unreachable: bool,
}

impl Membership {
    pub(super) fn new(session: NodeSession) -> Self {
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

    pub(super) fn name(&self) -> &str {
        self.session.name()
    }

    pub(super) fn session(&self) -> &NodeSession {
        &self.session
    }

    pub(super) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub(super) fn next_at(&self) -> Option<MonotonicMs> {
        if self.answers.is_empty() { self.next_at } else { Some(MonotonicMs(0)) }
    }

    /// True if the next heartbeat names this attempt as running here.
    pub(super) fn is_handing_over(&self, attempt: &RemoteAttempt) -> bool {
        self.pending_handoff.running.contains(attempt)
    }

    /// Queues the result of a heartbeat.
    pub(super) fn answer(&mut self, handoff: Handoff, result: Heartbeat) {
        self.answers.push_back((handoff, result));
    }

    /// Handles the result of a commit.
    pub(super) fn written(&mut self, now: MonotonicMs, answer: &Result<Vec<PartOutcome>, CommitError>) {
        self.writes.answered(now, answer);
    }

    fn is_due(&self, now: MonotonicMs) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    /// Returns the heartbeat to send, or the duration of the silence of a node that cannot write.
    fn due(&mut self, now: MonotonicMs, has_to_write: bool, is_leaving: bool) -> Result<HeartbeatRequest, u64> {
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

impl Node {
    /// Queues a heartbeat that is due, or handles the result of one. True if there was something to do. It is called
    /// between any two steps, so that neither waits behind other work: under constant load the lease would expire.
    pub(super) fn keep_alive(&mut self) -> bool {
        let (now, is_leaving) = (self.now.monotonic, self.status.is_draining);
        let StoreAccess::Shared(membership) = &mut self.access else { return false };
        if let Some((handoff, result)) = membership.answers.pop_front() {
            self.heartbeat_answered(&handoff, result);
            // The renewed lease may be over: the answer came late.
            self.shard.expire(self.now);
            return true;
        }
        if !membership.is_due(now) {
            return false;
        }
        match membership.due(now, self.shard.has_to_write(), is_leaving) {
            Ok(request) => self.outputs.push_front(NodeOutput::Heartbeat(request)),
            Err(for_ms) => self.fall_silent(for_ms),
        }
        true
    }

    fn heartbeat_answered(&mut self, handoff: &Handoff, result: Heartbeat) {
        let StoreAccess::Shared(membership) = &mut self.access else { return };
        membership.is_store_unreachable = matches!(result, Heartbeat::Unreachable(_));
        let mut pause_ms = membership.session.terms().heartbeat_interval_ms();
        self.status.problem = None;
        match result {
            Heartbeat::Renewed(answered) => {
                let is_recorded = answered.handoff_error.is_none();
                if is_recorded {
                    membership.pending_handoff.remove(handoff);
                }
                self.end_what_ended_early();
                let of_store = answered.handoff_error.as_ref().map(|error| NodeProblem::of("store", error.clone()));
                let of_clock = answered.clock.skew().map(|apart| NodeProblem::of("clock", apart.to_string()));
                self.status.problem = of_clock.or(of_store);
                self.handle(Event::LeaseRenewed(answered));
                if is_recorded && self.is_releasing() {
                    pause_ms = 0;
                }
            }
            // The next heartbeat is sent by the next incarnation.
            Heartbeat::Expired => {
                membership.pending_handoff = Handoff::default();
                membership.incarnation += 1;
                membership.writes.forget();
                self.recovery.forget_ended();
                self.outputs.push_back(NodeOutput::Rejoin);
                self.handle(Event::LeaseExpired);
                return self.report(Report::OwnershipChanged);
            }
            // Another release has upgraded the store. It would not understand the frames of this release.
            Heartbeat::Unreachable(error @ StoreError::Newer { .. }) => return self.stop(error.to_string()),
            // The lease expires by itself.
            Heartbeat::Unreachable(error) => self.status.problem = Some(NodeProblem::of("store", error.to_string())),
        }
        self.report(Report::OwnershipChanged);
        self.heartbeat_in(pause_ms);
    }

    /// Continues as another incarnation, after the lease has expired.
    pub(super) fn rejoined(&mut self, session: NodeSession) {
        if let StoreAccess::Shared(membership) = &mut self.access {
            membership.session = session;
        }
        self.heartbeat_in(0);
    }

    /// The heartbeat could not be sent, for a reason of this machine.
    pub(super) fn heartbeat_not_sent(&mut self, why: String) {
        self.set_problem(Some(NodeProblem::of("machine", why)));
        self.heartbeat_in(TRY_AGAIN_MS);
    }

    fn heartbeat_in(&mut self, pause_ms: u64) {
        let at = MonotonicMs(self.now.monotonic.0 + pause_ms);
        if let StoreAccess::Shared(membership) = &mut self.access {
            membership.next_at = Some(at);
        }
    }

    fn is_releasing(&self) -> bool {
        matches!(&self.access, StoreAccess::Shared(membership) if !membership.pending_handoff.fences.is_empty())
    }

    /// Drops all partitions of a node whose heartbeats succeed but whose commits fail, and sends no heartbeat until its
    /// lease has expired, so that other nodes acquire them.
    fn fall_silent(&mut self, for_ms: u64) {
        let why =
            "the store answers this node's heartbeats and none of its commits: other nodes acquire its partitions";
        self.report(Report::Silent { for_ms, why });
        self.status.problem = Some(NodeProblem::of("store", why));
        self.handle(Event::LeaseExpired);
        self.report(Report::OwnershipChanged);
        self.heartbeat_in(for_ms);
    }

    /// Sets the condition that readiness reports.
    pub(super) fn set_problem(&mut self, problem: Option<NodeProblem>) {
        self.status.problem = problem;
        self.report(Report::OwnershipChanged);
    }

    pub(super) fn lost(&mut self, partitions: Vec<u32>) {
        if self.is_alone() {
            return self.stop("another process has taken over this store's executions".into());
        }
        self.forget_recoveries(&partitions);
        self.report(Report::Lost(partitions));
        self.report(Report::OwnershipChanged);
        self.forget_organizations();
    }

    pub(super) fn acquired(&mut self, partitions: Vec<u32>) {
        self.scan_acquired(&partitions);
        self.report(Report::Acquired(partitions));
        self.report(Report::OwnershipChanged);
        self.want_quarantined();
    }

    /// Sends a heartbeat at once, since other nodes wait for the partitions, unless one is in progress.
    pub(super) fn handoff(&mut self, handoff: Handoff) {
        let partitions: Vec<u32> = handoff.fences.iter().map(|fence| fence.partition).collect();
        self.report(Report::Released(partitions, handoff.running.len()));
        self.report(Report::OwnershipChanged);
        let now = self.now.monotonic;
        if let StoreAccess::Shared(membership) = &mut self.access {
            membership.pending_handoff.extend(handoff);
            membership.next_at = membership.next_at.map(|_| now);
        }
        self.forget_organizations();
    }

    /// Handles a notification about partitions.
    pub(super) fn on_notified(&mut self, partitions: &[u32]) {
        if self.shard.held().any(|held| partitions.contains(&held)) {
            self.poll_inbox();
            self.on_organizations_notified(partitions);
        }
    }

    /// Messages of this node are durable: notifies the owners of the other partitions, and reads the own inbox.
    pub(super) fn on_messages_enqueued(&mut self, partitions: &BTreeSet<u32>) {
        let held: BTreeSet<u32> = self.shard.held().collect();
        let elsewhere: Vec<u32> = partitions.difference(&held).copied().collect();
        if !elsewhere.is_empty() {
            self.outputs.push_back(NodeOutput::NotifyNodes(elsewhere));
        }
        if !partitions.is_disjoint(&held) {
            self.poll_inbox();
        }
    }
}

/// Tracks how long a node with pending writes has written nothing.
#[derive(Debug, Default)]
struct Writes {
    /// Time of the first failed commit since the last answered one.
    fails_since: Option<MonotonicMs>,
    /// Consecutive times at which the node dropped all partitions for this reason.
    silences: u32,
}

/// Longest silence of a node that cannot write, in leases. The silence doubles each time, since the node acquires
/// partitions again afterwards.
const SILENT_LEASES_MAX: u64 = 8;

impl Writes {
    /// Handles the result of a commit. A commit refused for its content shows that the store works.
    fn answered(&mut self, now: MonotonicMs, answer: &Result<Vec<PartOutcome>, CommitError>) {
        match answer {
            Ok(_) => *self = Self::default(),
            Err(CommitError::Refused(_)) => self.fails_since = None,
            Err(_) => {
                self.fails_since.get_or_insert(now);
            }
        }
    }

    /// Returns the milliseconds of the silence, if nothing was written for the length of a lease.
    fn silence(&mut self, now: MonotonicMs, lease_ms: u64) -> Option<u64> {
        self.fails_since.take_if(|since| now.0 >= since.0.saturating_add(lease_ms))?;
        let leases = (2 << self.silences.min(8)).min(SILENT_LEASES_MAX);
        self.silences += 1;
        Some(lease_ms.saturating_mul(leases))
    }

    /// Resets the failure time: no write is pending, or the node has joined again.
    fn forget(&mut self) {
        self.fails_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_writes_nothing_for_a_lease_falls_silent_and_longer_each_time() {
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
