//! Compiles definitions to plans, and builds the requests that start them.

use std::{collections::BTreeMap, sync::Arc};

use mainspring_engine::{
    evaluator::SandboxInspector,
    start_request::{StartRequest, endless_circle, plan_tree, starts},
};
use mainspring_kernel::{
    definition::{Compiled, compile_with, denied_calls, flow_warnings},
    diagnostic::{Diagnostic, Severity},
    document::Document,
    input::{NAME_IN_TRIGGER, VERSION_IN_TRIGGER, WORKFLOW_IN_TRIGGER, WORKFLOWS_IN_TRIGGER},
    limits::LINEAGE_WORKFLOWS_MAX,
    plan::{Loop, Over, Plan, Step, Work},
    value::{Map, Value},
};

use crate::{
    app::App,
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        Workflow,
        repository::{Repository, Stored},
    },
    services::{
        compile_budget::Within,
        effect_policies::effect_policy,
        outside::nearest_workflow,
        plan_cache::CompiledPlan,
        rollout_choice::{Chosen, choose},
        workflow_names::{PendingChange, resolve_started},
    },
};

/// The reason for a missing plan.
pub(crate) enum CompileError {
    /// The definition is invalid: all diagnostics.
    Invalid(Vec<Diagnostic>),
    /// No worker was free to check it.
    Busy,
    /// The policy of the organization could not be read.
    Failed(Problem),
}

impl From<Vec<Diagnostic>> for CompileError {
    fn from(found: Vec<Diagnostic>) -> Self {
        Self::Invalid(found)
    }
}

impl From<CompileError> for Problem {
    fn from(why: CompileError) -> Self {
        match why {
            CompileError::Invalid(found) => invalid(&found),
            CompileError::Busy => {
                let message = "No worker was free to check the definition: try again in a second.";
                Self::new(Code::Unavailable, message)
            }
            CompileError::Failed(problem) => problem,
        }
    }
}

/// Compiles a definition that an organization sends, and checks its functions and schemas in the sandbox.
pub(crate) fn compile(app: &App, organization: &str, document: &Document) -> Result<Compiled, CompileError> {
    debug_assert!(app.may_compile(), "add this route to those that compile, in `slots`");
    let mut compiled = compile_within(app, organization, document, false)?;
    let policy = effect_policy(app, organization).map_err(CompileError::Failed)?;
    let flows = flow_warnings(&compiled, document, &policy, Some(organization));
    compiled.warnings.extend(flows);
    match denied_calls(&compiled, document, &policy, Some(organization)) {
        denied if denied.is_empty() => Ok(compiled),
        denied => Err(CompileError::Invalid(denied)),
    }
}

fn compile_within(app: &App, tenant: &str, document: &Document, is_stored: bool) -> Result<Compiled, CompileError> {
    let budget = app.budget();
    let within = Within { evaluator: &*app.evaluator, tenant, budget: &budget, is_stored };
    let compiled = compile_with(document, &SandboxInspector(&within));
    if budget.is_late() { Err(CompileError::Busy) } else { compiled.map_err(CompileError::Invalid) }
}

/// The response to a definition that does not compile, with all diagnostics.
fn invalid(diagnostics: &[Diagnostic]) -> Problem {
    let mut errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let count = errors.clone().count();
    // A mistake of the whole definition has no path.
    let said = |found: &Diagnostic| match found.path.segments() {
        [] => found.message.clone(),
        _ => format!("{}: {}", found.path, found.message),
    };
    let first = errors.next().map(said).unwrap_or_default();
    let more = if count > 1 { format!(" ({} more)", count - 1) } else { String::new() };
    let list: Vec<Value> = diagnostics.iter().map(Diagnostic::to_value).collect();
    let details = serde_json::to_value(Data(Value::map([("diagnostics", Value::List(list))]))).unwrap_or_default();
    Problem::new(Code::InvalidDefinition, format!("The definition is invalid: {first}{more}.")).with(details)
}

/// The plan of a stored workflow.
pub(crate) fn plan_of(app: &App, organization: &str, workflow: &Workflow) -> Result<CompiledPlan> {
    if let Some(known) = app.plans.get(organization, &workflow.hash) {
        return Ok(known);
    }
    let document = Document::placeless(workflow.data.0.clone());
    Ok(keep(app, organization, compile_within(app, organization, &document, true)?))
}

/// Caches a compiled definition, so that a start does not compile it again.
pub(crate) fn keep(app: &App, organization: &str, compiled: Compiled) -> CompiledPlan {
    let (hash, compiled) = (compiled.workflow_hash.prefixed(), CompiledPlan::from(compiled));
    app.plans.keep(organization, hash, compiled.clone());
    compiled
}

/// True if a start is cheap to prepare: the plan is cached, starts no other workflows, names no approvers, and needs
/// neither the sandbox nor a workspace.
pub(crate) fn is_light(app: &App, organization: &str, workflow: &Workflow) -> bool {
    let Some(CompiledPlan { plan, .. }) = app.plans.get(organization, &workflow.hash) else { return false };
    if workflow.rollout.is_some() {
        return false;
    }
    let is_light = |step: &Step| match &step.work {
        work if work.may_run_scripts() => false,
        Work::Subworkflow { .. } => false,
        Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.workflows().next().is_none(),
        // Named approvers and higher counts need a lookup of members.
        Work::Approval(gate) => gate.approvers.is_empty() && gate.count <= 1,
        _ => true,
    };
    plan.input_schema.is_none() && plan.steps.iter().all(is_light)
}

