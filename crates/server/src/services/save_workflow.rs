//! Saves workflows: validates, versions and audits a change, and commits it in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    definition::{self, Syntax},
    document::Document,
    value::Value,
};
use mainspring_store::{AuditEntry, Change, ChangeOutcome, Put, ReadLimit};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{caller::Caller, token::random},
    http::{
        body::{Data, Tag, check_seen, double_option, object_or_text, object_text_or_null},
        problem::{Code, Problem, Result},
    },
    resources::{
        RepositoryContext, ReservedName, Source, Version, VersionReturn, Workflow,
        repository::{Listing, Repository, Resource, Stored, apply, entry},
        version_id,
    },
    services::{
        approvers::warnings_for_save,
        bootstrap::check_id,
        compile::{CompileError, check_circle, compile, keep},
        drains,
        folder_parts::{Parts, Workflows},
        repository_context::{self, with_repository},
        rollout_choice::check_none,
        save_trigger::removals_of_workflow,
        version_numbers::{number, parts},
        workflow_names::PendingChange,
    },
};

/// Attempts of a change that conflicts with concurrent ones.
const TRIES: u32 = 5;

/// Bounds in characters for the name, the description and a tag, and the number of tags.
const NAME_MAX: usize = 200;
const DESCRIPTION_MAX: usize = 10_000;
const TAG_MAX: usize = 100;
const TAGS_MAX: usize = 50;

/// Fields of a workflow to change. Omitted fields keep their values; null clears an optional field.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Draft {
    /// Human-readable id, unique among the member's workflows; null to clear it.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<String>)]
    pub slug: Option<Option<String>>,
    /// Display name.
    pub name: Option<String>,
    /// Purpose, as the author describes it; null to clear it.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    /// Semantic version. By default a new definition increments the last part. A definition that was saved before gets
    /// its former version again; a version never belongs to two definitions.
    pub version: Option<String>,
    /// The definition as an object, or as text in YAML or JSON.
    #[schema(schema_with = object_text_or_null)]
    pub data: Option<Data>,
    /// True if the workflow can be started.
    pub enabled: Option<bool>,
    /// Tags for searches; null to clear them.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<Vec<String>>)]
    pub tags: Option<Option<Vec<String>>>,
    /// Repository of its executions, unless a trigger names another; null for none.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<RepositoryContext>)]
    pub repository: Option<Option<RepositoryContext>>,
    /// True if the `name` of the definition replaces that of the draft.
    #[serde(skip)]
    pub names_itself: bool,
}

/// A complete workflow to save. Omitted fields are cleared, except `version`, `enabled` and `repository`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whole {
    /// Id of the workflow; default: the workflow with this slug, or a new one.
    pub id: Option<String>,
    /// Human-readable id, unique among the member's workflows.
    pub slug: Option<String>,
    /// Display name; default: the slug, else the `name` of the definition, else the id.
    pub name: Option<String>,
    /// Purpose, as the author describes it.
    pub description: Option<String>,
    /// Semantic version; default 1.0.0 for a new workflow, and an increment of the last part for a new definition. A
    /// definition that was saved before gets its former version again; a version never belongs to two definitions.
    pub version: Option<String>,
    /// The definition as an object, or as text in YAML or JSON.
    #[schema(schema_with = object_or_text)]
    pub data: Data,
    /// True if the workflow can be started; default: unchanged, or true for a new workflow.
    pub enabled: Option<bool>,
    /// Tags for searches.
    pub tags: Option<Vec<String>>,
    /// Repository of its executions, unless a trigger names another; null for none. Default: unchanged.
    #[serde(default, deserialize_with = "double_option")]
    #[schema(value_type = Option<RepositoryContext>)]
    pub repository: Option<Option<RepositoryContext>>,
}

impl Whole {
    /// The draft that replaces all fields of the workflow with this id.
    fn draft(&self, id: &str) -> Draft {
        let Self { slug, name, description, version, data, enabled, tags, repository, .. } = self.clone();
        let names_itself = name.is_none() && slug.is_none();
        let name = Some(name.or_else(|| slug.clone()).unwrap_or_else(|| id.to_string()));
        let (slug, description, tags) = (Some(slug), Some(description), Some(tags));
        Draft { slug, name, description, version, data: Some(data), enabled, tags, repository, names_itself }
    }
}

