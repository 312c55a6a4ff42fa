//! Runs of triggers: on request, tests of a mapping, the run log, and repeated deliveries.

use axum::{Json, extract::State, http::StatusCode};
use mainspring_kernel::{
    plan::Constraints,
    value::{Map, Value},
};
use mainspring_store::ExecutionRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::manual_triggers::{Started, launch, object, repeated};
use crate::{
    app::App,
    auth::{
        caller::Caller,
        execution_access::visible_execution,
        permission::{PERMISSIONS, Permission},
        token::random,
    },
    http::{
        body::{Body, Data},
        extract::PathParams,
        problem::{Code, Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        RequestedRepository, Run, RunOutcome, Trigger, TriggerState, Workflow,
        repository::{Repository, Stored},
    },
    services::{
        fire_trigger::{Firing, fire, log_run, write_runs},
        prompts::requests::{self, Accepted},
        repository_context::StartRepository,
        run_log::RunEntry,
        start_execution::{Starting, earlier, manual_key},
        trigger_event::{Event, MappedEvent},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run))
        .routes(routes!(test))
        .routes(routes!(deliveries))
        .routes(routes!(redeliver))
}

/// An event for a trigger.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventBody {
    /// Body of the event; any JSON value.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    body: Data,
    /// Query parameters; an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    query: Data,
    /// Headers; an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    headers: Data,
}

/// A run on request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunBody {
    /// Idempotency key of the request. A second request of the member with the same key returns the first execution. By
    /// default every request starts an execution.
    #[schema(min_length = 1, max_length = 200)]
    client_request_id: Option<String>,
    /// Event for the variable mapping; by default an empty one.
    event: Option<EventBody>,
    /// Variables, which take precedence over mapped ones; an object.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    variables: Data,
    /// Repository of the execution, as far as trigger and workflow name none.
    repository: Option<RequestedRepository>,
}

/// Result of a variable mapping.
#[derive(Debug, Serialize, ToSchema)]
struct Mapped {
    /// Variables of the execution.
    #[schema(value_type = Object)]
    variables: Data,
    /// Variables whose path has no value.
    missing: Vec<MissingBody>,
}

/// A variable whose path has no value.
#[derive(Debug, Serialize, ToSchema)]
struct MissingBody {
    /// Name of the variable.
    variable: String,
    /// Path, as configured.
    path: String,
    /// The place at which the path ends in the event.
    reason: String,
}

/// The run log of a trigger.
#[derive(Debug, Serialize, ToSchema)]
struct Deliveries {
    /// The newest 100 runs, newest first.
    deliveries: Vec<DeliveryBody>,
}

/// A run of a trigger: a delivery, a tick or a request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryBody {
    /// Id, for `redeliver`.
    id: String,
    /// Time, RFC 3339.
    at: String,
    /// `webhook`, `schedule` or `manual`.
    source: String,
    /// An execution was started or found, or the event started none; or the outcome of a prompt.
    outcome: RunOutcome,
    /// HTTP status of the response, for a prompt that of the orchestrator; null for ticks.
    status: Option<u16>,
    /// Id of the execution that was started or found.
    execution_id: Option<String>,
    /// Id that the sender gave the delivery, or the UTC minute of the tick.
    delivery_id: Option<String>,
    /// Reason of a refusal or failure, or the variables without a value.
    reason: Option<String>,
    /// Id of the prompt, the same as in `webhook-id`; null for others.
    prompt_id: Option<String>,
}

/// A repeated delivery.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Redelivered {
    /// Execution, as in `/api/executions/{id}`; null for a prompt.
    execution_id: Option<String>,
    /// Id of the accepted prompt; null for an execution.
    prompt_id: Option<String>,
}

/// An accepted prompt for the orchestrator.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AcceptedPrompt {
    /// Id of the prompt, the same as in `webhook-id`.
    prompt_id: String,
    /// True if an earlier request with the same id was accepted.
    existed: bool,
}

/// The result of a run: an execution, or a prompt for the orchestrator.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum RunResult {
    /// The trigger started its workflow.
    Execution(Box<Started>),
    /// The target of the trigger is `orchestrator`.
    Prompt(AcceptedPrompt),
}

