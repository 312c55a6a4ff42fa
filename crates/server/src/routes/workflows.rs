//! Workflows: lists, saves and deletes them, and shows their version history and executions.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use mainspring_store::ReadLimit;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Data, Tagged, if_match, no_if_match},
        extract::{PathParams, QueryParams},
        pagination::{PAGE_MAX, PageQuery, most},
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        ActiveRollout, Drain, RepositoryContext, Source, Version, VersionReturn, Workflow,
        repository::{Listing, Repository, Stored},
    },
    services::{
        drains,
        execution_view::ExecutionListed,
        folder_parts::{OrganizationPart, Parts, ScenariosPart, TriggerPart},
        proposals,
        save_workflow::{self, Draft, Saved, Set, Whole},
        workflow_names::resolve,
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get, update, delete))
        .routes(routes!(sync))
        .routes(routes!(sync_all))
        .routes(routes!(history))
        .routes(routes!(executions))
        .routes(routes!(end_drain))
}

/// A workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowBody {
    /// Id, unique in the organization.
    id: String,
    /// Id of the owner.
    user_id: String,
    /// Human-readable id, unique among the member's workflows.
    slug: Option<String>,
    /// Display name.
    name: String,
    /// Purpose, as the author describes it.
    description: Option<String>,
    /// Semantic version.
    version: String,
    /// The definition.
    #[schema(value_type = Object)]
    data: Data,
    /// Hash of the normalized definition: `sha256:…`.
    workflow_hash: String,
    /// True if the workflow can be started.
    enabled: bool,
    /// Tags for searches.
    tags: Vec<String>,
    /// Repository of its executions, unless a trigger names another; null for none.
    repository: Option<RepositoryContext>,
    /// The drain since a proposal was applied with `drain`; null if there is none.
    draining: Option<DrainBody>,
    /// The rollout, while some of the starts take the definition of a proposal; null if there is none.
    rollout: Option<ActiveRolloutBody>,
    /// Time of creation, RFC 3339.
    created_at: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
}

/// The rollout of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActiveRolloutBody {
    /// Id, as in `/api/workflows/{id}/rollouts/{rolloutId}`.
    id: String,
    /// The applied proposal.
    proposal_id: String,
    /// Percentage of the starts that take the candidate.
    percent: u32,
    /// Semantic version of the candidate.
    candidate_version: String,
    /// `workflowHash` of the candidate in the history.
    candidate_hash: String,
}

impl From<ActiveRollout> for ActiveRolloutBody {
    fn from(ActiveRollout { id, proposal, percent, candidate, .. }: ActiveRollout) -> Self {
        let (candidate_version, candidate_hash) = (candidate.version, candidate.hash);
        Self { id, proposal_id: proposal, percent, candidate_version, candidate_hash }
    }
}

/// A drain of a workflow: executions of its new definitions wait until none of an older one is unfinished.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DrainBody {
    /// Time at which the proposal was applied, RFC 3339.
    since: String,
    /// Id of the member who applied it.
    by: String,
    /// The applied proposal.
    proposal_id: String,
    /// Hash of the definition before.
    from_hash: String,
    /// Unfinished executions of older definitions, up to 10,000; null in lists and in responses to changes.
    waits_for: Option<usize>,
    /// True if there are more than `waitsFor` says; null if that is null.
    waits_for_more: Option<bool>,
}

impl From<Drain> for DrainBody {
    fn from(Drain { since, by, proposal, from, .. }: Drain) -> Self {
        Self {
            since: timestamps::text(since),
            by,
            proposal_id: proposal,
            from_hash: from,
            waits_for: None,
            waits_for_more: None,
        }
    }
}

impl From<Stored<Workflow>> for WorkflowBody {
    fn from(stored: Stored<Workflow>) -> Self {
        let Workflow {
            user,
            slug,
            name,
            description,
            version,
            data,
            hash,
            enabled,
            tags,
            created_at,
            updated_at,
            drain,
            rollout,
            repository,
            revision: _,
        } = stored.body;
        Self {
            id: stored.id,
            user_id: user,
            slug,
            name,
            description,
            version,
            data,
            workflow_hash: hash,
            enabled,
            tags,
            draining: drain.map(Into::into),
            rollout: rollout.map(Into::into),
            repository,
            created_at: timestamps::text(created_at),
            updated_at: timestamps::text(updated_at),
        }
    }
}

/// A saved workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedBody {
    /// Current state of the workflow.
    #[serde(flatten)]
    workflow: WorkflowBody,
    /// Warnings: `{severity, code, path, line, column, message, help, fix}`. They include approvers of the workflow and its
    /// subworkflows who currently cannot decide.
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<Data>,
}

impl From<Saved> for SavedBody {
    fn from(Saved { stored, warnings, .. }: Saved) -> Self {
        Self { workflow: WorkflowBody::from(stored), warnings }
    }
}

