//! Saves workflows: validates, versions and audits a change, and commits it in one transaction.

use std::collections::BTreeSet;

use mainspring_engine::engine::now_ms;
use mainspring_kernel::{document::Document, value::Value};
use mainspring_store::{AuditEntry, Change, ChangeOutcome, Put, ReadLimit};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    approvers::of_saved,
    body::{Data, Tag, check_seen, stated},
    compiling::{Coming, check_circle, compile, keep},
    first::check_id,
    identity::{Caller, random},
    nouns::{Given, Source, Version, Workflow, version_id},
    problem::{Answer, Code, Problem},
    shelf::{Held, Listing, Noun, Shelf, entry, make},
    versions::{number, parts},
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
    #[serde(default, deserialize_with = "stated")]
    #[schema(value_type = Option<String>)]
    pub slug: Option<Option<String>>,
    /// Display name.
    pub name: Option<String>,
    /// Description; null to clear it.
    #[serde(default, deserialize_with = "stated")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    /// Semantic version. By default a new definition increments the last part. A definition that was saved before gets
    /// its former version again; a version never belongs to two definitions.
    pub version: Option<String>,
    /// The definition.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Data>,
    /// True if the workflow can be started.
    pub enabled: Option<bool>,
    /// Tags for searches; null to clear them.
    #[serde(default, deserialize_with = "stated")]
    #[schema(value_type = Option<Vec<String>>)]
    pub tags: Option<Option<Vec<String>>>,
}

/// A complete workflow to save. Omitted fields are cleared, except `version` and `enabled`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whole {
    /// Id of the workflow; default: the workflow with this slug, or a new one.
    pub id: Option<String>,
    /// Human-readable id, unique among the member's workflows.
    pub slug: Option<String>,
    /// Display name; default: the slug or the id.
    pub name: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Semantic version; default 1.0.0 for a new workflow, and an increment of the last part for a new definition. A
    /// definition that was saved before gets its former version again; a version never belongs to two definitions.
    pub version: Option<String>,
    /// The definition.
    #[schema(value_type = Object)]
    pub data: Data,
    /// True if the workflow can be started; default: unchanged, or true for a new workflow.
    pub enabled: Option<bool>,
    /// Tags for searches.
    pub tags: Option<Vec<String>>,
}

impl Whole {
    /// The draft that replaces all fields of the workflow with this id.
    fn draft(&self, id: &str) -> Draft {
        let Self { slug, name, description, version, data, enabled, tags, .. } = self.clone();
        let name = Some(name.or_else(|| slug.clone()).unwrap_or_else(|| id.to_string()));
        let (slug, description, tags) = (Some(slug), Some(description), Some(tags));
        Draft { slug, name, description, version, data: Some(data), enabled, tags }
    }
}

/// A saved workflow.
pub(crate) struct Saved {
    /// State after the change.
    pub held: Held<Workflow>,
    /// Warnings for the author. They are computed before the commit, so that an error there saves nothing.
    pub warnings: Vec<Data>,
}

/// Saves a whole workflow.
pub(crate) fn sync(app: &App, caller: &Caller, whole: &Whole, seen: Option<Tag>) -> Answer<Saved> {
    retried(app, || {
        let (id, held) = target(app, caller, whole)?;
        let prepared = prepare(app, caller, &id, held, &whole.draft(&id), Source::Sync, seen)?;
        one(app, caller, prepared)
    })
}

/// Saves all given workflows of the caller, and deletes the caller's other ones.
pub(crate) fn sync_all(app: &App, caller: &Caller, wholes: &[Whole]) -> Answer<(Vec<Saved>, Vec<String>)> {
    retried(app, || {
        let shelf = Shelf::of(app.catalogue(), &caller.organization);
        let mut prepared: Vec<Prepared> = Vec::new();
        for whole in wholes {
            let (id, held) = target(app, caller, whole)?;
            if prepared.iter().any(|other| other.held.id == id) {
                return Err(Problem::field("workflows", format!("two of them are `{id}`")));
            }
            prepared.push(prepare(app, caller, &id, held, &whole.draft(&id), Source::Sync, None)?);
        }
        let mut change = changes(app, &prepared);
        check_given(&change.puts)?;
        let mut deleted = Vec::new();
        for other in shelf.all::<Workflow>(Some(("user", caller.user.clone()))) {
            let other = other?;
            if prepared.iter().all(|kept| kept.held.id != other.id) {
                change.removals.push(shelf.removal(&other));
                change.audit.push(entry(caller, "workflow.delete", &other.id, Value::Null));
                deleted.push(other.id);
            }
        }
        let held: Vec<_> = prepared.into_iter().map(|prepared| prepared.held).collect();
        let coming = Coming::of(&held, &deleted);
        for held in &held {
            check_circle(app, shelf, &held.body, &coming)?;
        }
        let told = held.iter().map(|held| of_saved(app, caller, &held.body, &coming)).collect::<Answer<Vec<_>>>()?;
        let saved = held.into_iter().zip(told).map(|(held, warnings)| Saved { held, warnings }).collect();
        Ok((change, (saved, deleted)))
    })
}

