//! Membership of a node in a cluster: the schedule of heartbeats, their results, and released partitions that the store
//! has not recorded yet. The shard and [`lease`](crate::lease) decide which partitions change their owner.

use std::collections::BTreeSet;

use mainspring_store::StoreError;

use super::{
    protocol::{NodeOutput, Report},
    state::{Node, StoreAccess, membership::NodeProblem, recovery::TRY_AGAIN_MS},
};
use crate::{
    clock::MonotonicMs,
    membership::{Heartbeat, NodeSession},
    shard::{Event, Handoff},
};

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
            "the store accepts this node's heartbeats but none of its commits: other nodes acquire its partitions";
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
