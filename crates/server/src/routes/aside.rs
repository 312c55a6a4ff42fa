//! Operations on quarantined executions, and erasure of values.

use axum::{Json, extract::State};
use mainspring_engine::{
    aside::{self, Act, Place, Released},
    erasing,
};
use mainspring_kernel::{key::ExecutionKey, limits::REASON_CHARS_MAX, value::Value};
use mainspring_store::{AuditEntry, ExecutionRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::Body,
    extract::{Asked, Named},
    identity::Caller,
    page::{Page, most},
    problem::{Answer, Problem, ProblemBody},
    shelf::entry,
    starting::visible,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(release)).routes(routes!(end)).routes(routes!(erase))
}

/// Which quarantined executions.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Executions that are quarantined.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Quarantine {
    /// By their keys.
    quarantined: Vec<Quarantined>,
    /// The cursor of the next page; null if there is none.
    next_cursor: Option<String>,
}

/// An execution that is quarantined.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Quarantined {
    /// The execution.
    execution_id: String,
    /// What is wrong with its journal.
    reason: String,
}

/// The organization's executions that are quarantined.
#[utoipa::path(get, path = "/api/quarantine", tag = "executions", params(ListQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Quarantine)))]
async fn list(State(app): State<App>, caller: Caller, Asked(query): Asked<ListQuery>) -> Answer<Json<Quarantine>> {
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

/// The reason of an act, for the audit log.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reason {
    /// Why.
    #[schema(min_length = 1, max_length = 2000)]
    reason: String,
}

/// What came of an act on a quarantined execution.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Repaired {
    /// True.
    ok: bool,
    /// The execution.
    execution_id: String,
    /// `released`; `cancelled` where its parent has gone on without it; `ended`.
    status: &'static str,
}

/// Runs an operation on a quarantined execution with its audit entry.
fn act<T>(
    app: &App,
    caller: &Caller,
    row: &ExecutionRow,
    (action, reason, detail): (&str, &str, Vec<(&'static str, Value)>),
    work: impl FnOnce(Place<'_>, &Act<'_>) -> Result<T, mainspring_engine::EngineError>,
) -> Answer<T> {
    check_reason(reason)?;
    let mut said = mainspring_kernel::value::Map::from([("reason".to_string(), Value::from(reason))]);
    said.extend(detail.into_iter().map(|(key, value)| (key.to_string(), value)));
    let audit: [AuditEntry; 1] = [entry(caller, action, &row.id, Value::Map(said))];
    let place = Place { store: &**app.engine.store(), loader: app.engine.loader(), home: None };
    let act = Act { key: app.engine.key(), by: &caller.user, reason, audit: &audit };
    Ok(work(place, &act)?)
}

fn check_reason(reason: &str) -> Answer<()> {
    if (1..=REASON_CHARS_MAX).contains(&reason.chars().count()) {
        return Ok(());
    }
    Err(Problem::field("reason", format!("it must have 1 to {REASON_CHARS_MAX} characters")))
}

/// Release a quarantined execution: its journal is verified, and it goes on.
///
/// One whose parent has gone on without it is cancelled with that.
#[utoipa::path(post, path = "/api/executions/{id}/release", tag = "executions", params(("id" = String, Path)), request_body = Reason,
    extensions(("x-permission" = json!("executions:repair"))),
    responses((status = 200, body = Repaired), (status = 409, body = ProblemBody)))]
async fn release(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Reason>,
) -> Answer<Json<Repaired>> {
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let detail = ("quarantine.release", body.reason.as_str(), Vec::new());
        let released = act(app, &caller, &row, detail, |place, act| aside::release(place, row.key, act))?;
        app.engine.attend(row.key);
        let status = if released == Released::GoesOn { "released" } else { "cancelled" };
        Ok(Json(Repaired { ok: true, execution_id: row.id, status }))
    })
    .await
}

/// End a quarantined execution whatever its journal says: it is `failed` with `ended_by_operator`.
///
/// The journal stays as it is. A sealed note beside it says who has ended the execution and why, and verifying the
/// execution tells so. Executions that it waits for are cancelled.
#[utoipa::path(post, path = "/api/executions/{id}/end", tag = "executions", params(("id" = String, Path)), request_body = Reason,
    extensions(("x-permission" = json!("executions:repair"))),
    responses((status = 200, body = Repaired), (status = 409, body = ProblemBody)))]
async fn end(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Reason>,
) -> Answer<Json<Repaired>> {
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let detail = ("quarantine.end", body.reason.as_str(), Vec::new());
        act(app, &caller, &row, detail, |place, act| aside::force_end(place, row.key, act))?;
        Ok(Json(Repaired { ok: true, execution_id: row.id, status: "ended" }))
    })
    .await
}

/// What to erase, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Erase {
    /// Why.
    #[schema(min_length = 1, max_length = 2000)]
    reason: String,
    /// The steps whose values are erased, by id, or by the name of one instance of a step; all values of the execution if
    /// it is empty.
    #[serde(default)]
    #[schema(max_items = 1000)]
    steps: Vec<String>,
}

/// Most steps of one request. Each stored value is compared with all of them.
const STEPS_MAX: usize = 1_000;

/// What was erased.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Erased {
    /// True.
    ok: bool,
    /// The execution.
    execution_id: String,
    /// How many values are gone now and were not before.
    erased: usize,
}

/// Erase values of an execution that has ended, for good. The journal's chain holds, and verifying it names what was
/// erased; the audit log says who has done it and why.
#[utoipa::path(post, path = "/api/executions/{id}/erase", tag = "executions", params(("id" = String, Path)), request_body = Erase,
    extensions(("x-permission" = json!("executions:erase"))),
    responses((status = 200, body = Erased), (status = 409, body = ProblemBody)))]
async fn erase(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Body(body): Body<Erase>,
) -> Answer<Json<Erased>> {
    if body.steps.len() > STEPS_MAX {
        return Err(Problem::field("steps", format!("it must have at most {STEPS_MAX} items")));
    }
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let steps: Vec<Value> = body.steps.iter().map(|step| step.as_str().into()).collect();
        let detail = ("execution.erase", body.reason.as_str(), vec![("steps", steps.into())]);
        let erased = act(app, &caller, &row, detail, |place, act| erasing::erase(place, row.key, &body.steps, act))?;
        Ok(Json(Erased { ok: true, execution_id: row.id, erased }))
    })
    .await
}
