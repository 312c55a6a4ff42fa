//! Rollouts of workflows: shows both sides with their figures, and promotes or aborts the candidate.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Body,
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most},
        problem::{ProblemBody, Result},
        timestamps,
    },
    resources::{
        Refusal, Rollout, RolloutEnd, RolloutPlan, RolloutStatus, RolloutVersion, SideFigures,
        repository::{Listing, Repository, Stored},
        rollout_key,
    },
    routes::workflows::found,
    services::{
        rollout_figures::{figures, judge},
        rollout_progress::progress,
        rollouts::{Decision, end},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(promote)).routes(routes!(abort))
}

/// A rollout.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RolloutBody {
    /// Id, unique in the workflow. Ids sort by time.
    id: String,
    /// Workflow, as in `/api/workflows/{id}`.
    workflow_id: String,
    /// The applied proposal.
    proposal_id: String,
    /// `running` until the decision.
    status: RolloutStatus,
    /// The share, and the conditions of decisions.
    #[serde(flatten)]
    plan: RolloutPlan,
    /// Treatment of executions that run at the promotion: `pin` or `drain`.
    while_running: String,
    /// The definition that the other starts take.
    stable: RolloutSide,
    /// The definition that is tried.
    candidate: RolloutSide,
    /// The judgment at the thresholds; null in lists, without thresholds, and after the end.
    verdict: Option<VerdictBody>,
    /// The last automatic promotion or abort that was refused, which the server repeats every minute; null in lists and
    /// without one.
    last_refusal: Option<RefusalBody>,
    /// Id of the member who applied the proposal.
    by: String,
    /// Time of the application, RFC 3339.
    since: String,
    /// The decision; null while it runs.
    ended: Option<EndBody>,
}

/// A definition of a rollout with its executions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RolloutSide {
    /// Hash of the definition.
    workflow_hash: String,
    /// Its semantic version.
    version: String,
    /// Its figures; null in lists.
    figures: Option<SideFigures>,
}

impl RolloutSide {
    fn of(version: RolloutVersion, figures: Option<SideFigures>) -> Self {
        Self { workflow_hash: version.hash, version: version.version, figures }
    }
}

/// The judgment of a rollout at its thresholds.
#[derive(Debug, Serialize, ToSchema)]
struct VerdictBody {
    /// `waits`, `exceeded` or `kept`.
    status: &'static str,
    /// The reasons, a sentence each.
    reasons: Vec<String>,
}

/// The refusal of an automatic decision.
#[derive(Debug, Serialize, ToSchema)]
struct RefusalBody {
    /// Time, RFC 3339.
    at: String,
    /// The reason, a sentence.
    message: String,
}

impl From<Refusal> for RefusalBody {
    fn from(Refusal { at, message }: Refusal) -> Self {
        Self { at: timestamps::text(at), message }
    }
}

/// The end of a rollout.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EndBody {
    /// Id of the member who decided, or in whose name the server did.
    by: String,
    /// True if the server decided at the thresholds.
    automatic: bool,
    /// The reason of the member, or the thresholds.
    reason: String,
    /// Figures of the stable definition at the decision.
    stable: SideFigures,
    /// Figures of the candidate at the decision.
    candidate: SideFigures,
    /// Time, RFC 3339.
    at: String,
}

impl From<RolloutEnd> for EndBody {
    fn from(RolloutEnd { by, automatic, reason, figures, at, .. }: RolloutEnd) -> Self {
        let (stable, candidate) = (figures.stable, figures.candidate);
        Self { by, automatic, reason, stable, candidate, at: timestamps::text(at) }
    }
}

/// A page of rollouts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Rollouts {
    /// Items, newest first.
    rollouts: Vec<RolloutBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// A decision about a rollout.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DecideRollout {
    /// The reason, recorded in the audit log.
    #[schema(max_length = 2000)]
    reason: String,
}

/// Ids of workflows contain no slash.
fn short(key: &str) -> String {
    key.split_once('/').map_or(key, |(_, id)| id).to_string()
}