/// Changes fields of a workflow.
pub(crate) fn update(
    app: &App,
    caller: &Caller,
    draft: &Draft,
    seen: Option<Tag>,
    find: impl Fn() -> Answer<Held<Workflow>>,
) -> Answer<Saved> {
    retried(app, || {
        let held = find()?;
        let id = held.id.clone();
        let prepared = prepare(app, caller, &id, Some(held), draft, Source::Update, seen)?;
        one(app, caller, prepared)
    })
}

/// Deletes a workflow. Its version history stays.
pub(crate) fn delete(
    app: &App,
    caller: &Caller,
    seen: Option<Tag>,
    find: impl Fn() -> Answer<Held<Workflow>>,
) -> Answer<()> {
    retried(app, || {
        let held = find()?;
        check_owner(caller, &held)?;
        check_seen(seen, Some(held.tag()))?;
        let removals = vec![Shelf::of(app.catalogue(), &caller.organization).removal(&held)];
        let audit = vec![entry(caller, "workflow.delete", &held.id, Value::Null)];
        Ok((Change { removals, audit, sealing: *app.engine.key(), ..Change::default() }, ()))
    })
}

/// The next state of a workflow with its writes.
struct Prepared {
    held: Held<Workflow>,
    puts: Vec<Put>,
    audit: AuditEntry,
}

/// The change that saves one workflow, and its result.
fn one(app: &App, caller: &Caller, prepared: Prepared) -> Answer<(Change, Saved)> {
    let (change, held) = (changes(app, [&prepared]), prepared.held);
    let coming = Coming::of([&held], &[]);
    check_circle(app, Shelf::of(app.catalogue(), &caller.organization), &held.body, &coming)?;
    let warnings = of_saved(app, caller, &held.body, &coming)?;
    Ok((change, Saved { held, warnings }))
}

fn changes<'a>(app: &App, prepared: impl IntoIterator<Item = &'a Prepared>) -> Change {
    let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
    for Prepared { puts, audit, .. } in prepared {
        change.puts.extend(puts.iter().cloned());
        change.audit.push(audit.clone());
    }
    change
}

/// Commits a change. After a conflict with a concurrent change it is prepared anew, which checks `If-Match` again.
fn retried<T>(app: &App, mut prepare: impl FnMut() -> Answer<(Change, T)>) -> Answer<T> {
    for _ in 0..TRIES {
        let (change, done) = prepare()?;
        match make(app.catalogue(), &change)? {
            Ok(()) => return Ok(done),
            Err(ChangeOutcome::KeyTaken { .. }) => {
                return Err(Problem::new(Code::Conflict, "Another workflow of this member has this slug."));
            }
            Err(_) => {}
        }
    }
    Err(Problem::raced())
}

fn check_owner(caller: &Caller, held: &Held<Workflow>) -> Answer<()> {
    if caller.may_act_for(&held.body.user) {
        return Ok(());
    }
    let message = format!("The workflow `{}` is another member's; its owner or an admin may change it.", held.id);
    Err(Problem::new(Code::Forbidden, message))
}

/// The id of the workflow to save, and its stored state.
fn target(app: &App, caller: &Caller, whole: &Whole) -> Answer<(String, Option<Held<Workflow>>)> {
    let shelf = Shelf::of(app.catalogue(), &caller.organization);
    if let Some(id) = &whole.id {
        check_id("id", id)?;
        return Ok((id.clone(), shelf.get(id)?));
    }
    let by_slug = match &whole.slug {
        Some(slug) => shelf.named::<Workflow>("own slug", &Workflow::own_slug(&caller.user, slug))?,
        None => None,
    };
    match by_slug {
        Some(held) => Ok((held.id.clone(), Some(held))),
        None => Ok((format!("wf-{}", random(8)?), None)),
    }
}

