//! The sums behind the bound on memory, by organization, as plain numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak, atomic::AtomicBool},
};

use mainspring_kernel::key::ExecutionKey;

use crate::limits::{EXECUTION_BYTES_MIN, HELD_BACK_MS_MAX, LARGE_EXECUTION_BYTES_MIN, ORGANIZATION_MEMORY_BYTES_MAX};

/// The memory of live executions.
#[derive(Debug)]
pub(in crate::shard) struct Memory {
    organization_bytes_max: u64,
    organizations: BTreeMap<Arc<str>, Organization>,
    weights: BTreeMap<ExecutionKey, Weight>,
    /// Who waits for whom: parent and child, of those that count.
    children: BTreeSet<(ExecutionKey, ExecutionKey)>,
    /// Executions whose journals do not fit now.
    held_back: BTreeMap<ExecutionKey, HeldBack>,
    /// Organizations that may be above a bound.
    over: Vec<Arc<str>>,
}

/// One organization.
#[derive(Debug, Default)]
struct Organization {
    /// Bytes of executions that go on.
    going: u64,
    /// Bytes of executions that were canceled and are in memory.
    canceled: u64,
    /// Those that go on and are large, by bytes.
    large: BTreeSet<(u64, ExecutionKey)>,
    /// Those that go on, by age, that nobody waits for, and the others.
    roots: BTreeSet<ExecutionKey>,
    others: BTreeSet<ExecutionKey>,
    /// Those that were canceled and whose attempts were not killed.
    stopping: BTreeSet<ExecutionKey>,
    /// States of abandoned turns that are out with their evaluations.
    abandoned: Vec<(Weak<AtomicBool>, u64)>,
}

#[derive(Debug)]
struct Weight {
    tenant: Arc<str>,
    bytes: u64,
    parent: Option<ExecutionKey>,
    is_canceled: bool,
    /// Whether it was chosen to be canceled. The cancel may wait behind other inputs.
    is_asked: bool,
}

#[derive(Debug)]
struct HeldBack {
    tenant: Arc<str>,
    bytes: u64,
    since_ms: u64,
}

/// The execution to cancel, and the figures for its reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Victim {
    pub(super) execution: ExecutionKey,
    pub(super) bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) is_largest: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            organization_bytes_max: ORGANIZATION_MEMORY_BYTES_MAX,
            organizations: BTreeMap::new(),
            weights: BTreeMap::new(),
            children: BTreeSet::new(),
            held_back: BTreeMap::new(),
            over: Vec::new(),
        }
    }
}

impl Memory {
    pub(super) fn set_bound(&mut self, organization_bytes_max: u64) {
        self.organization_bytes_max = organization_bytes_max;
    }

    /// Counts an execution, or counts it anew. One whose parent counts as canceled does so itself.
    pub(super) fn weigh(
        &mut self,
        execution: ExecutionKey,
        tenant: &str,
        bytes: u64,
        parent: Option<ExecutionKey>,
        is_ending: bool,
    ) {
        // In whole floors, so that what a small execution does changes no sum.
        let bytes = bytes.max(1).next_multiple_of(EXECUTION_BYTES_MIN);
        let known = self.weights.get(&execution);
        let is_asked = known.is_some_and(|weight| weight.is_asked);
        let is_canceled = is_ending || is_asked || parent.is_some_and(|parent| self.is_canceled(parent));
        if known.is_some_and(|known| (known.bytes, known.parent, known.is_canceled) == (bytes, parent, is_canceled)) {
            return;
        }
        let tenant = match self.organizations.get_key_value(tenant) {
            Some((tenant, _)) => tenant.clone(),
            None => Arc::from(tenant),
        };
        self.take_out(execution);
        self.put(execution, Weight { tenant, bytes, parent, is_canceled, is_asked });
    }

    fn is_canceled(&self, execution: ExecutionKey) -> bool {
        self.weights.get(&execution).is_some_and(|weight| weight.is_canceled)
    }

    fn put(&mut self, execution: ExecutionKey, weight: Weight) {
        let organization = self.organizations.entry(weight.tenant.clone()).or_default();
        organization.count(execution, &weight);
        let bytes_max = self.organization_bytes_max;
        if organization.is_over(bytes_max) && self.over.last() != Some(&weight.tenant) {
            self.over.push(weight.tenant.clone());
        }
        self.children.extend(weight.parent.map(|parent| (parent, execution)));
        self.weights.insert(execution, weight);
    }

    fn take_out(&mut self, execution: ExecutionKey) -> Option<Weight> {
        let weight = self.weights.remove(&execution)?;
        if let Some(parent) = weight.parent {
            self.children.remove(&(parent, execution));
        }
        if let Some(organization) = self.organizations.get_mut(&weight.tenant) {
            organization.uncount(execution, &weight);
            if organization.is_empty() {
                self.organizations.remove(&weight.tenant);
            }
        }
        Some(weight)
    }

    /// An execution leaves memory. `out` is alive as long as its state is out with an evaluation.
    pub(super) fn remove(&mut self, execution: ExecutionKey, out: Weak<AtomicBool>) {
        let Some(weight) = self.take_out(execution) else { return };
        if out.strong_count() > 0 {
            let organization = self.organizations.entry(weight.tenant).or_default();
            organization.abandoned.retain(|(out, _)| out.strong_count() > 0);
            organization.abandoned.push((out, weight.bytes));
        }
    }

