//! Leases as values: until when a node may act on its partitions, and which partitions it should acquire or release.
//!
//! A heartbeat renews the lease on everything that a node owns. The node measures the lease on its own clocks from the
//! time at which it sent the heartbeat. The store received it later, and lets no other node acquire the partitions
//! before the whole lease has passed on the store's clock. This module reads no clock.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::{decide::DECIDE_VERSION, key::ExecutionKey};
use mainspring_store::{ClusterView, Fence, partition_of};

use crate::clock::{ClockReading, MonotonicMs, StoreClockSample};

/// Timing of leases and heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTiming {
    /// Milliseconds of the store's clock after which a silent node counts as dead.
    pub lease_ms: u64,
}

impl LeaseTiming {
    /// Interval of heartbeats in milliseconds: three may be lost before the node counts as dead.
    pub fn heartbeat_interval_ms(self) -> u64 {
        self.lease_ms / 4
    }

    /// The end of the lease for a heartbeat sent at this time: a tenth earlier than the store's, since clocks differ in
    /// speed. The lease expires when either clock has reached it.
    pub fn until(self, sent_at: ClockReading) -> ClockReading {
        let for_ms = self.lease_ms - self.lease_ms / 10;
        ClockReading {
            monotonic: MonotonicMs(sent_at.monotonic.0.saturating_add(for_ms)),
            wall_ms: sent_at.wall_ms.saturating_add(for_ms),
        }
    }
}

/// The partitions of a node, and the end of its lease on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leases {
    partitions: u32,
    epochs: BTreeMap<u32, u64>,
    /// `None` for the only process of a store, from which no other node can acquire anything.
    until: Option<ClockReading>,
    /// The store's clock at the last answered heartbeat.
    seen: Option<StoreClockSample>,
    /// The newest version of `decide` that every living node supports.
    decide_version: u32,
}

impl Leases {
    /// No partitions of a store that other nodes use as well.
    pub fn none() -> Self {
        let until = Some(ClockReading { monotonic: MonotonicMs(0), wall_ms: 0 });
        Self { partitions: 1, epochs: BTreeMap::new(), until, seen: None, decide_version: DECIDE_VERSION }
    }

    /// All partitions, for the only process of a store.
    pub fn alone(partitions: u32, fences: impl IntoIterator<Item = Fence>) -> Self {
        Self { partitions, epochs: by_partition(fences), until: None, seen: None, decide_version: DECIDE_VERSION }
    }

    /// The number of partitions of the store.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The version of `decide` for new executions: one that every living node supports. During a rolling upgrade, that
    /// is the version of the older release.
    pub fn decide_version(&self) -> u32 {
        self.decide_version
    }

    /// Derives the partition from the last eight bytes of the key.
    pub fn partition(&self, execution: ExecutionKey) -> u32 {
        partition_of(execution, self.partitions)
    }

    /// The fence of a partition, if this node owns it.
    pub fn fence(&self, partition: u32) -> Option<Fence> {
        self.epochs.get(&partition).map(|epoch| Fence { partition, epoch: *epoch })
    }

