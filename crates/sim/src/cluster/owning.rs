//! Ownership of partitions, as in the engine's driver: heartbeats, a new name after an expired lease, handoff, recovery
//! of attempts, and forwarding of receipts to the owner.

use std::sync::Arc;

use mainspring_engine::{
    clock::ClockReading,
    lease::LeaseTiming,
    membership::{Heartbeat, NodeSession},
    shard::{AttemptRecovery, Event, Handoff},
};
use mainspring_kernel::{effect::Attempt, instance::Instance, key::ExecutionKey};
use mainspring_store::memory::MemoryStore;
use mainspring_store::prelude::*;

use super::{
    Cluster, ClusterEvent,
    faults::LEASE_MS,
    network::{InFlightRequest, Passing, StoreRequest},
    node::NodeEvent,
};

/// Milliseconds in which a receipt is forwarded, and between two tries. The engine's driver uses the same.
const TRIES_LAST_MS: u64 = 60_000;
const TRY_AGAIN_MS: u64 = 500;

/// Percent of late responses to heartbeats that follow a late response or a slow commit.
const LATE_AGAIN: u64 = 50;

/// An attempt to recover.
pub(super) type ToAdopt = (ExecutionKey, Instance, Attempt);

impl Cluster {
    /// Schedules the next heartbeat, replacing the scheduled one.
    pub(super) fn speak_in(&mut self, node: usize, after_ms: u64) {
        let life = self.nodes[node].life;
        self.nodes[node].speaks_at = Some(self.now + after_ms);
        self.at(after_ms, ClusterEvent::Node(node, life, NodeEvent::Speak));
    }

    /// Sends a heartbeat if it is due. One heartbeat is in progress at a time.
    pub(super) fn heartbeat(&mut self, node: usize) {
        let place = &mut self.nodes[node];
        let (Some(at), Some(member)) = (place.speaks_at, place.member.clone()) else { return };
        if at > self.now {
            return;
        }
        place.speaks_at = None;
        let (handoff, is_leaving, sent_at) =
            (place.pending_handoff.clone(), place.is_draining, place.clocks.read(self.now));
        self.request_store(node, StoreRequest::Speak { member, handoff, is_leaving, sent_at });
    }

    pub(super) fn on_heartbeat(&mut self, node: usize, handoff: &Handoff, word: Heartbeat) {
        let mut pause = LeaseTiming { lease_ms: LEASE_MS }.heartbeat_interval_ms();
        match word {
            Heartbeat::Renewed(renewal) => {
                self.nodes[node].pending_handoff.remove(handoff);
                self.handle(node, Event::LeaseRenewed(renewal));
                if !self.nodes[node].pending_handoff.fences.is_empty() {
                    pause = 0;
                }
            }
            // The process continues with the same shard under a new name. Its calls run until they have stopped, and it
            // owns nothing.
            Heartbeat::Expired => {
                pause = 0;
                self.nodes[node].pending_handoff = Handoff::default();
                self.nodes[node].call_anew(node, Arc::new(self.store.clone()));
                self.handle(node, Event::LeaseExpired);
            }
            Heartbeat::Unreachable(_) => {}
        }
        self.speak_in(node, pause);
    }

    /// Releases partitions. The heartbeat that tells the store is sent at once, since other nodes wait for the
    /// partitions.
    pub(super) fn handoff(&mut self, node: usize, handoff: Handoff) {
        self.handed_over += handoff.running.len() as u64;
        self.nodes[node].pending_handoff.extend(handoff);
        if self.nodes[node].speaks_at.is_some() {
            self.speak_in(node, 0);
        }
    }

    /// Handles a heartbeat at the store, which does not check whether the sender is still alive. Readings of the node's
    /// clock are those of the request until the store has applied the heartbeat, and those of the response afterwards.
    pub(super) fn hear_word(
        &mut self,
        (node, life): (usize, u32),
        member: &NodeSession,
        (handoff, is_leaving): (Handoff, bool),
        sent_at: ClockReading,
    ) -> Result<(), String> {
        let is_late = self.is_word_late(node);
        let delay = match self.draws_delayed_heartbeat(node) {
            true => self.delay_heartbeat(node),
            false if is_late => self.rng.below(LEASE_MS),
            false => self.delay_of_answer(),
        };
        let answered_at = self.nodes[node].clocks.read(self.now + delay);
        let (store, now) = (self.store.clone(), self.now);
        // If an earlier heartbeat was applied in the same millisecond, the table of nodes cannot show whether this one
        // was.
        let was_heard = has_heard(&store, member.name(), now);
        let is_after = || !was_heard && has_heard(&store, member.name(), now);
        let word = member.heartbeat(&handoff, is_leaving, || if is_after() { answered_at } else { sent_at });
        if let Heartbeat::Renewed(renewal) = &word {
            self.check_taking(member.name(), renewal, is_leaving)?;
            self.commits.took(&renewal.name, &renewal.taken)?;
        }
        self.at(delay, ClusterEvent::Node(node, life, NodeEvent::HeartbeatResult(handoff, word)));
        Ok(())
    }

