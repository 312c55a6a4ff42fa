//! The workflows of an organization that drain, and the unfinished executions by definition.
//!
//! A start of a new definition is admitted only after a read of the store that has found no older execution: this node
//! may not know all of them. A drain that has ended here holds nothing more, until it is removed from the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_kernel::{
    hash::Hash,
    input::{Start, WORKFLOW_IN_TRIGGER},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::ExecutionRow;

/// A workflow that drains: executions of its new definitions wait until none of an older one is unfinished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// The time at which it began, which distinguishes the drains of a workflow.
    pub since_ms: u64,
    /// The hashes of the new definitions.
    pub new: BTreeSet<Hash>,
}

/// The drains of an organization by workflow.
pub type Drains = BTreeMap<Arc<str>, Drain>;

/// A drain that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drained {
    /// The id of the workflow in the catalogue.
    pub workflow: Arc<str>,
    /// See [`Drain::since_ms`].
    pub since_ms: u64,
}

/// A workflow of the catalogue, and the definition of an execution of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DefinitionKey {
    pub(super) workflow: Arc<str>,
    hash: Hash,
}

impl DefinitionKey {
    pub(super) fn of_start(start: &Start) -> Option<Self> {
        let workflow = start.trigger.get(WORKFLOW_IN_TRIGGER).and_then(Value::as_text)?;
        Some(Self { workflow: workflow.into(), hash: start.workflow_hash })
    }

    pub(super) fn of_row(row: &ExecutionRow) -> Option<Self> {
        let hash = Hash::parse(&row.workflow_hash).unwrap_or(row.plan_hash);
        Some(Self { workflow: row.workflow_id.as_deref()?.into(), hash })
    }
}

/// The member and the workflow whose limits apply to an execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConcurrencyKey {
    pub(super) user: Arc<str>,
    pub(super) definition: Option<DefinitionKey>,
}

impl ConcurrencyKey {
    pub(super) fn of_start(start: &Start) -> Self {
        Self { user: start.by.as_str().into(), definition: DefinitionKey::of_start(start) }
    }

    pub(super) fn of_row(row: &ExecutionRow) -> Self {
        let user = row.initiator_user_id.as_deref().unwrap_or_default();
        Self { user: user.into(), definition: DefinitionKey::of_row(row) }
    }
}

/// The drains of an organization.
#[derive(Debug, Default)]
pub(super) struct Draining {
    /// The drains that hold executions.
    pub(super) drains: Drains,
    /// Workflows whose drain was seen first by the latest read, which may have read its rows before the drain began. A
    /// later read ends it.
    fresh: BTreeSet<Arc<str>>,
    /// Drains that have ended and may still be in the store, by workflow, with the times at which they began.
    pub(super) over: BTreeMap<Arc<str>, u64>,
    /// Starts that wait for a read, which shows if their workflows drain.
    pub(super) withheld: BTreeMap<ExecutionKey, ConcurrencyKey>,
    /// Unfinished executions by workflow and definition.
    unfinished: BTreeMap<Arc<str>, BTreeMap<Hash, u32>>,
}

impl Draining {
    /// Counts an unfinished execution.
    pub(super) fn add(&mut self, definition: &DefinitionKey) {
        let of_workflow = self.unfinished.entry(definition.workflow.clone()).or_default();
        *of_workflow.entry(definition.hash).or_default() += 1;
    }

    /// No longer counts an execution.
    pub(super) fn remove(&mut self, definition: &DefinitionKey) {
        let Some(of_workflow) = self.unfinished.get_mut(&definition.workflow) else { return };
        if let Some(count) = of_workflow.get_mut(&definition.hash) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                of_workflow.remove(&definition.hash);
            }
        }
        if of_workflow.is_empty() {
            self.unfinished.remove(&definition.workflow);
        }
    }

    /// True for a definition that waits for older executions.
    pub(super) fn holds(&self, definition: &DefinitionKey) -> bool {
        self.drains.get(&definition.workflow).is_some_and(|drain| drain.new.contains(&definition.hash))
    }

    /// Returns the drains of which no older execution is counted and that the latest read may end, with the times at which
    /// they began.
    pub(super) fn ended(&self) -> impl Iterator<Item = (Arc<str>, u64)> {
        self.idle().filter(|(workflow, _)| !self.fresh.contains(workflow))
    }

    /// Returns the drains of which no older execution is counted, with the times at which they began.
    pub(super) fn idle(&self) -> impl Iterator<Item = (Arc<str>, u64)> {
        let is_idle = |(workflow, drain): &(&Arc<str>, &Drain)| {
            let of_workflow = self.unfinished.get(*workflow);
            !of_workflow.is_some_and(|counts| counts.keys().any(|hash| !drain.new.contains(hash)))
        };
        self.drains.iter().filter(is_idle).map(|(workflow, drain)| (workflow.clone(), drain.since_ms))
    }

    /// True if the drain of a definition is known.
    pub(super) fn knows(&self, key: &ConcurrencyKey) -> bool {
        key.definition.as_ref().is_some_and(|definition| self.holds(definition))
    }

    /// Takes the drains of a read.
    pub(super) fn take(&mut self, drains: Drains) {
        self.over.retain(|workflow, since_ms| drains.get(workflow).is_some_and(|drain| drain.since_ms == *since_ms));
        let over = &self.over;
        let drains: Drains = drains.into_iter().filter(|(workflow, _)| !over.contains_key(workflow)).collect();
        let is_known = |workflow: &Arc<str>, drain: &Drain| {
            self.drains.get(workflow).is_some_and(|known| known.since_ms == drain.since_ms)
        };
        let fresh = drains.iter().filter(|(workflow, drain)| !is_known(workflow, drain));
        self.fresh = fresh.map(|(workflow, _)| workflow.clone()).collect();
        self.drains = drains;
    }
}
