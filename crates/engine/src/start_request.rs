//! The request to start an execution, and its conversion to a start input. This module enforces no limits and writes
//! nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mainspring_kernel::{
    decide::{too_deep, unfit_input},
    effect_policy::{EffectPolicy, TreeTooLarge},
    evaluation::{Check, Evaluation},
    failure::{Class, Failure},
    hash::Hash,
    input::{
        INITIATOR_IN_TRIGGER, Lineage, NAME_IN_TRIGGER, ORGANIZATION_IN_TRIGGER, PARENT_IN_TRIGGER, Pinned, Policy,
        Queue, Start, TRIGGER_IN_TRIGGER, VERSION_IN_TRIGGER, WORKFLOW_IN_TRIGGER, WORKFLOWS_IN_TRIGGER,
    },
    key::ExecutionKey,
    limits::{EXECUTIONS_DEFAULT, LINEAGE_WORKFLOWS_MAX, PARALLEL_DEFAULT, RESULT_DEPTH_MAX},
    plan::{Constraints, Plan, Work, endless},
    value::{Map, Value},
};
use mainspring_store::{AuditEntry, ExecutionRow, Origin, ROLLOUT_BYTES_MAX, StartNames, StoredPlan};

use crate::evaluator::{Evaluator, evaluate};

/// A request to start an execution.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The compiled definition.
    pub plan: Arc<Plan>,
    /// The stored form of the plan, encoded once for repeated requests.
    pub stored_plan: StoredPlan,
    /// The plans of all direct and indirect children, by name.
    pub workflows: BTreeMap<String, Arc<Plan>>,
    /// The public id of the execution. By default it is the text of its key.
    pub execution_id: Option<String>,
    /// The value of `@input`.
    pub input: Value,
    /// The values of `@vars`.
    pub variables: Map,
    /// Bounds that override those of the definition.
    pub bounds: Constraints,
    /// The trigger, as `{type, metadata}`.
    pub trigger: Value,
    /// The number of the dispatch, from 1.
    pub attempt: u32,
    /// Unique for the workflow: a repeated key returns the first execution.
    pub idempotency_key: Option<String>,
    /// The member or user, as authenticated.
    pub by: String,
    /// The absolute path of the folder in which scripts run.
    pub workspace: Option<String>,
    /// True if the start waits for the next read of its organization, since a workflow drains of which this node may not
    /// know. Only for an engine with limits.
    pub waits_for_read: bool,
    /// The audit entry, if the execution starts. An empty target is replaced by the execution.
    pub audit: Option<Box<AuditEntry>>,
}

/// The bounds of an execution: those of the request, else of the definition, else the defaults.
pub fn policy(bounds: &Constraints, plan: &Plan) -> Policy {
    let asked = &plan.constraints;
    Policy {
        max_steps: bounds.max_steps.or(asked.max_steps).unwrap_or_else(|| plan.max_steps_default()),
        max_parallel: bounds.max_parallel.or(asked.max_parallel).unwrap_or(PARALLEL_DEFAULT),
        timeout_ms: bounds.timeout_ms.or(asked.timeout_ms),
        max_output_bytes: bounds.max_output_bytes.or(asked.max_output_bytes),
    }
}

/// The names of the workflows that a plan can start.
pub fn starts(plan: &Plan) -> BTreeSet<&str> {
    plan.steps.iter().flat_map(|step| step.work.starts()).collect()
}

/// Finds all direct and indirect children of a plan. `find` returns the plan of a name, and its error is returned
/// unchanged.
pub fn plan_tree<E: From<String>>(
    plan: &Plan,
    mut find: impl FnMut(&str) -> Result<Arc<Plan>, E>,
) -> Result<BTreeMap<String, Arc<Plan>>, E> {
    let mut found: BTreeMap<String, Arc<Plan>> = BTreeMap::new();
    let mut names: Vec<String> = starts(plan).into_iter().map(String::from).collect();
    while let Some(name) = names.pop() {
        if found.contains_key(&name) {
            continue;
        }
        if found.len() >= LINEAGE_WORKFLOWS_MAX {
            return Err(format!("more than {LINEAGE_WORKFLOWS_MAX} workflows would start each other").into());
        }
        let child = find(&name)?;
        names.extend(starts(&child).into_iter().map(String::from));
        found.insert(name, child);
    }
    Ok(found)
}

