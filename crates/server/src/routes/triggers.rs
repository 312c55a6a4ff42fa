//! Triggers: lists, reads, creates, changes and deletes them.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Tagged, if_match},
        extract::{PathParams, QueryParams},
        pagination::most,
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        PromptState, RepositoryContext, Trigger, TriggerConfig, TriggerState,
        repository::{Listing, Repository},
    },
    services::{
        fire_trigger::write_runs,
        save_trigger::{self, NewTrigger, TriggerDraft, TriggerWithState},
        trigger_config::{ConfigBody, ConfigView, next_runs},
        workflow_names::resolve,
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(enable))
        .routes(routes!(disable))
}

/// A trigger.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TriggerBody {
    /// Id, unique in the organization.
    id: String,
    /// Workflow, as in `/api/workflows/{id}`; null for the target `orchestrator`.
    workflow_id: Option<String>,
    /// Id of the workflow's owner, as whom its executions run. For the target `orchestrator`, the member who created it.
    user_id: String,
    /// Display name.
    name: String,
    /// True if events and ticks start executions.
    enabled: bool,
    /// `manual`, `webhook` or `schedule`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The source of its events, without secrets.
    config: ConfigView,
    /// Paths into the event by the names of variables.
    variable_mapping: BTreeMap<String, String>,
    /// Repository of its executions, which precedes that of the workflow; null for none.
    repository: Option<RepositoryContext>,
    /// Address of the webhook; null for other types.
    webhook_url: Option<String>,
    #[serde(flatten)]
    runs: TriggerRuns,
    /// Id of the member who created it.
    created_by: String,
    /// Time of creation, RFC 3339.
    created_at: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
    /// In the response to a change, the warnings about it: secrets of a webhook with fewer than 16 bytes, and a workflow
    /// whose `inputSchema` requires an input. Otherwise empty.
    warnings: Vec<String>,
}

/// Past and next runs of a trigger.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TriggerRuns {
    /// Next starts of an enabled schedule, RFC 3339; empty for other types.
    next_runs: Vec<String>,
    /// Time of the last started execution or accepted prompt, RFC 3339.
    last_run_at: Option<String>,
    /// Id of the last started execution.
    last_execution_id: Option<String>,
    /// Reason why the server has stopped the trigger; null if it has not.
    stopped: Option<StoppedBody>,
    /// The prompts of the target `orchestrator`; null for others.
    prompts: Option<PromptsBody>,
}

/// Prompts of a trigger that wait for their delivery.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PromptsBody {
    /// Number of prompts that are not delivered yet.
    waiting: u32,
    /// The last failed attempt since the last delivery; null if there is none.
    last_failure: Option<PromptFailureBody>,
}

/// A failed attempt to deliver a prompt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PromptFailureBody {
    /// Id of the prompt, the same as in `webhook-id`.
    prompt_id: String,
    /// Time, RFC 3339.
    at: String,
    /// Error code, such as `http_status:503`, or the reason why no request was sent.
    error: String,
    /// Number of failed attempts of this prompt.
    attempts: u32,
    /// Time of the next attempt, RFC 3339; null if it is not sent any more.
    next_attempt_at: Option<String>,
}

/// The prompts of a trigger, null for other targets.
fn prompts(config: &TriggerConfig, state: Option<PromptState>) -> Option<PromptsBody> {
    config.prompt()?;
    let PromptState { waiting, last_failure } = state.unwrap_or_default();
    let last_failure = last_failure.map(|failure| PromptFailureBody {
        prompt_id: failure.prompt,
        at: timestamps::text(failure.at),
        error: failure.error,
        attempts: failure.attempts,
        next_attempt_at: (failure.next_at > 0).then(|| timestamps::text(failure.next_at)),
    });
    Some(PromptsBody { waiting, last_failure })
}

/// Reason why the server has stopped a trigger.
#[derive(Debug, Serialize, ToSchema)]
struct StoppedBody {
    /// Error code.
    code: String,
    /// Reason and remedy.
    message: String,
    /// Time, RFC 3339.
    at: String,
}

/// A page of triggers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Triggers {
    /// Items in the order of their ids.
    triggers: Vec<TriggerBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// Filter of triggers, with position and size of the page.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    /// Id or slug of a workflow, to return its triggers only.
    workflow_id: Option<String>,
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// A request without fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NoFields {}

fn body(app: &App, trigger: TriggerWithState) -> TriggerBody {
    let TriggerWithState { stored, state } = trigger;
    let TriggerState { last_run_at, last_execution, stopped, prompts: waiting, .. } = state;
    let next_runs = next_runs(&stored.id, &stored.body, app.now_ms());
    let Trigger { workflow, user, name, enabled, config, variable_mapping, repository, .. } = stored.body;
    let (created_by, created_at, updated_at) = (stored.body.created_by, stored.body.created_at, stored.body.updated_at);
    let webhook_url = match &config {
        TriggerConfig::Webhook(webhook) => Some(format!("{}/webhooks/{}", app.settings.base, webhook.path)),
        _ => None,
    };
    let prompts = prompts(&config, waiting);
    TriggerBody {
        id: stored.id,
        workflow_id: workflow,
        user_id: user,
        name,
        enabled,
        kind: config.type_name(),
        config: ConfigView::from(&config),
        variable_mapping,
        repository,
        webhook_url,
        runs: TriggerRuns {
            next_runs: next_runs.into_iter().map(timestamps::text).collect(),
            last_run_at: last_run_at.map(timestamps::text),
            last_execution_id: last_execution,
            stopped: stopped.map(|stopped| StoppedBody {
                code: stopped.code,
                message: stopped.message,
                at: timestamps::text(stopped.at),
            }),
            prompts,
        },
        created_by,
        created_at: timestamps::text(created_at),
        updated_at: timestamps::text(updated_at),
        warnings: Vec::new(),
    }
}

