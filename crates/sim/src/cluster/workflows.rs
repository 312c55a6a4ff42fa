//! The workflows of the cluster: together they write every kind of record.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_engine::start_request::{StartRequest, plan_tree};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    hash::Hash,
    input::ORGANIZATION_IN_TRIGGER,
    plan::Plan,
    value::Value,
};

use super::{limits::ORGANIZATIONS, seed_budget, subject::Subject};

const DEFINITIONS: [(&str, &str); 15] = [
    ("one", include_str!("workflows/one.yaml")),
    ("three", include_str!("workflows/three.yaml")),
    ("fan", include_str!("workflows/fan.yaml")),
    ("gate", include_str!("workflows/gate.yaml")),
    ("sleepy", include_str!("workflows/sleepy.yaml")),
    ("signalled", include_str!("workflows/signalled.yaml")),
    ("parent", include_str!("workflows/parent.yaml")),
    ("cleanup", include_str!("workflows/cleanup.yaml")),
    ("interrupted", include_str!("workflows/interrupted.yaml")),
    ("rounds", include_str!("workflows/rounds.yaml")),
    ("deadline", include_str!("workflows/deadline.yaml")),
    ("asking", include_str!("workflows/asking.yaml")),
    ("logged", include_str!("workflows/logged.yaml")),
    ("crowd", include_str!("workflows/crowd.yaml")),
    ("budgeted", include_str!("workflows/budgeted.yaml")),
];

/// The compiled workflows, by name.
pub(super) struct Workflows {
    plans: BTreeMap<String, Arc<Plan>>,
    /// The author's case that replaces the project's own workflows.
    pub(super) subject: Option<Arc<Subject>>,
}

/// Replaces `logged` in seeds with panicking evaluations: its journal starts before its function runs.
const COUNTED: &str = include_str!("workflows/counted.yaml");

impl Workflows {
    pub(super) fn compiled(may_panic: bool) -> Result<Self, String> {
        let compiled = DEFINITIONS.map(|(name, text)| {
            let text = if may_panic && name == "logged" { COUNTED } else { text };
            let document = read(text.as_bytes(), Syntax::Yaml).map_err(|error| format!("{name}: {error:?}"))?;
            let mut plan = compile(&document).map_err(|problems| format!("{name}: {problems:?}"))?.plan;
            plan.models = plan.has_agents().then(seed_budget::terms);
            Ok((name.to_owned(), Arc::new(plan)))
        });
        Ok(Self { plans: compiled.into_iter().collect::<Result<_, String>>()?, subject: None })
    }

    /// The author's case with the workflows that it starts.
    pub(super) fn given(subject: Subject) -> Self {
        let started = subject.workflows.iter().map(|(name, plan)| (format!("started {name}"), plan.clone()));
        let plans = started.chain([("asked".into(), subject.plan.clone())]).collect();
        Self { plans, subject: Some(Arc::new(subject)) }
    }

    /// The name of the workflow of a request, by which its executions are found.
    pub(super) fn name(&self, number: u32) -> Option<&str> {
        match &self.subject {
            Some(subject) => subject.plan.name.as_deref(),
            None => Some(name(number)),
        }
    }

    /// The organization of a request.
    pub(super) fn organization(&self, number: u32) -> Option<&'static str> {
        let has_one = self.subject.is_none() && number.is_multiple_of(2);
        has_one.then(|| ORGANIZATIONS[number as usize / 2 % ORGANIZATIONS.len()])
    }

    /// The plans, by the hash of their stored form.
    pub(super) fn plans(&self) -> BTreeMap<Hash, Arc<Plan>> {
        let stored = |plan: &Arc<Plan>| (mainspring_engine::start_request::stored_plan(plan).hash, plan.clone());
        self.plans.values().map(stored).collect()
    }

    /// Builds the request with this number, which is always the same.
    pub(super) fn request(&self, number: u32) -> Result<StartRequest, String> {
        if let Some(subject) = &self.subject {
            let Subject { workflows, input, variables, bounds, .. } = (**subject).clone();
            let new = StartRequest::new(subject.plan.clone(), "owner");
            let idempotency_key = Some(format!("request {number}"));
            return Ok(StartRequest { workflows, input, variables, bounds, idempotency_key, ..new });
        }
        let plan = &self.plans[name(number)];
        let find = |name: &str| self.plans.get(name).cloned().ok_or(format!("there is no workflow {name}"));
        let mut request = StartRequest::new(plan.clone(), "owner");
        request.workflows = plan_tree::<String>(plan, find)?;
        request.idempotency_key = Some(format!("request {number}"));
        if let Some(organization) = self.organization(number) {
            request.trigger = Value::map([(ORGANIZATION_IN_TRIGGER, organization.into())]);
        }
        request.input = Value::map([("items", Value::List(vec![1u64.into(), 2u64.into()]))]);
        Ok(request)
    }
}

fn name(number: u32) -> &'static str {
    DEFINITIONS[number as usize % DEFINITIONS.len()].0
}