/// The origin of a change, as the history has it.
pub(crate) struct Origin {
    /// The kind of change.
    pub source: Source,
    /// Id of the applied proposal.
    pub proposal: Option<String>,
    /// True if executions of the new definition wait for those of older ones.
    pub drains: bool,
}

impl Origin {
    /// A change without a proposal.
    pub(crate) fn of(source: Source) -> Self {
        Self { source, proposal: None, drains: false }
    }
}

/// A saved workflow.
pub(crate) struct Saved {
    /// State after the change.
    pub stored: Stored<Workflow>,
    /// Warnings for the author. They are computed before the commit, so that an error there saves nothing.
    pub warnings: Vec<Data>,
    /// True if the change ended a drain of the workflow.
    pub ends_drain: bool,
}

/// Saves a whole workflow.
pub(crate) fn sync(app: &App, caller: &Caller, whole: &Whole, seen: Option<Tag>) -> Result<Saved> {
    let saved = with_retries(app, || {
        let (id, stored) = target(app, caller, whole)?;
        let prepared = prepare(app, caller, &id, stored, &whole.draft(&id), &Origin::of(Source::Sync), seen)?;
        one(app, caller, prepared)
    })?;
    drains::announce_end(app, caller, saved.ends_drain);
    Ok(saved)
}

/// The workflows that a client has compared before it saves: hashes by slug or id, `None` for one that was not there.
pub(crate) type Compared = BTreeMap<String, Option<String>>;

/// Checks that a workflow is as it was compared.
fn check_compared(compared: &Compared, names: [Option<&str>; 2], present: Option<&str>) -> Result<()> {
    let seen = names.into_iter().flatten().find_map(|name| Some((name, compared.get(name)?)));
    match seen {
        None => Ok(()),
        Some((_, seen)) if seen.as_deref() == present => Ok(()),
        Some((name, _)) => {
            let message = format!("The workflow `{name}` has changed since it was compared: compare again.");
            Err(Problem::new(Code::Conflict, message))
        }
    }
}

/// The set of a caller's workflows, with what changes beside them in the same transaction.
pub(crate) struct Set<'a> {
    /// The workflows to save.
    pub wholes: &'a [Whole],
    /// True if the caller's other workflows are not deleted.
    pub keeps_others: bool,
    /// With it, a workflow that is not in it is never deleted.
    pub compared: Option<&'a Compared>,
    pub parts: &'a Parts,
}

/// Saves all given workflows of the caller, and deletes the caller's other ones unless they are kept.
pub(crate) fn sync_all(app: &App, caller: &Caller, set: &Set<'_>) -> Result<(Vec<Saved>, Vec<String>)> {
    let &Set { wholes, keeps_others, compared, parts } = set;
    parts.check(caller)?;
    let (saved, deleted, ends_drain) = with_retries(app, || {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let mut prepared: Vec<Prepared> = Vec::new();
        for whole in wholes {
            let (id, stored) = target(app, caller, whole)?;
            if prepared.iter().any(|other| other.stored.id == id) {
                return Err(Problem::field("workflows", format!("two of them are `{id}`")));
            }
            if let Some(compared) = compared {
                let present = stored.as_ref().map(|stored| stored.body.hash.as_str());
                check_compared(compared, [whole.slug.as_deref(), Some(&id)], present)?;
            }
            prepared.push(prepare(app, caller, &id, stored, &whole.draft(&id), &Origin::of(Source::Sync), None)?);
        }
        let mut change = changes(app, &prepared);
        check_reserved(&change.puts)?;
        let (deleted, mut ends_drain) = match keeps_others {
            true => (Vec::new(), false),
            false => delete_others(app, caller, (&prepared, compared), &mut change)?,
        };
        let ends: Vec<bool> = prepared.iter().map(|prepared| prepared.ends_drain).collect();
        let stored: Vec<_> = prepared.into_iter().map(|prepared| prepared.stored).collect();
        let pending = PendingChange::of(&stored, &deleted);
        for stored in &stored {
            check_circle(app, repository, &stored.body, &pending)?;
        }
        let warnings = stored
            .iter()
            .map(|stored| warnings_for_save(app, caller, &stored.body, &pending))
            .collect::<Result<Vec<_>>>()?;
        parts.add(app, caller, &Workflows { saved: &stored, deleted: &deleted, pending: &pending }, &mut change)?;
        ends_drain |= ends.contains(&true);
        let saved = stored.into_iter().zip(warnings).zip(ends);
        let saved = saved.map(|((stored, warnings), ends_drain)| Saved { stored, warnings, ends_drain }).collect();
        Ok((change, (saved, deleted, ends_drain)))
    })?;
    drains::announce_end(app, caller, ends_drain);
    if parts.organization.is_some() {
        app.engine.limits_changed(&caller.organization);
    }
    Ok((saved, deleted))
}