    /// An organization that may be above a bound.
    pub(super) fn next_over(&mut self) -> Option<Arc<str>> {
        self.over.pop()
    }

    /// The execution of an organization above its bound that is to be canceled.
    pub(super) fn choose(&self, tenant: &str) -> Option<Victim> {
        let (organization, bytes_max) = (self.organizations.get(tenant)?, self.organization_bytes_max);
        if organization.going <= bytes_max {
            return None;
        }
        let largest = organization.large.last().map(|(_, execution)| *execution);
        let execution = largest.or_else(|| organization.roots.last().or(organization.others.last()).copied())?;
        let (bytes, total_bytes) = (self.weights.get(&execution)?.bytes, organization.going);
        Some(Victim { execution, bytes, total_bytes, bytes_max, is_largest: largest.is_some() })
    }

    /// An execution is about to be canceled: it counts as canceled until it leaves memory, as its turn may wait for an
    /// evaluation. Its children count as canceled until they are weighed again: they hear of it with a message.
    pub(super) fn asked(&mut self, victim: ExecutionKey) {
        let mut all = vec![victim];
        while let Some(execution) = all.pop() {
            let (first, last) = ((execution, ExecutionKey([0; 16])), (execution, ExecutionKey([0xff; 16])));
            all.extend(self.children.range(first..=last).map(|(_, child)| *child));
            if let Some(weight) = self.take_out(execution) {
                let is_asked = weight.is_asked || execution == victim;
                self.put(execution, Weight { is_canceled: true, is_asked, ..weight });
            }
        }
    }

    /// The canceled executions of an organization above twice its bound whose attempts are to be killed, each once.
    pub(super) fn take_stopping(&mut self, tenant: &str) -> BTreeSet<ExecutionKey> {
        let bytes_max = self.organization_bytes_max;
        let Some(organization) = self.organizations.get_mut(tenant) else { return BTreeSet::new() };
        organization.abandoned.retain(|(out, _)| out.strong_count() > 0);
        match organization.total() > bytes_max.saturating_mul(2) {
            true => std::mem::take(&mut organization.stopping),
            false => BTreeSet::new(),
        }
    }

    /// Whether a journal of an execution that goes on does not fit; then it is remembered.
    pub(super) fn hold_back(&mut self, execution: ExecutionKey, tenant: &str, bytes: u64, now: u64) -> bool {
        let since_ms = self.held_back.get(&execution).map_or(now, |held| held.since_ms);
        let held = HeldBack { tenant: Arc::from(tenant), bytes: bytes.max(EXECUTION_BYTES_MIN), since_ms };
        if self.has_room(&held) || now.saturating_sub(since_ms) >= HELD_BACK_MS_MAX {
            return false;
        }
        self.held_back.insert(execution, held);
        true
    }

    /// Whether an execution that was held back still is.
    pub(super) fn is_held_back(&self, execution: ExecutionKey, now: u64) -> bool {
        let held = self.held_back.get(&execution);
        held.is_some_and(|held| !self.has_room(held) && now.saturating_sub(held.since_ms) < HELD_BACK_MS_MAX)
    }

    /// The first one always has room.
    fn has_room(&self, held: &HeldBack) -> bool {
        let Some(organization) = self.organizations.get(&held.tenant) else { return true };
        let (going, total) = (organization.going, organization.total());
        let bytes_max = self.organization_bytes_max;
        total == 0
            || (going.saturating_add(held.bytes) <= bytes_max
                && total.saturating_add(held.bytes) <= bytes_max.saturating_mul(2))
    }

    /// An execution waits for no room any more.
    pub(in crate::shard) fn let_in(&mut self, execution: ExecutionKey) {
        self.held_back.remove(&execution);
    }

    /// What was held back is another node's now.
    pub(in crate::shard) fn forget_held_back(&mut self, is_gone: impl Fn(&ExecutionKey) -> bool) {
        self.held_back.retain(|execution, _| !is_gone(execution));
    }
}

impl Organization {
    fn count(&mut self, execution: ExecutionKey, weight: &Weight) {
        if weight.is_canceled {
            self.canceled += weight.bytes;
            self.stopping.insert(execution);
            return;
        }
        self.going += weight.bytes;
        if weight.bytes >= LARGE_EXECUTION_BYTES_MIN {
            self.large.insert((weight.bytes, execution));
        }
        let by_age = if weight.parent.is_none() { &mut self.roots } else { &mut self.others };
        by_age.insert(execution);
    }

    fn uncount(&mut self, execution: ExecutionKey, weight: &Weight) {
        if weight.is_canceled {
            self.canceled -= weight.bytes;
            self.stopping.remove(&execution);
            return;
        }
        self.going -= weight.bytes;
        self.large.remove(&(weight.bytes, execution));
        let by_age = if weight.parent.is_none() { &mut self.roots } else { &mut self.others };
        by_age.remove(&execution);
    }

    /// All that is in memory of it.
    fn total(&self) -> u64 {
        let abandoned = self.abandoned.iter().filter(|(out, _)| out.strong_count() > 0);
        self.going + self.canceled + abandoned.map(|(_, bytes)| bytes).sum::<u64>()
    }

    fn is_over(&self, bytes_max: u64) -> bool {
        self.going > bytes_max || self.total() > bytes_max.saturating_mul(2)
    }

    fn is_empty(&self) -> bool {
        self.total() == 0
    }
}
