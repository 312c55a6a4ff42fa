//! The fixture of a run: a compiled workflow, its start, and the constants of the simulation.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_engine::{
    evaluator::Evaluator,
    shard::{Keys, NewExecution, Ticket},
    start_request::{StartRequest, row},
};
use mainspring_kernel::{
    effect_policy::EffectPolicy,
    input::Start,
    instance::Instance,
    key::ExecutionKey,
    plan::{Constraints, Plan},
    value::{Map, Value},
};
use mainspring_store::StoredPlan;

use crate::{
    allowance::Allowance,
    scenario::{Effects, Entry},
    world::Answers,
};

/// The start time of every simulated execution: 2026-01-01T00:00:00Z, in milliseconds since 1970.
pub(crate) const START_MS: u64 = 1_767_225_600_000;

/// The only partition of the simulated node.
pub(crate) const SIMULATED_PARTITION: u32 = 0;

/// A workflow that can be run any number of times with the same bytes as a result.
#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    pub(crate) key: ExecutionKey,
    pub(crate) plan: Arc<Plan>,
    pub(crate) effects: Effects,
    /// Answers instead of the scripts in `effects`.
    pub(crate) answers: Option<Answers>,
    pub(crate) inbox: Vec<Entry>,
    pub(crate) sandbox: Sandbox,
    /// The workflows that it may start.
    pub(crate) workflows: BTreeMap<String, Arc<Plan>>,
    pub(crate) allowance: Allowance,
    stored_plans: Vec<StoredPlan>,
    start: Start,
}

/// The evaluator of functions and schemas.
#[derive(Clone)]
pub(crate) struct Sandbox(pub(crate) Arc<dyn Evaluator>);

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Sandbox")
    }
}

/// The arguments of a start.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) workflows: BTreeMap<String, Arc<Plan>>,
    pub(crate) sandbox: Sandbox,
    pub(crate) input: Value,
    pub(crate) variables: Map,
    pub(crate) bounds: Constraints,
    /// The rules for calls and the prices of models that the execution pins.
    pub(crate) policy: EffectPolicy,
    pub(crate) execution_id: Option<String>,
    pub(crate) effects: Effects,
    pub(crate) inbox: Vec<Entry>,
}

impl Fixture {
    pub(crate) fn new(plan: Plan, given: Given) -> Self {
        let Given { workflows, sandbox, input, variables, bounds, policy, execution_id, effects, inbox } = given;
        let key = ExecutionKey::new(START_MS, *b"simulation");
        let new = StartRequest::new(Arc::new(plan), "owner");
        let request = StartRequest { execution_id, workflows, input, variables, bounds, ..new };
        let request = request.guarded(&policy, None).expect("the workflows of a case were checked together");
        let (plan, workflows, stored_plans) = (request.plan.clone(), request.workflows.clone(), request.stored_plans());
        let start = request.start(key);
        let allowance = Allowance::default();
        Self { key, plan, effects, answers: None, inbox, sandbox, workflows, allowance, start, stored_plans }
    }

    /// Returns the plan, and those of the workflows that it may start.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        [&self.plan].into_iter().chain(self.workflows.values())
    }

    /// Returns the start as passed to a shard. It may be passed repeatedly.
    pub(crate) fn submission(&self, ticket: Option<Ticket>) -> NewExecution {
        NewExecution {
            execution: self.key,
            plan: self.plan.clone(),
            stored_plans: self.stored_plans.clone(),
            start: Box::new(self.start.clone()),
            row: row(self.key, &self.start, &self.plan, START_MS),
            message: None,
            ticket,
            audit: None,
        }
    }

    /// Returns the start as an input.
    pub(crate) fn start(&self) -> Box<Start> {
        Box::new(self.start.clone())
    }
}

/// Returns the keys of every node, constant so that every run of the same inputs writes the same bytes.
pub(crate) fn keys() -> Keys {
    Keys { sealing: [0x5e; 32], salting: [0xa1; 32] }
}

/// Parses the name of a step instance.
pub(crate) fn instance(plan: &Plan, name: &str) -> Option<Instance> {
    Instance::parse(name, plan)
}
