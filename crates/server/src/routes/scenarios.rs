//! Scenarios: runs those of a request, and saves those of a workflow.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Data, Tagged, data_text, if_match, object_or_text},
        extract::PathParams,
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        Workflow, WorkflowScenarios,
        repository::{Repository, Stored},
    },
    routes::workflows::found,
    services::scenarios::{self, Ran, Requested},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(run)).routes(routes!(get, put, delete)).routes(routes!(run_stored))
}

/// The name of scenarios that come without one.
const UNNAMED: &str = "scenarios";

/// Scenarios to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunScenarios {
    /// One case or `{cases: […]}`, as an object, or as text in YAML or JSON.
    #[schema(schema_with = object_or_text)]
    scenarios: Data,
    /// The definition that every path in the scenarios means, as an object, or as text in YAML or JSON.
    #[serde(default)]
    #[schema(schema_with = object_or_text)]
    definition: Option<Data>,
    /// A workflow whose definition every path in the scenarios means, instead of `definition`: its id or slug.
    workflow_id: Option<String>,
    /// Only cases whose name contains this text.
    only: Option<String>,
}

/// The stored scenarios to run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunStored {
    /// Another definition to run them with; default: that of the workflow.
    #[serde(default)]
    #[schema(schema_with = object_or_text)]
    definition: Option<Data>,
    /// Only cases whose name contains this text.
    only: Option<String>,
}

/// The scenarios of a workflow. They replace those before.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SaveScenarios {
    /// 1 to 20 texts in YAML or JSON, by name, together at most 512 KiB. A `definition` that is a path means the
    /// definition of the workflow.
    files: BTreeMap<String, String>,
}

/// Numbers and violations of cases.
#[derive(Debug, Serialize, ToSchema)]
struct ScenarioResults {
    /// True if all cases hold.
    ok: bool,
    /// Number of cases that hold.
    passed: usize,
    /// Number of the other cases.
    failed: usize,
    /// Cases in the order of the files.
    cases: Vec<CaseResult>,
}

/// A case with its violated expectations.
#[derive(Debug, Serialize, ToSchema)]
struct CaseResult {
    /// Name of the case.
    name: String,
    /// Name of its file; `scenarios` for those of a request.
    file: String,
    /// True if all expectations hold in all modes.
    ok: bool,
    /// Modes in which it ran: `straight`, `crash_before_inputs`, `inputs_twice`, `inbox_again`.
    modes: Vec<&'static str>,
    /// Violated expectations, at most 20.
    failures: Vec<String>,
    /// Remarks that do not fail the case.
    warnings: Vec<String>,
}

/// The scenarios of a workflow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScenariosBody {
    /// Workflow, as in `/api/workflows/{id}`.
    workflow_id: String,
    /// Texts by name.
    files: BTreeMap<String, String>,
    /// Hash over all texts: `sha256:…`. The `reviewHash` of proposals covers it.
    hash: String,
    /// Id of the member who saved them.
    updated_by: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
}

/// Saved scenarios with their results for the present definition.
#[derive(Debug, Serialize, ToSchema)]
struct SavedScenarios {
    #[serde(flatten)]
    scenarios: ScenariosBody,
    results: ScenarioResults,
}

impl From<Stored<WorkflowScenarios>> for ScenariosBody {
    fn from(stored: Stored<WorkflowScenarios>) -> Self {
        let hash = scenarios::hash(&stored.body);
        let WorkflowScenarios { files, updated_by, updated_at, created_at: _ } = stored.body;
        Self { workflow_id: stored.id, files, hash, updated_by, updated_at: timestamps::text(updated_at) }
    }
}

impl From<Vec<Ran>> for ScenarioResults {
    fn from(ran: Vec<Ran>) -> Self {
        let passed = ran.iter().filter(|ran| ran.holds()).count();
        let case = |ran: Ran| CaseResult {
            ok: ran.holds(),
            name: ran.report.name,
            file: ran.file,
            modes: ran.report.modes,
            failures: ran.report.failures,
            warnings: ran.report.warnings,
        };
        Self { ok: passed == ran.len(), passed, failed: ran.len() - passed, cases: ran.into_iter().map(case).collect() }
    }
}