/// Returns the names of workflows that always start each other and wait, so that none of them can complete. `plan` is
/// the root, and `workflows` contains all of its direct and indirect children.
pub fn endless_circle(plan: &Plan, workflows: &BTreeMap<String, Arc<Plan>>) -> Option<String> {
    fn needed(plan: &Plan) -> Vec<&str> {
        let names = plan.needed_starts().into_iter().filter_map(|step| match &plan.step(step).work {
            Work::Subworkflow { workflow, .. } => Some(workflow.as_str()),
            _ => None,
        });
        names.collect()
    }
    let starts = |name: &str| workflows.get(name).map(|plan| needed(plan)).unwrap_or_default();
    let circle = endless(needed(plan), starts)?;
    let way: Vec<String> = circle.into_iter().map(|name| format!("`{name}`")).collect();
    Some(format!(
        "these workflows start each other whatever their inputs are, so that none of them ever ends: {}; put one of the steps behind a condition",
        way.join(" → ")
    ))
}

/// Encodes a plan.
pub fn stored_plan(plan: &Plan) -> StoredPlan {
    let bytes: Arc<[u8]> = plan.encode().into();
    StoredPlan { hash: Hash::of(&bytes), bytes }
}

impl StartRequest {
    /// A request with a plan and an initiator only.
    pub fn new(plan: Arc<Plan>, by: impl Into<String>) -> Self {
        let stored = stored_plan(&plan);
        Self::of(plan, stored, by)
    }

    /// The same, with the stored form of the plan.
    pub fn of(plan: Arc<Plan>, stored_plan: StoredPlan, by: impl Into<String>) -> Self {
        Self {
            stored_plan,
            plan,
            workflows: BTreeMap::new(),
            execution_id: None,
            input: Value::Null,
            variables: Map::new(),
            bounds: Constraints::default(),
            trigger: Value::map([("type", "manual".into())]),
            attempt: 1,
            idempotency_key: None,
            by: by.into(),
            workspace: None,
            waits_for_read: false,
            audit: None,
        }
    }

    /// Applies a policy to the calls of the plan and of all children, as the execution pins them.
    ///
    /// # Errors
    /// Fails if the tree is too large for the rules about labels.
    pub fn guarded(mut self, policy: &EffectPolicy, organization: Option<&str>) -> Result<Self, TreeTooLarge> {
        // A workflow without a schema takes any object.
        let any = || Value::map([("type", Value::from("object"))]);
        let schemas: BTreeMap<String, Value> = self
            .workflows
            .iter()
            .map(|(name, plan)| (name.clone(), plan.input_schema.clone().unwrap_or_else(any)))
            .collect();
        let with_schemas = |plan: &Arc<Plan>| {
            plan.with_input_schemas(|name| schemas.get(name).cloned()).map_or_else(|| plan.clone(), Arc::new)
        };
        let around = policy.surroundings(&self.plan, &self.workflows)?;
        let plan = policy.guarded_within(&with_schemas(&self.plan), organization, &around.of_root());
        if !Arc::ptr_eq(&plan, &self.plan) {
            self.stored_plan = stored_plan(&plan);
            self.plan = plan;
        }
        for (name, child) in &mut self.workflows {
            *child = policy.guarded_within(&with_schemas(child), organization, &around.of(name));
        }
        Ok(self)
    }

    /// Checks input and variables against the plan, and the nesting of all values. An execution checks the former at its
    /// start and fails otherwise. The latter is checked here alone: a journal with a deeper value cannot be read again.
    pub fn admit(&self, evaluator: &dyn Evaluator) -> Result<(), Failure> {
        let is_deep = |value: &Value| value.is_deeper_than(RESULT_DEPTH_MAX);
        let mut variables = self.variables.iter().filter(|(_, value)| is_deep(value));
        if let Some((name, _)) = variables.next() {
            return Err(too_deep(&format!("the variable `{name}`")));
        }
        for (name, value) in [("the input", &self.input), ("the trigger with its event", &self.trigger)] {
            if is_deep(value) {
                return Err(too_deep(name));
            }
        }
        self.plan.variables(&Value::Map(self.variables.clone()))?;
        let Some(schema) = self.plan.input_schema.clone() else { return Ok(()) };
        let check = Check { schema, value: self.input.clone(), fills_defaults: true };
        let outcome = evaluate(&Evaluation::Check(check), evaluator).outcome;
        outcome.map(drop).map_err(|failure| unfit_input(&failure))
    }