/// A page of workflows.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Workflows {
    /// Members in the order of their ids.
    workflows: Vec<WorkflowBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// The complete set of a member's workflows.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SyncAll {
    /// The complete set. Other workflows of the member are deleted.
    workflows: Vec<Whole>,
    /// True if other workflows of the member are kept.
    keep_others: Option<bool>,
    /// Hashes of the workflows that the client has compared, by slug or id; null for one that was not there. The request
    /// fails if one has changed since, or if it would delete a workflow that is not listed.
    expected: Option<BTreeMap<String, Option<String>>>,
    /// Triggers to create, to replace and to delete. Also requires `executions:start`.
    #[serde(default)]
    triggers: Vec<TriggerPart>,
    /// Scenarios to replace and to remove, by slug or id of the workflow. They are read, and do not run.
    #[serde(default)]
    scenarios: BTreeMap<String, ScenariosPart>,
    /// Settings of the organization to change. Also requires `organization:write`.
    organization: Option<OrganizationPart>,
}

/// Result of saving a complete set.
#[derive(Debug, Serialize, ToSchema)]
struct Synced {
    /// Current state of the workflows, each with its warnings.
    workflows: Vec<SavedBody>,
    /// Ids of the deleted workflows.
    deleted: Vec<String>,
}

/// A version of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct VersionBody {
    /// Unique id.
    id: String,
    /// Workflow, as in `/api/workflows/{id}`.
    workflow_id: String,
    /// Semantic version.
    workflow_version: String,
    /// Hash of the normalized definition: `sha256:…`.
    workflow_hash: String,
    /// The definition.
    #[schema(value_type = Object)]
    workflow_data: Data,
    /// Origin of the version.
    source: Source,
    /// Id of the proposal that created the version.
    source_proposal_id: Option<String>,
    /// Release notes of the author.
    notes: Option<String>,
    /// Id of the member who created it.
    created_by: String,
    /// Time, RFC 3339.
    created_at: String,
    /// Returns of the workflow to this version, such as rollbacks, newest first. The history shows the newest 200 returns
    /// of a workflow, and the audit log has all.
    returns: Vec<ReturnBody>,
}

/// A return of a workflow to a version of its history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReturnBody {
    /// The kind of change.
    source: Source,
    /// Id of the applied proposal.
    source_proposal_id: Option<String>,
    /// Hash of the definition before: `sha256:…`.
    from_hash: String,
    /// Id of the member who made the change.
    created_by: String,
    /// Time, RFC 3339.
    created_at: String,
}

/// A page of versions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct History {
    /// Items, newest first.
    history: Vec<VersionBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// A page of executions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Executions {
    /// Items, newest first.
    pub executions: Vec<ExecutionListed>,
    /// `cursor` of the next page; null for the last page.
    pub next_cursor: Option<String>,
}

/// The workflow with this id or slug in the caller's organization.
pub(super) fn found(app: &App, caller: &Caller, name: &str) -> Result<Stored<Workflow>> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    resolve(repository, &caller.user, name)?.ok_or_else(|| Problem::not_found("workflow"))
}

/// List the workflows of the organization.
#[utoipa::path(get, path = "/api/workflows", tag = "workflows", params(PageQuery),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Workflows)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Workflows>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let listing = Listing { after: page.cursor, most, ..Listing::default() };
        let found = Repository::of(app.catalogue(), &caller.organization).list::<Workflow>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        Ok(Json(Workflows { workflows: found.rows.into_iter().map(WorkflowBody::from).collect(), next_cursor }))
    })
    .await
}

/// Get a workflow by its id or slug.
#[utoipa::path(get, path = "/api/workflows/{id}", tag = "workflows", params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = WorkflowBody), (status = 409, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Tagged<WorkflowBody>> {
    app.run(move |app| {
        let stored = found(app, &caller, &id)?;
        let waits_for = drains::waits_for(app, &caller, &stored)?;
        let mut shown = tagged(stored);
        // A drain that is over is removed by the next read of the node that counts.
        shown.body.draining = waits_for.and(shown.body.draining.take());
        if let Some(draining) = &mut shown.body.draining {
            draining.waits_for = waits_for.map(|waits| waits.count);
            draining.waits_for_more = waits_for.map(|waits| waits.is_cut);
        }
        Ok(shown)
    })
    .await
}

/// End the drain of a workflow, as its owner or as an admin: the executions that wait begin beside the older ones.
#[utoipa::path(delete, path = "/api/workflows/{id}/drain", tag = "workflows", params(("id" = String, Path)),
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = WorkflowBody), (status = 409, body = ProblemBody)))]
async fn end_drain(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Tagged<WorkflowBody>> {
    app.run(move |app| proposals::end_drain(app, &caller, || found(app, &caller, &id)).map(tagged)).await
}

fn tagged(stored: Stored<Workflow>) -> Tagged<WorkflowBody> {
    Tagged { tag: stored.tag(), body: WorkflowBody::from(stored) }
}

/// Save a complete workflow: creates it, or replaces the one with this id or slug.
#[utoipa::path(post, path = "/api/workflows/sync", tag = "workflows", request_body = Whole,
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = SavedBody), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn sync(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<Whole>,
) -> Result<Tagged<SavedBody>> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        let saved = save_workflow::sync(app, &caller, &body, seen)?;
        Ok(Tagged { tag: saved.stored.tag(), body: SavedBody::from(saved) })
    })
    .await
}