fn body(stored: Stored<Rollout>) -> RolloutBody {
    let Rollout { workflow, proposal, plan, while_running, stable, candidate, by, since, ended } = stored.body;
    RolloutBody {
        id: short(&stored.id),
        workflow_id: workflow,
        proposal_id: proposal,
        status: ended.as_ref().map_or(RolloutStatus::Running, |ended| ended.status),
        plan,
        while_running,
        stable: RolloutSide::of(stable, None),
        candidate: RolloutSide::of(candidate, None),
        verdict: None,
        last_refusal: None,
        by,
        since: timestamps::text(since),
        ended: ended.map(Into::into),
    }
}

/// A rollout with its present figures.
fn detailed(app: &App, organization: &str, stored: Stored<Rollout>) -> Result<Json<RolloutBody>> {
    let both = figures(app, organization, &stored)?;
    let refusal = progress(Repository::of(app.catalogue(), organization), &stored.id)?.body.last_refusal;
    let verdict = judge(&stored.body.plan, &both).filter(|_| stored.body.ended.is_none());
    let mut shown = body(stored);
    shown.verdict = verdict.map(|verdict| VerdictBody { status: verdict.name(), reasons: verdict.reasons().to_vec() });
    shown.last_refusal = refusal.map(Into::into);
    (shown.stable.figures, shown.candidate.figures) = (Some(both.stable), Some(both.candidate));
    Ok(Json(shown))
}

/// List the rollouts of a workflow, newest first.
#[utoipa::path(get, path = "/api/workflows/{id}/rollouts", tag = "proposals",
    params(("id" = String, Path), PageQuery),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Rollouts), (status = 409, body = ProblemBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Rollouts>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        let after = page.cursor.map(|cursor| rollout_key(&workflow.id, &cursor));
        let listing = Listing { name: Some(("workflow", workflow.id)), after, is_descending: true, most };
        let page = Repository::of(app.catalogue(), &caller.organization).list::<Rollout>(listing)?;
        let next_cursor = page.next_cursor(|last| short(&last.id));
        Ok(Json(Rollouts { rollouts: page.rows.into_iter().map(body).collect(), next_cursor }))
    })
    .await
}

/// Get a rollout with the figures of both sides.
#[utoipa::path(get, path = "/api/workflows/{id}/rollouts/{rolloutId}", tag = "proposals",
    params(("id" = String, Path), ("rolloutId" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = RolloutBody), (status = 409, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, rollout)): PathParams<(String, String)>,
) -> Result<Json<RolloutBody>> {
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        let repository = Repository::of(app.catalogue(), &caller.organization);
        detailed(app, &caller.organization, repository.require::<Rollout>(&rollout_key(&workflow.id, &rollout))?)
    })
    .await
}

/// Promote the candidate of a rollout, as the owner of the workflow or as an admin: all new starts take it.
#[utoipa::path(post, path = "/api/workflows/{id}/rollouts/{rolloutId}/promote", tag = "proposals",
    request_body = DecideRollout, params(("id" = String, Path), ("rolloutId" = String, Path)),
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = RolloutBody), (status = 409, body = ProblemBody)))]
async fn promote(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, rollout)): PathParams<(String, String)>,
    Body(request): Body<DecideRollout>,
) -> Result<Json<RolloutBody>> {
    decide(app, caller, (id, rollout), RolloutStatus::Promoted, request).await
}

/// Abort a rollout, as the owner of the workflow or as an admin: no new start takes the candidate.
#[utoipa::path(post, path = "/api/workflows/{id}/rollouts/{rolloutId}/abort", tag = "proposals",
    request_body = DecideRollout, params(("id" = String, Path), ("rolloutId" = String, Path)),
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, body = RolloutBody), (status = 409, body = ProblemBody)))]
async fn abort(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, rollout)): PathParams<(String, String)>,
    Body(request): Body<DecideRollout>,
) -> Result<Json<RolloutBody>> {
    decide(app, caller, (id, rollout), RolloutStatus::Aborted, request).await
}

async fn decide(
    app: App,
    caller: Caller,
    (id, rollout): (String, String),
    status: RolloutStatus,
    request: DecideRollout,
) -> Result<Json<RolloutBody>> {
    let decision = Decision::of_person(status, request.reason)?;
    app.run(move |app| {
        let ended = end(app, &caller, &rollout, &decision, || found(app, &caller, &id))?;
        detailed(app, &caller.organization, ended)
    })
    .await
}