/// Adds the deletion of the caller's other workflows to a change: their ids, and true if one of them drains.
fn delete_others(
    app: &App,
    caller: &Caller,
    (kept, compared): (&[Prepared], Option<&Compared>),
    change: &mut Change,
) -> Result<(Vec<String>, bool)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let (mut deleted, mut ends_drain) = (Vec::new(), false);
    for other in repository.all::<Workflow>(Some(("user", caller.user.clone()))) {
        let other = other?;
        if kept.iter().any(|kept| kept.stored.id == other.id) {
            continue;
        }
        if let Some(compared) = compared {
            let names = [other.body.slug.as_deref(), Some(other.id.as_str())];
            check_compared(compared, names, Some(&other.body.hash))?;
            if !names.into_iter().flatten().any(|name| compared.contains_key(name)) {
                let message = format!("The workflow `{}` was not there when it was compared: compare again.", other.id);
                return Err(Problem::new(Code::Conflict, message));
            }
        }
        check_none(&other.id, &other.body)?;
        let (triggers, audit) = removals_of_workflow(app, caller, &other.id)?;
        change.removals.push(repository.removal(&other));
        change.removals.extend(triggers);
        change.audit.push(entry(caller, "workflow.delete", &other.id, Value::Null));
        change.audit.extend(audit);
        ends_drain |= other.body.drain.is_some();
        deleted.push(other.id);
    }
    Ok((deleted, ends_drain))
}

/// Changes fields of a workflow.
pub(crate) fn update(
    app: &App,
    caller: &Caller,
    draft: &Draft,
    seen: Option<Tag>,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<Saved> {
    let saved = with_retries(app, || {
        let stored = find()?;
        let id = stored.id.clone();
        let prepared = prepare(app, caller, &id, Some(stored), draft, &Origin::of(Source::Update), seen)?;
        one(app, caller, prepared)
    })?;
    drains::announce_end(app, caller, saved.ends_drain);
    Ok(saved)
}

/// Prepares the change that replaces fields of a workflow, for callers that commit more with it.
pub(crate) fn replacement(
    app: &App,
    caller: &Caller,
    stored: Stored<Workflow>,
    draft: &Draft,
    origin: &Origin,
) -> Result<(Change, Saved)> {
    let id = stored.id.clone();
    let prepared = prepare(app, caller, &id, Some(stored), draft, origin, None)?;
    one(app, caller, prepared)
}

/// Deletes a workflow and its triggers. Its version history stays.
pub(crate) fn delete(
    app: &App,
    caller: &Caller,
    seen: Option<Tag>,
    find: impl Fn() -> Result<Stored<Workflow>>,
) -> Result<()> {
    let ends_drain = with_retries(app, || {
        let stored = find()?;
        check_owner(caller, &stored)?;
        check_seen(seen, Some(stored.tag()))?;
        check_none(&stored.id, &stored.body)?;
        let (mut removals, mut audit) = removals_of_workflow(app, caller, &stored.id)?;
        removals.insert(0, Repository::of(app.catalogue(), &caller.organization).removal(&stored));
        audit.insert(0, entry(caller, "workflow.delete", &stored.id, Value::Null));
        let change = Change { removals, audit, sealing: *app.engine.key(), ..Change::default() };
        Ok((change, stored.body.drain.is_some()))
    })?;
    drains::announce_end(app, caller, ends_drain);
    Ok(())
}

/// The next state of a workflow with its writes.
struct Prepared {
    stored: Stored<Workflow>,
    puts: Vec<Put>,
    audit: AuditEntry,
    ends_drain: bool,
}

/// The change that saves one workflow, and its result.
fn one(app: &App, caller: &Caller, prepared: Prepared) -> Result<(Change, Saved)> {
    let (change, ends_drain, stored) = (changes(app, [&prepared]), prepared.ends_drain, prepared.stored);
    let pending = PendingChange::of([&stored], &[]);
    check_circle(app, Repository::of(app.catalogue(), &caller.organization), &stored.body, &pending)?;
    let warnings = warnings_for_save(app, caller, &stored.body, &pending)?;
    Ok((change, Saved { stored, warnings, ends_drain }))
}

fn changes<'a>(app: &App, prepared: impl IntoIterator<Item = &'a Prepared>) -> Change {
    let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
    for Prepared { puts, audit, .. } in prepared {
        change.puts.extend(puts.iter().cloned());
        change.audit.push(audit.clone());
    }
    change
}

