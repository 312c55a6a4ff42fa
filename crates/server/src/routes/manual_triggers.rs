//! Manual starts of workflows, with an optional wait for the result.

use std::collections::BTreeSet;

use axum::{Extension, Json, extract::State, http::StatusCode};
use mainspring_engine::evaluator::{ForTenant, evaluate};
use mainspring_kernel::{
    evaluation::{Check, Evaluation},
    limits::{EXECUTION_STEPS_MAX, OUTPUT_BYTES_MAX, PARALLEL_MAX, WAIT_MAX_MS},
    plan::{Constraints, Plan},
    state::ExecutionStatus,
    value::{Map, Value},
};
use mainspring_store::ExecutionRow;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::execution_history::{Attempt, first_steps};

use crate::{
    app::App,
    auth::{
        caller::Caller, credential_lookup::reauthorize, execution_access::visible_execution, permission::Permission,
    },
    http::{
        body::{Body, Data, RawJson},
        extract::QueryParams,
        problem::{Code, Problem, ProblemBody, Result},
        request_bodies::BodyMemory,
    },
    resources::{
        RequestedRepository, Workflow,
        repository::{Repository, Stored},
    },
    services::{
        approvers::shown,
        compile::is_light,
        drains,
        execution_view::{envelope_so_far, read_envelope},
        repository_context::{StartRepository, pin},
        start_execution::{Starting, earlier, manual_key, prepare, submit},
        wait::{checked, until_settled},
        workflow_names::resolve,
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(run))
}

/// A workflow to start, with its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Run {
    /// Id or slug of the workflow.
    workflow_id: String,
    /// Idempotency key of the request. A second request of the member with the same key returns the first execution.
    #[schema(min_length = 1, max_length = 200)]
    client_request_id: String,
    /// `@vars`: an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    variables: Data,
    /// `@input`: any JSON value that is valid against the workflow's `inputSchema`, if there is one.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    input: Data,
    /// Custom metadata of the trigger; an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Data,
    /// Bounds of this execution.
    runtime: Option<Runtime>,
    /// Repository of the execution, as far as the workflow names none.
    repository: Option<RequestedRepository>,
}

/// Runtime options of an execution.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Runtime {
    /// Bounds of this execution.
    policy: Option<PolicyBody>,
    #[serde(default)]
    #[schema(ignore)]
    attempt: Data,
    #[serde(default)]
    #[schema(ignore)]
    idempotency_key: Data,
}

/// Bounds of an execution. Bounds in the definition's `constraints` cannot be exceeded.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PolicyBody {
    /// Timeout of the execution in milliseconds. The clock stops while only approvals are open.
    #[schema(minimum = 1, maximum = 316224000000u64)]
    timeout_ms: Option<u64>,
    /// Maximum number of visited steps.
    #[schema(minimum = 1, maximum = 1000000)]
    max_steps: Option<u64>,
    /// Maximum number of concurrent branches.
    #[schema(minimum = 1, maximum = 10000)]
    max_parallel: Option<u64>,
    /// Maximum bytes of a step's output in binary form.
    #[schema(minimum = 1, maximum = 262144)]
    max_output_bytes: Option<u64>,
}

impl Runtime {
    /// The requested bounds. Fields that only the server may set are errors.
    fn bounds(self) -> Result<Constraints> {
        let Self { policy, attempt, idempotency_key } = self;
        if attempt.0 != Value::Null {
            let message = "the server counts how often it hands an execution out: leave it out";
            return Err(Problem::field("runtime.attempt", message));
        }
        if idempotency_key.0 != Value::Null {
            let message = "the server derives the key from workflow, member and `clientRequestId`: leave it out";
            return Err(Problem::field("runtime.idempotencyKey", message));
        }
        let policy = policy.unwrap_or_default();
        let small = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        Ok(Constraints {
            timeout_ms: within("timeoutMs", policy.timeout_ms, WAIT_MAX_MS)?,
            max_steps: small(within("maxSteps", policy.max_steps, EXECUTION_STEPS_MAX.into())?),
            max_parallel: small(within("maxParallel", policy.max_parallel, PARALLEL_MAX.into())?),
            max_output_bytes: small(within("maxOutputBytes", policy.max_output_bytes, OUTPUT_BYTES_MAX as u64)?),
            ..Constraints::default()
        })
    }
}

fn within(key: &str, number: Option<u64>, most: u64) -> Result<Option<u64>> {
    match number {
        Some(number) if !(1..=most).contains(&number) => {
            let message = format!("it must be from 1 to {most}, not {number}");
            Err(Problem::field(&format!("runtime.policy.{key}"), message))
        }
        number => Ok(number),
    }
}

