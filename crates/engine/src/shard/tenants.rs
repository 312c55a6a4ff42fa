//! Fair queues between organizations: for split turns, parts of a commit, and commands of the driver.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mainspring_kernel::{hash::Hash, key::ExecutionKey};

use super::unbudgeted::UnbudgetedExecutions;
use crate::limits::{SHARED_BYTES_MAX, SHARED_MS, SHARED_PARTS_MAX};

/// An organization in the fair queues: eight bytes of the hash of its id. A collision makes two organizations share one
/// turn. 0 stands for no organization and for an unknown one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tenant(u64);

impl Tenant {
    /// The organization with this id. An empty id means none.
    pub(crate) fn of(id: &str) -> Self {
        if id.is_empty() {
            return Self::default();
        }
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&Hash::of(id.as_bytes()).0[..8]);
        Self(u64::from_be_bytes(bytes))
    }
}

/// One queue per organization. The queues take turns, one element at a time.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    queues: BTreeMap<Tenant, VecDeque<T>>,
    /// Organizations with elements, in the order of their turns.
    next: VecDeque<Tenant>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), next: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    /// Appends an element to the queue of its organization.
    pub(crate) fn push(&mut self, tenant: Tenant, element: T) {
        let queue = self.queues.entry(tenant).or_default();
        if queue.is_empty() {
            self.next.push_back(tenant);
        }
        queue.push_back(element);
    }

    /// Removes the first element of the organization that is next.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let tenant = self.next.pop_front()?;
        let queue = self.queues.get_mut(&tenant)?;
        let element = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&tenant);
        } else {
            self.next.push_back(tenant);
        }
        element
    }

    /// Removes the first element of an organization.
    pub(crate) fn pop_of(&mut self, tenant: Tenant) -> Option<T> {
        self.put_first(tenant);
        self.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Returns the organizations with elements, the next to be served first.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = Tenant> {
        self.next.iter().copied()
    }

    /// Serves an organization next. The order of the others stays.
    pub(crate) fn put_first(&mut self, tenant: Tenant) {
        if let Some(at) = self.next.iter().position(|next| *next == tenant)
            && let Some(tenant) = self.next.remove(at)
        {
            self.next.push_front(tenant);
        }
    }
}

/// Executions that wait for a turn or for a commit, by organization.
#[derive(Debug, Default)]
pub(super) struct TenantQueues {
    /// Executions with a draft for the next commit.
    pub(super) dirty: Dirty,
    /// Executions with a split turn whose frames so far are durable, in the order in which they continue.
    pub(super) split: Turns<ExecutionKey>,
    pub(super) activity: TenantActivity,
    pub(super) unbudgeted: UnbudgetedExecutions,
}

/// Detects that several organizations use the driver.
#[derive(Debug, Default)]
pub(super) struct TenantActivity {
    now: u64,
    last: Tenant,
    last_at: u64,
    /// The last turn of an organization other than the last one. `None` if there was none.
    other_at: Option<u64>,
    is_always_shared: bool,
}

impl TenantActivity {
    /// Sets the time of the event in progress, in milliseconds.
    pub(super) fn at(&mut self, now: u64) {
        self.now = now;
    }

    /// Records a turn of an organization. Executions without an organization do not count.
    pub(super) fn turn(&mut self, tenant: Tenant) {
        if tenant == Tenant::default() {
            return;
        }
        if self.last != tenant {
            self.other_at = (self.last != Tenant::default()).then_some(self.last_at);
            self.last = tenant;
        }
        self.last_at = self.now;
    }

    /// See [`Shard::share_always`](super::Shard::share_always).
    pub(super) fn share_always(&mut self) {
        self.is_always_shared = true;
    }

    pub(super) fn is_always_shared(&self) -> bool {
        self.is_always_shared
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_always_shared || self.other_at.is_some_and(|at| self.now.saturating_sub(at) < SHARED_MS)
    }
}

/// Executions with a draft for the next commit, by organization.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    tenants: BTreeMap<Tenant, BTreeSet<ExecutionKey>>,
    of: BTreeMap<ExecutionKey, Tenant>,
    /// The organization that was served last.
    served: Tenant,
}

impl Dirty {
    pub(super) fn insert(&mut self, execution: ExecutionKey, tenant: Tenant) {
        match self.of.insert(execution, tenant) {
            Some(before) if before == tenant => return,
            Some(before) => self.forget(before, &execution),
            None => {}
        }
        self.tenants.entry(tenant).or_default().insert(execution);
    }

    /// True if it was present.
    pub(super) fn remove(&mut self, execution: &ExecutionKey) -> bool {
        let Some(tenant) = self.of.remove(execution) else { return false };
        self.forget(tenant, execution);
        true
    }