/// Commits a change. After a conflict with a concurrent change it is prepared again, which checks `If-Match` again.
fn with_retries<T>(app: &App, mut prepare: impl FnMut() -> Result<(Change, T)>) -> Result<T> {
    for _ in 0..TRIES {
        let (change, done) = prepare()?;
        match apply(app.catalogue(), &change)? {
            Ok(()) => return Ok(done),
            Err(ChangeOutcome::KeyTaken { .. }) => {
                return Err(Problem::new(Code::Conflict, "Another workflow of this member has this slug."));
            }
            Err(_) => {}
        }
    }
    Err(Problem::concurrent_change())
}

pub(super) fn check_owner(caller: &Caller, stored: &Stored<Workflow>) -> Result<()> {
    if caller.may_act_for(&stored.body.user) {
        return Ok(());
    }
    let message = format!("The workflow `{}` is another member's; its owner or an admin may change it.", stored.id);
    Err(Problem::new(Code::Forbidden, message))
}

/// The id of the workflow to save, and its stored state.
fn target(app: &App, caller: &Caller, whole: &Whole) -> Result<(String, Option<Stored<Workflow>>)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    if let Some(id) = &whole.id {
        check_id("id", id)?;
        return Ok((id.clone(), repository.get(id)?));
    }
    let by_slug = match &whole.slug {
        Some(slug) => repository.find_by_name::<Workflow>("own slug", &Workflow::own_slug(&caller.user, slug))?,
        None => None,
    };
    match by_slug {
        Some(stored) => Ok((stored.id.clone(), Some(stored))),
        None => Ok((format!("wf-{}", random(8)?), None)),
    }
}

/// Prepares the writes that apply a draft to the stored state.
fn prepare(
    app: &App,
    caller: &Caller,
    id: &str,
    stored: Option<Stored<Workflow>>,
    draft: &Draft,
    origin: &Origin,
    seen: Option<Tag>,
) -> Result<Prepared> {
    check(app, draft)?;
    let repository = Repository::of(app.catalogue(), &caller.organization);
    if let Some(stored) = &stored {
        check_owner(caller, stored)?;
    }
    check_seen(seen, stored.as_ref().map(Stored::tag))?;
    let version = stored.as_ref().map_or(0, |stored| stored.version);
    // Reads the reserved names before resolving any, so that a concurrent assignment causes a conflict.
    let mut puts = reserve_names(repository, id, stored.as_ref(), draft)?;
    check_names(repository, id, stored.is_none(), draft)?;
    let now = now_ms();
    let before = stored.map(|stored| stored.body);
    let mut workflow = match &before {
        Some(before) => before.clone(),
        None => fresh(repository, caller, id, now)?,
    };
    fill(&mut workflow, draft);
    if let Some(data) = &draft.data {
        let document = document_of(&data.0)?;
        let compiled = compile(app, &caller.organization, &document)?;
        workflow.hash = keep(app, repository.organization(), compiled).plan.workflow_hash.prefixed();
        let own = document.value.get("name").and_then(Value::as_text);
        if let Some(own) = own.filter(|_| draft.names_itself) {
            workflow.name = own.to_owned();
        }
        workflow.data = Data(document.value);
    }
    if let Some(before) = before.as_ref().filter(|before| before.hash != workflow.hash) {
        check_none(id, before)?;
    }
    workflow.updated_at = now;
    let mut is_return = false;
    if before.is_none() || draft.data.is_some() || draft.version.is_some() {
        let numbering = number(repository, id, &workflow, draft.version.as_deref())?;
        workflow.version = numbering.version;
        if let Some(numbers) = numbering.puts {
            workflow.revision += 1;
            let version = history(&workflow, id, caller, origin, now);
            puts.push(repository.put(&version_id(id, workflow.revision), &version, 0)?);
            puts.extend(numbers);
        } else if let Some(before) = before.as_ref().filter(|before| before.hash != workflow.hash) {
            is_return = true;
            let (own, from_hash) = (return_id(id, now)?, before.hash.clone());
            puts.push(repository.put(&own, &returned(&workflow, id, from_hash, caller, origin, now), 0)?);
        }
    }
    if let Some(before) = &before {
        let begins = origin.proposal.as_ref().filter(|_| origin.drains);
        workflow.drain = match begins {
            Some(proposal) => Some(drains::begin(before, &workflow.hash, proposal, caller, now)),
            None => drains::after(before.drain.as_ref(), &workflow.hash, is_return)?,
        };
    }
    let ends_drain = workflow.drain.is_none() && before.as_ref().is_some_and(|before| before.drain.is_some());
    puts.insert(0, repository.put(id, &workflow, version)?);
    let action = if before.is_some() { "workflow.update" } else { "workflow.create" };
    let detail = with_repository(audited(before.as_ref(), &workflow), workflow.repository.as_ref());
    let audit = entry(caller, action, id, detail);
    Ok(Prepared { stored: Stored { id: id.into(), version: version + 1, body: workflow }, puts, audit, ends_drain })
}

