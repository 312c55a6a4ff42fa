//! The fault profile of a seed: the rates and durations of faults, and the faults of nodes and store.

use mainspring_store::Batch;

use super::{Cluster, ClusterEvent};
use crate::{faults::Rng, fixture::START_MS};

/// Lease of simulated nodes, in milliseconds.
pub(super) const LEASE_MS: u64 = 10_000;

/// Milliseconds before the delayed response to a heartbeat. A commit that the node sends in this time is in flight when
/// the lease expires and when it is renewed.
const ABOUT_TO_LAPSE_MS: u64 = LEASE_MS * 3 / 10;

/// The fault profile of a seed. Each kind of fault has its own rate, often 0.
#[derive(Debug, Clone)]
pub(super) struct FaultProfile {
    /// Milliseconds in which faults occur.
    pub(super) lasts_ms: u64,
    pub(super) commits: CommitFaults,
    /// Percent of outputs before which a node pauses.
    pub(super) pause_before_output: u64,
    /// Percent of commits after which a node pauses, if the commit has a kind of record that no pause has followed yet.
    pub(super) pause_after_new: u64,
    /// Percent of receipts and inbox messages that are delivered twice.
    pub(super) twice: u64,
    /// Percent of reads and heartbeats that fail.
    pub(super) read_fails: u64,
    /// Percent of heartbeats whose response arrives after the lease has expired, while a commit is in flight and no
    /// journal can be read.
    pub(super) delayed_heartbeats: u64,
    /// Percent of heartbeats that the store applies with a late response.
    pub(super) late_heartbeats: u64,
    /// Percent of forwarded receipts that reach the inbox of the owner later than its next poll.
    pub(super) slow_messages: u64,
    /// Percent of calls that take very long.
    pub(super) long_calls: u64,
    /// Percent of incarnations of nodes without an executor.
    pub(super) unable: u64,
    /// Average milliseconds between two node faults.
    pub(super) every_ms: u64,
    weights: [(u64, NodeFault); 6],
}

/// Percent of commits per outcome: slow, not written, with an unknown result, or with a crash of the node.
#[derive(Debug, Clone)]
pub(super) struct CommitFaults {
    pub(super) slow: u64,
    pub(super) not_written: u64,
    pub(super) unknown_written: u64,
    pub(super) unknown_not_written: u64,
    pub(super) crash_around_commit: u64,
}

/// A class of faults that the command line can select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nodes crash, also around commits.
    Crashes,
    /// Nodes leave and rejoin.
    Leaves,
    /// Nodes pause, and their leases expire.
    Pauses,
    /// The store is unavailable for a while, and single reads fail.
    Outages,
    /// Commits fail, or their responses are lost.
    LostAnswers,
    /// Commits, heartbeats and inbox messages are slow.
    Delays,
    /// Receipts and inputs are delivered twice.
    Duplicates,
    /// Calls take up to a minute, several times the lease.
    LongCalls,
    /// The number of partitions changes.
    Repartitions,
    /// Clocks of nodes jump and stop.
    Clocks,
    /// The store refuses the commits of one execution, and accepts them later.
    Refusals,
    /// An intruder writes rows into the store that the engine must reject; operators remove them later.
    ForeignRows,
    /// The engine panics once while it handles an execution. Operators release the execution later.
    Panics,
}

