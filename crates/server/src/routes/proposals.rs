//! Proposed changes of workflows: lists, creates, reviews and applies them, and returns workflows to earlier versions.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::StatusCode};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::value::Value;
use mainspring_review::limits::SHADOW_EXECUTIONS_MAX;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Data},
        extract::{PathParams, QueryParams},
        pagination::most,
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        Proposal, ProposalStatus, RolloutPlan, Written,
        repository::{Listing, Repository, Stored},
    },
    routes::workflows::{SavedBody, found},
    services::{
        begin_rollout::NewRollout,
        proposal_review::Subject,
        proposal_shadow::{self, Against, StoredShadow},
        proposal_status::status_at,
        proposals::{self, NewProposal, NewReview, Shown, Treatment},
        rollout_choice::check_plan,
        write_proposal::{self, IntentRequest},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(write))
        .routes(routes!(get))
        .routes(routes!(shadow, run_shadow))
        .routes(routes!(review))
        .routes(routes!(apply))
        .routes(routes!(rollback))
}

/// Pages of a list read at most for one response, if few proposals have the requested status.
const PAGES_READ_MAX: usize = 10;

/// Executions of a shadow run, unless the request says otherwise.
const SHADOW_LAST_DEFAULT: usize = 20;

/// A proposal to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateProposal {
    /// `workflowHash` of the definition that it changes. It must be the present one.
    base_workflow_hash: String,
    /// The change.
    proposal: Change,
    /// Id of the execution that led to it. A session proposes as its own execution.
    execution_id: Option<String>,
    /// Time at which it expires, RFC 3339, at most 365 days away; default: in 14 days.
    expires_at: Option<String>,
}

/// A proposed change. The result of `workflow propose` is accepted as it is: its risk and its difference are replaced by
/// those that the server computes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Change {
    /// The proposed definition.
    #[schema(value_type = Object)]
    proposed_workflow: Data,
    /// One sentence: what changes.
    #[schema(max_length = 2000)]
    summary: Option<String>,
    /// Reasons for the change.
    #[schema(max_length = 10000)]
    rationale: Option<String>,
    /// If given, it must equal `baseWorkflowHash`.
    base_hash: Option<String>,
    /// Risk as the author sees it. The server computes the risk.
    #[expect(dead_code, reason = "accepted with the rest of the result of `workflow propose`")]
    risk_level: Option<String>,
    /// Difference as the author sees it. The server computes the difference.
    #[expect(dead_code, reason = "accepted with the rest of the result of `workflow propose`")]
    diff: Option<String>,
}

/// A change in words, which a language model turns into a definition.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WriteProposal {
    /// The change in words.
    #[schema(max_length = 4000)]
    intent: String,
    /// `workflowHash` of the definition to change. If given, it must be the present one.
    base_workflow_hash: Option<String>,
    /// Name of a model in the settings of the server; default: the default model.
    #[schema(max_length = 200)]
    model: Option<String>,
}

/// A review of a proposal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReviewRequest {
    /// True to approve, false to reject.
    approve: bool,
    /// Notes for the author, recorded in the audit log.
    #[schema(max_length = 2000)]
    notes: Option<String>,
    /// `reviewHash` that the reviewer has seen. With it, the review fails if something has changed since.
    review_hash: Option<String>,
}

/// The executions of a shadow run: the last ended ones, chosen so that every branch occurs, or those named.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShadowRequest {
    /// Number of ended executions, 1 to 50; default 20.
    #[schema(minimum = 1, maximum = 50)]
    last: Option<usize>,
    /// Ids of executions of the workflow, instead of `last`.
    #[schema(min_items = 1, max_items = 50)]
    execution_ids: Option<Vec<String>>,
}

/// The last shadow run of a proposal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShadowBody {
    /// Hash of the report. The `reviewHash` of the proposal covers it.
    hash: String,
    /// Id of the member who ran it.
    by: String,
    /// Time, RFC 3339.
    at: String,
    /// `{proposedHash, counts, executions}`.
    #[schema(value_type = Object)]
    report: Data,
}

impl From<StoredShadow> for ShadowBody {
    fn from(StoredShadow { summary, report }: StoredShadow) -> Self {
        Self { hash: summary.hash, by: summary.by, at: timestamps::text(summary.at), report }
    }
}

