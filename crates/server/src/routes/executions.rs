//! Lists, reads and awaits executions.

use axum::{Json, extract::State};
use mainspring_kernel::{key::ExecutionKey, value::Value};
use mainspring_store::{ExecutionRow, Filter, ReadLimit, Store, is_final};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{execution_history::first_steps, workflows::Executions};
use crate::{
    app::App,
    auth::{
        caller::Caller, credential_lookup::reauthorize, execution_access::visible_execution, permission::Permission,
    },
    http::{
        body::Data,
        extract::{PathParams, QueryParams},
        pagination::{Page, most},
        problem::{Problem, ProblemBody, Result},
    },
    resources::repository::Repository,
    services::{
        drains,
        execution_view::{
            self, ExecutionBody, ExecutionListed, ExecutionSummary, Include, ProgressBody, RuntimeState, attempts,
            listed_error, read_details, snapshot,
        },
        wait::{checked, until_settled},
        workflow_names::resolve,
    },
};

/// Default wait time of a request, in milliseconds.
const WAIT_MS_DEFAULT: u64 = 30_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(wait))
}

/// Filter of executions, with position and size of the page.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Statuses to return, separated by commas.
    status: Option<String>,
    /// Id or slug of a workflow, to return its executions only.
    workflow_id: Option<String>,
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// All statuses of executions.
const STATUSES: [&str; 7] =
    ["pending", "running", "waiting_approval", "cancel_requested", "completed", "failed", "cancelled"];

/// A page of an organization's executions.
pub(super) fn page(
    app: &App,
    caller: &Caller,
    statuses: Vec<String>,
    workflow_id: Option<String>,
    requested: Option<usize>,
    after: Option<&str>,
) -> Result<Json<Executions>> {
    let most = most(requested)?;
    let unknown = || Problem::field("cursor", "it is not the `nextCursor` of an answer");
    let before = after.map(|text| ExecutionKey::parse(text).ok_or_else(unknown)).transpose()?;
    let filter = Filter { statuses, workflow_id, organization: Some(caller.organization.clone()), ..Filter::default() };
    let page = rows(&**app.engine.store(), &filter, before, most)?;
    let next_cursor = page.next_cursor(|(row, _)| row.key.to_string());
    let listed = |(row, error): &(ExecutionRow, Value)| ExecutionListed {
        summary: ExecutionSummary::from(row),
        error: Data(error.clone()),
    };
    Ok(Json(Executions { executions: page.rows.iter().map(listed).collect(), next_cursor }))
}

/// Rows per read. They contain names and versions from definitions, which have no length limit.
const ROWS_AT_A_TIME: usize = 25;

/// A page of rows with their errors. The bytes read for the errors count too.
fn rows(
    store: &dyn Store,
    filter: &Filter,
    mut before: Option<ExecutionKey>,
    most: ReadLimit,
) -> Result<Page<(ExecutionRow, Value)>> {
    let mut page = Page::new(most);
    while !page.is_full() {
        let requested = page.room().min(ROWS_AT_A_TIME);
        let rows = store.executions(filter, before, requested)?;
        let is_last = rows.len() < requested;
        before = rows.last().map(|row| row.key);
        for row in rows {
            if page.is_full() {
                break;
            }
            let ExecutionRow { workflow, names, workflow_version, idempotency_key, session_id, .. } = &row;
            let texts = [workflow, &names.workflow_name, workflow_version, &row.error, idempotency_key, session_id];
            let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
            let (error, read) = listed_error::error(store, &row)?;
            page.add((row, error), bytes + read);
        }
        if is_last {
            break;
        }
    }
    Ok(page)
}

/// List the executions of the organization, newest first.
#[utoipa::path(get, path = "/api/executions", tag = "executions", params(ListQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Executions), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<Executions>> {
    let statuses: Vec<String> = query.status.iter().flat_map(|list| list.split(',')).map(Into::into).collect();
    if let Some(other) = statuses.iter().find(|status| !STATUSES.contains(&status.as_str())) {
        return Err(Problem::field("status", format!("`{other}` is none of {}", STATUSES.join(", "))));
    }
    app.run(move |app| {
        let workflow = match &query.workflow_id {
            None => None,
            Some(name) => {
                let repository = Repository::of(app.catalogue(), &caller.organization);
                // Executions of a deleted workflow remain.
                Some(resolve(repository, &caller.user, name)?.map_or_else(|| name.clone(), |stored| stored.id))
            }
        };
        page(app, &caller, statuses, workflow, query.limit, query.cursor.as_deref())
    })
    .await
}

fn body(app: &App, caller: &Caller, id: &str, include: Include) -> Result<ExecutionBody> {
    let row = visible_execution(app, caller, id)?;
    let mut details = read_details(app, &row)?;
    // The journal may be newer than the row. The row is read again to match it.
    let row = app.engine.store().execution(row.key)?.unwrap_or(row);
    // An execution that has ended since then has its outputs in the frames after those that were read.
    if is_final(&row.status) && details.state.end.ended_at.is_none() {
        details = read_details(app, &row)?;
    }
    let mut shown = execution_view::body(caller, &row, &details);
    if let (Some(reason), Some(workflow)) = (&mut shown.waiting_for, &row.workflow_id)
        && drains::holds(app, caller, workflow, &row.workflow_hash)?
    {
        *reason = "draining";
    }
    if include.steps {
        let (steps, cursor) = first_steps(&attempts(app, &row, 0)?)?;
        (shown.included.steps, shown.included.steps_cursor) = (Some(steps), cursor);
    }
    if include.workflow_snapshot {
        shown.included.workflow_snapshot = Some(snapshot(app, caller, &row)?);
    }
    shown.included.progress = include.progress.then(|| ProgressBody::of(app, &row));
    shown.included.runtime_state = include.runtime_state.then(|| RuntimeState::of(&row, &details.state));
    Ok(shown)
}

