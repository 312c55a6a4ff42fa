//! Executions, as they are seen.

use std::time::Duration;

use axum::{Json, extract::State};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{ExecutionRow, Filter, is_final};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::workflows::Executions;
use crate::{
    app::App,
    body::Data,
    compiling::named,
    extract::{Asked, Named},
    identity::Caller,
    page::{cursor, limit, number},
    problem::{Answer, Code, Problem, ProblemBody},
    shelf::Shelf,
    starting::visible,
    view::{self, ExecutionBody, ExecutionSummary, look},
};

/// How long a request may wait for an execution, and how long it does if nothing is said.
const WAIT_MS_MAX: u64 = 60_000;
const WAIT_MS_DEFAULT: u64 = 30_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(steps))
        .routes(routes!(journal))
        .routes(routes!(wait))
}

/// Which executions.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// One of these statuses, separated by commas.
    status: Option<String>,
    /// Of this workflow, by its id or its slug.
    workflow_id: Option<String>,
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The statuses of executions.
const STATUSES: [&str; 6] = ["pending", "running", "waiting_approval", "completed", "failed", "cancelled"];

/// A page of an organisation's executions.
pub(super) fn page(
    app: &App,
    caller: &Caller,
    statuses: Vec<String>,
    workflow_id: Option<String>,
    asked: Option<usize>,
    after: Option<&str>,
) -> Answer<Json<Executions>> {
    let limit = limit(asked)?;
    let unknown = || Problem::field("cursor", "it is not the `nextCursor` of an answer");
    let before = after.map(|text| ExecutionKey::parse(text).ok_or_else(unknown)).transpose()?;
    let filter = Filter { statuses, workflow_id, organization: Some(caller.organization.clone()), ..Filter::default() };
    let rows = app.engine.store().executions(&filter, before, limit)?;
    let next_cursor = cursor(&rows, limit, |row| row.key.to_string());
    Ok(Json(Executions { executions: rows.iter().map(ExecutionSummary::from).collect(), next_cursor }))
}

/// The organisation's executions, the newest first.
#[utoipa::path(get, path = "/api/executions", tag = "executions", params(ListQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Executions), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn list(State(app): State<App>, caller: Caller, Asked(query): Asked<ListQuery>) -> Answer<Json<Executions>> {
    let statuses: Vec<String> = query.status.iter().flat_map(|list| list.split(',')).map(Into::into).collect();
    if let Some(other) = statuses.iter().find(|status| !STATUSES.contains(&status.as_str())) {
        return Err(Problem::field("status", format!("`{other}` is none of {}", STATUSES.join(", "))));
    }
    app.run(move |app| {
        let workflow = match &query.workflow_id {
            None => None,
            Some(name) => {
                let shelf = Shelf::of(app.catalogue(), &caller.organization);
                // What a workflow that is gone has started is still there.
                Some(named(shelf, &caller.user, name)?.map_or_else(|| name.clone(), |held| held.id))
            }
        };
        page(app, &caller, statuses, workflow, query.limit, query.cursor.as_deref())
    })
    .await
}

fn whole(app: &App, caller: &Caller, id: &str) -> Answer<ExecutionBody> {
    let row = visible(app, caller, id)?;
    let looked = look(app, &row)?;
    // The journal was read after the row: where they differ, the journal is right.
    let row = app.engine.store().execution(row.key)?.unwrap_or(row);
    Ok(view::body(caller, &row, &looked))
}

/// An execution.
#[utoipa::path(get, path = "/api/executions/{id}", tag = "executions", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionBody)))]
async fn get(State(app): State<App>, caller: Caller, Named(id): Named<String>) -> Answer<Json<ExecutionBody>> {
    app.run(move |app| whole(app, &caller, &id).map(Json)).await
}

/// What an execution did, attempt by attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Steps {
    /// The execution.
    execution_id: String,
    /// In the order in which they began: `{stepId, attempt, status, startedAt, completedAt, input, output, error, because}`,
    /// with `decisions: [{decision, by, at, reason}]` where people were asked; `by` is null where nobody decided in time.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Data>,
}

