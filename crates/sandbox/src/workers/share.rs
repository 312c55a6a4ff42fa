//! The slots of a pool, divided among tenants: bookkeeping without processes, clocks or locks.
//!
//! | a tenant uses | it gets a slot while |
//! |---|---|
//! | none | any slot of the pool is free, the reserve included |
//! | some, and no other tenant waits | an ordinary slot is free |
//! | some, and another tenant waits | an ordinary slot is free and the tenant has less than half of them |
//!
//! Among the tenants that may get a slot, the one that uses fewest is served first, then the one that was served
//! longest ago. Calls of one tenant are served in their order.

use crate::limits::CALLS_WAITING_MAX;
use std::collections::{BTreeMap, VecDeque};

/// The position of a waiting call in the order of arrival.
pub(super) type Ticket = u64;

/// An idle worker with its tenant.
pub(super) struct Idle<W> {
    tenant: String,
    worker: W,
}

/// The worker for a call.
pub(super) enum Place<W> {
    /// A worker that has answered calls of the same tenant before.
    Idle(W),
    /// A new worker; the contained idle worker of another tenant is ended first.
    New(Option<W>),
}

/// Slots, idle workers and waiting calls.
pub(super) struct Share<W> {
    /// Slots of which one tenant may use several.
    ordinary: usize,
    /// Oldest first.
    idle: VecDeque<Idle<W>>,
    tenants: BTreeMap<String, Tenant>,
    next_ticket: Ticket,
    /// The number of slots given out so far, by which tenants are ordered.
    served: u64,
}

/// A tenant that uses a slot or waits for one.
#[derive(Default)]
struct Tenant {
    used: usize,
    waiting: VecDeque<Ticket>,
    served_at: u64,
}

impl<W> Share<W> {
    /// Makes as many ordinary slots, and the same number in reserve for tenants that use none.
    pub(super) fn new(ordinary: usize) -> Self {
        let (idle, tenants) = (VecDeque::new(), BTreeMap::new());
        Self { ordinary: ordinary.max(1), idle, tenants, next_ticket: 0, served: 0 }
    }

