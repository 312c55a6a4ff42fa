//! Compiles definitions to plans, caches the plans, and resolves the names of workflows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_engine::{
    evaluator::SandboxInspector,
    start_request::{StartRequest, endless_circle, plan_tree, starts, stored_plan},
};
use mainspring_kernel::{
    definition::{Compiled, compile_with},
    diagnostic::{Diagnostic, Severity},
    document::{Document, Path},
    input::{NAME_IN_TRIGGER, VERSION_IN_TRIGGER, WORKFLOW_IN_TRIGGER, WORKFLOWS_IN_TRIGGER},
    limits::LINEAGE_WORKFLOWS_MAX,
    plan::{Plan, Step, Work},
    value::{Map, Value},
};
use mainspring_store::{ReadLimit, StoredPlan};

use crate::{
    app::App,
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        Workflow,
        repository::{Listing, Repository, Stored},
    },
    services::{approvers::asking, compile_budget::Within},
};

/// Most cached plans. Beyond that, the plans of the organization with the most are evicted; they compile again on
/// demand.
const PLANS_MAX: usize = 1024;

/// Most cached plans per organization: eight busy organizations fill the cache.
const PLANS_OF_ORGANIZATION_MAX: usize = 128;

/// Most bytes of cached plans, in their stored form. A plan in memory takes a multiple of that, and a definition may
/// have 4 MiB.
const PLANS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most bytes of cached plans per organization: one plan of the largest size, and as much again for others.
const PLANS_OF_ORGANIZATION_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Plan cache, by organization and by the hash of the definition.
#[derive(Default)]
pub(crate) struct Plans(Mutex<BTreeMap<String, PlansOf>>);

/// The plans of one organization.
#[derive(Default)]
struct PlansOf {
    by_hash: BTreeMap<String, CompiledPlan>,
    bytes: usize,
}

impl PlansOf {
    /// Caches a plan. If the organization has too many plans or bytes, its other plans are evicted first.
    fn keep(&mut self, hash: String, compiled: CompiledPlan) {
        let bytes = compiled.byte_count();
        let is_full = self.by_hash.len() >= PLANS_OF_ORGANIZATION_MAX
            || self.bytes.saturating_add(bytes) > PLANS_OF_ORGANIZATION_BYTES_MAX;
        if is_full {
            *self = Self::default();
        }
        let before = self.by_hash.insert(hash, compiled);
        self.bytes = (self.bytes + bytes).saturating_sub(before.map_or(0, |before| before.byte_count()));
    }
}

impl Plans {
    fn get(&self, organization: &str, hash: &str) -> Option<CompiledPlan> {
        self.plans().get(organization)?.by_hash.get(hash).cloned()
    }

    fn keep(&self, organization: &str, hash: String, compiled: CompiledPlan) {
        let mut plans = self.plans();
        if plans.values().map(|own| own.by_hash.len()).sum::<usize>() >= PLANS_MAX {
            evict(&mut plans, |own| own.by_hash.len());
        }
        let bytes = compiled.byte_count();
        while !plans.is_empty() && plans.values().map(|own| own.bytes).sum::<usize>() + bytes > PLANS_BYTES_MAX {
            evict(&mut plans, |own| own.bytes);
        }
        plans.entry(organization.to_string()).or_default().keep(hash, compiled);
    }

    fn plans(&self) -> MutexGuard<'_, BTreeMap<String, PlansOf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evicts all plans of the organization with the largest measure.
fn evict(plans: &mut BTreeMap<String, PlansOf>, measure: impl Fn(&PlansOf) -> usize) {
    let largest = plans.iter().max_by_key(|(_, own)| measure(own)).map(|(organization, _)| organization.clone());
    largest.and_then(|largest| plans.remove(&largest));
}

/// A compiled definition. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CompiledPlan {
    pub plan: Arc<Plan>,
    pub stored: StoredPlan,
    /// The steps that ask people or start workflows that may ask people.
    pub asking: Arc<[(u32, Path)]>,
    /// Warnings of the compiler. They do not depend on the members of the organization.
    pub warnings: Arc<[Diagnostic]>,
}

impl CompiledPlan {
    /// Bytes of the plan in its stored form.
    fn byte_count(&self) -> usize {
        self.stored.bytes.len()
    }
}