    /// The stored forms of the plan and of all children.
    pub fn stored_plans(&self) -> Vec<StoredPlan> {
        let others = self.workflows.values().map(|plan| stored_plan(plan));
        [self.stored_plan.clone()].into_iter().chain(others).collect()
    }

    /// Takes the audit entry, completed with the key of the execution.
    pub(crate) fn take_audit(&mut self, key: ExecutionKey) -> Option<Box<AuditEntry>> {
        let mut entry = self.audit.take()?;
        if entry.target.is_empty() {
            entry.target = key.to_string();
        }
        Some(entry)
    }

    /// The group of executions in which the idempotency key is unique.
    pub fn origin(&self) -> Origin<'_> {
        let said = |key| self.trigger.get(key).and_then(Value::as_text);
        let (organization, workflow_id) = (said(ORGANIZATION_IN_TRIGGER), said(WORKFLOW_IN_TRIGGER));
        Origin { organization, workflow_id, workflow: self.plan.name.as_deref() }
    }

    /// Converts the request to the start input of an execution.
    pub fn start(self, key: ExecutionKey) -> Start {
        let plan_hash = self.stored_plan.hash;
        let mut trigger = self.trigger;
        if let (Value::Map(trigger), Some(key)) = (&mut trigger, self.idempotency_key) {
            trigger.insert("idempotencyKey".into(), key.into());
        }
        let pinned = self.workflows.iter().map(|(name, plan)| Pinned {
            name: name.clone(),
            workflow_hash: plan.workflow_hash,
            plan_hash: stored_plan(plan).hash,
        });
        let workflows: Vec<_> = pinned.collect();
        let executions = self.bounds.max_executions.or(self.plan.constraints.max_executions);
        let executions = Some(executions.unwrap_or(EXECUTIONS_DEFAULT));
        let lineage =
            (!workflows.is_empty()).then_some(Lineage { parent: None, depth: 0, workflows, executions, budget: None });
        Start {
            lineage,
            queue: self.waits_for_read.then_some(Queue::Admission),
            execution_id: self.execution_id.unwrap_or_else(|| key.to_string()),
            workflow_hash: self.plan.workflow_hash,
            plan_hash,
            input: self.input,
            variables: Value::Map(self.variables),
            trigger,
            policy: policy(&self.bounds, &self.plan),
            attempt: self.attempt,
            by: self.by,
            workspace: self.workspace,
        }
    }
}

/// The trigger type in the row of a child that its parent waits for.
pub const CHILD: &str = "subworkflow";

/// The trigger type in the row of a detached child.
pub const DETACHED_CHILD: &str = "subworkflow_detached";

/// True if the trigger type of a row is that of a child.
pub fn is_child(trigger_type: &str) -> bool {
    matches!(trigger_type, CHILD | DETACHED_CHILD)
}

/// The trigger type of a child. The lineage distinguishes the two kinds, and the trigger does not.
fn child(start: &Start) -> Option<&'static str> {
    let lineage = start.lineage.as_ref().filter(|lineage| lineage.depth > 0)?;
    Some(if lineage.parent.is_some() { CHILD } else { DETACHED_CHILD })
}

