//! Options of an engine: the folder or the cluster that it belongs to, and the executions that it works on.

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::key::ExecutionKey;

use crate::{
    admission::Limits,
    data_dir::{DataDir, DirLock},
    evaluator::Evaluator,
    lease::LeaseTiming,
    period_budgets::PeriodBudgets,
    seal_note::SealNote,
    trace_spans::Spans,
};

/// Options of an engine that opens a folder.
pub struct EngineOptions {
    /// The data folder.
    pub data_dir: DataDir,
    /// The installation's key; see [`keys`](crate::keys).
    pub key: [u8; 32],
    /// The executions of the folder to work on.
    pub scope: EngineScope,
    /// Runs functions and checks schemas.
    pub evaluator: Arc<dyn Evaluator>,
    /// Receives the spans for traces. `None` without tracing.
    pub spans: Option<Spans>,
    /// Provides the concurrency limits of organizations. `None` if every execution starts at once.
    pub limits: Option<Arc<dyn Limits>>,
    /// Provides the budgets for a day or a month. `None` if there are none.
    pub budgets: Option<Arc<dyn PeriodBudgets>>,
    /// Records outside of the store that it has seals. `None` if the store alone is asked.
    pub seal_note: Option<SealNote>,
}

/// Resources of an engine beside its store.
#[derive(Default)]
pub struct EngineResources {
    /// The data folder and the lock on it.
    pub data_dir: Option<(DataDir, DirLock)>,
    /// Membership in a cluster of nodes. `None` if no other process uses the store.
    pub sharing: Option<ClusterOptions>,
    /// Receives the spans for traces. `None` without tracing.
    pub spans: Option<Spans>,
    /// Provides the concurrency limits of organizations. `None` if every execution starts at once.
    pub limits: Option<Arc<dyn Limits>>,
    /// Provides the budgets for a day or a month. `None` if there are none.
    pub budgets: Option<Arc<dyn PeriodBudgets>>,
    /// Records outside of the store that it has seals. `None` if the store alone is asked.
    pub seal_note: Option<SealNote>,
}

/// Options of a node in a cluster that shares a store.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Timing of the lease.
    pub terms: LeaseTiming,
    /// The location of the node, as shown to people.
    pub place: String,
}

/// The executions of a store that an engine works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineScope {
    /// All unfinished executions.
    All,
    /// Executions that are named, started here, or receive an inbox message.
    Named(BTreeSet<ExecutionKey>),
}

impl EngineScope {
    /// Starts with no execution. Executions are added as they are named, started or receive a message.
    pub fn named() -> Self {
        Self::Named(BTreeSet::new())
    }

    pub(crate) fn contains(&self, execution: ExecutionKey) -> bool {
        match self {
            Self::All => true,
            Self::Named(named) => named.contains(&execution),
        }
    }

    /// Adds an execution. True if it was not included before.
    pub(crate) fn extend(&mut self, execution: ExecutionKey) -> bool {
        match self {
            Self::All => false,
            Self::Named(named) => named.insert(execution),
        }
    }
}