/// A trigger that was saved, with the warnings about its configuration.
fn saved(
    app: &App,
    caller: &Caller,
    trigger: TriggerWithState,
    config: Option<&ConfigBody>,
) -> Result<Tagged<TriggerBody>> {
    let of_input = save_trigger::input_warning(app, &caller.organization, &trigger.stored.body)?;
    let mut saved = tagged(app, trigger);
    saved.body.warnings = config.map(ConfigBody::warnings).unwrap_or_default();
    saved.body.warnings.extend(of_input);
    Ok(saved)
}

fn tagged(app: &App, trigger: TriggerWithState) -> Tagged<TriggerBody> {
    Tagged { tag: trigger.stored.tag(), body: body(app, trigger) }
}

/// List the triggers of the organization.
#[utoipa::path(get, path = "/api/triggers", tag = "triggers", params(ListQuery),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Triggers), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<Triggers>> {
    let most = most(query.limit)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let of_workflow = |name: &String| {
            let workflow = resolve(repository, &caller.user, name)?.ok_or_else(|| Problem::not_found("workflow"))?;
            Ok::<_, Problem>(("workflow", workflow.id))
        };
        let name = query.workflow_id.as_ref().map(of_workflow).transpose()?;
        let listing = Listing { name, after: query.cursor, most, ..Listing::default() };
        let found = repository.list::<Trigger>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        write_runs(app);
        let triggers = found.rows.into_iter().map(|stored| {
            let state = repository.get::<TriggerState>(&stored.id)?.map(|state| state.body).unwrap_or_default();
            Ok(body(app, TriggerWithState { stored, state }))
        });
        Ok(Json(Triggers { triggers: triggers.collect::<Result<_>>()?, next_cursor }))
    })
    .await
}

/// Get a trigger.
#[utoipa::path(get, path = "/api/triggers/{id}", tag = "triggers", params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = TriggerBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Tagged<TriggerBody>> {
    app.run(move |app| {
        write_runs(app);
        Ok(tagged(app, save_trigger::read(app, &caller.organization, &id)?))
    })
    .await
}

/// Create a trigger of a workflow. Its executions run as the owner of the workflow. Also requires `executions:start`.
#[utoipa::path(post, path = "/api/triggers", tag = "triggers", request_body = NewTrigger,
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 201, body = TriggerBody), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 501, body = ProblemBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(new): Body<NewTrigger>,
) -> Result<(StatusCode, Tagged<TriggerBody>)> {
    app.run(move |app| {
        let created = save_trigger::create(app, &caller, &new)?;
        Ok((StatusCode::CREATED, saved(app, &caller, created, Some(&new.config))?))
    })
    .await
}

/// Change fields of a trigger. Omitted fields keep their values. With `If-Match`, only if the version matches the `ETag`.
/// Also requires `executions:start`.
#[utoipa::path(patch, path = "/api/triggers/{id}", tag = "triggers", params(("id" = String, Path)),
    request_body = TriggerDraft, extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = TriggerBody), (status = 409, body = ProblemBody), (status = 412, body = ProblemBody),
        (status = 501, body = ProblemBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    Body(draft): Body<TriggerDraft>,
) -> Result<Tagged<TriggerBody>> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        let updated = save_trigger::update(app, &caller, &id, &draft, seen)?;
        saved(app, &caller, updated, draft.config.as_ref())
    })
    .await
}

/// Delete a trigger. Its executions are kept.
#[utoipa::path(delete, path = "/api/triggers/{id}", tag = "triggers", params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 204), (status = 409, body = ProblemBody), (status = 412, body = ProblemBody)))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        save_trigger::delete(app, &caller, &id, seen)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Enable a trigger. Ticks of the time in which it was disabled do not run.
#[utoipa::path(post, path = "/api/triggers/{id}/enable", tag = "triggers", params(("id" = String, Path)),
    request_body = NoFields, extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = TriggerBody), (status = 409, body = ProblemBody)))]
async fn enable(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(NoFields {}): Body<NoFields>,
) -> Result<Json<TriggerBody>> {
    set_enabled(app, caller, id, true).await
}

/// Disable a trigger: its webhook refuses deliveries, and its ticks do not run.
#[utoipa::path(post, path = "/api/triggers/{id}/disable", tag = "triggers", params(("id" = String, Path)),
    request_body = NoFields, extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = TriggerBody), (status = 409, body = ProblemBody)))]
async fn disable(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(NoFields {}): Body<NoFields>,
) -> Result<Json<TriggerBody>> {
    set_enabled(app, caller, id, false).await
}

async fn set_enabled(app: App, caller: Caller, id: String, enabled: bool) -> Result<Json<TriggerBody>> {
    let draft = TriggerDraft { enabled: Some(enabled), ..TriggerDraft::default() };
    app.run(move |app| Ok(Json(body(app, save_trigger::update(app, &caller, &id, &draft, None)?)))).await
}