/// The catalogue row of a new execution. The shard sets its partition.
pub fn row(key: ExecutionKey, start: &Start, plan: &Plan, now: u64) -> ExecutionRow {
    let said = |key| start.trigger.get(key).and_then(Value::as_text);
    let trigger_type = said("type").unwrap_or("manual");
    ExecutionRow {
        key,
        id: start.execution_id.clone(),
        workflow: plan.name.clone(),
        workflow_version: said(VERSION_IN_TRIGGER).map(Into::into).or_else(|| plan.version.clone()),
        workflow_hash: start.workflow_hash.prefixed(),
        plan_hash: start.plan_hash,
        status: "pending".into(),
        outcome: None,
        error: None,
        trigger_type: child(start).unwrap_or(trigger_type).into(),
        initiator_type: said(INITIATOR_IN_TRIGGER).unwrap_or(trigger_type).into(),
        initiator_user_id: Some(start.by.clone()),
        idempotency_key: said("idempotencyKey").map(Into::into),
        session_id: Some(key.session_id()),
        partition: 0,
        attempt_count: start.attempt,
        started_at: now,
        completed_at: None,
        organization: said(ORGANIZATION_IN_TRIGGER).map(Into::into),
        workflow_id: said(WORKFLOW_IN_TRIGGER).map(Into::into),
        trigger_id: said(TRIGGER_IN_TRIGGER).map(Into::into),
        parent: start.lineage.as_ref().and_then(|lineage| lineage.parent.as_ref()).map(|parent| parent.execution),
        names: StartNames {
            parent_id: said(PARENT_IN_TRIGGER).filter(|_| child(start).is_some()).map(Into::into),
            workflow_name: said(NAME_IN_TRIGGER).map(Into::into),
            rollout: rollout_side(&start.trigger, child(start).is_some()),
        },
        usage: None,
    }
}

/// Trigger key of the rollout that chose the definition: an object with the texts `id` and `version`. In the trigger of a
/// child it is in the entry of the child's workflow in [`WORKFLOWS_IN_TRIGGER`], since a child has one trigger for all.
pub const ROLLOUT_IN_TRIGGER: &str = "rollout";

/// The rollout that chose the definition of an execution, in its trigger.
pub fn rollout_of(trigger: &Value, is_child: bool) -> Option<&Value> {
    if !is_child {
        return trigger.get(ROLLOUT_IN_TRIGGER);
    }
    let own = trigger.get(WORKFLOW_IN_TRIGGER)?;
    let mut entries = trigger.get(WORKFLOWS_IN_TRIGGER)?.as_map()?.values();
    entries.find(|entry| entry.get(WORKFLOW_IN_TRIGGER) == Some(own))?.get(ROLLOUT_IN_TRIGGER)
}

/// The column of [`rollout_of`]: `ROLLOUT/VERSION`.
pub(crate) fn rollout_side(trigger: &Value, is_child: bool) -> Option<String> {
    let rollout = rollout_of(trigger, is_child)?;
    let said = |key| rollout.get(key).and_then(Value::as_text);
    let side = format!("{}/{}", said("id")?, said("version")?);
    Some(side).filter(|side| side.len() <= ROLLOUT_BYTES_MAX)
}

/// The failure code for the parent of a child that could not start.
pub const CHILD_NOT_STARTED: &str = "child_not_started";

/// The failure for a child that can never start.
pub(crate) fn not_started(child: ExecutionKey, why: &str) -> Failure {
    let message = format!("the workflow could not be started as execution {child}: {why}");
    Failure::new(Class::Internal, CHILD_NOT_STARTED, message)
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::definition::{Syntax, compile, read};

    use super::*;

    /// The rules for labels see all plans of a tree together.
    #[test]
    fn a_child_that_gets_an_untrusted_value_is_guarded() {
        let plan = |text: &str| {
            let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
            Arc::new(compile(&document).expect("it compiles").plan)
        };
        let policy = read(b"{flows: {untrusted: {execute: deny}}}", Syntax::Yaml).expect("it reads");
        let policy = EffectPolicy::read(&policy.value).expect("a policy");
        let start = "{id: go, type: subworkflow, workflow: child, input: '@get.body'}";
        let get = "{id: get, type: http, url: 'https://a.test'}";
        let child = plan("steps: [{id: x, type: bash, command: 'echo \"$A\"', env: {A: '@input'}}]");
        for (root, is_denied) in [
            (format!("steps: [{get}, {start}]"), true),
            ("steps: [{id: go, type: subworkflow, workflow: child}]".into(), false),
        ] {
            let mut request = StartRequest::new(plan(&root), "ann");
            request.workflows.insert("child".into(), child.clone());
            let request = request.guarded(&policy, None).expect("a small tree");
            let guard = request.workflows["child"].step(0).guard;
            assert_eq!(guard.is_some_and(|guard| guard.is_denied), is_denied, "{root}");
        }
    }
}