/// What an execution did, attempt by attempt.
#[utoipa::path(get, path = "/api/executions/{id}/steps", tag = "executions", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Steps)))]
async fn steps(State(app): State<App>, caller: Caller, Named(id): Named<String>) -> Answer<Json<Steps>> {
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        Ok(Json(Steps { steps: view::steps(&look(app, &row)?.trace), execution_id: row.id }))
    })
    .await
}

/// The journal of an execution: what is proved and how long it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Journal {
    /// The execution.
    execution_id: String,
    /// Its frames, in order.
    frames: Vec<FrameBody>,
    /// What the next page is asked for with; null if there is none.
    next_cursor: Option<String>,
}

/// A frame of a journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FrameBody {
    /// Its place, from 0.
    sequence: u64,
    /// When it was decided.
    at: String,
    /// The hash of the frame before it, `sha256:…`.
    before: String,
    /// Its own hash.
    hash: String,
    /// The frame as it is stored, in deterministic CBOR, as hexadecimal digits: what the hash is over.
    frame: String,
}

/// Which frames.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JournalQuery {
    /// Only those of this sequence and behind it.
    from: Option<u64>,
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The journal of an execution, frame by frame, with the hashes that chain them.
#[utoipa::path(get, path = "/api/executions/{id}/journal", tag = "executions", params(("id" = String, Path), JournalQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Journal)))]
async fn journal(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Asked(query): Asked<JournalQuery>,
) -> Answer<Json<Journal>> {
    let (limit, next) = (limit(query.limit)?, number(query.cursor.as_deref())?);
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let stored = app.engine.store().frames(row.key, next.max(query.from).unwrap_or(0), limit)?;
        let frames = stored.iter().map(frame).collect::<Answer<Vec<_>>>()?;
        let next_cursor = cursor(&frames, limit, |last| (last.sequence + 1).to_string());
        Ok(Json(Journal { execution_id: row.id, frames, next_cursor }))
    })
    .await
}

fn frame(stored: &mainspring_kernel::stored::StoredFrame) -> Answer<FrameBody> {
    let broken = |error: mainspring_kernel::frame::FrameError| {
        Problem::new(Code::InternalError, format!("Frame {} cannot be read: {error}.", stored.sequence))
    };
    let (frame, hash) = mainspring_kernel::frame::Frame::read(stored).map_err(broken)?;
    Ok(FrameBody {
        sequence: frame.sequence,
        at: crate::clock::text(frame.now),
        before: frame.before.prefixed(),
        hash: hash.prefixed(),
        frame: mainspring_kernel::hash::hex(&stored.frame),
    })
}

/// How long to wait.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitQuery {
    /// Milliseconds, up to 60,000; 30,000 if nothing is said.
    #[param(maximum = 60000)]
    timeout_ms: Option<u64>,
}

/// Wait until an execution has ended or waits for people, and see it; as it stands when the time is over.
#[utoipa::path(get, path = "/api/executions/{id}/wait", tag = "executions", params(("id" = String, Path), WaitQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionBody)))]
async fn wait(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Asked(query): Asked<WaitQuery>,
) -> Answer<Json<ExecutionBody>> {
    let wait_ms = query.timeout_ms.unwrap_or(WAIT_MS_DEFAULT);
    if wait_ms > WAIT_MS_MAX {
        return Err(Problem::field("timeoutMs", format!("it must be at most {WAIT_MS_MAX}")));
    }
    let (asker, name) = (caller.clone(), id.clone());
    let row = app.look(move |app| visible(app, &asker, &name)).await?;
    let feed = app.feeds.of(&app, row.key);
    let rests = async {
        let mut reader = feed.reader();
        loop {
            let row = app.look({
                let key = row.key;
                move |app| Ok(app.engine.store().execution(key)?)
            });
            let rests = |row: &ExecutionRow| is_final(&row.status) || row.status == "waiting_approval";
            if row.await?.is_none_or(|row| rests(&row)) || !reader.changed().await {
                return Ok::<(), Problem>(());
            }
        }
    };
    if let Ok(done) = tokio::time::timeout(Duration::from_millis(wait_ms), rests).await {
        done?;
    }
    app.run(move |app| whole(app, &caller, &id).map(Json)).await
}
