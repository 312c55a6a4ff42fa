//! The sums behind the bound on memory, by organization. It contains no executions, only numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak, atomic::AtomicBool},
};

use mainspring_kernel::key::ExecutionKey;

use crate::limits::{EXECUTION_BYTES_MIN, HELD_BACK_MS_MAX, LARGE_EXECUTION_BYTES_MIN, ORGANIZATION_MEMORY_BYTES_MAX};

/// The memory of active executions.
#[derive(Debug)]
pub(in crate::shard) struct Memory {
    organization_bytes_max: u64,
    organizations: BTreeMap<Arc<str>, Organization>,
    weights: BTreeMap<ExecutionKey, Weight>,
    /// Pairs of parent and child, of the executions that count.
    children: BTreeSet<(ExecutionKey, ExecutionKey)>,
    /// Executions whose journals do not fit at present.
    held_back: BTreeMap<ExecutionKey, HeldBack>,
    /// Organizations that may be above a bound.
    over: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
struct Organization {
    /// Bytes of executions that are not canceled.
    going: u64,
    /// Bytes of canceled executions in memory.
    canceled: u64,
    /// Large executions that are not canceled, by bytes.
    large: BTreeSet<(u64, ExecutionKey)>,
    /// Executions that are not canceled, by age: `roots` have no waiting parent, `others` have one.
    roots: BTreeSet<ExecutionKey>,
    others: BTreeSet<ExecutionKey>,
    /// Canceled executions whose attempts were not killed.
    stopping: BTreeSet<ExecutionKey>,
    /// Abandoned states that are still with their evaluations, and their bytes.
    abandoned: Vec<(Weak<AtomicBool>, u64)>,
}

#[derive(Debug)]
struct Weight {
    tenant: Arc<str>,
    bytes: u64,
    parent: Option<ExecutionKey>,
    is_canceled: bool,
    /// It was chosen to be canceled. The cancel may wait behind other inputs.
    is_asked: bool,
}

#[derive(Debug)]
struct HeldBack {
    tenant: Arc<str>,
    bytes: u64,
    since_ms: u64,
}

/// The execution to cancel, with the figures for the reason.
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

    /// Counts an execution with its present size. It counts as canceled if its parent does.
    pub(super) fn weigh(
        &mut self,
        execution: ExecutionKey,
        tenant: &str,
        bytes: u64,
        parent: Option<ExecutionKey>,
        is_ending: bool,
    ) {
        // Rounded up to multiples of the minimum, so that small changes do not change a sum.
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

    /// Removes an execution from memory. `out` is alive while its state is with an evaluation.
    pub(super) fn remove(&mut self, execution: ExecutionKey, out: Weak<AtomicBool>) {
        let Some(weight) = self.take_out(execution) else { return };
        if out.strong_count() > 0 {
            let organization = self.organizations.entry(weight.tenant).or_default();
            organization.abandoned.retain(|(out, _)| out.strong_count() > 0);
            organization.abandoned.push((out, weight.bytes));
        }
    }

    /// Returns an organization that may be above a bound.
    pub(super) fn next_over(&mut self) -> Option<Arc<str>> {
        self.over.pop()
    }

    /// Returns the execution to cancel, if the organization is above its bound.
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

    /// Counts an execution as canceled until it leaves memory, since its turn may wait for an evaluation. Its children
    /// count as canceled until they are counted again, since they receive the cancel in a message.
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

    /// Returns the canceled executions of an organization above twice its bound whose attempts are to be killed, each
    /// once.
    pub(super) fn take_stopping(&mut self, tenant: &str) -> BTreeSet<ExecutionKey> {
        let bytes_max = self.organization_bytes_max;
        let Some(organization) = self.organizations.get_mut(tenant) else { return BTreeSet::new() };
        organization.abandoned.retain(|(out, _)| out.strong_count() > 0);
        match organization.total() > bytes_max.saturating_mul(2) {
            true => std::mem::take(&mut organization.stopping),
            false => BTreeSet::new(),
        }
    }

    /// Returns true, and remembers the execution, if its journal does not fit at present.
    pub(super) fn hold_back(&mut self, execution: ExecutionKey, tenant: &str, bytes: u64, now: u64) -> bool {
        let since_ms = self.held_back.get(&execution).map_or(now, |held| held.since_ms);
        let held = HeldBack { tenant: Arc::from(tenant), bytes: bytes.max(EXECUTION_BYTES_MIN), since_ms };
        if self.has_room(&held) || now.saturating_sub(since_ms) >= HELD_BACK_MS_MAX {
            return false;
        }
        self.held_back.insert(execution, held);
        true
    }

    /// True if a delayed execution still has to wait.
    pub(super) fn is_held_back(&self, execution: ExecutionKey, now: u64) -> bool {
        let held = self.held_back.get(&execution);
        held.is_some_and(|held| !self.has_room(held) && now.saturating_sub(held.since_ms) < HELD_BACK_MS_MAX)
    }

    /// True if the execution fits. The first execution of an organization always does.
    fn has_room(&self, held: &HeldBack) -> bool {
        let Some(organization) = self.organizations.get(&held.tenant) else { return true };
        let (going, total) = (organization.going, organization.total());
        let bytes_max = self.organization_bytes_max;
        total == 0
            || (going.saturating_add(held.bytes) <= bytes_max
                && total.saturating_add(held.bytes) <= bytes_max.saturating_mul(2))
    }

    /// Removes an execution from the delayed ones.
    pub(in crate::shard) fn admit_held_back(&mut self, execution: ExecutionKey) {
        self.held_back.remove(&execution);
    }

    /// Removes delayed executions that another node owns now.
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

    /// All bytes of the organization in memory.
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