/// An application.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ApplyRequest {
    /// Treatment of executions that run; default `pin`. With `rollout`, that of its promotion.
    while_running: Option<WhileRunning>,
    /// Begins a rollout: some of the new starts take the definition, and the workflow keeps the present one for the others.
    rollout: Option<RolloutPlan>,
}

/// Treatment of the workflow's unfinished executions when a proposal is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum WhileRunning {
    /// They end with the definition with which they began.
    Pin,
    /// The application is refused while there are any.
    Strict,
    /// New executions wait until all of them have ended.
    Drain,
    /// They continue with the new definition where every step that has begun has its counterpart; the others stay.
    Migrate,
}

/// A version to return to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RollbackRequest {
    /// `workflowHash` of an entry of the history.
    workflow_hash: String,
}

/// A proposal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProposalBody {
    /// Id, unique in the workflow. Ids sort by time.
    id: String,
    /// Workflow, as in `/api/workflows/{id}`.
    workflow_id: String,
    /// Id of the execution that led to it.
    execution_id: Option<String>,
    /// Id of the session that proposed it.
    proposed_by_session_id: Option<String>,
    /// Id of the member who proposed it, or for whom a session did.
    proposed_by: String,
    /// Hash of the definition that it changes.
    base_workflow_hash: String,
    /// Hash of the proposed definition.
    proposed_workflow_hash: String,
    /// The change.
    proposal: ChangeBody,
    /// Status at the time of the response.
    status: ProposalStatus,
    /// Reviews, the oldest first.
    reviews: Vec<ReviewBody>,
    /// Notes of the last review.
    review_notes: Option<String>,
    /// The application.
    applied: Option<AppliedBody>,
    /// Reason of a failed application.
    failure: Option<String>,
    /// Hash of the report of the last shadow run.
    shadow_hash: Option<String>,
    #[serde(flatten)]
    times: Times,
}

/// Times of a proposal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Times {
    /// Time at which it expires, RFC 3339.
    expires_at: String,
    /// Time of creation, RFC 3339.
    created_at: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
}

/// The change of a proposal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangeBody {
    /// The proposed definition.
    #[schema(value_type = Object)]
    proposed_workflow: Data,
    /// One sentence of the author.
    summary: Option<String>,
    /// Reasons of the author.
    rationale: Option<String>,
    /// The model that wrote it, if one did.
    written: Option<WrittenBody>,
}

/// A change that a language model has written.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WrittenBody {
    /// The change in words.
    intent: String,
    /// The model, as its provider names it.
    model: String,
    /// Number of calls.
    calls: u64,
    /// Tokens of the requests.
    input_tokens: u64,
    /// Tokens of the answers.
    output_tokens: u64,
}

impl From<Written> for WrittenBody {
    fn from(Written { intent, model, calls, input_tokens, output_tokens }: Written) -> Self {
        Self { intent, model, calls, input_tokens, output_tokens }
    }
}

/// A review.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReviewBody {
    /// Id of the reviewer.
    by: String,
    /// True for an approval.
    approve: bool,
    /// Notes of the reviewer.
    notes: Option<String>,
    /// Hash over all that was reviewed.
    review_hash: String,
    /// True if something that was reviewed has changed since.
    is_void: bool,
    /// Time, RFC 3339.
    at: String,
}

/// An application of a proposal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AppliedBody {
    /// Id of the member who applied it.
    by: String,
    /// The version of the workflow.
    version: String,
    /// Treatment of the executions that ran: `pin`, `strict`, `drain` or `migrate`; null in proposals of older releases.
    while_running: Option<String>,
    /// The rollout that it began; null if all starts took the definition at once.
    rollout_id: Option<String>,
    /// Time, RFC 3339.
    at: String,
}