/// Prepares the writes that apply a draft to the stored state.
fn prepare(
    app: &App,
    caller: &Caller,
    id: &str,
    held: Option<Held<Workflow>>,
    draft: &Draft,
    source: Source,
    seen: Option<Tag>,
) -> Answer<Prepared> {
    check(draft)?;
    let shelf = Shelf::of(app.catalogue(), &caller.organization);
    if let Some(held) = &held {
        check_owner(caller, held)?;
    }
    check_seen(seen, held.as_ref().map(Held::tag))?;
    let version = held.as_ref().map_or(0, |held| held.version);
    // Reads the reserved names before resolving any, so that a concurrent assignment causes a conflict.
    let mut puts = given(shelf, id, held.as_ref(), draft)?;
    check_names(shelf, id, held.is_none(), draft)?;
    let now = now_ms();
    let before = held.map(|held| held.body);
    let mut workflow = match &before {
        Some(before) => before.clone(),
        None => fresh(shelf, caller, id, now)?,
    };
    fill(&mut workflow, draft);
    if let Some(data) = &draft.data {
        let document = Document::placeless(data.0.clone());
        let compiled = compile(app, &caller.organization, &document)?;
        workflow.hash = keep(app, shelf.organization(), compiled).plan.workflow_hash.prefixed();
        workflow.data = data.clone();
    }
    workflow.updated_at = now;
    if before.is_none() || draft.data.is_some() || draft.version.is_some() {
        let numbering = number(shelf, id, &workflow, draft.version.as_deref())?;
        workflow.version = numbering.version;
        if let Some(numbers) = numbering.puts {
            workflow.revision += 1;
            let version = history(&workflow, id, caller, source, now);
            puts.push(shelf.put(&version_id(id, workflow.revision), &version, 0)?);
            puts.extend(numbers);
        }
    }
    puts.insert(0, shelf.put(id, &workflow, version)?);
    let action = if before.is_some() { "workflow.update" } else { "workflow.create" };
    let detail = Value::map([
        ("hash", workflow.hash.as_str().into()),
        ("version", workflow.version.as_str().into()),
        ("enabled", workflow.enabled.into()),
    ]);
    let audit = entry(caller, action, id, detail);
    Ok(Prepared { held: Held { id: id.into(), version: version + 1, body: workflow }, puts, audit })
}

/// Reserves the names that a draft adds to a workflow.
fn given(shelf: Shelf<'_>, id: &str, held: Option<&Held<Workflow>>, draft: &Draft) -> Answer<Vec<Put>> {
    let slug = draft.slug.as_ref().and_then(Option::as_deref);
    let before = held.and_then(|held| held.body.slug.as_deref());
    let slug = slug.filter(|slug| *slug != id && Some(*slug) != before);
    let put = |name: &str| {
        let version = shelf.get::<Given>(name)?.map_or(0, |held| held.version);
        shelf.put(name, &Given {}, version)
    };
    held.is_none().then_some(id).into_iter().chain(slug).map(put).collect()
}

/// Rejects an id or slug that two workflows of the same change share.
fn check_given(puts: &[Put]) -> Answer<()> {
    let mut names = BTreeSet::new();
    let given = puts.iter().filter(|put| put.resource.kind == Given::NOUN);
    match given.map(|put| &put.resource.id).find(|name| !names.insert(*name)) {
        Some(name) => Err(Problem::field("workflows", format!("two of them have `{name}` as their id or slug"))),
        None => Ok(()),
    }
}

/// Rejects an id that is another workflow's slug, and a slug that is another workflow's id: a name keeps its meaning.
fn check_names(shelf: Shelf<'_>, id: &str, is_new: bool, draft: &Draft) -> Answer<()> {
    let taken = |what: &str, name: &str, other: &str| {
        Problem::new(Code::Conflict, format!("{what} `{name}` is taken: another workflow has it as its {other}."))
    };
    let listing = Listing { name: Some(("slug", id.to_string())), most: ReadLimit::of(2), ..Listing::default() };
    let slugs = if is_new { shelf.list::<Workflow>(listing)?.rows } else { Vec::new() };
    if slugs.iter().any(|other| other.id != id) {
        return Err(taken("The id", id, "slug"));
    }
    match draft.slug.as_ref().and_then(Option::as_ref) {
        Some(slug) if slug != id && shelf.get::<Workflow>(slug)?.is_some() => Err(taken("The slug", slug, "id")),
        _ => Ok(()),
    }
}

/// A new workflow before the draft is applied. It continues the version history of a deleted workflow with the same id.
fn fresh(shelf: Shelf<'_>, caller: &Caller, id: &str, now: u64) -> Answer<Workflow> {
    let name = Some(("workflow", id.to_string()));
    let listing = Listing { name, is_descending: true, most: ReadLimit::of(1), ..Listing::default() };
    let last = shelf.list::<Version>(listing)?.rows;
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
    })
}

fn fill(workflow: &mut Workflow, draft: &Draft) {
    let Draft { slug, name, description, enabled, tags, .. } = draft.clone();
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

fn history(workflow: &Workflow, id: &str, caller: &Caller, source: Source, now: u64) -> Version {
    Version {
        workflow: id.into(),
        revision: workflow.revision,
        version: workflow.version.clone(),
        hash: workflow.hash.clone(),
        data: workflow.data.clone(),
        source,
        source_proposal_id: None,
        notes: None,
        created_by: caller.user.clone(),
        created_at: now,
    }
}

fn check(draft: &Draft) -> Answer<()> {
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
