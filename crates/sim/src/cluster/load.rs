//! Load of nodes: the processor time that their work takes, bursts of events, and slow evaluations. A node that is busy
//! for longer than its lease must send its heartbeats nevertheless.

use mainspring_engine::node::NodeEvent;

use super::{Cluster, ClusterEvent, faults::LEASE_MS, node::ProcessEvent};
use crate::faults::Rng;

/// One of so many seeds has load.
const SEEDS_BETWEEN: u64 = 4;

/// Average milliseconds between two bursts at a node.
const BURSTS_EVERY_MS: u64 = 40_000;

/// Milliseconds without a heartbeat, beside pauses, after which a rule is violated. A node sends four heartbeats in a
/// lease.
pub(super) const HEARTBEAT_MS_MAX: u64 = LEASE_MS;

pub(super) const BUSY: &str = "node busy for longer than its lease";

/// The load of a seed.
#[derive(Debug)]
pub(super) struct LoadProfile {
    rng: Rng,
    /// Microseconds that a step of a node takes. 0 in seeds without load.
    step_us: u64,
    /// Events of a burst.
    burst: u64,
    /// Most milliseconds of an evaluation.
    evaluation_ms: u64,
}

impl LoadProfile {
    /// Draws the load. It uses an RNG of its own, so that the faults of a seed do not depend on it.
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed.rotate_left(16));
        if seed % SEEDS_BETWEEN != 1 {
            return Self { rng, step_us: 0, burst: 0, evaluation_ms: 50 };
        }
        let step_us = *rng.pick(&[200, 2_000, 10_000]);
        // The work of a burst takes up to three leases.
        let burst = (1 + rng.below(3 * LEASE_MS)) * 1_000 / step_us;
        Self { step_us, burst, evaluation_ms: *rng.pick(&[50, 5_000, 2 * LEASE_MS]), rng }
    }
}

impl Cluster {
    pub(super) fn schedule_bursts(&mut self) {
        if self.settings.load.burst == 0 {
            return;
        }
        for node in 0..self.nodes.len() {
            let after = self.settings.load.rng.below(BURSTS_EVERY_MS);
            self.at(after, ClusterEvent::Burst(node));
        }
    }

    /// Sends many notifications to a node.
    pub(super) fn burst(&mut self, node: usize) -> Result<(), String> {
        if self.is_healed() {
            return Ok(());
        }
        let after = 1 + self.settings.load.rng.below(2 * BURSTS_EVERY_MS);
        self.at(after, ClusterEvent::Burst(node));
        let (incarnation, held) = (self.nodes[node].incarnation, self.nodes[node].holds());
        if !held.is_empty() && self.settings.load.burst * self.settings.load.step_us > LEASE_MS * 1_000 {
            self.progress.coverage.add_fault(BUSY);
        }
        for _ in 1..self.settings.load.burst {
            self.receive(node, NodeEvent::Notified(held.clone()));
        }
        self.handle_node_event(node, incarnation, ProcessEvent::Node(NodeEvent::Notified(held)))
    }

    /// Microseconds that a step of a node takes now.
    pub(super) fn step_us(&self) -> u64 {
        if self.is_healed() { 0 } else { self.settings.load.step_us }
    }

    /// Milliseconds that an evaluation takes.
    pub(super) fn draw_evaluation_ms(&mut self) -> u64 {
        let evaluation_ms = if self.is_healed() { 50 } else { self.settings.load.evaluation_ms };
        self.rng.below(evaluation_ms)
    }
}