    pub(super) fn contains(&self, execution: &ExecutionKey) -> bool {
        self.of.contains_key(execution)
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    fn pop_of(&mut self, tenant: Tenant) -> Option<ExecutionKey> {
        let executions = self.tenants.get_mut(&tenant)?;
        let execution = executions.pop_first();
        if executions.is_empty() {
            self.tenants.remove(&tenant);
        }
        self.of.remove(&execution?);
        self.served = tenant;
        execution
    }

    fn forget(&mut self, tenant: Tenant, execution: &ExecutionKey) {
        if let Some(executions) = self.tenants.get_mut(&tenant) {
            executions.remove(execution);
            if executions.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
    }
}

/// Selects the executions of one commit, one organization after another.
#[derive(Debug)]
pub(super) struct Picks {
    /// Organizations that follow the present one, the last first.
    later: Vec<Tenant>,
    tenant: Option<Tenant>,
    is_shared: bool,
    parts: usize,
    bytes: usize,
}

impl Picks {
    /// Starts behind the organization that was served last, since a commit may be full before all had their share.
    pub(super) fn of(dirty: &Dirty, is_shared: bool) -> Self {
        let mut later: Vec<Tenant> = dirty.tenants.keys().copied().collect();
        let behind = later.partition_point(|tenant| *tenant <= dirty.served);
        later.rotate_left(behind);
        later.reverse();
        let tenant = later.pop();
        Self { later, tenant, is_shared, parts: 0, bytes: 0 }
    }

    /// Returns the next execution, within the share of its organization.
    pub(super) fn next(&mut self, dirty: &mut Dirty) -> Option<ExecutionKey> {
        loop {
            let tenant = self.tenant?;
            let is_full = self.is_shared && (self.parts >= SHARED_PARTS_MAX || self.bytes >= SHARED_BYTES_MAX);
            let execution = if is_full { None } else { dirty.pop_of(tenant) };
            if execution.is_some() {
                return execution;
            }
            (self.tenant, self.parts, self.bytes) = (self.later.pop(), 0, 0);
        }
    }

    /// Counts an execution as part of the commit.
    pub(super) fn took(&mut self, bytes: usize) {
        self.parts += 1;
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> ExecutionKey {
        ExecutionKey([number; 16])
    }

    #[test]
    fn organizations_take_turns() {
        let (mut turns, [a, b]) = (Turns::default(), ["a", "b"].map(Tenant::of));
        for (tenant, element) in [(a, 1), (a, 2), (a, 3), (b, 4), (b, 5)] {
            turns.push(tenant, element);
        }
        let all: Vec<i32> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(all, [1, 4, 2, 5, 3]);
        assert!(turns.is_empty());
        turns.push(b, 6);
        assert_eq!(turns.pop(), Some(6), "an organization that had nothing comes again");
    }

    #[test]
    fn an_organization_can_be_served_next() {
        let (mut turns, [a, b, c, none]) = (Turns::default(), ["a", "b", "c", "d"].map(Tenant::of));
        for (tenant, element) in [(a, 1), (b, 2), (c, 3), (a, 4)] {
            turns.push(tenant, element);
        }
        turns.put_first(c);
        turns.put_first(none);
        assert_eq!(turns.tenants().collect::<Vec<_>>(), [c, a, b]);
        let all: Vec<i32> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(all, [3, 1, 2, 4]);
    }

    #[test]
    fn two_active_organizations_share_and_a_single_one_does_not() {
        let (mut sharing, [a, b, none]) = (TenantActivity::default(), ["a", "b", ""].map(Tenant::of));
        let mut turn = |now, tenant| {
            sharing.at(now);
            sharing.turn(tenant);
            sharing.is_shared()
        };
        assert!(!turn(1, a) && !turn(2, none) && !turn(3, a));
        assert!(turn(4, b) && turn(5, b) && turn(6, a));
        assert!(turn(4 + SHARED_MS, a));
        assert!(!turn(5 + SHARED_MS, a), "the other has had no turn for long");
        assert!(turn(6 + SHARED_MS, b));
    }

    #[test]
    fn a_shared_commit_has_a_share_of_each() {
        let (mut dirty, [a, b]) = (Dirty::default(), ["a", "b"].map(Tenant::of));
        let many = SHARED_PARTS_MAX as u8 + 10;
        for number in 0..many {
            dirty.insert(key(number), a);
        }
        dirty.insert(key(many), b);
        dirty.insert(key(many), b);
        assert_eq!(dirty.len(), usize::from(many) + 1);
        let take = |dirty: &mut Dirty, is_shared, bytes| {
            let (mut picks, mut taken) = (Picks::of(dirty, is_shared), Vec::new());
            while let Some(execution) = picks.next(dirty) {
                picks.took(bytes);
                taken.push(execution);
            }
            taken
        };
        let first = take(&mut dirty, true, 1);
        assert_eq!((first.len(), first.contains(&key(many))), (SHARED_PARTS_MAX + 1, true));
        dirty.insert(key(many), b);
        let large = take(&mut dirty, true, SHARED_BYTES_MAX);
        assert_eq!(large.len(), 2, "one of each, however large it is");
        assert_eq!(take(&mut dirty, false, SHARED_BYTES_MAX).len(), 9, "alone, the rest");
        assert!(dirty.is_empty() && dirty.tenants.is_empty());
    }

    /// A commit may be full before all organizations had their share.
    #[test]
    fn a_commit_starts_after_the_last_served_organization() {
        let (mut dirty, mut served) = (Dirty::default(), Vec::new());
        let tenants: Vec<Tenant> = ["a", "b", "c", "d", "e"].map(Tenant::of).into();
        for (number, tenant) in (0..20).zip(tenants.iter().cycle()) {
            dirty.insert(key(number), *tenant);
        }
        for _ in 0..5 {
            let mut picks = Picks::of(&dirty, true);
            for _ in 0..2 {
                served.push(picks.next(&mut dirty).map(|execution| execution.0[0] % 5));
                picks.took(SHARED_BYTES_MAX);
            }
        }
        let (first, second) = served.split_at(5);
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 5, "each is served once: {served:?}");
        assert_eq!(first, second, "and again in the same order");
    }

    #[test]
    fn an_execution_waits_once_and_for_its_organization() {
        let (mut dirty, [a, b]) = (Dirty::default(), ["a", "b"].map(Tenant::of));
        dirty.insert(key(1), a);
        dirty.insert(key(1), b);
        assert_eq!((dirty.len(), dirty.tenants.len()), (1, 1));
        assert!(dirty.contains(&key(1)) && dirty.remove(&key(1)) && !dirty.remove(&key(1)));
        assert!(dirty.tenants.is_empty());
    }
}