/// A proposal with the subject of its review.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DetailedProposal {
    #[serde(flatten)]
    proposal: ProposalBody,
    /// Hash over the report, over the definitions of all workflows that it starts, and over the scenarios of the
    /// workflow. A review is bound to it.
    review_hash: Option<String>,
    /// Names of the workflows that it starts, directly and through others, with their hashes; null for a missing one.
    workflows: BTreeMap<String, Option<String>>,
    /// Hash of the scenarios of the workflow; null if it has none.
    scenarios_hash: Option<String>,
    /// Reason for which scenarios of the workflow failed with the definition when it was proposed. Such a proposal cannot
    /// be applied before they hold.
    scenario_failure: Option<String>,
    /// `{baseHash, proposedHash, risk, findings, findingsTotal, changes, changesTotal, diff}`.
    #[schema(value_type = Option<Object>)]
    report: Data,
}

/// A page of proposals.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Proposals {
    /// Items, newest first.
    proposals: Vec<ProposalBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// An applied proposal with the state of the workflow.
#[derive(Debug, Serialize, ToSchema)]
struct AppliedProposal {
    /// State after the application.
    proposal: DetailedProposal,
    /// The workflow after the change.
    workflow: SavedBody,
}

/// A workflow after a rollback.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RolledBack {
    /// State of the workflow.
    #[serde(flatten)]
    workflow: SavedBody,
    /// True if the workflow had this definition already. Nothing has changed then.
    already_at_version: bool,
}

/// Selects proposals.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Only proposals with this status.
    status: Option<ProposalStatus>,
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

fn body(id: String, proposal: Proposal, status: ProposalStatus) -> ProposalBody {
    let times = (proposal.expires_at, proposal.created_at, proposal.updated_at);
    let Proposal { workflow, author, change, written, reviews, applied, failure, shadow, .. } = proposal;
    let (expires_at, created_at, updated_at) = times;
    let review_notes = reviews.last().and_then(|review| review.notes.clone());
    let review = |review: crate::resources::Review| ReviewBody {
        by: review.by,
        approve: review.approve,
        notes: review.notes,
        review_hash: review.hash,
        is_void: review.is_void,
        at: timestamps::text(review.at),
    };
    ProposalBody {
        id,
        workflow_id: workflow,
        execution_id: author.execution,
        proposed_by_session_id: author.session,
        proposed_by: author.user,
        base_workflow_hash: change.base_hash,
        proposed_workflow_hash: change.hash,
        proposal: ChangeBody {
            proposed_workflow: change.data,
            summary: change.summary,
            rationale: change.rationale,
            written: written.map(Into::into),
        },
        status,
        reviews: reviews.into_iter().map(review).collect(),
        review_notes,
        applied: applied.map(|applied| AppliedBody {
            by: applied.by,
            version: applied.version,
            while_running: applied.while_running,
            rollout_id: applied.rollout,
            at: timestamps::text(applied.at),
        }),
        failure,
        shadow_hash: shadow.map(|shadow| shadow.hash),
        times: Times {
            expires_at: timestamps::text(expires_at),
            created_at: timestamps::text(created_at),
            updated_at: timestamps::text(updated_at),
        },
    }
}

fn detailed(shown: Shown) -> DetailedProposal {
    let Shown { id, body: proposal, status, subject } = shown;
    let scenario_failure = proposal.scenario_failure.clone();
    let proposal = body(id, proposal, status);
    match subject {
        Some(Subject { report, workflows, scenarios, hash }) => DetailedProposal {
            proposal,
            review_hash: Some(hash),
            workflows,
            scenarios_hash: scenarios,
            scenario_failure,
            report: Data(report.to_value()),
        },
        None => DetailedProposal {
            proposal,
            review_hash: None,
            workflows: BTreeMap::new(),
            scenarios_hash: None,
            scenario_failure,
            report: Data(Value::Null),
        },
    }
}

/// List proposed changes of a workflow, newest first.
#[utoipa::path(get, path = "/api/workflows/{id}/proposals", tag = "proposals",
    params(("id" = String, Path), ListQuery),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Proposals), (status = 409, body = ProblemBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<Proposals>> {
    let most = most(query.limit)?;
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        let (repository, now) = (Repository::of(app.catalogue(), &caller.organization), now_ms());
        let key = |proposal: &str| crate::resources::proposal_key(&workflow.id, proposal);
        let (mut rows, mut after) = (Vec::new(), query.cursor.as_deref().map(key));
        for _ in 0..PAGES_READ_MAX {
            let name = Some(("workflow", workflow.id.clone()));
            let page = repository.list::<Proposal>(Listing { name, after, is_descending: true, most })?;
            after = page.next_cursor(|last| last.id.clone());
            let shown = page.rows.into_iter().map(|stored: Stored<Proposal>| {
                let status = status_at(&stored.body, &workflow, now);
                body(short(&stored.id), stored.body, status)
            });
            rows.extend(shown.filter(|shown| query.status.is_none_or(|wanted| wanted == shown.status)));
            // A page of one status may be short. It is never empty while more follow, except after many pages.
            if !rows.is_empty() || after.is_none() {
                break;
            }
        }
        Ok(Json(Proposals { proposals: rows, next_cursor: after.map(|after| short(&after)) }))
    })
    .await
}

