//! Validates, compiles and draws definitions without saving them.

use axum::{
    Json,
    extract::State,
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use mainspring_authoring::draw;
use mainspring_engine::envelope;
use mainspring_kernel::{
    definition::{self, Compiled, Syntax},
    diagnostic::Diagnostic,
    document::Document,
    value::Value,
};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Data, object_or_text},
        extract::PathParams,
        problem::Result,
    },
    services::{
        approvers::{CheckedDefinition, Starter, warnings},
        compile::{CompileError, compile},
        outside::InOrganization,
        plan_cache::{allowed, asking},
        workflow_names::PendingChange,
    },
};

use super::workflows::found;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(validate))
        .routes(routes!(plan))
        .routes(routes!(drawing))
        .routes(routes!(workflow_drawing))
}

/// Policy of a picture that a browser opens by itself.
const PICTURE_POLICY: &str = "default-src 'none'; sandbox";

/// A definition to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Definition {
    #[schema(schema_with = object_or_text)]
    definition: Data,
}

fn compiled(app: &App, caller: &Caller, definition: Value) -> Result<(Compiled, Document), CompileError> {
    let document = match definition {
        Value::Text(text) => definition::read(text.as_bytes(), Syntax::Guess).map_err(|found| vec![found])?,
        value => Document::placeless(value),
    };
    Ok((compile(app, &caller.organization, &document)?, document))
}

/// All warnings in the order of the document, with the caller as the owner.
fn all_warnings(app: &App, caller: &Caller, compiled: &Compiled, document: &Document) -> Result<Vec<Diagnostic>> {
    let asking = asking(&compiled.plan, &compiled.paths);
    let allowed = allowed(&document.value, &asking);
    let checked = CheckedDefinition { plan: &compiled.plan, asking: &asking, document, allowed: &allowed };
    let mut all = compiled.warnings.clone();
    all.extend(warnings(app, caller, &caller.user, Starter::Unknown, &PendingChange::default(), checked)?);
    let pending = PendingChange::default();
    let organization = InOrganization::of(app, caller, &caller.user, &pending);
    all.extend(organization.warnings(&compiled.plan, document, &compiled.warnings));
    all.sort_by(|one, next| (one.place, &one.path).cmp(&(next.place, &next.path)));
    Ok(all)
}

/// Validate a definition: `{ok, status: valid | invalid, workflowHash, errors, warnings, stepOrder}`. An invalid
/// definition also returns 200. `warnings` include approvers who currently cannot decide.
#[utoipa::path(post, path = "/api/definitions/validate", tag = "definitions", request_body = Definition,
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Object)))]
async fn validate(State(app): State<App>, caller: Caller, Body(body): Body<Definition>) -> Result<Json<Data>> {
    app.run(move |app| {
        Ok(Json(Data(match compiled(app, &caller, body.definition.0) {
            Ok((found, document)) => envelope::of_plan(&found.plan, &all_warnings(app, &caller, &found, &document)?),
            Err(CompileError::Invalid(found)) => envelope::of_diagnostics(&found),
            Err(failed) => return Err(failed.into()),
        })))
    })
    .await
}

/// Compile a definition to its plan: steps, edges and policies, and the `warnings` of the validation.
#[utoipa::path(post, path = "/api/definitions/plan", tag = "definitions", request_body = Definition,
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Object)))]
async fn plan(State(app): State<App>, caller: Caller, Body(body): Body<Definition>) -> Result<Json<Data>> {
    app.run(move |app| {
        let (found, document) = compiled(app, &caller, body.definition.0)?;
        let warnings = all_warnings(app, &caller, &found, &document)?;
        let mut plan = found.plan.to_value();
        if let Value::Map(plan) = &mut plan {
            plan.insert("warnings".into(), warnings.iter().map(Diagnostic::to_value).collect::<Vec<_>>().into());
        }
        Ok(Json(Data(plan)))
    })
    .await
}

/// Draw the plan of a definition as an SVG picture, the same as `mainspring plan --format svg`.
#[utoipa::path(post, path = "/api/definitions/drawing", tag = "definitions", request_body = Definition,
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, content_type = "image/svg+xml", body = String)))]
async fn drawing(State(app): State<App>, caller: Caller, Body(body): Body<Definition>) -> Result<Response> {
    app.run(move |app| {
        let (found, _) = compiled(app, &caller, body.definition.0)?;
        Ok(picture(&found))
    })
    .await
}

/// Draw the plan of a workflow as an SVG picture.
#[utoipa::path(get, path = "/api/workflows/{id}/drawing", tag = "workflows", params(("id" = String, Path)),
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, content_type = "image/svg+xml", body = String)))]
async fn workflow_drawing(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Response> {
    app.run(move |app| {
        let definition = found(app, &caller, &id)?.body.data.0;
        let (compiled, _) = compiled(app, &caller, definition)?;
        Ok(picture(&compiled))
    })
    .await
}

fn picture(compiled: &Compiled) -> Response {
    let headers = [(CONTENT_TYPE, "image/svg+xml"), (CONTENT_SECURITY_POLICY, PICTURE_POLICY)];
    (headers, draw::svg(&compiled.plan)).into_response()
}