/// Run scenarios on virtual time with scripted effects; nothing is performed. At most 200 cases in 10 s. A path in a
/// scenario means `definition`, or the definition of the workflow `workflowId`. The workflows that it starts are those of
/// the case, else the stored ones.
#[utoipa::path(post, path = "/api/scenarios/run", tag = "scenarios", request_body = RunScenarios,
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = ScenarioResults), (status = 409, body = ProblemBody)))]
async fn run(State(app): State<App>, caller: Caller, Body(body): Body<RunScenarios>) -> Result<Json<ScenarioResults>> {
    app.run(move |app| {
        let (definition, owner) = match (body.definition, &body.workflow_id) {
            (Some(_), Some(_)) => {
                return Err(Problem::field("definition", "a request has either `definition` or `workflowId`"));
            }
            (Some(definition), None) => (Some(definition.0), caller.user.clone()),
            (None, Some(id)) => {
                let Workflow { data, user, .. } = found(app, &caller, id)?.body;
                (Some(data.0), user)
            }
            (None, None) => (None, caller.user.clone()),
        };
        let files = BTreeMap::from([(UNNAMED.to_string(), data_text(&body.scenarios))]);
        let requested = Requested { files, definition, only: body.only, pending: Arc::default() };
        Ok(Json(scenarios::run(app, &caller.organization, &owner, &requested)?.into()))
    })
    .await
}

/// Get the scenarios of a workflow.
#[utoipa::path(get, path = "/api/workflows/{id}/scenarios", tag = "scenarios", params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = ScenariosBody), (status = 409, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Tagged<ScenariosBody>> {
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        let repository = Repository::of(app.catalogue(), &caller.organization);
        Ok(tagged(repository.require::<WorkflowScenarios>(&workflow.id)?))
    })
    .await
}

/// Replace the scenarios of a workflow, as its owner or as an admin, and run them. They are saved if all of them can be
/// read. A proposal is applied only if they hold with its definition.
#[utoipa::path(put, path = "/api/workflows/{id}/scenarios", tag = "scenarios", params(("id" = String, Path)),
    request_body = SaveScenarios, extensions(("x-permission" = json!("workflows:write"))),
    responses((status = 200, body = SavedScenarios), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    Body(body): Body<SaveScenarios>,
) -> Result<Tagged<SavedScenarios>> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        let (stored, ran) = scenarios::save(app, &caller, &body.files, seen, || found(app, &caller, &id))?;
        let Tagged { tag, body: scenarios } = tagged(stored);
        Ok(Tagged { tag, body: SavedScenarios { scenarios, results: ran.into() } })
    })
    .await
}

/// Remove the scenarios of a workflow, as its owner or as an admin.
#[utoipa::path(delete, path = "/api/workflows/{id}/scenarios", tag = "scenarios", params(("id" = String, Path)),
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
        scenarios::delete(app, &caller, seen, || found(app, &caller, &id))?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Run the scenarios of a workflow, with its definition or with another one.
#[utoipa::path(post, path = "/api/workflows/{id}/scenarios/run", tag = "scenarios", params(("id" = String, Path)),
    request_body = RunStored, extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = ScenarioResults), (status = 409, body = ProblemBody)))]
async fn run_stored(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(body): Body<RunStored>,
) -> Result<Json<ScenarioResults>> {
    app.run(move |app| {
        let workflow = found(app, &caller, &id)?;
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let stored = repository.require::<WorkflowScenarios>(&workflow.id)?;
        let files = stored.body.files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
        let definition = body.definition.unwrap_or(workflow.body.data).0;
        let requested = Requested { files, definition: Some(definition), only: body.only, pending: Arc::default() };
        Ok(Json(scenarios::run(app, &caller.organization, &workflow.body.user, &requested)?.into()))
    })
    .await
}

fn tagged(stored: Stored<WorkflowScenarios>) -> Tagged<ScenariosBody> {
    Tagged { tag: stored.tag(), body: ScenariosBody::from(stored) }
}
