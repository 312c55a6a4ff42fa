//! Migrations of running executions to the definition of a proposal: before the application a preview, afterwards the
//! progress and the executions that stayed.

use axum::{Json, extract::State};
use mainspring_kernel::key::ExecutionKey;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        extract::{PathParams, QueryParams},
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{MigrationRun, Proposal, StayReason, proposal_key, repository::Repository},
    routes::workflows::found,
    services::migrations::{self, Previewed},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get))
}

/// Executions of a page of a preview: each is read from its journal.
const PAGE_MAX: usize = 50;

/// Executions of a page, unless the request says otherwise.
const PAGE_DEFAULT: usize = 20;

/// Selects the executions of a preview.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PreviewQuery {
    /// Maximum number of executions, 1 to 50; default 20.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// Progress of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum MigrationStatus {
    /// The proposal is not applied: nothing has changed.
    Preview,
    /// Executions are left.
    Running,
    /// Every execution has continued or stayed, or `endReason` says why not.
    Ended,
}

/// A migration of the unfinished executions of a workflow to the definition of a proposal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MigrationBody {
    /// Progress.
    status: MigrationStatus,
    /// Hash of the definition with which executions continue.
    workflow_hash: String,
    /// Executions that have continued with it; 0 in a preview.
    migrated: u64,
    /// Executions that stayed; 0 in a preview.
    stayed: u64,
    /// A preview has all unfinished executions of the page, the newest first. Later, these are the first 200 that stayed.
    executions: Vec<MigrationExecution>,
    /// `cursor` of the next page of a preview; null for the last page.
    next_cursor: Option<String>,
    /// Id of the member who applied the proposal; null in a preview.
    by: Option<String>,
    /// Time of the application, RFC 3339; null in a preview.
    since: Option<String>,
    /// Time of the end, RFC 3339.
    ended_at: Option<String>,
    /// Reason why executions are left, such as another definition since; null if none are.
    end_reason: Option<String>,
}

/// An execution in a migration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MigrationExecution {
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// True if it would continue with the new definition.
    migrates: bool,
    /// Reasons for which it stays with its definition. After the application at most four are kept.
    reasons: Vec<StayReason>,
}

impl From<MigrationRun> for MigrationBody {
    fn from(run: MigrationRun) -> Self {
        let executions = run.stays.into_iter().map(|stayed| MigrationExecution {
            execution_id: stayed.execution_id,
            migrates: false,
            reasons: stayed.reasons,
        });
        Self {
            status: if run.ended.is_some() { MigrationStatus::Ended } else { MigrationStatus::Running },
            workflow_hash: run.hash,
            migrated: run.migrated,
            stayed: run.stayed,
            executions: executions.collect(),
            next_cursor: None,
            by: Some(run.by),
            since: Some(timestamps::text(run.since)),
            ended_at: run.ended.as_ref().map(|end| timestamps::text(end.at)),
            end_reason: run.ended.and_then(|end| end.reason),
        }
    }
}

/// Get the migration of running executions to the definition of a proposal: a preview before it is applied, and the progress
/// if it was applied with `whileRunning: migrate`.
#[utoipa::path(get, path = "/api/workflows/{id}/proposals/{proposalId}/migration", tag = "proposals",
    params(("id" = String, Path), ("proposalId" = String, Path), PreviewQuery),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = MigrationBody), (status = 409, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, proposal)): PathParams<(String, String)>,
    QueryParams(query): QueryParams<PreviewQuery>,
) -> Result<Json<MigrationBody>> {
    let most = query.limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&most) {
        return Err(Problem::field("limit", format!("it must be 1 to {PAGE_MAX}")));
    }
    let after = query.cursor.as_deref().map(|cursor| {
        ExecutionKey::parse(cursor).ok_or_else(|| Problem::field("cursor", "it is not a cursor of this list"))
    });
    let after = after.transpose()?;
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let key = proposal_key(&workflow.id, &proposal);
        let stored = repository.require::<Proposal>(&key)?;
        if let Some(run) = repository.get::<MigrationRun>(&key)? {
            return Ok(Json(run.body.into()));
        }
        if !stored.body.status.is_open() {
            let message = "Only an open proposal has a preview, and one that was applied with `migrate` its progress.";
            return Err(Problem::new(Code::Conflict, message));
        }
        let preview = migrations::preview(app, &caller.organization, (&workflow, &stored.body), (after, most))?;
        let execution = |Previewed { execution_id, reasons }| MigrationExecution {
            execution_id,
            migrates: reasons.is_empty(),
            reasons,
        };
        Ok(Json(MigrationBody {
            status: MigrationStatus::Preview,
            workflow_hash: stored.body.change.hash.clone(),
            migrated: 0,
            stayed: 0,
            executions: preview.executions.into_iter().map(execution).collect(),
            next_cursor: preview.next_cursor,
            by: None,
            since: None,
            ended_at: None,
            end_reason: None,
        }))
    })
    .await
}
