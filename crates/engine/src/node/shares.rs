//! The processor time that each organization has used in the driver. The next piece of work is that of the organization
//! that has used the least.
//!
//! This is start-time fair queuing: each organization has a virtual time, which advances by the time that its work
//! takes. Work of the organization with the smallest virtual time goes first. An organization without work for a while
//! continues at the virtual time of the present work: it is served next, and an idle time cannot be saved up.

use std::{collections::BTreeMap, time::Duration};

use crate::shard::tenants::Tenant;

/// Minimum that a piece of work costs. Without a precise clock, organizations take turns, one piece each.
const COST_MIN: Duration = Duration::from_micros(20);

/// Virtual times behind the present one have no effect. They are removed when there are more entries than this.
const ENTRIES_MAX: usize = 64;

/// The virtual times of the organizations.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// The virtual time at which the last piece of work began.
    now: Duration,
    /// The virtual time at which the next piece of work of an organization may begin, if that is later than `now`.
    next: BTreeMap<Tenant, Duration>,
    /// The number of entries at which the outdated ones are removed.
    entries_max: usize,
}

impl Shares {
    /// Returns the organization that has used the least, the first one among equals.
    pub(super) fn first(&self, waiting: impl Iterator<Item = Tenant>) -> Option<Tenant> {
        waiting.min_by_key(|tenant| self.next_of(*tenant))
    }

    /// True if one of the waiting organizations has used less than this one.
    pub(super) fn precedes(&self, mut waiting: impl Iterator<Item = Tenant>, tenant: Tenant) -> bool {
        let next = self.next_of(tenant);
        waiting.any(|waiting| self.next_of(waiting) < next)
    }

    /// Records a piece of work, and the processor time that it took.
    pub(super) fn record(&mut self, tenant: Tenant, used: Duration) {
        self.now = self.next_of(tenant);
        self.next.insert(tenant, self.now + used.max(COST_MIN));
        if self.next.len() > self.entries_max.max(ENTRIES_MAX) {
            let now = self.now;
            self.next.retain(|_, next| *next > now);
            self.entries_max = self.next.len() * 2;
        }
    }

    fn next_of(&self, tenant: Tenant) -> Duration {
        self.next.get(&tenant).map_or(self.now, |next| (*next).max(self.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Serves organizations that always have work, each with its cost, and returns the number of turns of each.
    fn served<const N: usize>(shares: &mut Shares, costs: [(Tenant, Duration); N], turns: usize) -> [usize; N] {
        let mut counts = [0; N];
        for _ in 0..turns {
            let first = shares.first(costs.iter().map(|(tenant, _)| *tenant)).unwrap();
            let at = costs.iter().position(|(tenant, _)| *tenant == first).unwrap();
            shares.record(first, costs[at].1);
            counts[at] += 1;
        }
        counts
    }

    #[test]
    fn organizations_share_time_and_not_turns() {
        let [heavy, light, none] = ["heavy", "light", "none"].map(Tenant::of);
        let costs = [(heavy, micros(9_000)), (light, micros(1_000)), (none, Duration::ZERO)];
        assert_eq!(served(&mut Shares::default(), [costs[0], costs[1]], 100), [10, 90]);
        assert_eq!(served(&mut Shares::default(), [costs[2], (light, micros(20))], 100), [50, 50], "nothing is free");
    }

    #[test]
    fn an_organization_without_work_is_next_and_saves_nothing_up() {
        let (mut shares, [heavy, light]) = (Shares::default(), ["heavy", "light"].map(Tenant::of));
        for _ in 0..100 {
            shares.record(heavy, micros(1_000));
        }
        assert!(shares.precedes([light].into_iter(), heavy) && !shares.precedes([heavy].into_iter(), light));
        assert_eq!(shares.first([heavy, light].into_iter()), Some(light));
        let both = [(heavy, micros(1_000)), (light, micros(1_000))];
        let [heavy, light] = served(&mut shares, both, 10);
        assert!(light <= heavy + 2, "{heavy} and {light}");
    }

    #[test]
    fn organizations_without_a_later_time_take_no_memory() {
        let mut shares = Shares::default();
        for number in 0..10_000_u32 {
            let tenant = Tenant::of(&number.to_string());
            // The second time begins behind the first one of all before.
            shares.record(tenant, micros(30));
            shares.record(tenant, micros(30));
        }
        assert!(shares.next.len() <= 2 * ENTRIES_MAX, "{}", shares.next.len());
    }
}