impl From<Compiled> for CompiledPlan {
    fn from(compiled: Compiled) -> Self {
        let Compiled { plan, paths, warnings, .. } = compiled;
        let asking = asking(&plan, &paths).into();
        Self { stored: stored_plan(&plan), plan: Arc::new(plan), asking, warnings: warnings.into() }
    }
}

/// The reason for a missing plan.
pub(crate) enum CompileError {
    /// The definition is invalid: all diagnostics.
    Invalid(Vec<Diagnostic>),
    /// No worker was free to check it.
    Busy,
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
                let message = "No worker was free to look into the definition: try again in a moment.";
                Self::new(Code::Unavailable, message)
            }
        }
    }
}

/// Compiles a definition that an organization sends, and checks its functions and schemas in the sandbox.
pub(crate) fn compile(app: &App, organization: &str, document: &Document) -> Result<Compiled, CompileError> {
    debug_assert!(app.may_compile(), "add this route to those that compile, in `slots`");
    compile_within(app, organization, document, false)
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
    let first = errors.next().map(|found| format!("{}: {}", found.path, found.message)).unwrap_or_default();
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
    let is_light = |step: &Step| match &step.work {
        Work::Effect { effect, .. } => effect != "bash",
        Work::Subworkflow { .. } => false,
        // Named approvers and higher counts need a lookup of members.
        Work::Approval(gate) => gate.approvers.is_empty() && gate.count <= 1,
        _ => true,
    };
    plan.input_schema.is_none() && plan.steps.iter().all(is_light)
}

/// Builds the request that starts a workflow, with the plans of all workflows that it may start in turn.
pub(crate) fn request_of(app: &App, repository: Repository<'_>, workflow: &Workflow, by: &str) -> Result<StartRequest> {
    let CompiledPlan { plan, stored, .. } = plan_of(app, repository.organization(), workflow)?;
    let mut known = Map::new();
    let workflows = plan_tree(&plan, |name| -> Result<Arc<Plan>, NotResolved> {
        let child = resolve_started(repository, &workflow.user, name, &PendingChange::default())?.ok_or_else(|| {
            NotResolved(Problem::field("workflow", format!("it starts `{name}`, and there is no such workflow here")))
        })?;
        if !child.body.enabled {
            let message = format!("it starts `{name}`, which is disabled");
            return Err(NotResolved(Problem::new(Code::WorkflowDisabled, message)));
        }
        known.insert(name.into(), Value::map(trigger_fields(&child)));
        Ok(plan_of(app, repository.organization(), &child.body)?.plan)
    });
    let workflows = workflows.map_err(|NotResolved(problem)| problem)?;
    if let Some(why) = endless_circle(&plan, &workflows) {
        return Err(Problem::field("workflow", why));
    }
    let mut request = StartRequest { workflows, ..StartRequest::of(plan, stored, by) };
    if let (Value::Map(trigger), false) = (&mut request.trigger, known.is_empty()) {
        trigger.insert(WORKFLOWS_IN_TRIGGER.into(), known.into());
    }
    Ok(request)
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

/// Resolves a name for a member: a slug of their own, then an id, then a slug of another member if it is unique. Slugs
/// of other members never change the meaning of a member's own slugs.
pub(crate) fn resolve(repository: Repository<'_>, user: &str, name: &str) -> Result<Option<Stored<Workflow>>> {
    if let Some(found) = resolve_own(repository, user, name, &PendingChange::default())? {
        return Ok(Some(found));
    }
    let listing = Listing { name: Some(("slug", name.to_string())), most: ReadLimit::of(2), ..Listing::default() };
    let mut found = repository.list::<Workflow>(listing)?.rows;
    if found.len() > 1 {
        let message = format!("`{name}` is the slug of several workflows: name one by its id");
        return Err(Problem::new(Code::Conflict, message));
    }
    Ok(found.pop())
}

/// Resolves a slug of the member's own or an id.
fn resolve_own(
    repository: Repository<'_>,
    user: &str,
    name: &str,
    pending: &PendingChange<'_>,
) -> Result<Option<Stored<Workflow>>> {
    if let Some(put) = pending.by_slug.get(&(user, name)) {
        return Ok(Some((*put).clone()));
    }
    let by_slug = repository.find_by_name::<Workflow>("own slug", &Workflow::own_slug(user, name))?;
    if let Some(found) = by_slug.filter(|stored| pending.stays(stored)) {
        return Ok(Some(found));
    }
    match pending.kept.get(name) {
        Some(put) => Ok(Some((*put).clone())),
        None => Ok(repository.get::<Workflow>(name)?.filter(|stored| pending.stays(stored))),
    }
}

/// A change of workflows that is about to be committed. Names resolve to the state after it.
#[derive(Default)]
pub(crate) struct PendingChange<'a> {
    kept: BTreeMap<&'a str, &'a Stored<Workflow>>,
    /// Workflows that the change saves, by owner and slug (at most one), and by owner and name.
    by_slug: BTreeMap<(&'a str, &'a str), &'a Stored<Workflow>>,
    by_name: BTreeMap<(&'a str, &'a str), Vec<&'a Stored<Workflow>>>,
    gone: BTreeSet<&'a str>,
}

