//! Starting a workflow by hand.

use axum::{Json, extract::State, http::StatusCode};
use mainspring_kernel::{
    state::ExecutionStatus,
    value::{Map, Value},
};
use mainspring_store::ExecutionRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    approvers::shown,
    body::{Body, Data},
    compiling::{is_light, named},
    identity::{Caller, Permission},
    nouns::Workflow,
    problem::{Answer, Code, Problem, ProblemBody},
    shelf::{Held, Shelf},
    starting::{Starting, earlier, manual_key, prepare, submit},
    view::so_far,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(run))
}

/// Which workflow to start, and with what.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Run {
    /// The workflow, by its id or its slug.
    workflow_id: String,
    /// The request's own name: a second request of the same name by the same member is the same request.
    #[schema(min_length = 1, max_length = 200)]
    client_request_id: String,
    /// `@vars`: an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    variables: Data,
    /// `@input`: any value that fits the workflow's `inputSchema`, if it has one.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    input: Data,
    /// Whatever else is worth keeping with the execution: an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Data,
}

/// What was started: the envelope of an execution (first specification, 6.2), as far as it has come.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Started {
    /// False where it has failed since an earlier request of the same name has started it.
    ok: bool,
    /// The execution's status.
    status: String,
    /// The execution.
    execution_id: String,
    /// The workflow.
    workflow_id: Option<String>,
    /// `sha256:…` of the definition that it began with.
    workflow_hash: String,
    /// What it began with: those of the first request, if this one is a repeat. Null where those were erased.
    #[schema(value_type = Option<Object>)]
    variables: Data,
    /// Whether an earlier request of the same name has started it.
    existed: bool,
    /// The output; what there is of it while it runs. Null while there is nothing, and for a credential that may not see
    /// executions, as the two below.
    #[schema(value_type = serde_json::Value)]
    output: Data,
    /// The first open gate, with `resumeToken` for those who may decide there; null if none is open.
    #[schema(value_type = Option<Object>)]
    requires_approval: Data,
    /// Why it ended as it did: `{code, class, message, details, stepId}`; null until it has, and if nothing failed.
    #[schema(value_type = Option<Object>)]
    error: Data,
    /// Who is named to decide at one of its gates, or of those that it starts, and cannot as the organization stands:
    /// `{severity, code, path, line, column, message, mend}`. Empty where an earlier request has started it.
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<Data>,
}

fn object(field: &str, data: Data) -> Answer<Map> {
    match data.0 {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(map),
        other => Err(Problem::field(field, format!("it must be an object, not {}", other.kind()))),
    }
}