    /// The partitions that this node owns, in ascending order.
    pub fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.epochs.keys().copied()
    }

    /// Renews the lease after a heartbeat, with the cluster view of the store. Partitions that the view does not list
    /// for this node, or lists with another epoch, are lost. All are lost if the number of partitions has changed.
    /// Partitions that only the view lists are acquired: the answer to an earlier acquisition was lost.
    pub fn renew(&mut self, until: ClockReading, view: &ClusterView) -> Change {
        let is_spread_anew = std::mem::replace(&mut self.partitions, view.partitions) != view.partitions;
        let stored = by_partition(view.held.iter().copied());
        let known = std::mem::replace(&mut self.epochs, stored);
        let is_kept = |partition: &u32, epoch: &u64| !is_spread_anew && self.epochs.get(partition) == Some(epoch);
        let lost =
            known.iter().filter(|(partition, epoch)| !is_kept(partition, epoch)).map(|(partition, _)| *partition);
        let is_new = |partition: &u32, epoch: &u64| is_spread_anew || known.get(partition) != Some(epoch);
        let acquired = self.epochs.iter().filter(|(partition, epoch)| is_new(partition, epoch));
        let change = Change { lost: lost.collect(), acquired: acquired.map(|(partition, _)| *partition).collect() };
        let versions = view.nodes.iter().map(|node| node.decide_version);
        self.decide_version = versions.chain([DECIDE_VERSION]).min().unwrap_or(DECIDE_VERSION).max(1);
        // The heartbeat that was sent later counts, regardless of the order of the answers.
        if self.until.is_none_or(|known| known.monotonic <= until.monotonic) {
            self.until = Some(until);
        }
        change
    }

    /// Records the store's clock. The heartbeat that was sent later counts.
    pub fn record_clock(&mut self, sample: StoreClockSample) {
        if self.seen.is_none_or(|known| known.sent_at.monotonic <= sample.sent_at.monotonic) {
            self.seen = Some(sample);
        }
    }

    /// The time for decisions, in milliseconds since 1970: the node's wall clock while it agrees with the store's
    /// clock. A wall clock that was changed since the last heartbeat moves it by at most the bound.
    pub fn now(&self, reading: ClockReading) -> u64 {
        self.seen.map_or(reading.wall_ms, |seen| seen.bounded(reading))
    }

    /// Adds partitions that were acquired after the last heartbeat.
    pub fn add(&mut self, fences: &[Fence]) {
        self.epochs.extend(by_partition(fences.iter().copied()));
    }

    /// Removes a partition, and returns its fence.
    pub fn remove(&mut self, partition: u32) -> Option<Fence> {
        self.epochs.remove(&partition).map(|epoch| Fence { partition, epoch })
    }

    /// True once the lease has expired by either clock. All partitions are lost then, regardless of other nodes. The
    /// monotonic clock stops in a virtual machine that its hypervisor has paused, but the wall clock is
    /// corrected after the pause.
    pub fn is_over(&self, now: ClockReading) -> bool {
        self.until.is_some_and(|until| now.monotonic >= until.monotonic || now.wall_ms >= until.wall_ms)
    }
}

fn by_partition(fences: impl IntoIterator<Item = Fence>) -> BTreeMap<u32, u64> {
    fences.into_iter().map(|fence| (fence.partition, fence.epoch)).collect()
}

/// The changes of ownership from a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Partitions that are no longer owned.
    pub lost: Vec<u32>,
    /// Partitions that were not owned before, or under another epoch.
    pub acquired: Vec<u32>,
}

/// The rebalance plan of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebalancePlan {
    /// Partitions to acquire.
    pub acquire: Vec<u32>,
    /// Partitions to release.
    pub release: Vec<u32>,
}