/// The audit detail of a saved workflow. It has the names that have changed: a slug decides which workflow starts.
fn audited(before: Option<&Workflow>, after: &Workflow) -> Value {
    let saved: [(&str, Value); 3] = [
        ("hash", after.hash.as_str().into()),
        ("version", after.version.as_str().into()),
        ("enabled", after.enabled.into()),
    ];
    let texts = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect::<Vec<Value>>().into();
    let is_changed = |same: fn(&Workflow, &Workflow) -> bool| before.is_some_and(|before| !same(before, after));
    let changed: [(&str, bool, Value); 3] = [
        ("slug", is_changed(|a, b| a.slug == b.slug), after.slug.as_deref().into()),
        ("name", is_changed(|a, b| a.name == b.name), after.name.as_str().into()),
        ("tags", is_changed(|a, b| a.tags == b.tags), texts(&after.tags)),
    ];
    let changed = changed.into_iter().filter(|(_, is_changed, _)| *is_changed).map(|(key, _, value)| (key, value));
    Value::map(saved.into_iter().chain(changed))
}

/// Reads a definition. Diagnostics of text have lines and columns.
pub(super) fn document_of(data: &Value) -> Result<Document> {
    Ok(match data {
        Value::Text(text) => {
            definition::read(text.as_bytes(), Syntax::Guess).map_err(|found| CompileError::Invalid(vec![found]))?
        }
        value => Document::placeless(value.clone()),
    })
}

/// Reserves the names that a draft adds to a workflow.
fn reserve_names(
    repository: Repository<'_>,
    id: &str,
    stored: Option<&Stored<Workflow>>,
    draft: &Draft,
) -> Result<Vec<Put>> {
    let slug = draft.slug.as_ref().and_then(Option::as_deref);
    let before = stored.and_then(|stored| stored.body.slug.as_deref());
    let slug = slug.filter(|slug| *slug != id && Some(*slug) != before);
    let put = |name: &str| {
        let version = repository.get::<ReservedName>(name)?.map_or(0, |stored| stored.version);
        repository.put(name, &ReservedName {}, version)
    };
    stored.is_none().then_some(id).into_iter().chain(slug).map(put).collect()
}

/// Rejects an id or slug that two workflows of the same change share.
fn check_reserved(puts: &[Put]) -> Result<()> {
    let mut names = BTreeSet::new();
    let reserved = puts.iter().filter(|put| put.resource.kind == ReservedName::KIND);
    match reserved.map(|put| &put.resource.id).find(|name| !names.insert(*name)) {
        Some(name) => Err(Problem::field("workflows", format!("two of them have `{name}` as their id or slug"))),
        None => Ok(()),
    }
}

/// Rejects an id that is another workflow's slug, and a slug that is another workflow's id: a name keeps its meaning.
fn check_names(repository: Repository<'_>, id: &str, is_new: bool, draft: &Draft) -> Result<()> {
    let taken = |what: &str, name: &str, other: &str| {
        Problem::new(Code::Conflict, format!("{what} `{name}` is taken: another workflow has it as its {other}."))
    };
    let listing = Listing { name: Some(("slug", id.to_string())), most: ReadLimit::of(2), ..Listing::default() };
    let slugs = if is_new { repository.list::<Workflow>(listing)?.rows } else { Vec::new() };
    if slugs.iter().any(|other| other.id != id) {
        return Err(taken("The id", id, "slug"));
    }
    match draft.slug.as_ref().and_then(Option::as_ref) {
        Some(slug) if slug != id && repository.get::<Workflow>(slug)?.is_some() => Err(taken("The slug", slug, "id")),
        _ => Ok(()),
    }
}