/// Options of a start.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunQuery {
    /// Milliseconds, up to 60,000, to wait until the execution has ended or only approvals are open. The response is
    /// then the result envelope with its steps. Also requires `executions:read`.
    #[param(maximum = 60000)]
    wait: Option<u64>,
}

/// A started execution: its result envelope so far.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Started {
    /// False if the execution was started by an earlier request and has failed.
    ok: bool,
    /// Status of the execution. With `wait` the status of the envelope: `ok`, `needs_approval`, `cancelled`, `failed`,
    /// or `running` if the execution was still pending (see `waitingFor`) or running after the timeout.
    status: String,
    /// Execution, as in `/api/executions/{id}`.
    pub(super) execution_id: String,
    /// Workflow, as in `/api/workflows/{id}`.
    workflow_id: Option<String>,
    /// Hash of the definition at the start: `sha256:…`.
    workflow_hash: String,
    /// Variables of the start; for a repeated request, those of the first one. Null if they were erased, and in the
    /// response to a repeated request by a credential without `executions:read`.
    #[schema(value_type = Option<Object>)]
    variables: Data,
    /// True if an earlier request with the same id started the execution.
    pub(super) existed: bool,
    /// Output, or the output variables so far. Null if there is none, and for credentials without `executions:read`;
    /// the same holds for `requiresApproval` and `error`.
    #[schema(value_type = serde_json::Value)]
    output: Data,
    /// First open approval, with `resumeToken` for callers who may decide; null if none is open.
    #[schema(value_type = Option<Object>)]
    requires_approval: Data,
    /// Error: `{code, class, message, details, stepId}`; null if the execution has not ended or nothing failed.
    #[schema(value_type = Option<Object>)]
    error: Data,
    /// Warnings: `{severity, code, path, line, column, message, help, fix}`. They name approvers of the workflow and its
    /// subworkflows who currently cannot decide. Empty if an earlier request started the execution.
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<Data>,
    /// In a repeat, the parts of the request that differ from those of the first one, which count: `input`,
    /// `variables.NAME`. Empty for credentials without `executions:read`.
    differs: Vec<String>,
    #[serde(flatten)]
    waited: Waited,
}

/// The fields of the response that are present only with `wait`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Waited {
    /// The first attempts, up to 8 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Attempt>>, nullable = false)]
    steps: Option<Vec<RawJson>>,
    /// `cursor` of `GET /api/executions/{id}/steps` for the remaining attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    steps_cursor: Option<String>,
    /// All open approvals, including those of child executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    approvals: Option<Vec<Data>>,
    /// `with_failures` for a completed execution with tolerated failures; null otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    outcome: Option<&'static str>,
    /// Reason why the execution is still pending: the concurrency limit of the `user`, the `organization` or the `workflow`,
    /// `draining`, or `admission`. Absent after the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    waiting_for: Option<&'static str>,
}

pub(super) fn object(field: &str, data: Data) -> Result<Map> {
    match data.0 {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(map),
        other => Err(Problem::field(field, format!("it must be an object, not {}", other.kind()))),
    }
}

/// Start a workflow. The start is durable before the response.
///
/// With `wait` the response is sent when the execution has ended or only approvals are open (200), or after the timeout
/// (202, with the status `running`). The execution continues after a timeout.
#[utoipa::path(post, path = "/api/triggers/manual/run", tag = "triggers", params(RunQuery), request_body = Run,
    extensions(("x-permission" = json!("executions:start"))),
    responses(
        (status = 200, body = Started, description = "The execution was started by an earlier request with the same id, or `wait` was set"),
        (status = 202, body = Started), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn run(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<RunQuery>,
    Extension(memory): Extension<BodyMemory>,
    Body(run): Body<Run>,
) -> Result<(StatusCode, Json<Started>)> {
    let Some(wait_ms) = query.wait else {
        let (status, started) = begin(&app, &caller, run).await?;
        return Ok((status, Json(started)));
    };
    // Checked before the start, so that a rejected request starts nothing.
    caller.require(Permission::ExecutionsRead)?;
    let time = checked("wait", wait_ms)?;
    let _watching = app.feeds.register(&caller)?;
    let started = begin(&app, &caller, run).await?.1;
    let (asker, id) = (caller.clone(), started.execution_id.clone());
    let row = app.run_short(move |app| visible_execution(app, &asker, &id)).await?;
    // Releases the memory of the body, which is not needed during the wait.
    memory.release();
    until_settled(&app, row.key, time).await?;
    let answer = move |app: &App| {
        let now = reauthorize(app, &caller, Permission::ExecutionsRead)?;
        waited(app, &now, &row, started)
    };
    let started = app.run(answer).await?;
    let status = if started.status == "running" { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(started)))
}