impl Fault {
    /// Every fault with its name on the command line.
    pub const ALL: [(&'static str, Self); 13] = [
        ("crashes", Self::Crashes),
        ("leaves", Self::Leaves),
        ("pauses", Self::Pauses),
        ("outages", Self::Outages),
        ("lost-answers", Self::LostAnswers),
        ("delays", Self::Delays),
        ("duplicates", Self::Duplicates),
        ("long-calls", Self::LongCalls),
        ("repartitions", Self::Repartitions),
        ("clocks", Self::Clocks),
        ("refusals", Self::Refusals),
        ("foreign-rows", Self::ForeignRows),
        ("panics", Self::Panics),
    ];
}

/// A fault of a node or of the store.
#[derive(Debug, Clone, Copy)]
enum NodeFault {
    Crash,
    Leave,
    Pause,
    LongPause,
    Outage,
    Repartition,
}

impl FaultProfile {
    pub(super) fn of(rng: &mut Rng) -> Self {
        let often = |rng: &mut Rng| *rng.pick(&[0, 0, 1, 5, 15]);
        let fault = |rng: &mut Rng, fault| (*rng.pick(&[0, 1, 2, 4]), fault);
        Self {
            lasts_ms: 60_000 + rng.below(240_000),
            commits: CommitFaults {
                slow: *rng.pick(&[0, 2, 10, 40]),
                not_written: often(rng),
                unknown_written: often(rng),
                unknown_not_written: often(rng),
                crash_around_commit: *rng.pick(&[0, 0, 1, 2]),
            },
            pause_before_output: *rng.pick(&[0, 0, 1]),
            pause_after_new: *rng.pick(&[0, 10]),
            twice: often(rng),
            read_fails: often(rng),
            delayed_heartbeats: *rng.pick(&[0, 2, 10, 30]),
            late_heartbeats: often(rng),
            slow_messages: *rng.pick(&[0, 2, 10, 40]),
            long_calls: often(rng),
            unable: *rng.pick(&[0, 0, 0, 20]),
            every_ms: *rng.pick(&[1_000, 4_000, 15_000]),
            weights: [
                fault(rng, NodeFault::Crash),
                fault(rng, NodeFault::Leave),
                fault(rng, NodeFault::Pause),
                fault(rng, NodeFault::LongPause),
                fault(rng, NodeFault::Outage),
                (*rng.pick(&[0, 0, 0, 1]), NodeFault::Repartition),
            ],
        }
    }
}

impl FaultProfile {
    /// Limits the profile for an author's case to the given faults, each often enough to occur; an empty list keeps the
    /// rates of the seed. Nodes without an executor are excluded, since calls fail at them because of a wrong
    /// configuration.
    pub(super) fn keep_only(&mut self, faults: &[Fault]) {
        self.unable = 0;
        if faults.is_empty() {
            return;
        }
        let percent = |fault: Fault, percent: u64| if faults.contains(&fault) { percent } else { 0 };
        let weight = |fault: NodeFault| match fault {
            NodeFault::Crash => percent(Fault::Crashes, 4),
            NodeFault::Leave => percent(Fault::Leaves, 2),
            NodeFault::Pause | NodeFault::LongPause => percent(Fault::Pauses, 2),
            NodeFault::Outage => percent(Fault::Outages, 2),
            NodeFault::Repartition => percent(Fault::Repartitions, 1),
        };
        self.commits = CommitFaults {
            slow: percent(Fault::Delays, 20),
            not_written: percent(Fault::LostAnswers, 5),
            unknown_written: percent(Fault::LostAnswers, 5),
            unknown_not_written: percent(Fault::LostAnswers, 5),
            crash_around_commit: percent(Fault::Crashes, 2),
        };
        self.late_heartbeats = percent(Fault::Delays, 5);
        self.slow_messages = percent(Fault::Delays, 10);
        self.pause_before_output = percent(Fault::Pauses, 1);
        self.pause_after_new = percent(Fault::Pauses, 10);
        self.delayed_heartbeats = percent(Fault::Pauses, 5);
        self.twice = percent(Fault::Duplicates, 30);
        self.read_fails = percent(Fault::Outages, 5);
        self.long_calls = percent(Fault::LongCalls, 20);
        self.weights = self.weights.map(|(_, fault)| (weight(fault), fault));
    }
}

impl Cluster {
    /// Draws a fault with this percentage; false once the faults have ended.
    pub(super) fn draws_fault(&mut self, percent: u64) -> bool {
        !self.is_healed() && self.rng.chance(percent)
    }

    pub(super) fn draw_node_fault(&mut self) -> Result<(), String> {
        if self.is_healed() {
            return self.heal();
        }
        let all: u64 = self.faults.weights.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.rng.below(all);
        let node = self.rng.below(self.settings.size.nodes as u64) as usize;
        let weights = self.faults.weights;
        let fault = weights.iter().find(|(weight, _)| {
            let is_it = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            is_it
        });
        let soon = self.rng.below(1_000);
        match fault.map(|(_, fault)| *fault) {
            None => {}
            Some(NodeFault::Crash) => self.at(soon, ClusterEvent::Crash(node)),
            Some(NodeFault::Leave) => self.at(soon, ClusterEvent::Leave(node)),
            Some(NodeFault::Pause) => {
                let for_ms = 1 + self.rng.below(LEASE_MS);
                self.at(soon, ClusterEvent::Pause(node, for_ms));
            }
            Some(NodeFault::LongPause) => {
                let for_ms = LEASE_MS + self.rng.below(4 * LEASE_MS);
                self.at(soon, ClusterEvent::Pause(node, for_ms));
            }
            Some(NodeFault::Outage) => {
                let for_ms = 1 + self.rng.below(2 * LEASE_MS);
                self.at(soon, ClusterEvent::Outage(for_ms));
            }
            Some(NodeFault::Repartition) => {
                let partitions = 1 + self.rng.below(16) as u32;
                self.at(soon, ClusterEvent::Repartition(partitions));
            }
        }
        let next = 1 + self.rng.below(2 * self.faults.every_ms);
        self.at(next, ClusterEvent::NodeFault);
        Ok(())
    }