/// A request without fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn read_event(event: Option<EventBody>) -> Result<Event> {
    let EventBody { body, query, headers } = event.unwrap_or_default();
    Ok(Event { body: body.0, query: object("event.query", query)?, headers: object("event.headers", headers)? })
}

/// Applies the mapping of a trigger, whose time the event decides. Returns the stored form of the event too.
async fn mapped(app: &App, event: Event, trigger: &Stored<Trigger>) -> Result<(Value, MappedEvent)> {
    let paths = trigger.body.variable_mapping.clone();
    app.run(move |_| {
        let mapped = event.map(&paths)?;
        Ok((event.to_value(), mapped))
    })
    .await
}

/// Start the workflow of a trigger as the caller, with the variables that its mapping takes from the event. A trigger with
/// the target `orchestrator` sends its prompt; it has no variables, and only its owner and admins may run it. A disabled
/// trigger can be run too.
#[utoipa::path(post, path = "/api/triggers/{id}/run", tag = "triggers", params(("id" = String, Path)),
    request_body = RunBody, extensions(("x-permission" = json!("executions:start"))),
    responses((status = 200, body = RunResult, description = "An earlier request with the same id was accepted"),
        (status = 202, body = RunResult), (status = 409, body = ProblemBody)))]
async fn run(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<RunBody>,
) -> Result<(StatusCode, Json<RunResult>)> {
    let client_request = match body.client_request_id {
        Some(name) if (1..=200).contains(&name.chars().count()) => name,
        Some(_) => return Err(Problem::field("clientRequestId", "it must have 1 to 200 characters")),
        None => random(16)?,
    };
    let has_event = body.event.is_some();
    let (event, own) = (read_event(body.event)?, object("variables", body.variables)?);
    let (asker, name) = (caller.clone(), client_request.clone());
    let (trigger, target) = app.run_short(move |app| look_up(app, &asker, &id, &name)).await?;
    let (workflow, found) = match target {
        Some(target) => target,
        None if has_event || !own.is_empty() || body.repository.is_some() => {
            let message = "a prompt has no event, no variables and no repository; leave them out";
            return Err(Problem::field("event", message));
        }
        None => return run_prompt(&app, caller, trigger, client_request).await,
    };
    if let Some(row) = found {
        let started = app.run(move |app| repeated(app, &caller, &row)).await?;
        return Ok((StatusCode::OK, Json(RunResult::Execution(Box::new(started)))));
    }
    let (event, mapped) = mapped(&app, event, &trigger).await?;
    let metadata =
        [("clientRequestId", client_request.as_str().into()), ("event", event), ("missing", mapped.missing_value())];
    let mut variables = mapped.variables.clone();
    variables.extend(own);
    let starting = Starting {
        trigger: "manual",
        trigger_id: Some(trigger.id.clone()),
        metadata: Map::from(metadata.map(|(key, value): (&str, Value)| (key.to_string(), value))),
        idempotency_key: manual_key(&workflow.id, &caller.user, &client_request),
        variables,
        input: Value::Null,
        bounds: Constraints::default(),
        repository: StartRepository {
            trigger: trigger.body.repository.clone(),
            request: body.repository,
            pinned: None,
        },
    };
    let (status, started) = launch(&app, &caller, workflow, starting).await?;
    let outcome = if started.existed { RunOutcome::Duplicate } else { RunOutcome::Started };
    let entry = RunEntry {
        at: app.now_ms(),
        source: "manual",
        outcome,
        status: Some(status.as_u16()),
        execution: Some(started.execution_id.clone()),
        delivery: Some(client_request),
        reason: mapped.missing_text(),
    };
    log_run(&app, &caller.organization, &trigger.id, entry);
    Ok((status, Json(RunResult::Execution(Box::new(started)))))
}