/// Start a workflow. Durable when it is answered.
#[utoipa::path(post, path = "/api/triggers/manual/run", tag = "triggers", request_body = Run,
    extensions(("x-permission" = json!("executions:start"))),
    responses((status = 200, body = Started, description = "An earlier request of the same name has started it"),
        (status = 202, body = Started), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn run(State(app): State<App>, caller: Caller, Body(run): Body<Run>) -> Answer<(StatusCode, Json<Started>)> {
    let name_length = run.client_request_id.chars().count();
    if !(1..=200).contains(&name_length) {
        return Err(Problem::field("clientRequestId", "it must have 1 to 200 characters"));
    }
    let (variables, metadata) = (object("variables", run.variables)?, object("metadata", run.metadata)?);
    let (id, client_request, input, asker) = (run.workflow_id, run.client_request_id, run.input.0, caller.clone());
    let found = app.look(move |app| found(app, &asker, &id, &client_request)).await?;
    let (workflow, idempotency_key, client_request) = match found {
        Found::Earlier(row) => {
            let asker = caller.clone();
            let started = app.run(move |app| repeated(app, &asker, &row)).await?;
            return Ok((StatusCode::OK, Json(started)));
        }
        Found::Fresh { workflow, idempotency_key, client_request } => (workflow, idempotency_key, client_request),
    };
    let mut metadata = metadata;
    metadata.insert("clientRequestId".into(), client_request.into());
    let starting = Starting { trigger: "manual", metadata, idempotency_key, variables, input };
    let (asker, id, is_light) = (caller.clone(), workflow.id.clone(), is_light(&app, &workflow.body));
    let work = move |app: &App| prepare(app, &asker, &workflow, starting);
    let (request, warnings) = if is_light { app.look(work).await? } else { app.run(work).await? };
    let (variables, hash) = (Value::Map(request.variables.clone()), request.plan.workflow_hash.prefixed());
    let submitted = submit(&app, &caller, request, &id).await?;
    if submitted.existed {
        let asker = caller.clone();
        let started = app
            .run(move |app| {
                let row = app.engine.store().execution(submitted.execution)?;
                repeated(app, &asker, &row.ok_or_else(Problem::raced)?)
            })
            .await?;
        return Ok((StatusCode::OK, Json(started)));
    }
    let started = Started {
        ok: true,
        status: "pending".into(),
        execution_id: submitted.execution.to_string(),
        workflow_id: Some(id),
        workflow_hash: hash,
        variables: Data(variables),
        existed: false,
        output: Data::default(),
        requires_approval: Data::default(),
        error: Data::default(),
        warnings: shown(&warnings),
    };
    Ok((StatusCode::ACCEPTED, Json(started)))
}

/// What a request means.
enum Found {
    /// One of this name was accepted before.
    Earlier(Box<ExecutionRow>),
    /// A workflow that is to start, under this key.
    Fresh { workflow: Box<Held<Workflow>>, idempotency_key: String, client_request: String },
}

/// What was accepted once is accepted, whatever has changed since: also when the workflow is gone.
fn found(app: &App, asker: &Caller, id: &str, client_request: &str) -> Answer<Found> {
    let workflow = match named(Shelf::of(app.catalogue(), &asker.organization), &asker.user, id) {
        Err(problem) if problem.code == Code::Conflict => {
            let row = once_meant(app, asker, id, client_request)?.ok_or(problem)?;
            return Ok(Found::Earlier(Box::new(row)));
        }
        workflow => workflow?,
    };
    let name = workflow.as_ref().map_or(id, |workflow| workflow.id.as_str());
    let idempotency_key = manual_key(name, &asker.user, client_request);
    if let Some(row) = earlier(app, asker, name, &idempotency_key)? {
        return Ok(Found::Earlier(Box::new(row)));
    }
    let workflow = Box::new(workflow.ok_or_else(|| Problem::not_found("workflow"))?);
    Ok(Found::Fresh { workflow, idempotency_key, client_request: client_request.to_string() })
}

/// What was started under a slug that has come to be that of several workflows since, if that can be told.
fn once_meant(app: &App, asker: &Caller, slug: &str, client_request: &str) -> Answer<Option<ExecutionRow>> {
    let shelf = Shelf::of(app.catalogue(), &asker.organization);
    let mut found = Vec::new();
    for held in shelf.all::<Workflow>(Some(("slug", slug.to_string()))) {
        let held = held?;
        let key = manual_key(&held.id, &asker.user, client_request);
        found.extend(earlier(app, asker, &held.id, &key)?);
    }
    Ok(found.pop().filter(|_| found.is_empty()))
}

/// What the first request of a name has started, as it stands now.
fn repeated(app: &App, caller: &Caller, row: &ExecutionRow) -> Answer<Started> {
    let state = app.engine.state(row.key)?;
    // A credential that only starts learns no more than that it has.
    let (output, requires_approval, error) = match caller.has(Permission::ExecutionsRead) {
        true => so_far(app, caller, row, &state)?,
        false => Default::default(),
    };
    let status = state.status();
    let variables = state.start.map(|start| start.variables).unwrap_or_default();
    Ok(Started {
        ok: status != ExecutionStatus::Failed,
        status: status.name().into(),
        execution_id: row.id.clone(),
        workflow_id: row.workflow_id.clone(),
        workflow_hash: row.workflow_hash.clone(),
        variables: Data(variables),
        existed: true,
        output: Data(output),
        requires_approval: Data(requires_approval),
        error: Data(error),
        warnings: Vec::new(),
    })
}