/// Save the complete set of the caller's workflows, and delete the others. The change is atomic, with triggers, scenarios
/// and settings of the organization, which change only if the request names them.
#[utoipa::path(post, path = "/api/workflows/sync-all", tag = "workflows", request_body = SyncAll,
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = Synced), (status = 409, body = ProblemBody), (status = 501, body = ProblemBody)))]
async fn sync_all(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<SyncAll>,
) -> Result<Json<Synced>> {
    no_if_match(&headers)?;
    app.run(move |app| {
        let SyncAll { workflows, keep_others, expected, triggers, scenarios, organization } = body;
        let parts = Parts { triggers, scenarios, organization };
        let (wholes, compared) = (workflows.as_slice(), expected.as_ref());
        let set = Set { wholes, keeps_others: keep_others.unwrap_or(false), compared, parts: &parts };
        let (saved, deleted) = save_workflow::sync_all(app, &caller, &set)?;
        Ok(Json(Synced { workflows: saved.into_iter().map(SavedBody::from).collect(), deleted }))
    })
    .await
}

/// Update fields of a workflow. Omitted fields keep their values. With `If-Match`, only if the version matches the
/// `ETag`.
#[utoipa::path(put, path = "/api/workflows/{id}", tag = "workflows", params(("id" = String, Path)), request_body = Draft,
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = SavedBody), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    Body(draft): Body<Draft>,
) -> Result<Tagged<SavedBody>> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        let saved = save_workflow::update(app, &caller, &draft, seen, || found(app, &caller, &id))?;
        Ok(Tagged { tag: saved.stored.tag(), body: SavedBody::from(saved) })
    })
    .await
}

/// Delete a workflow and its triggers. Its executions and its history are kept.
#[utoipa::path(delete, path = "/api/workflows/{id}", tag = "workflows", params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 204), (status = 409, body = ProblemBody), (status = 412, body = ProblemBody)))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        save_workflow::delete(app, &caller, seen, || found(app, &caller, &id))?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// List the versions of a workflow, newest first; also of a deleted workflow.
#[utoipa::path(get, path = "/api/workflows/{id}/history", tag = "workflows", params(("id" = String, Path), PageQuery),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = History), (status = 409, body = ProblemBody)))]
async fn history(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<History>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let workflow = resolve(repository, &caller.user, &id)?.map_or(id, |stored| stored.id);
        let returns = Listing {
            name: Some(("workflow", workflow.clone())),
            is_descending: true,
            most: ReadLimit::of(PAGE_MAX),
            ..Listing::default()
        };
        let returns: Vec<VersionReturn> =
            repository.list(returns)?.rows.into_iter().map(|stored: Stored<VersionReturn>| stored.body).collect();
        let (name, is_first) = (Some(("workflow", workflow)), page.cursor.is_none());
        let found = repository.list::<Version>(Listing { name, after: page.cursor, is_descending: true, most })?;
        if found.rows.is_empty() && is_first {
            return Err(Problem::not_found("workflow"));
        }
        let next_cursor = found.next_cursor(|last| last.id.clone());
        Ok(Json(History {
            history: found.rows.into_iter().map(|stored| version(stored, &returns)).collect(),
            next_cursor,
        }))
    })
    .await
}

fn version(stored: Stored<Version>, returns: &[VersionReturn]) -> VersionBody {
    let body = stored.body;
    let own = returns.iter().filter(|one| one.hash == body.hash).map(|one| ReturnBody {
        source: one.source,
        source_proposal_id: one.source_proposal_id.clone(),
        from_hash: one.from_hash.clone(),
        created_by: one.created_by.clone(),
        created_at: timestamps::text(one.created_at),
    });
    let returns = own.collect();
    VersionBody {
        id: stored.id,
        workflow_id: body.workflow,
        workflow_version: body.version,
        workflow_hash: body.hash,
        workflow_data: body.data,
        source: body.source,
        source_proposal_id: body.source_proposal_id,
        notes: body.notes,
        created_by: body.created_by,
        created_at: timestamps::text(body.created_at),
        returns,
    }
}

/// List the executions of a workflow, newest first.
#[utoipa::path(get, path = "/api/workflows/{id}/executions", tag = "workflows", params(("id" = String, Path), PageQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Executions), (status = 409, body = ProblemBody)))]
async fn executions(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Executions>> {
    app.run(move |app| {
        // Executions of a deleted workflow remain.
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let stored = resolve(repository, &caller.user, &id)?;
        let (is_there, workflow) = (stored.is_some() || page.cursor.is_some(), stored.map_or(id, |stored| stored.id));
        let found =
            super::executions::page(app, &caller, Vec::new(), Some(workflow), page.limit, page.cursor.as_deref())?;
        if !is_there && found.executions.is_empty() {
            return Err(Problem::not_found("workflow"));
        }
        Ok(found)
    })
    .await
}