    /// Returns whether the faults end within a lease, or have ended.
    fn is_last(&self) -> bool {
        self.now + LEASE_MS > START_MS + self.faults.lasts_ms
    }

    /// Returns whether a commit that starts executions from inbox messages is not written, with an unknown result. At
    /// the end of the faults every such commit fails once in this way, in seeds with this fault: a later fault could
    /// repair a start that the engine has forgotten.
    pub(super) fn loses_starts(&mut self, batch: &Batch) -> bool {
        if !self.is_last() || self.is_healed() || self.faults.commits.unknown_not_written == 0 {
            return false;
        }
        let begun = batch.parts.iter().filter(|part| part.expected.is_none() && !part.frames.is_empty());
        let by_message: Vec<_> = begun.filter(|part| !part.consumed.is_empty()).map(|part| part.execution).collect();
        let before = self.injected.lost_starts.len();
        self.injected.lost_starts.extend(by_message);
        self.injected.lost_starts.len() > before
    }

    /// Extra milliseconds of a commit, so that further drafts gather behind it. The commit is then in flight when the
    /// lease of a node with a delayed heartbeat expires. At the end of the faults only, for the same reason.
    pub(super) fn gathering_ms(&self, node: usize) -> u64 {
        let left_ms = self.nodes[node].delays.heartbeat_delayed_until.saturating_sub(self.now);
        if self.is_last() { left_ms.saturating_sub(ABOUT_TO_LAPSE_MS) } else { 0 }
    }

    /// Returns whether the response to a heartbeat is delayed. In seeds with this fault, the last heartbeat of every
    /// node that owns partitions is delayed: a later fault could repair state that the engine has forgotten.
    pub(super) fn draws_delayed_heartbeat(&mut self, node: usize) -> bool {
        let is_last = self.is_last() && self.faults.delayed_heartbeats > 0;
        match self.nodes[node].holds().is_empty() {
            false if is_last => self.draws_fault(100),
            true if is_last => false,
            _ => self.draws_fault(self.faults.delayed_heartbeats),
        }
    }

    /// Delays the response to a heartbeat and returns the delay in milliseconds. The lease of the node expires before
    /// the response renews it. The delay must stay below a lease, since a renewal counts from the request. Journals
    /// become readable last, so inputs that arrive before that wait for them.
    pub(super) fn delay_heartbeat(&mut self, node: usize) -> u64 {
        let delay_ms = LEASE_MS * 13 / 20 + self.rng.below(LEASE_MS / 10);
        let unreadable_ms = LEASE_MS / 2 + self.rng.below(LEASE_MS);
        self.nodes[node].delays.heartbeat_delayed_until = self.now + delay_ms;
        self.nodes[node].delays.unreadable_until = self.now + delay_ms + unreadable_ms;
        delay_ms
    }

    /// Returns whether the lease of a node with a delayed heartbeat expires soon. A commit that the node sends now is
    /// still in flight when the lease expires, and when it is renewed.
    pub(super) fn is_about_to_lapse(&self, node: usize) -> bool {
        let left_ms = self.nodes[node].delays.heartbeat_delayed_until.saturating_sub(self.now);
        (1..ABOUT_TO_LAPSE_MS).contains(&left_ms)
    }

    /// Delay of the response to a commit of a node with a delayed heartbeat: after the next heartbeat has renewed the
    /// lease. At the end of the faults the response arrives as soon as journals are readable, before another event
    /// reads them again.
    pub(super) fn delay_of_lapsed(&mut self, node: usize) -> Option<u64> {
        let delay_ms = self.nodes[node].delays.heartbeat_delayed_until.checked_sub(self.now)?;
        let unreadable_ms = self.nodes[node].delays.unreadable_until - self.now;
        let is_last = self.is_last();
        let after_ms = self.rng.below(if is_last { LEASE_MS / 10 } else { LEASE_MS });
        Some(if is_last { unreadable_ms } else { delay_ms + LEASE_MS / 4 } + after_ms)
    }

    /// Ends the faults: every node runs the newest release from now on.
    fn heal(&mut self) -> Result<(), String> {
        self.set_clocks_right();
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_old() {
                self.crash(node)?;
            } else if !self.nodes[node].is_alive() {
                self.start_node(node)?;
            }
        }
        Ok(())
    }
}
