//! The clocks of a node: one that never goes back and one of the day, and what goes wrong with them.

use mainspring_engine::{clock::Reading, lease::Tick, limits::CLOCK_APART_MS_MAX, member::Heard};
use mainspring_store::Store;

use super::{Cluster, misfortune::LEASE_MS, mishaps::Mishap};
use crate::faults::Dice;

/// How far a clock that goes wrong jumps, in milliseconds: little more than is allowed, more than a lease, an hour.
const JUMPS_MS: [i64; 3] = [3_000, 60_000, 3_600_000];

/// How long a node may take to give up what it holds after its clock went wrong: heartbeats that are not heard let its lease
/// run out, and what is being found out of an attempt keeps a partition until it is known.
const GIVEN_UP_MS: u64 = 4 * LEASE_MS;

/// The same where foreign rows are in the way of commits, which are repeated in halves, each as slow as the store is.
const GIVEN_UP_IN_HALVES_MS: u64 = 10 * LEASE_MS;

/// An answer is on its way for some milliseconds, by which nobody can tell a clock from one that is just within the bound.
const UNCERTAIN_MS: u64 = 100;

/// A node's clocks. Whoever reads them says what time it is really.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// By how much the clock of the day is ahead, as long as nothing is wrong with it.
    skew_ms: i64,
    /// By how many thousandths the clock that never goes back is slow.
    drift: u64,
    /// By how much the clock of the day is ahead besides, because somebody set it.
    jumped_ms: i64,
    /// Since when the clock of the day stands still.
    frozen_at: Option<u64>,
    /// For how long the clock that never goes back stood still with its guest, and until when it does.
    paused_ms: u64,
    paused_until: u64,
    /// Since when the node holds something while the clock of the day is wrong.
    wrong_since: Option<u64>,
}

impl Clocks {
    pub(super) fn of(dice: &mut Dice) -> Self {
        let (skew_ms, drift) = (dice.below(2_000) as i64, dice.below(60));
        Self { skew_ms, drift, jumped_ms: 0, frozen_at: None, paused_ms: 0, paused_until: 0, wrong_since: None }
    }

    pub(super) fn read(&self, now: u64) -> Reading {
        let goes_on = now.max(self.paused_until) - self.paused_ms;
        let wall_ms = self.frozen_at.unwrap_or(now).saturating_add_signed(self.skew_ms + self.jumped_ms);
        Reading { tick: Tick(goes_on - goes_on / 1000 * self.drift), wall_ms }
    }

    /// The clock of the day is set wrong.
    fn jump(&mut self, by_ms: i64) {
        self.jumped_ms = by_ms;
    }

    /// The clock of the day stands still.
    fn freeze(&mut self, now: u64) {
        self.frozen_at.get_or_insert(now);
    }

    /// The clock of the day is set right.
    fn set_right(&mut self) {
        (self.jumped_ms, self.frozen_at) = (0, None);
    }

    fn is_right(&self) -> bool {
        (self.jumped_ms, self.frozen_at) == (0, None)
    }

    /// The hypervisor pauses the guest: the clock that never goes back stands still, and the clock of the day is set right
    /// behind that.
    fn pause(&mut self, now: u64, until: u64) {
        self.paused_ms += until.saturating_sub(self.paused_until.max(now));
        self.paused_until = self.paused_until.max(until);
    }

    /// For how long the node has held something while its clock of the day is further from the right time than is allowed.
    fn apart_for(&mut self, now: u64, is_holding: bool) -> u64 {
        if !is_holding || self.read(now).wall_ms.abs_diff(now) <= CLOCK_APART_MS_MAX + UNCERTAIN_MS {
            self.wrong_since = None;
            return 0;
        }
        now - *self.wrong_since.get_or_insert(now)
    }
}

impl Cluster {
    /// Something happens to the clock of a node. Nothing does soon after a pause of its guest: that a clock of the day is set
    /// back while the other one stands still, nobody can notice before the next heartbeat.
    pub(super) fn strike_clock(&mut self, node: usize) {
        let (now, drawn) = (self.now, self.mishaps.dice.below(8));
        let by_ms = *self.mishaps.dice.pick(&JUMPS_MS);
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
            self.table.met_fault(fault);
        }
    }

    /// A node does nothing for a while. Sometimes its hypervisor has paused it.
    pub(super) fn stand_still(&mut self, node: usize, for_ms: u64) {
        let until = self.now + for_ms;
        self.nodes[node].paused_until = until;
        let is_right = self.nodes[node].clocks.is_right();
        if is_right && self.mishaps.strikes(Mishap::Clocks) && self.mishaps.dice.chance(50) {
            if for_ms > LEASE_MS && !self.nodes[node].holds().is_empty() {
                self.table.met_fault("guest paused for longer than its lease");
            }
            self.nodes[node].clocks.pause(self.now, until);
        }
    }

    /// All clocks are right from now on.
    pub(super) fn set_clocks_right(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.clocks.set_right());
    }

    /// The others share among themselves what a node cannot take: its row says so as soon as the node can know it.
    pub(super) fn check_taking(&self, name: &str, heard: &Heard, is_leaving: bool) -> Result<(), String> {
        let expected = heard.clock.apart().is_none() && !is_leaving;
        let table = self.store.table().map_err(|error| error.to_string())?;
        match table.nodes.iter().find(|node| node.name == name) {
            Some(node) if node.takes != expected => Err(format!(
                "the row of {name} says {} of whether it takes partitions, and its heartbeat found {:?}",
                node.takes, heard.clock
            )),
            _ => Ok(()),
        }
    }

    /// A node whose clock is wrong holds nothing, as soon as it can have noticed.
    pub(super) fn check_clock(&mut self, node: usize, held: &[u32]) -> Result<(), String> {
        let for_ms = self.nodes[node].clocks.apart_for(self.now, !held.is_empty());
        let is_halving = self.mishaps.strikes(Mishap::ForeignRows);
        if for_ms <= if is_halving { GIVEN_UP_IN_HALVES_MS } else { GIVEN_UP_MS } {
            return Ok(());
        }
        Err(format!("{} holds {held:?}, and its clock has been wrong for {for_ms} ms", self.nodes[node].name()))
    }
}
