//! The monotonic clock and the wall clock of a node, and their faults.

use mainspring_engine::{
    clock::ClockReading, clock::MonotonicMs, limits::CLOCK_APART_MS_MAX, membership::LeaseRenewal,
};
use mainspring_store::prelude::*;

use super::{Cluster, faults::LEASE_MS, rare_faults::RareFault};
use crate::faults::Rng;

/// Milliseconds by which a faulty clock jumps: slightly beyond the tolerance, more than a lease, an hour.
const JUMPS_MS: [i64; 3] = [3_000, 60_000, 3_600_000];

/// Milliseconds in which a node must release its partitions after its clock went wrong. Failed heartbeats let its lease
/// expire, and a partition is held until the recovery of its attempts is known.
const RELEASED_AFTER_MS: u64 = 4 * LEASE_MS;

/// The same where foreign rows block commits. Such commits are retried in halves, and each half may be slow.
const RELEASED_WHILE_HALVING_MS: u64 = 10 * LEASE_MS;

/// Measuring error in milliseconds: a response takes some time, so a node cannot detect a clock that is just beyond the
/// tolerance.
const UNCERTAIN_MS: u64 = 100;

/// The clocks of a node. A reading is derived from the true time of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// Milliseconds by which the wall clock is ahead without a fault.
    skew_ms: i64,
    /// Thousandths by which the monotonic clock is slow.
    drift: u64,
    /// Milliseconds by which the wall clock is ahead in addition, after a jump.
    jumped_ms: i64,
    /// The time at which the wall clock stopped.
    frozen_at: Option<u64>,
    /// Milliseconds for which the monotonic clock stopped with its paused guest, and the end of the last pause.
    paused_ms: u64,
    paused_until: u64,
    /// The time since which the node owns partitions with a wrong wall clock.
    wrong_since: Option<u64>,
}

impl Clocks {
    pub(super) fn of(rng: &mut Rng) -> Self {
        let (skew_ms, drift) = (rng.below(2_000) as i64, rng.below(60));
        Self { skew_ms, drift, jumped_ms: 0, frozen_at: None, paused_ms: 0, paused_until: 0, wrong_since: None }
    }

    pub(super) fn read(&self, now: u64) -> ClockReading {
        let running_ms = now.max(self.paused_until) - self.paused_ms;
        let wall_ms = self.frozen_at.unwrap_or(now).saturating_add_signed(self.skew_ms + self.jumped_ms);
        ClockReading { monotonic: MonotonicMs(running_ms - running_ms / 1000 * self.drift), wall_ms }
    }

    /// The time from which the monotonic clock runs.
    pub(super) fn runs_from(&self, now: u64) -> u64 {
        now.max(self.paused_until)
    }

    fn jump(&mut self, by_ms: i64) {
        self.jumped_ms = by_ms;
    }

    /// Stops the wall clock.
    fn freeze(&mut self, now: u64) {
        self.frozen_at.get_or_insert(now);
    }

    /// Removes the faults of the wall clock.
    fn set_right(&mut self) {
        (self.jumped_ms, self.frozen_at) = (0, None);
    }

    fn is_right(&self) -> bool {
        (self.jumped_ms, self.frozen_at) == (0, None)
    }

    /// Pauses the guest at its hypervisor. The monotonic clock stops for that time; the wall clock is corrected
    /// afterwards.
    fn pause(&mut self, now: u64, until: u64) {
        self.paused_ms += until.saturating_sub(self.paused_until.max(now));
        self.paused_until = self.paused_until.max(until);
    }

    /// Milliseconds for which the node has owned partitions while its wall clock was out of tolerance.
    fn apart_for(&mut self, now: u64, is_holding: bool) -> u64 {
        if !is_holding || self.read(now).wall_ms.abs_diff(now) <= CLOCK_APART_MS_MAX + UNCERTAIN_MS {
            self.wrong_since = None;
            return 0;
        }
        now - *self.wrong_since.get_or_insert(now)
    }
}

impl Cluster {
    /// Injects a fault of a clock. A guest that was paused recently is exempt: when its wall clock is set back while
    /// the monotonic clock stops, no check can detect that before the next heartbeat.
    pub(super) fn inject_clock_fault(&mut self, node: usize) {
        let (now, drawn) = (self.now, self.rare_faults.rng.below(8));
        let by_ms = *self.rare_faults.rng.pick(&JUMPS_MS);
        let is_holding = !self.nodes[node].holds().is_empty();
        let clocks = &mut self.nodes[node].clocks;
        if clocks.paused_until + LEASE_MS > now {
            return;
        }
        let fault = match drawn {
            0 | 1 => {
                clocks.jump(by_ms);
                "clock jumps ahead"
            }
            2 | 3 => {
                clocks.jump(-by_ms);
                "clock jumps back"
            }
            4..7 => {
                clocks.freeze(now);
                "clock stands still"
            }
            _ => return clocks.set_right(),
        };
        if is_holding {
            self.progress.coverage.add_fault(fault);
        }
    }

    /// Pauses a node. In some seeds half of the pauses are pauses of the guest by its hypervisor.
    pub(super) fn pause_node(&mut self, node: usize, for_ms: u64) {
        let until = self.now + for_ms;
        let delays = &mut self.nodes[node].delays;
        let longer_ms = until.saturating_sub(delays.paused_until.max(self.now));
        delays.paused_until = delays.paused_until.max(until);
        // The monotonic clock may stop during the pause.
        delays.heartbeat_by = delays.heartbeat_by.map(|by| by + longer_ms);
        let is_right = self.nodes[node].clocks.is_right();
        if is_right && self.rare_faults.has(RareFault::Clocks) && self.rare_faults.rng.chance(50) {
            if for_ms > LEASE_MS && !self.nodes[node].holds().is_empty() {
                self.progress.coverage.add_fault("guest paused for longer than its lease");
            }
            self.nodes[node].clocks.pause(self.now, until);
        }
    }

    pub(super) fn set_clocks_right(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.clocks.set_right());
    }

    /// Checks that the row of a node states correctly whether it accepts partitions. Other nodes rebalance by that row,
    /// so it must change as soon as the node can detect a wrong clock.
    pub(super) fn check_taking(&self, name: &str, renewal: &LeaseRenewal, is_leaving: bool) -> Result<(), String> {
        let expected = renewal.clock.skew().is_none() && !is_leaving;
        let table = self.store.cluster_view().map_err(|error| error.to_string())?;
        match table.nodes.iter().find(|node| node.name == name) {
            Some(node) if node.accepts_partitions != expected => Err(format!(
                "the row of {name} says {} of whether it takes partitions, and its heartbeat found {:?}",
                node.accepts_partitions, renewal.clock
            )),
            _ => Ok(()),
        }
    }

    /// Checks that a node with a wrong clock owns no partition after the time in which it can detect the fault.
    pub(super) fn check_clock(&mut self, node: usize, held: &[u32]) -> Result<(), String> {
        let for_ms = self.nodes[node].clocks.apart_for(self.now, !held.is_empty());
        let is_halving = self.rare_faults.has(RareFault::ForeignRows);
        if for_ms <= if is_halving { RELEASED_WHILE_HALVING_MS } else { RELEASED_AFTER_MS } {
            return Ok(());
        }
        Err(format!("{} holds {held:?}, and its clock has been wrong for {for_ms} ms", self.nodes[node].name()))
    }
}
