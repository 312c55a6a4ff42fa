//! Definitions to plans, once for each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use mainspring_engine::{
    evaluator::Looking,
    request::{Request, family, stored_plan},
};
use mainspring_kernel::{
    definition::{Compiled, compile_with},
    diagnostic::{Diagnostic, Severity},
    document::{Document, Path},
    plan::{Plan, Step, Work},
    value::Value,
};
use mainspring_store::{Most, StoredPlan};

use crate::{
    app::App,
    approvers::asking,
    body::Data,
    nouns::Workflow,
    problem::{Answer, Code, Problem},
    shelf::{Held, Listing, Shelf},
};

/// Plans kept; with more the table begins anew, which costs time and nothing else.
const PLANS_MAX: usize = 1024;

/// Plans by the hash of their definitions.
#[derive(Default)]
pub(crate) struct Plans(Mutex<BTreeMap<String, Made>>);

/// A definition, compiled: cheap to clone.
#[derive(Clone)]
pub(crate) struct Made {
    pub plan: Arc<Plan>,
    pub stored: StoredPlan,
    /// Where people are asked, or workflows started that may ask some.
    pub asking: Arc<[(u32, Path)]>,
    /// What its author should know, whoever is there to decide.
    pub warnings: Arc<[Diagnostic]>,
}

impl From<Compiled> for Made {
    fn from(compiled: Compiled) -> Self {
        let Compiled { plan, paths, warnings, .. } = compiled;
        let asking = asking(&plan, &paths).into();
        Self { stored: stored_plan(&plan), plan: Arc::new(plan), asking, warnings: warnings.into() }
    }
}

/// Compiles a definition, with its functions and schemas looked into.
pub(crate) fn compile(app: &App, document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &Looking(&*app.evaluator))
}

/// The answer to a definition that does not compile: every diagnostic.
pub(crate) fn invalid(diagnostics: &[Diagnostic]) -> Problem {
    let mut errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let count = errors.clone().count();
    let first = errors.next().map(|found| format!("{}: {}", found.path, found.message)).unwrap_or_default();
    let more = if count > 1 { format!(" ({} more)", count - 1) } else { String::new() };
    let list: Vec<Value> = diagnostics.iter().map(Diagnostic::to_value).collect();
    let details = serde_json::to_value(Data(Value::map([("diagnostics", Value::List(list))]))).unwrap_or_default();
    Problem::new(Code::InvalidDefinition, format!("The definition is invalid: {first}{more}.")).with(details)
}

/// The plan of a stored workflow.
pub(crate) fn plan_of(app: &App, workflow: &Workflow) -> Answer<Made> {
    if let Some(known) = app.plans.0.lock().unwrap_or_else(PoisonError::into_inner).get(&workflow.hash) {
        return Ok(known.clone());
    }
    let document = Document::placeless(workflow.data.0.clone());
    Ok(keep(app, compile(app, &document).map_err(|found| invalid(&found))?))
}

/// Keeps what a definition compiles to, so that it is not compiled again when it is started.
pub(crate) fn keep(app: &App, compiled: Compiled) -> Made {
    let (hash, made) = (compiled.workflow_hash.prefixed(), Made::from(compiled));
    let mut plans = app.plans.0.lock().unwrap_or_else(PoisonError::into_inner);
    if plans.len() >= PLANS_MAX {
        plans.clear();
    }
    plans.insert(hash, made.clone());
    made
}

/// Whether to prepare a start of it takes little more than a look: its plan is known, it starts no others, nobody is named
/// whom it asks, and neither the sandbox nor a folder is needed for it.
pub(crate) fn is_light(app: &App, workflow: &Workflow) -> bool {
    let plans = app.plans.0.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Made { plan, .. }) = plans.get(&workflow.hash) else { return false };
    let is_light = |step: &Step| match &step.work {
        Work::Effect { effect, .. } => effect != "bash",
        Work::Subworkflow { .. } => false,
        // Whether those whom it asks can decide is looked up.
        Work::Approval(gate) => gate.approvers.is_empty() && gate.count <= 1,
        _ => true,
    };
    plan.input_schema.is_none() && plan.steps.iter().all(is_light)
}

/// What starts a workflow, with all that it may start itself.
pub(crate) fn request_of(app: &App, shelf: Shelf<'_>, workflow: &Workflow, by: &str) -> Answer<Request> {
    let Made { plan, stored, .. } = plan_of(app, workflow)?;
    let workflows = family(&plan, |name| -> Result<Arc<Plan>, Unfound> {
        let child = started(shelf, &workflow.user, name)?.ok_or_else(|| {
            Unfound(Problem::field("workflow", format!("it starts `{name}`, and there is no such workflow here")))
        })?;
        if !child.body.enabled {
            let message = format!("it starts `{name}`, which is disabled");
            return Err(Unfound(Problem::new(Code::WorkflowDisabled, message)));
        }
        Ok(plan_of(app, &child.body)?.plan)
    });
    let workflows = workflows.map_err(|Unfound(problem)| problem)?;
    Ok(Request { workflows, ..Request::of(plan, stored, by) })
}

/// The workflow that a name means to a member: a slug of their own, an id, or somebody's slug, if only one has it. What
/// others name theirs never changes what a member's own slugs mean.
pub(crate) fn named(shelf: Shelf<'_>, user: &str, name: &str) -> Answer<Option<Held<Workflow>>> {
    if let Some(found) = own(shelf, user, name)? {
        return Ok(Some(found));
    }
    let listing = Listing { name: Some(("slug", name.to_string())), most: Most::of(2), ..Listing::default() };
    let mut found = shelf.list::<Workflow>(listing)?.rows;
    if found.len() > 1 {
        let message = format!("`{name}` is the slug of several workflows: name one by its id");
        return Err(Problem::new(Code::Conflict, message));
    }
    Ok(found.pop())
}

/// The same, without what only others call so.
fn own(shelf: Shelf<'_>, user: &str, name: &str) -> Answer<Option<Held<Workflow>>> {
    match shelf.named::<Workflow>("own slug", &Workflow::own_slug(user, name))? {
        Some(found) => Ok(Some(found)),
        None => shelf.get::<Workflow>(name),
    }
}

/// The workflow that a step means which starts one: as its owner names it, also by what the owner calls it.
pub(crate) fn started(shelf: Shelf<'_>, owner: &str, name: &str) -> Answer<Option<Held<Workflow>>> {
    if let Some(found) = own(shelf, owner, name)? {
        return Ok(Some(found));
    }
    let called = shelf.all::<Workflow>(Some(("name", name.to_string())));
    let mut theirs = called.filter(|held| held.as_ref().map_or(true, |held| held.body.user == owner));
    match (theirs.next().transpose()?, theirs.next().transpose()?) {
        (Some(_), Some(_)) => {
            let message = format!("`{name}` is what several workflows are called: name one by its id");
            Err(Problem::new(Code::Conflict, message))
        }
        (found, _) => Ok(found),
    }
}

/// Why a workflow's family is not whole.
struct Unfound(Problem);

impl From<String> for Unfound {
    fn from(why: String) -> Self {
        Self(Problem::field("workflow", why))
    }
}

impl From<Problem> for Unfound {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}