/// Accepts the prompt of a trigger.
async fn run_prompt(
    app: &App,
    caller: Caller,
    trigger: Stored<Trigger>,
    request: String,
) -> Result<(StatusCode, Json<RunResult>)> {
    let accepted = app.run(move |app| requests::accept(app, &caller, &trigger, &request)).await?;
    let status = if accepted.existed { StatusCode::OK } else { StatusCode::ACCEPTED };
    let Accepted { prompt: prompt_id, existed } = accepted;
    Ok((status, Json(RunResult::Prompt(AcceptedPrompt { prompt_id, existed }))))
}

/// The workflow of a trigger with the execution that an earlier request has started; `None` for a prompt.
type Target = Option<(Stored<Workflow>, Option<ExecutionRow>)>;

fn look_up(app: &App, caller: &Caller, id: &str, client_request: &str) -> Result<(Stored<Trigger>, Target)> {
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let trigger = repository.require::<Trigger>(id)?;
    let Some(workflow) = &trigger.body.workflow else { return Ok((trigger, None)) };
    let workflow = repository.require::<Workflow>(workflow)?;
    let key = manual_key(&workflow.id, &caller.user, client_request);
    let found = earlier(app, caller, &workflow.id, &key)?;
    Ok((trigger, Some((workflow, found))))
}

/// Apply the variable mapping of a trigger to an event. Starts nothing.
#[utoipa::path(post, path = "/api/triggers/{id}/test", tag = "triggers", params(("id" = String, Path)),
    request_body = EventBody, extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Mapped)))]
async fn test(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(event): Body<EventBody>,
) -> Result<Json<Mapped>> {
    let event = read_event(Some(event))?;
    app.run(move |app| {
        let trigger = Repository::of(app.catalogue(), &caller.organization).require::<Trigger>(&id)?;
        let MappedEvent { variables, missing } = event.map(&trigger.body.variable_mapping)?;
        let missing =
            missing.into_iter().map(|one| MissingBody { variable: one.variable, path: one.path, reason: one.reason });
        Ok(Json(Mapped { variables: Data(variables.into()), missing: missing.collect() }))
    })
    .await
}

/// List the newest runs of a trigger with their outcomes: deliveries, ticks and requests. Requests that fail
/// verification are listed once a minute.
#[utoipa::path(get, path = "/api/triggers/{id}/deliveries", tag = "triggers", params(("id" = String, Path)),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Deliveries)))]
async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Deliveries>> {
    app.run(move |app| {
        write_runs(app);
        let repository = Repository::of(app.catalogue(), &caller.organization);
        repository.require::<Trigger>(&id)?;
        let state = repository.get::<TriggerState>(&id)?.map(|state| state.body).unwrap_or_default();
        Ok(Json(Deliveries { deliveries: state.runs.into_iter().rev().map(delivery).collect() }))
    })
    .await
}

fn delivery(run: Run) -> DeliveryBody {
    let Run { id, at, source, outcome, status, execution: execution_id, delivery: delivery_id, reason, prompt } = run;
    let (at, prompt_id) = (timestamps::text(at), prompt);
    DeliveryBody { id, at, source, outcome, status, execution_id, delivery_id, reason, prompt_id }
}

/// Deliver the event of an earlier run again, through the present mapping. It starts another execution as the owner of
/// the workflow, with the permissions that the caller has too. Only the owner and admins may do that. A refused delivery
/// cannot be repeated, since its body is not kept. A trigger with the target `orchestrator` sends its present prompt as a
/// new message that names the earlier one.
#[utoipa::path(post, path = "/api/triggers/{id}/deliveries/{deliveryId}/redeliver", tag = "triggers",
    params(("id" = String, Path), ("deliveryId" = String, Path)), request_body = Nothing,
    extensions(("x-permission" = json!("executions:start"))),
    responses((status = 202, body = Redelivered), (status = 409, body = ProblemBody)))]