/// Optional parts of an execution.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetQuery {
    /// Optional parts, separated by commas: `steps`, `workflowSnapshot` (also requires `workflows:read`),
    /// `runtimeState` and `progress`.
    include: Option<String>,
}

/// Get an execution.
#[utoipa::path(get, path = "/api/executions/{id}", tag = "executions", params(("id" = String, Path), GetQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<GetQuery>,
) -> Result<Json<ExecutionBody>> {
    let include = Include::read(&caller, query.include.as_deref())?;
    app.run(move |app| body(app, &caller, &id, include).map(Json)).await
}

/// Timeout of a wait.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitQuery {
    /// Timeout in milliseconds, up to 60,000; default 30,000.
    #[param(maximum = 60000)]
    timeout_ms: Option<u64>,
}

/// Wait until an execution has ended or only approvals are open, and return it; after the timeout, in its current
/// state.
#[utoipa::path(get, path = "/api/executions/{id}/wait", tag = "executions", params(("id" = String, Path), WaitQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = ExecutionBody)))]
async fn wait(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<WaitQuery>,
) -> Result<Json<ExecutionBody>> {
    let time = checked("timeoutMs", query.timeout_ms.unwrap_or(WAIT_MS_DEFAULT))?;
    let (asker, name) = (caller.clone(), id.clone());
    let row = app.run_short(move |app| visible_execution(app, &asker, &name)).await?;
    // A waiting request counts as a watcher.
    let _watching = app.feeds.register(&caller)?;
    until_settled(&app, row.key, time).await?;
    app.run(move |app| {
        let now = reauthorize(app, &caller, Permission::ExecutionsRead)?;
        body(app, &now, &id, Include::default()).map(Json)
    })
    .await
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::{hash::Hash, stored_frame::StoredFrame};
    use mainspring_store::prelude::*;
    use mainspring_store::{Batch, Fence, Part, StartNames, memory::MemoryStore};

    use super::*;

    /// An execution whose row has a version of the given length.
    fn part(number: u8, length: usize) -> Part {
        let execution = ExecutionKey([number; 16]);
        let row = ExecutionRow {
            key: execution,
            id: number.to_string(),
            organization: Some("o".into()),
            workflow_id: None,
            trigger_id: None,
            parent: None,
            names: StartNames::default(),
            usage: None,
            workflow: None,
            workflow_version: Some("1".repeat(length)),
            workflow_hash: String::new(),
            plan_hash: Hash::default(),
            status: if number.is_multiple_of(2) { "running" } else { "failed" }.into(),
            outcome: None,
            error: None,
            trigger_type: "subworkflow".into(),
            initiator_type: "manual".into(),
            initiator_user_id: None,
            idempotency_key: None,
            session_id: None,
            partition: 0,
            attempt_count: 1,
            started_at: 1,
            completed_at: None,
        };
        Part {
            frames: vec![StoredFrame { sequence: 0, frame: vec![1], values: Vec::new() }],
            row: Some(row),
            ..Part::empty(execution, 0)
        }
    }

    #[test]
    fn pages_together_are_the_whole_list() {
        let store = MemoryStore::new();
        let epoch = store.claim(0, "n").unwrap();
        let parts = (1..=100).map(|number| part(number, if number % 10 == 0 { 1_000 } else { 1 })).collect();
        let batch = Batch { fences: vec![Fence { partition: 0, epoch }], parts, sealing: [0; 32] };
        assert_eq!(store.commit(&batch).unwrap().len(), 100);
        let pages = |statuses: Vec<String>, most: ReadLimit| {
            let filter = Filter { statuses, organization: Some("o".into()), ..Filter::default() };
            let (mut pages, mut before) = (Vec::new(), None);
            loop {
                let page = rows(&store, &filter, before, most).unwrap();
                let next = page.next_cursor(|(row, _)| row.key.to_string());
                pages.push(page.rows.iter().map(|(row, _)| row.key.0[0]).collect::<Vec<_>>());
                match next {
                    Some(next) => before = ExecutionKey::parse(&next),
                    None => return pages,
                }
            }
        };
        let sizes = |pages: Vec<Vec<u8>>| pages.iter().map(Vec::len).collect::<Vec<_>>();
        // The newest row has a thousand bytes, as has every tenth behind it.
        assert_eq!(sizes(pages(Vec::new(), ReadLimit { rows: 60, bytes: 100_000 })), [60, 40]);
        assert_eq!(sizes(pages(Vec::new(), ReadLimit { rows: 60, bytes: 1_000 }))[..3], [1, 10, 10]);
        let all: Vec<u8> = (1..=100).rev().collect();
        let running: Vec<u8> = all.iter().copied().filter(|number| number.is_multiple_of(2)).collect();
        for most in [
            ReadLimit { rows: 1, bytes: 9 },
            ReadLimit { rows: 25, bytes: 1_001 },
            ReadLimit { rows: 200, bytes: 100_000 },
        ] {
            assert_eq!(pages(Vec::new(), most).concat(), all, "{most:?}");
            assert_eq!(pages(vec!["running".into()], most).concat(), running, "{most:?}");
        }
    }
}