    /// Queues a call; `None` if too many calls of its tenant wait already.
    pub(super) fn wait(&mut self, tenant: &str) -> Option<Ticket> {
        let entry = self.tenants.entry(tenant.to_owned()).or_default();
        if entry.waiting.len() >= CALLS_WAITING_MAX {
            return None;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        entry.waiting.push_back(ticket);
        Some(ticket)
    }

    /// Gives a slot to a call if it is the next to get one.
    pub(super) fn take(&mut self, tenant: &str, ticket: Ticket) -> Option<Place<W>> {
        if self.next() != Some(ticket) {
            return None;
        }
        let entry = self.tenants.get_mut(tenant)?;
        entry.waiting.pop_front();
        entry.used += 1;
        self.served += 1;
        entry.served_at = self.served;
        if let Some(at) = self.idle_of(tenant) {
            return self.idle.remove(at).map(|idle| Place::Idle(idle.worker));
        }
        let is_full = self.used() + self.idle.len() > self.places();
        Some(Place::New(if is_full { self.idle.pop_front().map(|idle| idle.worker) } else { None }))
    }

    /// Removes a call that stops waiting.
    pub(super) fn leave(&mut self, tenant: &str, ticket: Ticket) {
        if let Some(entry) = self.tenants.get_mut(tenant) {
            entry.waiting.retain(|waiting| *waiting != ticket);
        }
        self.tidy(tenant);
    }

    /// Releases a slot, and keeps its worker for more calls of this tenant.
    pub(super) fn release(&mut self, tenant: &str, worker: Option<W>) {
        if let Some(entry) = self.tenants.get_mut(tenant) {
            entry.used = entry.used.saturating_sub(1);
        }
        self.tidy(tenant);
        self.idle.extend(worker.map(|worker| Idle { tenant: tenant.to_owned(), worker }));
    }

    /// True if a tenant has one worker, busy or idle, and an ordinary slot is unused. A second worker never takes the
    /// reserve.
    pub(super) fn has_room_for_second(&self, tenant: &str) -> bool {
        let used = self.tenants.get(tenant).map_or(0, |entry| entry.used);
        let idle = self.idle.iter().filter(|idle| idle.tenant == tenant).count();
        used + idle == 1 && self.used() + self.idle.len() < self.ordinary
    }

    /// Adds a second worker, started in the background, as an idle one; returns it if its room was taken since.
    pub(super) fn add_second(&mut self, tenant: &str, worker: W) -> Option<W> {
        if !self.has_room_for_second(tenant) {
            return Some(worker);
        }
        self.idle.push_back(Idle { tenant: tenant.to_owned(), worker });
        None
    }

    /// Returns the position of the worker for the next call of a tenant: of its idle workers the one released last but
    /// one, else its only one. The worker released last may still prepare for its next call, and the two most recently
    /// used ones have the warmest caches.
    fn idle_of(&self, tenant: &str) -> Option<usize> {
        let mut latest_first = (0..self.idle.len()).rev().filter(|at| self.idle[*at].tenant == tenant);
        let last = latest_first.next()?;
        Some(latest_first.next().unwrap_or(last))
    }

    /// Removes the idle workers that should end, and returns them.
    pub(super) fn end_idle(&mut self, mut is_over: impl FnMut(&W) -> bool) -> Vec<W> {
        let (over, kept) = self.idle.drain(..).partition(|idle| is_over(&idle.worker));
        self.idle = kept;
        VecDeque::into_iter(over).map(|idle| idle.worker).collect()
    }

    /// Returns the call that gets the next slot, if any may get one.
    fn next(&self) -> Option<Ticket> {
        let served = self.tenants.iter().filter(|(name, tenant)| self.may_take(name, tenant));
        let served = served.min_by_key(|(_, tenant)| (tenant.used, tenant.served_at));
        served.and_then(|(_, tenant)| tenant.waiting.front().copied())
    }

    fn may_take(&self, name: &str, tenant: &Tenant) -> bool {
        if tenant.waiting.is_empty() {
            return false;
        }
        let used = self.used();
        if tenant.used == 0 {
            return used < self.places();
        }
        let others_wait = self.tenants.iter().any(|(other, entry)| other != name && !entry.waiting.is_empty());
        used < self.ordinary && (!others_wait || tenant.used < (self.ordinary / 2).max(1))
    }

    fn places(&self) -> usize {
        2 * self.ordinary
    }

    fn used(&self) -> usize {
        self.tenants.values().map(|tenant| tenant.used).sum()
    }

    /// Drops the entry of a tenant without used slots and waiting calls.
    fn tidy(&mut self, tenant: &str) {
        if self.tenants.get(tenant).is_some_and(|entry| entry.used == 0 && entry.waiting.is_empty()) {
            self.tenants.remove(tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues a call and tries to serve it; returns the kind of its slot.
    fn ask(share: &mut Share<u32>, tenant: &str) -> (Ticket, Option<&'static str>) {
        let ticket = share.wait(tenant).unwrap();
        (ticket, took(share, tenant, ticket))
    }

    fn took(share: &mut Share<u32>, tenant: &str, ticket: Ticket) -> Option<&'static str> {
        share.take(tenant, ticket).map(|place| match place {
            Place::Idle(_) => "idle",
            Place::New(None) => "new",
            Place::New(Some(_)) => "instead",
        })
    }

    #[test]
    fn a_single_tenant_gets_all_slots_and_a_second_the_reserve() {
        let mut share = Share::<u32>::new(2);
        assert_eq!(ask(&mut share, "a").1, Some("new"));
        assert_eq!(ask(&mut share, "a").1, Some("new"));
        let (third, place) = ask(&mut share, "a");
        assert_eq!(place, None, "the reserve is for others");
        assert_eq!(ask(&mut share, "b").1, Some("new"), "five heavy calls of `a` do not delay `b`");
        assert_eq!(ask(&mut share, "c").1, Some("new"));
        let (waits, place) = ask(&mut share, "d");
        assert_eq!(place, None, "every place is used");
        share.release("a", None);
        assert_eq!(took(&mut share, "a", third), None, "`d` uses fewer");
        assert_eq!(took(&mut share, "d", waits), Some("new"));
    }

    #[test]
    fn a_tenant_has_at_most_half_while_others_wait() {
        let mut share = Share::<u32>::new(4);
        (0..3).for_each(|_| assert_eq!(ask(&mut share, "a").1, Some("new")));
        assert_eq!(ask(&mut share, "b").1, Some("new"));
        let ((a, none), (b, nothing)) = (ask(&mut share, "a"), ask(&mut share, "b"));
        assert_eq!((none, nothing), (None, None));
        share.release("a", None);
        assert_eq!(took(&mut share, "a", a), None, "it has two of four");
        assert_eq!(took(&mut share, "b", b), Some("new"));
    }

    #[test]
    fn tenants_take_turns_and_calls_of_one_keep_their_order() {
        let mut share = Share::<u32>::new(1);
        let (_, first) = ask(&mut share, "a");
        let (_, second) = ask(&mut share, "b");
        assert_eq!((first, second), (Some("new"), Some("new")));
        let waiting: Vec<_> = ["a", "a", "b", "b"].map(|tenant| (tenant, ask(&mut share, tenant).0)).into();
        let mut served = Vec::new();
        share.release("a", None);
        share.release("b", None);
        for _ in 0..waiting.len() {
            let at = waiting.iter().position(|(tenant, ticket)| took(&mut share, tenant, *ticket).is_some());
            let at = at.expect("somebody is served");
            share.release(waiting[at].0, None);
            served.push(at);
        }
        assert_eq!(served, [0, 2, 1, 3]);
        assert!(share.tenants.is_empty(), "nothing is kept of tenants that ask for nothing");
    }

    #[test]
    fn a_worker_answers_one_tenant_alone() {
        let mut share = Share::<u32>::new(1);
        ask(&mut share, "a");
        share.release("a", Some(1));
        assert_eq!(ask(&mut share, "b").1, Some("new"));
        assert_eq!(ask(&mut share, "a").1, Some("idle"));
        share.release("b", Some(2));
        share.release("a", Some(1));
        assert_eq!(ask(&mut share, "c").1, Some("instead"), "the oldest idle worker makes room");
        assert_eq!(share.end_idle(|_| true), [1]);
        assert_eq!(share.end_idle(|_| true), [0; 0]);
    }

    #[test]
    fn two_workers_of_a_tenant_take_turns_and_a_third_stays_idle() {
        let mut share = Share::<u32>::new(3);
        (0..3).for_each(|_| assert_eq!(ask(&mut share, "a").1, Some("new")));
        (1..=3).for_each(|worker| share.release("a", Some(worker)));
        let mut taken = Vec::new();
        for _ in 0..4 {
            let ticket = share.wait("a").unwrap();
            let Some(Place::Idle(worker)) = share.take("a", ticket) else { panic!("no idle worker was taken") };
            share.release("a", Some(worker));
            taken.push(worker);
        }
        assert_eq!(taken, [2, 3, 2, 3]);
    }

    #[test]
    fn a_second_worker_takes_an_unused_ordinary_slot_only() {
        let mut share = Share::<u32>::new(2);
        assert!(!share.has_room_for_second("a"), "a tenant without a worker gets its first one with a call");
        ask(&mut share, "a");
        assert!(share.has_room_for_second("a"));
        assert_eq!(share.add_second("a", 2), None);
        assert_eq!(share.add_second("a", 3), Some(3), "it has two");
        ask(&mut share, "b");
        assert_eq!(share.add_second("b", 4), Some(4), "no ordinary slot is unused");
        share.release("a", Some(1));
        let ticket = share.wait("a").unwrap();
        assert!(matches!(share.take("a", ticket), Some(Place::Idle(2))));
    }

    #[test]
    fn calls_that_wait_are_bounded_and_may_leave() {
        let mut share = Share::<u32>::new(1);
        ask(&mut share, "a");
        let tickets: Vec<_> = (0..CALLS_WAITING_MAX).map(|_| share.wait("a").unwrap()).collect();
        assert_eq!(share.wait("a"), None);
        assert!(share.wait("b").is_some(), "another tenant has a queue of its own");
        share.leave("a", tickets[5]);
        assert!(share.wait("a").is_some());
    }
}