async fn redeliver(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, delivery)): PathParams<(String, String)>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Redelivered>)> {
    let asker = caller.clone();
    let (mut trigger, run) = app.run(move |app| stored_run(app, &asker, &id, &delivery)).await?;
    if trigger.body.config.prompt().is_some() {
        let accepted = app.run(move |app| requests::redeliver(app, &caller, &trigger, &run)).await?;
        let redelivered = Redelivered { execution_id: None, prompt_id: Some(accepted.prompt) };
        return Ok((StatusCode::ACCEPTED, Json(redelivered)));
    }
    let (asker, of) = (caller.clone(), run.execution.clone());
    let event = app.run(move |app| stored_event(app, &asker, of.as_deref())).await?;
    trigger.body.scopes = shared_scopes(&caller, &trigger.body.scopes)?;
    let (event, mapped) = mapped(&app, event, &trigger).await?;
    let metadata = [
        ("deliveryId", run.delivery.as_deref().into()),
        ("redeliveryOf", run.execution.as_deref().into()),
        ("redeliveredBy", caller.user.as_str().into()),
        ("event", event),
        ("missing", mapped.missing_value()),
    ];
    let firing = Firing {
        source: "webhook",
        idempotency_key: format!("webhook:{}:redelivery:{}", trigger.id, random(16)?),
        metadata: Map::from(metadata.map(|(key, value): (&str, Value)| (key.to_string(), value))),
        variables: mapped.variables.clone(),
    };
    let fired = fire(&app, &caller.organization, &trigger, firing).await?;
    let entry = RunEntry {
        at: app.now_ms(),
        source: "webhook",
        outcome: RunOutcome::Started,
        status: Some(StatusCode::ACCEPTED.as_u16()),
        execution: Some(fired.execution_id.clone()),
        delivery: run.delivery,
        reason: Some(format!("redelivered by {}", caller.user)),
    };
    log_run(&app, &caller.organization, &trigger.id, entry);
    let redelivered = Redelivered { execution_id: Some(fired.execution_id), prompt_id: None };
    Ok((StatusCode::ACCEPTED, Json(redelivered)))
}

/// The permissions of a trigger's executions that the caller has as well: a session or a narrow credential starts no
/// scripts by a repetition.
fn shared_scopes(caller: &Caller, scopes: &[Permission]) -> Result<Vec<Permission>> {
    let is_shared =
        |permission: &Permission| caller.has(*permission) && (scopes.is_empty() || scopes.contains(permission));
    let shared: Vec<_> = PERMISSIONS.iter().map(|(permission, ..)| *permission).filter(is_shared).collect();
    // An empty list would not restrict anything.
    if shared.is_empty() {
        let message = "This credential and the trigger have no permission in common.";
        return Err(Problem::new(Code::Forbidden, message));
    }
    Ok(shared)
}

/// Reads a run of the log of an enabled trigger, for its owner or an admin.
fn stored_run(app: &App, caller: &Caller, id: &str, run: &str) -> Result<(Stored<Trigger>, Run)> {
    write_runs(app);
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let trigger = repository.require::<Trigger>(id)?;
    if !caller.may_act_for(&trigger.body.user) {
        let message = format!(
            "Executions of this trigger run as `{}`; only its owner or an admin may do that.",
            trigger.body.user
        );
        return Err(Problem::new(Code::Forbidden, message));
    }
    if !trigger.body.enabled {
        return Err(Problem::new(
            Code::TriggerDisabled,
            "This trigger is disabled and starts nothing. Enable it first.",
        ));
    }
    let state = repository.get::<TriggerState>(id)?.map(|state| state.body).unwrap_or_default();
    let run = state.runs.into_iter().find(|known| known.id == run).ok_or_else(|| Problem::not_found("delivery"))?;
    Ok((trigger, run))
}

/// Reads the event of a run from the journal of its execution.
fn stored_event(app: &App, caller: &Caller, execution: Option<&str>) -> Result<Event> {
    let refused =
        || Problem::new(Code::Conflict, "This delivery started no execution, and its body is not kept. Send it again.");
    let execution = visible_execution(app, caller, execution.ok_or_else(refused)?)?;
    let erased = || Problem::new(Code::Conflict, "The event of this delivery is not stored any more.");
    let start = app.engine.state(execution.key)?.start.ok_or_else(erased)?;
    let metadata = start.trigger.get("metadata").and_then(|metadata| metadata.get("event"));
    metadata.and_then(Event::of_value).ok_or_else(erased)
}