/// The response after waiting: the result envelope as of now.
fn waited(app: &App, caller: &Caller, row: &ExecutionRow, started: Started) -> Result<Started> {
    let envelope = read_envelope(app, caller, row)?;
    let (steps, steps_cursor) = first_steps(&envelope.history)?;
    let waiting_for = match (envelope.waiting_for, &row.workflow_id) {
        (Some(_), Some(workflow)) if drains::holds(app, caller, workflow, &row.workflow_hash)? => Some("draining"),
        (reason, _) => reason,
    };
    Ok(Started {
        ok: envelope.status != "failed",
        status: envelope.status.into(),
        output: Data(envelope.output),
        requires_approval: envelope.gates.first().cloned().unwrap_or_default(),
        error: Data(envelope.error),
        waited: Waited {
            steps: Some(steps),
            steps_cursor,
            approvals: Some(envelope.gates),
            outcome: envelope.outcome,
            waiting_for,
        },
        ..started
    })
}

/// Starts the workflow, or finds the execution that an earlier request with the same id has started.
async fn begin(app: &App, caller: &Caller, run: Run) -> Result<(StatusCode, Started)> {
    let name_length = run.client_request_id.chars().count();
    if !(1..=200).contains(&name_length) {
        return Err(Problem::field("clientRequestId", "it must have 1 to 200 characters"));
    }
    let (variables, metadata) = (object("variables", run.variables)?, object("metadata", run.metadata)?);
    let bounds = run.runtime.map_or_else(|| Ok(Constraints::default()), Runtime::bounds)?;
    let (id, client_request, input, asker) = (run.workflow_id, run.client_request_id, run.input.0, caller.clone());
    let request = app.run_short(move |app| request(app, &asker, &id, &client_request)).await?;
    let (workflow, idempotency_key, client_request) = match request {
        Request::Earlier(row) => {
            let asker = caller.clone();
            let answer = move |app: &App| {
                let differs = differences(app, &asker, &row, &input, &variables)?;
                Ok::<_, Problem>(Started { differs, ..repeated(app, &asker, &row)? })
            };
            return Ok((StatusCode::OK, app.run(answer).await?));
        }
        Request::Fresh { workflow, idempotency_key, client_request } => (workflow, idempotency_key, client_request),
    };
    let mut metadata = metadata;
    metadata.insert("clientRequestId".into(), client_request.into());
    let repository = StartRepository { request: run.repository, ..StartRepository::default() };
    let (trigger, trigger_id) = ("manual", None);
    let starting = Starting { trigger, trigger_id, metadata, idempotency_key, variables, input, bounds, repository };
    launch(app, caller, *workflow, starting).await
}

/// Starts an execution as the caller, and returns its envelope so far.
pub(super) async fn launch(
    app: &App,
    caller: &Caller,
    workflow: Stored<Workflow>,
    starting: Starting,
) -> Result<(StatusCode, Started)> {
    let repository = pin(app, caller, &workflow, starting.repository, &starting.metadata).await?;
    let starting = Starting { repository, ..starting };
    let (asker, id, is_light) =
        (caller.clone(), workflow.id.clone(), is_light(app, &caller.organization, &workflow.body));
    let work = move |app: &App| prepare(app, &asker, &workflow, starting);
    let (request, warnings) = if is_light { app.run_short(work).await? } else { app.run(work).await? };
    let (variables, hash) = (Value::Map(request.variables.clone()), request.plan.workflow_hash.prefixed());
    let submitted = submit(app, caller, request, &id).await?;
    if submitted.existed {
        let asker = caller.clone();
        let started = app
            .run(move |app| {
                let row = app.engine.store().execution(submitted.execution)?;
                repeated(app, &asker, &row.ok_or_else(Problem::concurrent_change)?)
            })
            .await?;
        return Ok((StatusCode::OK, started));
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
        differs: Vec::new(),
        waited: Waited::default(),
    };
    Ok((StatusCode::ACCEPTED, started))
}

/// Interpretation of a request.
enum Request {
    /// An earlier request with the same id was accepted.
    Earlier(Box<ExecutionRow>),
    /// The workflow is to be started, under this idempotency key.
    Fresh { workflow: Box<Stored<Workflow>>, idempotency_key: String, client_request: String },
}

