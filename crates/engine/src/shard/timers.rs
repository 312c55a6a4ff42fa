//! Wake-up times of executions: at most one for each execution. This module reads no clock, since each event comes with
//! the time.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_kernel::key::ExecutionKey;

use super::tenants::Tenant;

/// Times by order and by execution. Setting or removing one costs the logarithm of their number.
#[derive(Debug, Default)]
pub(super) struct Timers {
    times: BTreeMap<ExecutionKey, (u64, Tenant)>,
    tenants: BTreeMap<Tenant, BTreeSet<(u64, ExecutionKey)>>,
    /// The earliest time of each organization.
    firsts: BTreeSet<(u64, Tenant)>,
    /// The organization whose timer fired last.
    last: Tenant,
}

impl Timers {
    pub(super) fn first(&self) -> Option<u64> {
        self.firsts.first().map(|(at, _)| *at)
    }

    /// Returns the earliest due execution of the next organization. Organizations take turns.
    pub(super) fn next_due(&mut self, now: u64) -> Option<ExecutionKey> {
        let due = self.firsts.iter().take_while(|(at, _)| *at <= now).map(|(_, tenant)| *tenant);
        let tenant = due.min_by_key(|tenant| (*tenant <= self.last, *tenant))?;
        self.last = tenant;
        self.tenants.get(&tenant)?.first().map(|(_, execution)| *execution)
    }

    /// Replaces the time of an execution, or removes it.
    pub(super) fn set(&mut self, execution: ExecutionKey, tenant: Tenant, at: Option<u64>) {
        let Some(at) = at else { return self.remove(execution) };
        if self.times.get(&execution) == Some(&(at, tenant)) {
            return;
        }
        self.remove(execution);
        self.times.insert(execution, (at, tenant));
        self.change(tenant, |times| times.insert((at, execution)));
    }

    /// Sets the time of an execution, unless it has an earlier one.
    pub(super) fn set_at_latest(&mut self, execution: ExecutionKey, at: u64) {
        match self.times.get(&execution) {
            Some((known, _)) if *known <= at => {}
            Some((_, tenant)) => self.set(execution, *tenant, Some(at)),
            None => self.set(execution, Tenant::default(), Some(at)),
        }
    }

    pub(super) fn remove(&mut self, execution: ExecutionKey) {
        if let Some((at, tenant)) = self.times.remove(&execution) {
            self.change(tenant, |times| times.remove(&(at, execution)));
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&ExecutionKey) -> bool) {
        let gone: Vec<ExecutionKey> = self.times.keys().copied().filter(|execution| !keep(execution)).collect();
        gone.into_iter().for_each(|execution| self.remove(execution));
    }

    /// Executions with a time, in the order of their keys.
    pub(super) fn executions(&self) -> impl Iterator<Item = ExecutionKey> + '_ {
        self.times.keys().copied()
    }

    fn change(&mut self, tenant: Tenant, change: impl FnOnce(&mut BTreeSet<(u64, ExecutionKey)>) -> bool) {
        let times = self.tenants.entry(tenant).or_default();
        let before = times.first().map(|(at, _)| *at);
        change(times);
        let after = times.first().map(|(at, _)| *at);
        if times.is_empty() {
            self.tenants.remove(&tenant);
        }
        if before != after {
            before.map(|at| self.firsts.remove(&(at, tenant)));
            after.map(|at| self.firsts.insert((at, tenant)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> ExecutionKey {
        ExecutionKey([number; 16])
    }

    #[test]
    fn an_execution_has_one_time() {
        let (mut timers, tenant) = (Timers::default(), Tenant::of("a"));
        timers.set(key(1), tenant, Some(20));
        timers.set(key(2), tenant, Some(10));
        assert_eq!((timers.first(), timers.next_due(9), timers.next_due(10)), (Some(10), None, Some(key(2))));
        timers.set(key(2), tenant, Some(30));
        assert_eq!((timers.first(), timers.next_due(20)), (Some(20), Some(key(1))), "the time at 10 is replaced");
        timers.set_at_latest(key(2), 40);
        timers.set_at_latest(key(2), 5);
        assert_eq!((timers.first(), timers.next_due(5)), (Some(5), Some(key(2))));
        timers.set(key(2), tenant, None);
        assert_eq!(timers.executions().collect::<Vec<_>>(), [key(1)]);
        timers.set(key(1), Tenant::of("b"), Some(20));
        assert_eq!((timers.next_due(20), timers.tenants.len()), (Some(key(1)), 1), "its organization became known");
        timers.retain(|execution| *execution != key(1));
        assert_eq!((timers.first(), timers.times.len()), (None, 0));
        assert!(timers.tenants.is_empty() && timers.firsts.is_empty());
    }

    #[test]
    fn timers_of_organizations_fire_in_turn() {
        let (mut timers, tenants) = (Timers::default(), ["a", "b", "c"].map(Tenant::of));
        for number in 0..30 {
            timers.set(key(number), tenants[usize::from(number % 2)], Some(u64::from(number)));
        }
        timers.set(key(30), tenants[2], Some(50));
        timers.set(key(31), tenants[2], Some(100));
        let mut fired = Vec::new();
        while let Some(execution) = timers.next_due(60) {
            timers.remove(execution);
            fired.push(execution);
        }
        assert_eq!(fired.len(), 31, "all that were due, and no other");
        let place = fired.iter().position(|execution| *execution == key(30));
        assert!(place.is_some_and(|place| place < 3), "{place:?}");
    }
}