/// Ids of workflows contain no slash.
fn short(key: &str) -> String {
    key.split_once('/').map_or(key, |(_, id)| id).to_string()
}

/// Propose a change of a workflow. Its definition must have `constraints.allowSelfModification`. A session may propose
/// for the workflow of its execution.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals", tag = "proposals", request_body = CreateProposal,
    params(("id" = String, Path)),
    extensions(("x-permission" = json!("proposals:write"))),
    responses((status = 201, body = DetailedProposal), (status = 409, body = ProblemBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(request): Body<CreateProposal>,
) -> Result<(StatusCode, Json<DetailedProposal>)> {
    let expires_at = request.expires_at.as_deref().map(|text| timestamps::read("expiresAt", text)).transpose()?;
    let Change { proposed_workflow, summary, rationale, base_hash, .. } = request.proposal;
    if base_hash.is_some_and(|base_hash| base_hash != request.base_workflow_hash) {
        return Err(Problem::field("proposal.baseHash", "it is not `baseWorkflowHash`"));
    }
    let new = NewProposal {
        id: None,
        base_hash: request.base_workflow_hash,
        data: proposed_workflow,
        summary,
        rationale,
        execution: request.execution_id,
        expires_at,
        written: None,
    };
    app.run(move |app| {
        let shown = proposals::create(app, &caller, &new, || found(app, &caller, &id))?;
        Ok((StatusCode::CREATED, Json(detailed(shown))))
    })
    .await
}

/// Have a language model of the server write a change, and propose it. The model is asked again, at most twice, with the
/// mistakes that the compiler finds. The answer takes as long as the model does, up to some minutes. Sessions and agents
/// cannot: they send definitions.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals/write", tag = "proposals", request_body = WriteProposal,
    params(("id" = String, Path)),
    extensions(("x-permission" = json!("proposals:write"))),
    responses((status = 201, body = DetailedProposal), (status = 409, body = ProblemBody),
        (status = 501, body = ProblemBody), (status = 502, body = ProblemBody)))]
async fn write(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(request): Body<WriteProposal>,
) -> Result<(StatusCode, Json<DetailedProposal>)> {
    let WriteProposal { intent, base_workflow_hash, model } = request;
    let request = IntentRequest { base_hash: base_workflow_hash, intent, model };
    let by = caller.clone();
    let shown = write_proposal::write(&app, &caller, request, move |app| found(app, &by, &id)).await?;
    Ok((StatusCode::CREATED, Json(detailed(shown))))
}

/// Get a proposal with its difference, its findings and its risk.
#[utoipa::path(get, path = "/api/workflows/{id}/proposals/{proposalId}", tag = "proposals",
    params(("id" = String, Path), ("proposalId" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = DetailedProposal), (status = 409, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, proposal)): PathParams<(String, String)>,
) -> Result<Json<DetailedProposal>> {
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        Ok(Json(detailed(proposals::show(app, &caller, &workflow, &proposal)?)))
    })
    .await
}

/// Get the report of the last shadow run of a proposal.
#[utoipa::path(get, path = "/api/workflows/{id}/proposals/{proposalId}/shadow", tag = "proposals",
    params(("id" = String, Path), ("proposalId" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = ShadowBody)))]
async fn shadow(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, proposal)): PathParams<(String, String)>,
) -> Result<Json<ShadowBody>> {
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        Ok(Json(proposal_shadow::show(app, &caller, &workflow, &proposal)?.into()))
    })
    .await
}