impl<'a> PendingChange<'a> {
    /// Builds the view from the workflows that the change saves and the ids that it deletes.
    pub(crate) fn of(kept: impl IntoIterator<Item = &'a Stored<Workflow>>, gone: &'a [String]) -> Self {
        let mut pending = Self { gone: gone.iter().map(String::as_str).collect(), ..Self::default() };
        for stored in kept {
            let Workflow { user, slug, name, .. } = &stored.body;
            pending.kept.insert(&stored.id, stored);
            pending.by_slug.extend(slug.iter().map(|slug| ((user.as_str(), slug.as_str()), stored)));
            pending.by_name.entry((user, name)).or_default().push(stored);
        }
        pending
    }

    /// True if the change neither replaces nor deletes a stored workflow.
    fn stays(&self, stored: &Stored<Workflow>) -> bool {
        !self.kept.contains_key(stored.id.as_str()) && !self.gone.contains(stored.id.as_str())
    }
}

/// Resolves the name in a step that starts a workflow. It is resolved for the owner of the starting workflow, and may
/// also be a display name.
pub(crate) fn resolve_started(
    repository: Repository<'_>,
    owner: &str,
    name: &str,
    pending: &PendingChange<'_>,
) -> Result<Option<Stored<Workflow>>> {
    if let Some(found) = resolve_own(repository, owner, name, pending)? {
        return Ok(Some(found));
    }
    let called = repository.all::<Workflow>(Some(("name", name.to_string())));
    let is_theirs = |stored: &Stored<Workflow>| stored.body.user == owner && pending.stays(stored);
    let stored = called.filter(|stored| stored.as_ref().map_or(true, &is_theirs));
    let put = pending.by_name.get(&(owner, name)).into_iter().flatten();
    let mut theirs = put.map(|stored| Ok((*stored).clone())).chain(stored);
    match (theirs.next().transpose()?, theirs.next().transpose()?) {
        (Some(_), Some(_)) => {
            let message = format!("`{name}` is what several workflows are called: name one by its id");
            Err(Problem::new(Code::Conflict, message))
        }
        (found, _) => Ok(found),
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

#[cfg(test)]
mod tests {
    use mainspring_store::{Change, memory::MemoryStore};

    use super::*;
    use crate::resources::repository::apply;

    #[test]
    fn an_organization_takes_the_places_of_its_own_plans() {
        let text = br#"{"steps": [{"id": "a", "type": "return", "input": 1}]}"#;
        let document = mainspring_kernel::definition::read(text, mainspring_kernel::definition::Syntax::Guess).unwrap();
        let compiled = CompiledPlan::from(mainspring_kernel::definition::compile(&document).unwrap());
        let plans = Plans::default();
        let keep = |organization: &str, number: usize| plans.keep(organization, number.to_string(), compiled.clone());
        let all = || plans.plans().values().map(|own| own.by_hash.len()).sum::<usize>();
        keep("quiet", 0);
        (0..10 * PLANS_MAX + PLANS_MAX / 2).for_each(|number| keep("busy", number));
        assert!(plans.get("quiet", "0").is_some() && all() <= 1 + PLANS_OF_ORGANIZATION_MAX);
        for organization in 0..20 {
            (0..PLANS_OF_ORGANIZATION_MAX).for_each(|number| keep(&organization.to_string(), number));
        }
        assert!(plans.get("quiet", "0").is_some() && all() <= PLANS_MAX, "the largest gives way");
        let large = |bytes: usize| CompiledPlan {
            stored: StoredPlan { bytes: vec![0; bytes].into(), ..compiled.stored.clone() },
            ..compiled.clone()
        };
        let bytes = || plans.plans().values().map(|own| own.bytes).sum::<usize>();
        for number in 0..100 {
            plans.keep("busy", number.to_string(), large(PLANS_OF_ORGANIZATION_BYTES_MAX / 3));
            plans.keep("busy", number.to_string(), large(PLANS_OF_ORGANIZATION_BYTES_MAX / 3));
            assert!(plans.plans()["busy"].bytes <= PLANS_OF_ORGANIZATION_BYTES_MAX);
        }
        for number in 0..20 {
            plans.keep(&number.to_string(), "large".into(), large(PLANS_OF_ORGANIZATION_BYTES_MAX));
            assert!(bytes() <= PLANS_BYTES_MAX);
        }
        assert!(plans.get("quiet", "0").is_some() && plans.get("19", "large").is_some());
    }

    type Names = (&'static str, Option<&'static str>, &'static str);

    /// A workflow with an id, a slug and a name; its hash encodes the given state.
    fn stored((id, slug, name): Names, state: &str, version: u64) -> Stored<Workflow> {
        let body = Workflow {
            user: "ada".into(),
            slug: slug.map(Into::into),
            name: name.into(),
            description: None,
            version: "1.0.0".into(),
            data: Data::default(),
            hash: state.into(),
            enabled: true,
            tags: Vec::new(),
            created_at: 0,
            updated_at: 0,
            revision: 1,
        };
        Stored { id: id.into(), version, body }
    }

    /// The possible names of the workflow with this id; `None` for a missing one.
    fn states(id: &'static str) -> Vec<Option<Names>> {
        let slugs = [None, Some("a"), Some("b")];
        let all = slugs.into_iter().flat_map(|slug| ["a", "b", "c"].map(|name| Some((id, slug, name))));
        all.chain([None]).collect()
    }

    #[test]
    fn a_pending_change_resolves_names_as_the_committed_change_does() {
        let ask = |repository: Repository<'_>, pending: &PendingChange<'_>| {
            ["a", "b", "c", "d"].map(|name| {
                let found = resolve_started(repository, "ada", name, pending).map_err(|problem| problem.code);
                found.map(|found| found.map(|stored| (stored.id, stored.body.hash)))
            })
        };
        let pairs = || states("a").into_iter().flat_map(|one| states("d").into_iter().map(move |two| [one, two]));
        let mut committed = 0;
        for (before, after) in pairs().flat_map(|before| pairs().map(move |after| (before, after))) {
            let store = MemoryStore::new();
            let repository = Repository::of(&store, "o");
            let (mut first, mut then, mut kept, mut gone) =
                (Change::default(), Change::default(), Vec::new(), Vec::new());
            for (before, after) in before.into_iter().zip(after) {
                let was = before.map(|named| stored(named, "before", 1));
                first.puts.extend(was.iter().map(|was| repository.put(&was.id, &was.body, 0).unwrap()));
                match after {
                    // A workflow with the same name is not part of the change.
                    Some(_) if after == before => {}
                    Some(named) => {
                        let (put, version) = (stored(named, "after", 2), u64::from(was.is_some()));
                        then.puts.push(repository.put(&put.id, &put.body, version).unwrap());
                        kept.push(put);
                    }
                    None => {
                        then.removals.extend(was.iter().map(|was| repository.removal(was)));
                        gone.extend(was.map(|was| was.id));
                    }
                }
            }
            if apply(&store, &first).unwrap().is_err() {
                continue;
            }
            let expected = ask(repository, &PendingChange::of(&kept, &gone));
            if apply(&store, &then).unwrap().is_ok() {
                assert_eq!(ask(repository, &PendingChange::default()), expected, "{before:?} {after:?}");
                committed += 1;
            }
        }
        assert!(committed > 5_000, "{committed}");
    }
}