/// Computes a rebalance plan. All living nodes that acquire partitions converge to equal shares, give or take one. A
/// node acquires free partitions up to its share. It releases its surplus, from the start of `can_release`, but only as
/// many as other nodes lack. Two nodes with the same cluster view never claim the same partition. A node that acquires
/// nothing has no share, since partitions reserved for it would have no owner.
pub fn plan_rebalance(view: &ClusterView, me: &str, can_release: &[u32]) -> RebalancePlan {
    let taking: Vec<&str> = view.nodes.iter().filter(|node| node.accepts_partitions).map(|node| &*node.name).collect();
    let Some(rank) = taking.iter().position(|name| *name == me) else { return RebalancePlan::default() };
    let (count, partitions) = (taking.len(), view.partitions as usize);
    let share = |rank: usize| partitions / count + usize::from(rank < partitions % count);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, holder) in &view.holders {
        *counts.entry(holder).or_default() += 1;
    }
    let held_by = |rank: usize| counts.get(taking[rank]).copied().unwrap_or_default();
    let lacks = |rank: usize| share(rank).saturating_sub(held_by(rank));
    let (mine, others_lack) = (held_by(rank), (0..count).filter(|other| *other != rank).map(lacks).sum::<usize>());
    let taken: BTreeSet<u32> = view.holders.iter().map(|(partition, _)| *partition).collect();
    let free = (0..view.partitions).filter(|partition| !taken.contains(partition));
    // Nodes of a lower rank acquire the first ones.
    let before: usize = (0..rank).map(lacks).sum();
    let acquire: Vec<u32> = free.clone().skip(before).take(lacks(rank)).collect();
    let surplus = mine.saturating_sub(share(rank)).min(others_lack.saturating_sub(free.count()));
    let release = can_release.iter().copied().take(surplus).collect();
    RebalancePlan { acquire, release }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_store::Node;

    fn at(monotonic: u64, wall_ms: u64) -> ClockReading {
        ClockReading { monotonic: MonotonicMs(monotonic), wall_ms }
    }

    fn view(partitions: u32, nodes: &str, holders: &[(u32, &str)], held: &[(u32, u64)]) -> ClusterView {
        let node = |name: &str| Node {
            name: name.trim_end_matches('-').into(),
            address: String::new(),
            release: String::new(),
            decide_version: 1,
            accepts_partitions: !name.ends_with('-'),
        };
        ClusterView {
            partitions,
            held: held.iter().map(|(partition, epoch)| Fence { partition: *partition, epoch: *epoch }).collect(),
            holders: holders.iter().map(|(partition, holder)| (*partition, (*holder).into())).collect(),
            nodes: nodes.split_whitespace().map(node).collect(),
            stop_requested: Vec::new(),
            clock_ms: 0,
        }
    }

    #[test]
    fn a_lease_starts_at_sending_and_expires_before_the_store_lease() {
        let terms = LeaseTiming { lease_ms: 10_000 };
        let mut leases = Leases::none();
        assert!(leases.is_over(at(0, 0)));
        leases.renew(terms.until(at(500, 70_000)), &view(1, "a", &[], &[(0, 1)]));
        assert!(!leases.is_over(at(9_499, 70_000)));
        assert!(leases.is_over(at(9_500, 70_000)));
        // The answer to an earlier heartbeat arrives late.
        leases.renew(terms.until(at(300, 69_800)), &view(1, "a", &[], &[(0, 1)]));
        assert!(!leases.is_over(at(9_499, 70_000)));
        assert!(!Leases::alone(1, [Fence { partition: 0, epoch: 1 }]).is_over(at(u64::MAX, u64::MAX)));
    }

    #[test]
    fn a_lease_expires_by_the_faster_clock() {
        let terms = LeaseTiming { lease_ms: 10_000 };
        let mut leases = Leases::none();
        leases.renew(terms.until(at(500, 70_000)), &view(1, "a", &[], &[(0, 1)]));
        // The hypervisor paused the guest: its monotonic clock stopped, and its wall clock was corrected
        // afterwards.
        assert!(!leases.is_over(at(600, 78_999)));
        assert!(leases.is_over(at(600, 79_000)));
        // A wall clock that was set back does not extend the lease.
        assert!(!leases.is_over(at(9_499, 0)));
        assert!(leases.is_over(at(9_500, 0)));
    }

    #[test]
    fn the_view_of_the_store_decides_ownership() {
        let mut leases = Leases::none();
        let renew = |leases: &mut Leases, partitions, held: &[(u32, u64)]| {
            leases.renew(at(9, 9), &view(partitions, "a", &[], held))
        };
        let change = |lost: &[u32], acquired: &[u32]| Change { lost: lost.to_vec(), acquired: acquired.to_vec() };
        assert_eq!(renew(&mut leases, 4, &[(1, 1)]), change(&[], &[1]));
        leases.add(&[Fence { partition: 3, epoch: 7 }, Fence { partition: 2, epoch: 5 }]);
        assert_eq!(renew(&mut leases, 4, &[(1, 2), (2, 5)]), change(&[1, 3], &[1]));
        assert_eq!(leases.fence(1), Some(Fence { partition: 1, epoch: 2 }));
        assert_eq!(leases.fence(3), None);
        assert_eq!(renew(&mut leases, 8, &[(2, 5)]), change(&[1, 2], &[2]), "the same number means other executions");
        assert_eq!(leases.partitions(), 8);
        assert_eq!(leases.remove(2), Some(Fence { partition: 2, epoch: 5 }));
        assert_eq!(leases.held().count(), 0);
    }

    #[test]
    fn rebalance_plans() {
        let all: BTreeSet<u32> = (0..8).collect();
        let check = |nodes: &str, holders: &[(u32, &str)], me: &str, take: &[u32], release: &[u32]| {
            let expected = RebalancePlan { acquire: take.to_vec(), release: release.to_vec() };
            let mine = holders.iter().filter(|(_, holder)| *holder == me).map(|(partition, _)| *partition);
            let mine: Vec<u32> = mine.filter(|partition| all.contains(partition)).collect();
            assert_eq!(plan_rebalance(&view(5, nodes, holders, &[]), me, &mine), expected, "{nodes} {holders:?} {me}");
        };
        check("a", &[], "a", &[0, 1, 2, 3, 4], &[]);
        check("b", &[], "a", &[], &[]);
        check("a b", &[], "a", &[0, 1, 2], &[]);
        check("a b", &[], "b", &[3, 4], &[]);
        let all_of_a = [(0, "a"), (1, "a"), (2, "a"), (3, "a"), (4, "a")];
        check("a b", &all_of_a, "a", &[], &[0, 1]);
        check("a b", &all_of_a, "b", &[], &[]);
        check("a b", &all_of_a[..3], "a", &[], &[]);
        check("a b", &all_of_a[..3], "b", &[3, 4], &[]);
        check("a b", &all_of_a[..4], "a", &[], &[0]);
        check("a b", &all_of_a[..4], "b", &[4], &[]);
        // Three nodes and five partitions: a node with two of them keeps both.
        check("a b c", &[(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c")], "b", &[], &[]);
        check("a b c d e f", &[(0, "a"), (1, "a")], "f", &[], &[]);
        // Other nodes acquire the partitions of a node that accepts none, and leave none to it.
        check("a- b c", &[], "a", &[], &[]);
        check("a- b c", &[], "b", &[0, 1, 2], &[]);
        check("a- b c", &[], "c", &[3, 4], &[]);
        check("a- b", &[(0, "a"), (1, "a")], "b", &[2, 3, 4], &[]);
        check("a b-", &all_of_a, "a", &[], &[]);
        check("a- b-", &[], "a", &[], &[]);
    }

    #[test]
    fn rebalance_plans_converge_to_equal_shares() {
        for partitions in [1, 2, 7, 64] {
            let mut holders: Vec<(u32, &str)> = Vec::new();
            for nodes in ["c", "c a", "c a b", "a b", "b", "d e f g h"] {
                let mut names: Vec<&str> = nodes.split_whitespace().collect();
                names.sort_unstable();
                let nodes = names.join(" ");
                holders.retain(|(_, holder)| names.contains(holder));
                for round in 0.. {
                    let now = view(partitions, &nodes, &holders, &[]);
                    let plans: Vec<_> = names
                        .iter()
                        .map(|name| {
                            let mine = holders.iter().filter(|(_, holder)| holder == name);
                            plan_rebalance(&now, name, &mine.map(|(partition, _)| *partition).collect::<Vec<_>>())
                        })
                        .collect();
                    if plans.iter().all(|plan| *plan == RebalancePlan::default()) {
                        break;
                    }
                    assert!(round < 5, "{partitions} among {nodes}: {plans:?}");
                    for (name, plan) in names.iter().zip(plans) {
                        holders.retain(|(partition, _)| !plan.release.contains(partition));
                        for partition in plan.acquire {
                            assert!(holders.iter().all(|(held, _)| *held != partition), "two take {partition}");
                            holders.push((partition, name));
                        }
                    }
                }
                holders.sort_unstable();
                let counts = names.iter().map(|name| holders.iter().filter(|(_, holder)| holder == name).count());
                let counts: Vec<usize> = counts.collect();
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                assert!(most - least <= 1 && counts.iter().sum::<usize>() == partitions as usize, "{counts:?}");
            }
        }
    }
}