/// Looks for an earlier request first: its result stays valid even if the workflow was changed or deleted since.
fn request(app: &App, asker: &Caller, id: &str, client_request: &str) -> Result<Request> {
    let workflow = match resolve(Repository::of(app.catalogue(), &asker.organization), &asker.user, id) {
        Err(problem) if problem.code == Code::Conflict => {
            let row = earlier_by_ambiguous_slug(app, asker, id, client_request)?.ok_or(problem)?;
            return Ok(Request::Earlier(Box::new(row)));
        }
        workflow => workflow?,
    };
    let name = workflow.as_ref().map_or(id, |workflow| workflow.id.as_str());
    let idempotency_key = manual_key(name, &asker.user, client_request);
    if let Some(row) = earlier(app, asker, name, &idempotency_key)? {
        return Ok(Request::Earlier(Box::new(row)));
    }
    let workflow = Box::new(workflow.ok_or_else(|| Problem::not_found("workflow"))?);
    Ok(Request::Fresh { workflow, idempotency_key, client_request: client_request.to_string() })
}

/// The execution that was started under a slug that is ambiguous now; `None` if several match.
fn earlier_by_ambiguous_slug(
    app: &App,
    asker: &Caller,
    slug: &str,
    client_request: &str,
) -> Result<Option<ExecutionRow>> {
    let repository = Repository::of(app.catalogue(), &asker.organization);
    let mut earlier_rows = Vec::new();
    for stored in repository.all::<Workflow>(Some(("slug", slug.to_string()))) {
        let stored = stored?;
        let key = manual_key(&stored.id, &asker.user, client_request);
        earlier_rows.extend(earlier(app, asker, &stored.id, &key)?);
    }
    Ok(earlier_rows.pop().filter(|_| earlier_rows.is_empty()))
}

/// Most differing variables in a response.
const DIFFERS_MAX: usize = 100;

/// The parts of a repeated request that differ from those of the first one. An erased value cannot be compared.
fn differences(app: &App, caller: &Caller, row: &ExecutionRow, input: &Value, variables: &Map) -> Result<Vec<String>> {
    let state = app.engine.state(row.key)?;
    let Some(first) = state.start.filter(|_| caller.has(Permission::ExecutionsRead)) else { return Ok(Vec::new()) };
    let is_known = |value: &Value| !(state.journal.has_erased && *value == Value::Null);
    let mut differs = Vec::new();
    if is_known(&first.input) && !is_same_input(app, caller, &state.plan, (&first.input, input)) {
        differs.push("input".to_string());
    }
    if is_known(&first.variables) {
        let none = Map::new();
        let given = first.variables.as_map().unwrap_or(&none);
        let names: BTreeSet<&String> = given.keys().chain(variables.keys()).collect();
        let others = names.into_iter().filter(|name| given.get(*name) != variables.get(*name));
        differs.extend(others.take(DIFFERS_MAX).map(|name| format!("variables.{name}")));
    }
    Ok(differs)
}

/// True if a given input is the stored one, to which the schema has added its defaults. Without an input, a start may have an
/// empty object.
fn is_same_input(app: &App, caller: &Caller, plan: &Plan, (stored, given): (&Value, &Value)) -> bool {
    if stored == given {
        return true;
    }
    let Some(schema) = &plan.input_schema else { return false };
    let evaluator = ForTenant { evaluator: &*app.evaluator, tenant: &caller.organization };
    let filled = |value: Value| {
        let check = Check { schema: schema.clone(), value, fills_defaults: true };
        evaluate(&Evaluation::Check(check), &evaluator).outcome
    };
    let is_stored = |value: Value| filled(value).is_ok_and(|filled| filled == *stored);
    is_stored(given.clone()) || *given == Value::Null && is_stored(Value::Map(Map::new()))
}

/// The response for an execution that an earlier request has started.
pub(super) fn repeated(app: &App, caller: &Caller, row: &ExecutionRow) -> Result<Started> {
    let state = app.engine.state(row.key)?;
    // A credential without read permission learns only that the execution exists.
    let may_see = caller.has(Permission::ExecutionsRead);
    let (output, requires_approval, error) =
        if may_see { envelope_so_far(app, caller, row, &state)? } else { Default::default() };
    let status = state.status();
    let variables = state.start.filter(|_| may_see).map(|start| start.variables).unwrap_or_default();
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
        differs: Vec::new(),
        waited: Waited::default(),
    })
}