/// A new workflow before the draft is applied. It continues the version history of a deleted workflow with the same id.
fn fresh(repository: Repository<'_>, caller: &Caller, id: &str, now: u64) -> Result<Workflow> {
    let name = Some(("workflow", id.to_string()));
    let listing = Listing { name, is_descending: true, most: ReadLimit::of(1), ..Listing::default() };
    let last = repository.list::<Version>(listing)?.rows;
    Ok(Workflow {
        user: caller.user.clone(),
        slug: None,
        name: id.to_string(),
        description: None,
        version: last.first().map_or("1.0.0", |last| &last.body.version).into(),
        data: Data::default(),
        hash: String::new(),
        enabled: true,
        tags: Vec::new(),
        created_at: now,
        updated_at: now,
        revision: last.first().map_or(0, |last| last.body.revision),
        drain: None,
        rollout: None,
        repository: None,
    })
}

fn fill(workflow: &mut Workflow, draft: &Draft) {
    let Draft { slug, name, description, enabled, tags, repository, .. } = draft.clone();
    if let Some(repository) = repository {
        workflow.repository = repository;
    }
    if let Some(slug) = slug {
        workflow.slug = slug;
    }
    if let Some(description) = description {
        workflow.description = description;
    }
    if let Some(name) = name {
        workflow.name = name;
    }
    if let Some(enabled) = enabled {
        workflow.enabled = enabled;
    }
    if let Some(tags) = tags {
        workflow.tags = tags.unwrap_or_default();
    }
}

/// Ids of returns sort by time.
pub(super) fn return_id(workflow: &str, now: u64) -> Result<String> {
    Ok(format!("{workflow}/{now:013}-{}", random(8)?))
}

fn returned(
    workflow: &Workflow,
    id: &str,
    from_hash: String,
    caller: &Caller,
    origin: &Origin,
    now: u64,
) -> VersionReturn {
    VersionReturn {
        workflow: id.into(),
        hash: workflow.hash.clone(),
        from_hash,
        source: origin.source,
        source_proposal_id: origin.proposal.clone(),
        created_by: caller.user.clone(),
        created_at: now,
    }
}

pub(super) fn history(workflow: &Workflow, id: &str, caller: &Caller, origin: &Origin, now: u64) -> Version {
    Version {
        workflow: id.into(),
        revision: workflow.revision,
        version: workflow.version.clone(),
        hash: workflow.hash.clone(),
        data: workflow.data.clone(),
        source: origin.source,
        source_proposal_id: origin.proposal.clone(),
        notes: None,
        created_by: caller.user.clone(),
        created_at: now,
    }
}

fn check(app: &App, draft: &Draft) -> Result<()> {
    if let Some(Some(context)) = &draft.repository {
        repository_context::check(app, context, false)?;
    }
    let bound = |field: &str, text: &Option<String>, most: usize| match text {
        Some(text) if text.chars().count() > most => {
            Err(Problem::field(field, format!("it has more than {most} characters")))
        }
        Some(text) if text.is_empty() && field != "description" => Err(Problem::field(field, "it is empty")),
        _ => Ok(()),
    };
    bound("name", &draft.name, NAME_MAX)?;
    bound("description", draft.description.as_ref().unwrap_or(&None), DESCRIPTION_MAX)?;
    if let Some(Some(slug)) = &draft.slug {
        check_id("slug", slug)?;
    }
    if let Some(version) = &draft.version
        && parts(version).is_none()
    {
        return Err(Problem::field(
            "version",
            "it must be a semantic version (SemVer 2.0.0) like 1.4.0 or 1.4.0-rc.1: three numbers without leading zeros, and at most 100 characters",
        ));
    }
    let tags = draft.tags.iter().flatten().flatten().collect::<Vec<_>>();
    if tags.len() > TAGS_MAX || tags.iter().any(|tag| tag.is_empty() || tag.chars().count() > TAG_MAX) {
        return Err(Problem::field("tags", format!("at most {TAGS_MAX}, each of 1 to {TAG_MAX} characters")));
    }
    Ok(())
}