/// Replay recorded executions with the definition of a pending proposal, as its author, the owner of the workflow or an
/// admin. No effect is performed.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals/{proposalId}/shadow", tag = "proposals",
    request_body = ShadowRequest, params(("id" = String, Path), ("proposalId" = String, Path)),
    extensions(("x-permission" = json!("proposals:write"))),
    responses((status = 200, body = ShadowBody), (status = 409, body = ProblemBody)))]
async fn run_shadow(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, proposal)): PathParams<(String, String)>,
    Body(request): Body<ShadowRequest>,
) -> Result<Json<ShadowBody>> {
    let against = match (request.last, request.execution_ids) {
        (Some(_), Some(_)) => return Err(Problem::field("executionIds", "give `last` or `executionIds`, not both")),
        (None, Some(ids)) => Against::Executions(ids),
        (last, None) => match last.unwrap_or(SHADOW_LAST_DEFAULT) {
            last @ 1..=SHADOW_EXECUTIONS_MAX => Against::Last(last),
            _ => return Err(Problem::field("last", format!("it must be 1 to {SHADOW_EXECUTIONS_MAX}"))),
        },
    };
    app.run(move |app| {
        let ran = proposal_shadow::run(app, &caller, &proposal, &against, || found(app, &caller, &id))?;
        Ok(Json(ran.into()))
    })
    .await
}

/// Approve or reject a proposal, as the owner of the workflow or as an admin.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals/{proposalId}/review", tag = "proposals",
    request_body = ReviewRequest, params(("id" = String, Path), ("proposalId" = String, Path)),
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = DetailedProposal), (status = 409, body = ProblemBody)))]
async fn review(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, proposal)): PathParams<(String, String)>,
    Body(request): Body<ReviewRequest>,
) -> Result<Json<DetailedProposal>> {
    let new = NewReview { approve: request.approve, notes: request.notes, hash: request.review_hash };
    app.run(move |app| {
        let shown = proposals::review(app, &caller, &proposal, &new, || found(app, &caller, &id))?;
        Ok(Json(detailed(shown)))
    })
    .await
}

/// Apply an approved proposal, as the owner of the workflow or as an admin.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals/{proposalId}/apply", tag = "proposals",
    request_body = ApplyRequest, params(("id" = String, Path), ("proposalId" = String, Path)),
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = AppliedProposal), (status = 409, body = ProblemBody)))]
async fn apply(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, proposal)): PathParams<(String, String)>,
    Body(request): Body<ApplyRequest>,
) -> Result<Json<AppliedProposal>> {
    let while_running = match request.while_running.unwrap_or(WhileRunning::Pin) {
        WhileRunning::Pin => proposals::WhileRunning::Pin,
        WhileRunning::Strict => proposals::WhileRunning::Strict,
        WhileRunning::Drain => proposals::WhileRunning::Drain,
        WhileRunning::Migrate => proposals::WhileRunning::Migrate,
    };
    let is_of_all = matches!(while_running, proposals::WhileRunning::Strict | proposals::WhileRunning::Migrate);
    if request.rollout.is_some() && is_of_all {
        let message = "a rollout has executions of both definitions: use `pin` or `drain`, which its promotion obeys";
        return Err(Problem::field("whileRunning", message));
    }
    let rollout = request.rollout.map(|plan| {
        check_plan(&plan)?;
        NewRollout::of(plan, while_running.name())
    });
    let treatment = Treatment { while_running, rollout: rollout.transpose()? };
    app.run(move |app| {
        let (shown, saved) = proposals::apply(app, &caller, &proposal, &treatment, || found(app, &caller, &id))?;
        Ok(Json(AppliedProposal { proposal: detailed(shown), workflow: SavedBody::from(saved) }))
    })
    .await
}

/// Return a workflow to a definition of its history.
#[utoipa::path(post, path = "/api/workflows/{id}/rollback", tag = "proposals", request_body = RollbackRequest,
    params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = RolledBack), (status = 409, body = ProblemBody)))]
async fn rollback(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(request): Body<RollbackRequest>,
) -> Result<Json<RolledBack>> {
    app.run(move |app| {
        let (saved, already_at_version) =
            proposals::rollback(app, &caller, &request.workflow_hash, || found(app, &caller, &id))?;
        Ok(Json(RolledBack { workflow: SavedBody::from(saved), already_at_version }))
    })
    .await
}