/// Builds the request that starts a workflow, with the plans of all workflows that it may start in turn. Rollouts of these
/// choose by the key of the start.
pub(crate) fn request_of(
    app: &App,
    repository: Repository<'_>,
    workflow: &Workflow,
    (by, key): (&str, &str),
) -> Result<StartRequest> {
    let CompiledPlan { plan, stored, .. } = plan_of(app, repository.organization(), workflow)?;
    let mut known = Map::new();
    // The definition and the drain of a workflow are one row, so a start of a new definition finds its drain.
    let mut drains = workflow.drain.is_some();
    let workflows = plan_tree(&plan, |name| -> Result<Arc<Plan>, NotResolved> {
        let child = started_by(repository, &workflow.user, name)?;
        let Chosen { workflow: child, rollout, .. } = choose(repository, &child, key)?;
        known.insert(name.into(), Value::map(trigger_fields(&child).into_iter().chain(rollout)));
        drains |= child.body.drain.is_some();
        Ok(plan_of(app, repository.organization(), &child.body)?.plan)
    });
    let workflows = workflows.map_err(|NotResolved(problem)| problem)?;
    if let Some(why) = endless_circle(&plan, &workflows) {
        return Err(Problem::field("workflow", why));
    }
    let request = StartRequest { workflows, waits_for_read: drains, ..StartRequest::of(plan, stored, by) };
    let policy = effect_policy(app, repository.organization())?;
    let guarded = request.guarded(&policy, Some(repository.organization()));
    let mut request = guarded.map_err(|why| Problem::field("workflow", why.to_string()))?;
    if let (Value::Map(trigger), false) = (&mut request.trigger, known.is_empty()) {
        trigger.insert(WORKFLOWS_IN_TRIGGER.into(), known.into());
    }
    Ok(request)
}

/// Finds a workflow that another one of this owner starts. A missing or a disabled one is an error.
fn started_by(repository: Repository<'_>, owner: &str, name: &str) -> Result<Stored<Workflow>, NotResolved> {
    let child = resolve_started(repository, owner, name, &PendingChange::default())?.ok_or_else(|| {
        let near = nearest_workflow(repository, owner, name);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("it starts `{name}`, and there is no such workflow here{near}");
        NotResolved(Problem::field("workflow", message))
    })?;
    if !child.body.enabled {
        let message = format!("it starts `{name}`, which is disabled");
        return Err(NotResolved(Problem::new(Code::WorkflowDisabled, message)));
    }
    Ok(child)
}

/// Checks that all workflows exist and are enabled that a workflow starts directly or indirectly.
pub(crate) fn check_started(app: &App, repository: Repository<'_>, workflow: &Workflow) -> Result<()> {
    let plan = plan_of(app, repository.organization(), workflow)?.plan;
    let tree = plan_tree(&plan, |name| -> Result<Arc<Plan>, NotResolved> {
        let child = started_by(repository, &workflow.user, name)?;
        Ok(plan_of(app, repository.organization(), &child.body)?.plan)
    });
    tree.map(drop).map_err(|NotResolved(problem)| problem)
}

/// The entries of an execution's trigger that identify its workflow in the catalogue.
pub(crate) fn trigger_fields(workflow: &Stored<Workflow>) -> [(&'static str, Value); 3] {
    [
        (WORKFLOW_IN_TRIGGER, workflow.id.as_str().into()),
        (NAME_IN_TRIGGER, workflow.body.name.as_str().into()),
        (VERSION_IN_TRIGGER, workflow.body.version.as_str().into()),
    ]
}

/// Rejects a workflow that starts itself through other workflows regardless of their inputs, with the pending change
/// applied. A child workflow that is missing or does not compile is reported at the start. A disabled workflow starts
/// nothing.
pub(crate) fn check_circle(
    app: &App,
    repository: Repository<'_>,
    workflow: &Workflow,
    pending: &PendingChange<'_>,
) -> Result<()> {
    if !workflow.enabled {
        return Ok(());
    }
    let Ok(CompiledPlan { plan, .. }) = plan_of(app, repository.organization(), workflow) else { return Ok(()) };
    let mut found: BTreeMap<String, Arc<Plan>> = BTreeMap::new();
    let mut names: Vec<String> = starts(&plan).into_iter().map(Into::into).collect();
    while let Some(name) = names.pop() {
        if found.contains_key(&name) || found.len() >= LINEAGE_WORKFLOWS_MAX {
            continue;
        }
        let Ok(Some(child)) = resolve_started(repository, &workflow.user, &name, pending) else { continue };
        let Ok(child) = plan_of(app, repository.organization(), &child.body) else { continue };
        names.extend(starts(&child.plan).into_iter().map(Into::into));
        found.insert(name, child.plan);
    }
    match endless_circle(&plan, &found) {
        Some(why) => Err(Problem::field("data", why)),
        None => Ok(()),
    }
}

/// The reason for a missing or ambiguous child workflow.
struct NotResolved(Problem);

impl From<String> for NotResolved {
    fn from(why: String) -> Self {
        Self(Problem::field("workflow", why))
    }
}

impl From<Problem> for NotResolved {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}
