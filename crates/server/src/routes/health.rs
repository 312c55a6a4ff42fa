//! Whether the server is there, and whether it can work.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    problem::{Answer, Code, Problem, ProblemBody},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready))
}

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Health {
    /// `ok`.
    status: &'static str,
    /// The release.
    release: &'static str,
    /// The partitions that this node works on.
    partitions: usize,
}

fn health(app: &App) -> Health {
    Health { status: "ok", release: app.settings.release, partitions: app.engine.held().len() }
}

/// The process is there.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Health)))]
async fn live(State(app): State<App>) -> Json<Health> {
    Json(health(&app))
}

/// It takes work: its engine runs, and the store answers.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Health), (status = 503, body = ProblemBody)))]
async fn ready(State(app): State<App>) -> Answer<Json<Health>> {
    if app.engine.is_draining() {
        return Err(Problem::new(Code::Unavailable, "The server is stopping."));
    }
    if let Some(why) = app.engine.why_stopped().or_else(|| app.engine.trouble()) {
        return Err(Problem::new(Code::Unavailable, why));
    }
    app.run(|app| Ok(app.engine.store().partitions()?)).await?;
    Ok(Json(health(&app)))
}
