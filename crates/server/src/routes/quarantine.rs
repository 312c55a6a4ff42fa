//! Operations on quarantined executions, and erasure of values.

use axum::{Json, extract::State};
use mainspring_engine::{
    erasure,
    quarantine::{self, Act, Place, Released},
};
use mainspring_kernel::{key::ExecutionKey, limits::REASON_CHARS_MAX, value::Value};
use mainspring_store::{AuditEntry, ExecutionRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{caller::Caller, execution_access::actionable_execution},
    http::{
        body::Body,
        extract::{PathParams, QueryParams},
        pagination::{Page, most},
        problem::{Problem, ProblemBody, Result},
    },
    resources::repository::entry,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(release)).routes(routes!(end)).routes(routes!(erase))
}

/// Position and size of a page of quarantined executions.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// A page of quarantined executions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Quarantine {
    /// Items in the order of their keys.
    quarantined: Vec<Quarantined>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// A quarantined execution.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Quarantined {
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Defect of the journal.
    reason: String,
}

/// List the quarantined executions of the organization.
#[utoipa::path(get, path = "/api/quarantine", tag = "executions", params(ListQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Quarantine)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<Quarantine>> {
    let most = most(query.limit)?;
    let unknown = || Problem::field("cursor", "it is not the `nextCursor` of an answer");
    let after = query.cursor.as_deref().map(|text| ExecutionKey::parse(text).ok_or_else(unknown)).transpose()?;
    app.run(move |app| {
        let mut page = Page::new(most);
        let rows = app.engine.store().quarantined(Some(&caller.organization), after, page.room())?;
        for row in rows {
            if page.is_full() {
                break;
            }
            let bytes = row.reason.len();
            page.add(row, bytes);
        }
        let next_cursor = page.next_cursor(|row| row.execution.to_string());
        let shown = page.rows.into_iter().map(|row| Quarantined {
            execution_id: row.id.unwrap_or_else(|| row.execution.to_string()),
            reason: row.reason,
        });
        Ok(Json(Quarantine { quarantined: shown.collect(), next_cursor }))
    })
    .await
}

/// Reason of an operation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reason {
    /// Reason, recorded in the audit log.
    #[schema(min_length = 1, max_length = 2000)]
    reason: String,
}

/// Result of an operation on a quarantined execution.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Repaired {
    /// Always true.
    ok: bool,
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// `released`, `cancelled` (the parent has continued without it) or `ended`.
    status: &'static str,
}

/// Runs an operation on a quarantined execution with its audit entry.
fn act<T>(
    app: &App,
    caller: &Caller,
    row: &ExecutionRow,
    (action, reason, detail): (&str, &str, Vec<(&'static str, Value)>),
    work: impl FnOnce(Place<'_>, &Act<'_>) -> Result<T, mainspring_engine::EngineError>,
) -> Result<T> {
    check_reason(reason)?;
    let mut said = mainspring_kernel::value::Map::from([("reason".to_string(), Value::from(reason))]);
    said.extend(detail.into_iter().map(|(key, value)| (key.to_string(), value)));
    let audit: [AuditEntry; 1] = [entry(caller, action, &row.id, Value::Map(said))];
    let place = Place { store: &**app.engine.store(), loader: app.engine.loader(), data_dir: None };
    let act = Act { key: app.engine.key(), by: &caller.user, reason, audit: &audit };
    Ok(work(place, &act)?)
}

fn check_reason(reason: &str) -> Result<()> {
    if (1..=REASON_CHARS_MAX).contains(&reason.chars().count()) {
        return Ok(());
    }
    Err(Problem::field("reason", format!("it must have 1 to {REASON_CHARS_MAX} characters")))
}

/// Release a quarantined execution: verifies its journal and resumes it.
///
/// An execution whose parent has continued without it is cancelled instead.
#[utoipa::path(post, path = "/api/executions/{id}/release", tag = "executions", params(("id" = String, Path)), request_body = Reason,
    extensions(("x-permission" = json!("executions:repair"))),
    responses((status = 200, body = Repaired), (status = 409, body = ProblemBody)))]
async fn release(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Reason>,
) -> Result<Json<Repaired>> {
    app.run(move |app| {
        let row = actionable_execution(app, &caller, &id)?;
        let detail = ("quarantine.release", body.reason.as_str(), Vec::new());
        let released = act(app, &caller, &row, detail, |place, act| quarantine::release(place, row.key, act))?;
        app.engine.activate(row.key);
        let status = if released == Released::Resumed { "released" } else { "cancelled" };
        Ok(Json(Repaired { ok: true, execution_id: row.id, status }))
    })
    .await
}

/// End a quarantined execution without its journal. It is `failed` with `ended_by_operator`.
///
/// The journal is kept unchanged. A sealed note beside it names the member who ended the execution and the reason;
/// verification of the execution shows it. Child executions that it waits for are cancelled.
#[utoipa::path(post, path = "/api/executions/{id}/end", tag = "executions", params(("id" = String, Path)), request_body = Reason,
    extensions(("x-permission" = json!("executions:repair"))),
    responses((status = 200, body = Repaired), (status = 409, body = ProblemBody)))]
async fn end(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Reason>,
) -> Result<Json<Repaired>> {
    app.run(move |app| {
        let row = actionable_execution(app, &caller, &id)?;
        let detail = ("quarantine.end", body.reason.as_str(), Vec::new());
        act(app, &caller, &row, detail, |place, act| quarantine::force_end(place, row.key, act))?;
        Ok(Json(Repaired { ok: true, execution_id: row.id, status: "ended" }))
    })
    .await
}

/// Values to erase, with the reason.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Erase {
    /// Reason, recorded in the audit log.
    #[schema(min_length = 1, max_length = 2000)]
    reason: String,
    /// Ids or instance names of the steps whose values are erased. Empty for all values of the execution.
    #[serde(default)]
    #[schema(max_items = 1000)]
    steps: Vec<String>,
}

/// Most steps of one request. Each stored value is compared with all of them.
const STEPS_MAX: usize = 1_000;

/// Result of an erasure.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Erased {
    /// Always true.
    ok: bool,
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Number of values that this request erased.
    erased: usize,
}

/// Erase values of an ended execution permanently. The hash chain of the journal stays valid, and verification lists
/// the erased values. The audit log has the member and the reason.
#[utoipa::path(post, path = "/api/executions/{id}/erase", tag = "executions", params(("id" = String, Path)), request_body = Erase,
    extensions(("x-permission" = json!("executions:erase"))),
    responses((status = 200, body = Erased), (status = 409, body = ProblemBody)))]
async fn erase(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<Erase>,
) -> Result<Json<Erased>> {
    if body.steps.len() > STEPS_MAX {
        return Err(Problem::field("steps", format!("it must have at most {STEPS_MAX} items")));
    }
    app.run(move |app| {
        let row = actionable_execution(app, &caller, &id)?;
        let steps: Vec<Value> = body.steps.iter().map(|step| step.as_str().into()).collect();
        let detail = ("execution.erase", body.reason.as_str(), vec![("steps", steps.into())]);
        let erased = act(app, &caller, &row, detail, |place, act| erasure::erase(place, row.key, &body.steps, act))?;
        Ok(Json(Erased { ok: true, execution_id: row.id, erased }))
    })
    .await
}
