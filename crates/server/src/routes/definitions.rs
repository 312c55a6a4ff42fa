//! Definitions, looked at without saving them.

use axum::{Json, extract::State};
use mainspring_engine::envelope;
use mainspring_kernel::{
    definition::{self, Compiled, Syntax},
    diagnostic::Diagnostic,
    document::Document,
    value::Value,
};
use serde::Deserialize;
use utoipa::{
    ToSchema,
    openapi::schema::{ObjectBuilder, Schema, SchemaType, Type},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::{Body, Data},
    compiling::{compile, invalid},
    problem::Answer,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(validate)).routes(routes!(plan))
}

/// A definition to look at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Definition {
    #[schema(schema_with = object_or_text)]
    definition: Data,
}

fn object_or_text() -> Schema {
    let kinds = SchemaType::from_iter([Type::Object, Type::String]);
    let said = "The definition as an object, or its text in YAML or JSON: then diagnostics have lines and columns.";
    ObjectBuilder::new().schema_type(kinds).description(Some(said)).into()
}

fn compiled(app: &App, definition: Value) -> Result<Compiled, Vec<Diagnostic>> {
    match definition {
        Value::Text(text) => {
            let document = definition::read(text.as_bytes(), Syntax::Guess).map_err(|found| vec![found])?;
            compile(app, &document)
        }
        value => compile(app, &Document::placeless(value)),
    }
}

/// Check a definition: `{ok, status: valid | invalid, workflowHash, errors, warnings, stepOrder}`. One that is invalid is
/// an answer, not an error.
#[utoipa::path(post, path = "/api/definitions/validate", tag = "definitions", request_body = Definition,
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Object)))]
async fn validate(State(app): State<App>, Body(body): Body<Definition>) -> Answer<Json<Data>> {
    app.run(move |app| {
        Ok(Json(Data(match compiled(app, body.definition.0) {
            Ok(found) => envelope::of_plan(&found.plan, &found.warnings),
            Err(found) => envelope::of_diagnostics(&found),
        })))
    })
    .await
}

/// The plan that a definition compiles to: steps, edges, policies.
#[utoipa::path(post, path = "/api/definitions/plan", tag = "definitions", request_body = Definition,
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = Object)))]
async fn plan(State(app): State<App>, Body(body): Body<Definition>) -> Answer<Json<Data>> {
    app.run(move |app| {
        let found = compiled(app, body.definition.0).map_err(|found| invalid(&found))?;
        Ok(Json(Data(found.plan.to_value())))
    })
    .await
}