    /// Draws whether the response to a heartbeat is late. In seeds with late responses these follow late responses and
    /// slow commits, as slowness lasts in practice. A partition that is released when such a commit becomes durable is
    /// released during a heartbeat, so the next heartbeat must report it.
    fn is_word_late(&mut self, node: usize) -> bool {
        let is_slow = self.nodes[node].was_late || self.nodes[node].is_commit_slow;
        let percent = if is_slow && self.faults.late_heartbeats > 0 { LATE_AGAIN } else { self.faults.late_heartbeats };
        self.nodes[node].was_late = self.draws_fault(percent);
        self.nodes[node].was_late
    }

    /// Retries to forward a receipt. Retries end after a time, unless the store lists the attempt as running at this
    /// node.
    pub(super) fn pass_on_again(&mut self, (node, life): (usize, u32), passing: Passing) {
        let place = &self.nodes[node];
        if !place.is_life(life) {
            return;
        }
        let is_awaited = passing.remote.is_some() && place.name() == passing.name && !place.is_draining;
        if self.now >= passing.since + TRIES_LAST_MS && !is_awaited {
            self.calls.let_go(passing.execution, &passing.input);
            return self.at(0, ClusterEvent::Node(node, life, NodeEvent::PassedOn(passing.execution)));
        }
        let paused_ms = place.paused_until.saturating_sub(self.now);
        let request = StoreRequest::PassOn(passing);
        self.at(TRY_AGAIN_MS.max(paused_ms), ClusterEvent::Store(InFlightRequest { node, life, request }));
    }

    pub(super) fn passed_on(&mut self, node: usize, execution: ExecutionKey) {
        let passing_on = &mut self.nodes[node].passing_on;
        if let Some(left) = passing_on.get_mut(&execution) {
            *left -= 1;
        }
        passing_on.retain(|_, left| *left > 0);
        self.look_before_adopting(node);
    }

    /// Recovers an attempt after the inbox was read, since its receipt may wait there. A call that this process started
    /// before it lost and reacquired the partition may still run.
    pub(super) fn adopt_behind_letters(&mut self, node: usize, to_adopt: ToAdopt) {
        let life = self.nodes[node].life;
        let name = (to_adopt.0, to_adopt.1.clone(), to_adopt.2.number);
        if self.calls.of(node, life).contains(&name) {
            let event = NodeEvent::Adopted(name.0, name.1, name.2, AttemptRecovery::StillRunning);
            return self.at(0, ClusterEvent::Node(node, life, event));
        }
        self.nodes[node].to_adopt.push(to_adopt);
        self.look_before_adopting(node);
    }

    /// Reads the inbox once for all attempts that have gathered during the previous read. An execution whose receipts
    /// are still being forwarded from this node waits for them.
    fn look_before_adopting(&mut self, node: usize) {
        let place = &mut self.nodes[node];
        if place.is_looking_to_adopt {
            return;
        }
        let is_settled = |asked: &mut ToAdopt| !place.passing_on.contains_key(&asked.0);
        let asked: Vec<ToAdopt> = place.to_adopt.extract_if(.., is_settled).collect();
        if asked.is_empty() {
            return;
        }
        place.is_looking_to_adopt = true;
        let (partitions, generation) = (place.holds(), place.generation);
        self.request_store(node, StoreRequest::LookToAdopt(partitions, generation, asked));
    }

    pub(super) fn looked(&mut self, node: usize, asked: Vec<ToAdopt>, is_read: bool) {
        let place = &mut self.nodes[node];
        let life = place.life;
        place.is_looking_to_adopt = false;
        if !is_read {
            place.to_adopt.extend(asked);
        } else if !place.is_draining {
            for (execution, instance, attempt) in asked {
                let fate = super::executors::adopt(&self.nodes[node].executors, &attempt);
                // The executor stops orphaned processes before it responds, which takes time.
                let after = if self.draws_fault(self.faults.long_calls) { LEASE_MS } else { 20 };
                let (after, event) =
                    (self.rng.below(after), NodeEvent::Adopted(execution, instance, attempt.number, fate));
                self.at(after, ClusterEvent::Node(node, life, event));
            }
        }
        self.look_before_adopting(node);
    }
}

/// Returns whether the store has applied a heartbeat of the node at this very time: only then does its lease last for
/// the whole term from now on.
fn has_heard(store: &MemoryStore, name: &str, now: u64) -> bool {
    store.set_now(now + LEASE_MS - 1);
    let is_alive = store.cluster_view().is_ok_and(|table| table.nodes.iter().any(|node| node.name == name));
    store.set_now(now);
    is_alive
}
