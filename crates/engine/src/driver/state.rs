//! The state of the driver. The folder beside this file has its parts, which do not know the driver. The other files of
//! `driver` have its methods.

pub(super) mod attempts;
pub(super) mod callers;
pub(super) mod commits;
pub(super) mod evaluations;
pub(super) mod loads;
pub(super) mod maintenance;
pub(super) mod reads;

use std::sync::{Arc, Mutex};

use mainspring_effects::Executors;
use mainspring_store::Store;
use tokio::runtime::Handle;

use super::{queue::Commands, telemetry::Telemetry};
use crate::{
    admission::Limits,
    data_dir::{DataDir, DirLock},
    evaluator::Evaluator,
    fair::FairSemaphore,
    journal_loader::Loader,
    membership::NodeSession,
    node::{Node, Ownership},
    options::EngineScope,
    period_budgets::PeriodBudgets,
    receipts::Signer,
    shard::Shard,
    trace_spans::Spans,
};
use attempts::Attempts;
use callers::Callers;
use commits::Commits;
use evaluations::Evaluations;
use maintenance::Maintenance;
use reads::Reads;

/// The parts of the driver that callers of the engine use as well.
pub(crate) struct DriverHandles {
    pub(crate) commands: Commands,
    pub(crate) spans: Option<Spans>,
    pub(crate) limits: Option<Arc<dyn Limits>>,
    pub(crate) budgets: Option<Arc<dyn PeriodBudgets>>,
    pub(crate) why_stopped: Arc<Mutex<Option<String>>>,
    pub(crate) owned: Arc<Mutex<Ownership>>,
    pub(crate) effects: FairSemaphore<String>,
}

pub(crate) struct Driver {
    pub(super) node: Node,
    /// Runs what the driver does not wait for.
    pub(super) runtime: Handle,
    pub(super) store: Arc<dyn Store>,
    pub(super) loader: Arc<Loader>,
    pub(super) data_dir: Option<(DataDir, DirLock)>,
    pub(super) commands: Commands,
    pub(super) commits: Commits,
    pub(super) reads: Reads,
    pub(super) attempts: Attempts,
    pub(super) evaluations: Evaluations,
    pub(super) callers: Callers,
    pub(super) maintenance: Maintenance,
    pub(super) telemetry: Telemetry,
    pub(super) why_stopped: Arc<Mutex<Option<String>>>,
    pub(super) owned: Arc<Mutex<Ownership>>,
}

impl Driver {
    pub(crate) fn new(
        shard: Shard,
        store: Arc<dyn Store>,
        loader: Arc<Loader>,
        workers: (Executors, Arc<dyn Evaluator>),
        resources: (Option<(DataDir, DirLock)>, Option<NodeSession>, EngineScope),
        signer: Signer,
        handles: DriverHandles,
    ) -> Self {
        let ((data_dir, session, scope), (executors, evaluator)) = (resources, workers);
        let DriverHandles { commands, spans, limits, budgets, why_stopped, owned, effects } = handles;
        let telemetry = Telemetry::new(spans);
        let commits = Commits::start(store.clone(), signer, telemetry.metrics.commits.clone());
        Self {
            node: Node::new(shard, session, scope, limits.is_some()),
            runtime: Handle::current(),
            store,
            loader,
            data_dir,
            commands,
            commits,
            reads: Reads::new(limits, budgets),
            attempts: Attempts::new(executors, effects),
            evaluations: Evaluations::new(evaluator),
            callers: Callers::default(),
            maintenance: Maintenance::default(),
            telemetry,
            why_stopped,
            owned,
        }
    }
}
