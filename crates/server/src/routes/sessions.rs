//! Lists, reads and reaps sessions of executions. Browser sessions are in `session.rs`.

use axum::{Json, extract::State};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::Filter;
use mainspring_triggers::session_key::SessionPattern;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Body,
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most, number},
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    services::{
        execution_sessions::{
            AttemptSession, ExecutionSession, PURPOSES, Parents, STATUSES, WORKFLOW, attempts, depth_of, matching,
            session, visible_session,
        },
        execution_view::attempts_and_state,
        reap_sessions::{ReapOrder, ReapedSessions, reap},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(list_attempts))
        .routes(routes!(reap_some))
}

/// Filter of sessions, with position and size of the page.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Purposes to return, separated by commas: `interactive`, `orchestrator`, `workflow`; by default the first two.
    purpose: Option<String>,
    /// Statuses to return, separated by commas: `hibernated`, `running`, `terminated`.
    status: Option<String>,
    /// Pattern of session keys, such as `agent:*:workflow:nightly-*:run:*`.
    key: Option<String>,
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExecutionSessions {
    /// Sessions, newest first.
    sessions: Vec<ExecutionSession>,
    /// `cursor` of the next page; null for the last page. A page with a pattern may be short and have a cursor.
    next_cursor: Option<String>,
}

/// Parses a list that is separated by commas, with the permitted words.
fn words<'q>(field: &str, list: Option<&'q str>, known: &[&str]) -> Result<Vec<&'q str>> {
    let words: Vec<&str> = list.into_iter().flat_map(|list| list.split(',')).collect();
    match words.iter().find(|word| !known.contains(word)) {
        Some(other) => Err(Problem::field(field, format!("`{other}` is none of {}", known.join(", ")))),
        None => Ok(words),
    }
}

/// Parses a pattern of the keys of executions.
pub(super) fn pattern_of(field: &str, text: &str) -> Result<SessionPattern> {
    let pattern = SessionPattern::parse(text).map_err(|error| Problem::field(field, error))?;
    if pattern.is_of_attempts() {
        return Err(Problem::field(field, "it matches step attempts; leave `:node:` and the rest out"));
    }
    Ok(pattern)
}

/// Parses the position of a page.
fn position(cursor: Option<&str>) -> Result<Option<ExecutionKey>> {
    let unknown = || Problem::field("cursor", "it is not the `nextCursor` of an answer");
    cursor.map(|text| ExecutionKey::parse(text).ok_or_else(unknown)).transpose()
}

/// List the sessions of the organization, newest first. Sessions of executions are only listed if `purpose` has
/// `workflow`. This server has no interactive and no orchestrator sessions, so there are none of them to list.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", params(ListQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionSessions)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<ExecutionSessions>> {
    let purposes = words("purpose", query.purpose.as_deref(), &PURPOSES)?;
    let statuses = words("status", query.status.as_deref(), &STATUSES.map(|(status, _)| status))?;
    let pattern = query.key.as_deref().map(|text| pattern_of("key", text)).transpose()?;
    let before = position(query.cursor.as_deref())?;
    let most = most(query.limit)?;
    if !purposes.contains(&WORKFLOW) {
        return Ok(Json(ExecutionSessions { sessions: Vec::new(), next_cursor: None }));
    }
    let chosen = STATUSES.iter().filter(|(status, _)| statuses.contains(status));
    let statuses = chosen.flat_map(|(_, all)| all.iter().map(|status| (*status).to_owned())).collect();
    app.run(move |app| {
        let store = &**app.engine.store();
        let filter = Filter { statuses, organization: Some(caller.organization.clone()), ..Filter::default() };
        let (rows, next) = matching(store, (&filter, pattern.as_ref()), before, most)?;
        let mut parents = Parents::of(store);
        let sessions: Result<Vec<_>> = rows.iter().map(|row| session(&mut parents, row)).collect();
        Ok(Json(ExecutionSessions { sessions: sessions?, next_cursor: next.map(|key| key.to_string()) }))
    })
    .await
}

/// Get the session of an execution, by its id or its key.
#[utoipa::path(get, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionSession)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<ExecutionSession>> {
    app.run(move |app| {
        let row = visible_session(app, &caller, &id)?;
        session(&mut Parents::of(&**app.engine.store()), &row).map(Json)
    })
    .await
}

/// A page of sessions of step attempts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttemptSessions {
    /// Sessions in the order of the start of their attempts. Steps that never started have none.
    attempts: Vec<AttemptSession>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// List the sessions of the step attempts of an execution, by the id or the key of its session. Each page reads the
/// whole journal.
#[utoipa::path(get, path = "/api/sessions/{id}/attempts", tag = "sessions", params(("id" = String, Path), PageQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = AttemptSessions)))]
async fn list_attempts(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<PageQuery>,
) -> Result<Json<AttemptSessions>> {
    let (most, from) = (most(query.limit)?, number(query.cursor.as_deref())?.unwrap_or(0));
    app.run(move |app| {
        let row = visible_session(app, &caller, &id)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let (history, state) = attempts_and_state(app, &row, from)?;
        let depth = depth_of(&mut Parents::of(&**app.engine.store()), &row)?;
        let attempts = attempts(&row, depth, &state.plan, (&history, from, most.rows));
        let end = from.saturating_add(most.rows.min(history.attempts.len()));
        let next_cursor = (end < history.count && end > from).then(|| end.to_string());
        Ok(Json(AttemptSessions { attempts, next_cursor }))
    })
    .await
}

/// Sessions to reap.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reap {
    /// Pattern of session keys, such as `agent:*:workflow:nightly-*:run:*`.
    key: String,
    /// Only sessions that ended before this time, such as 2026-02-07T12:00:00Z; by default all that have ended.
    ended_before: Option<String>,
    /// Only list the sessions; default false.
    #[serde(default)]
    dry_run: bool,
    /// Maximum number of sessions, 1 to 200; default 50.
    #[schema(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous response.
    cursor: Option<String>,
}

/// Reap sessions: revoke their credentials and remove their workspaces on this server. Only sessions of ended executions
/// are taken; executions and journals stay.
#[utoipa::path(post, path = "/api/sessions/reap", tag = "sessions", request_body = Reap,
    extensions(("x-permission" = json!("executions:repair"))),
    responses((status = 200, body = ReapedSessions), (status = 409, body = ProblemBody)))]
async fn reap_some(State(app): State<App>, caller: Caller, Body(body): Body<Reap>) -> Result<Json<ReapedSessions>> {
    let pattern = pattern_of("key", &body.key)?;
    let before = body.ended_before.as_deref().map(|text| timestamps::read("endedBefore", text)).transpose()?;
    let (cursor, most) = (position(body.cursor.as_deref())?, most(body.limit)?);
    let order = ReapOrder { key: body.key, pattern, before: before.unwrap_or(u64::MAX), is_dry: body.dry_run };
    app.run(move |app| reap(app, &caller, &order, (cursor, most)).map(Json)).await
}
