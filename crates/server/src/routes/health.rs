//! Health endpoints: liveness and readiness.

use axum::{Json, extract::State};
use mainspring_engine::NodeProblem;
use mainspring_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    http::problem::{Code, Problem, ProblemBody, Result},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready))
}

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Health {
    /// `ok`.
    status: &'static str,
    /// Release of the server.
    release: &'static str,
    /// Partitions that this node owns.
    partitions: usize,
}

fn health(app: &App) -> Health {
    Health { status: "ok", release: app.settings.release, partitions: app.engine.owned_partitions().len() }
}

/// Liveness: the process responds.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Health)))]
async fn live(State(app): State<App>) -> Json<Health> {
    Json(health(&app))
}

/// Readiness: the engine runs and the store responds.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Health), (status = 503, body = ProblemBody)))]
async fn ready(State(app): State<App>) -> Result<Json<Health>> {
    if app.engine.is_draining() {
        return Err(unready("engine", "it is stopping"));
    }
    if let Some(why) = app.engine.why_stopped() {
        return Err(unready("engine", why));
    }
    if let Some(NodeProblem { component, why }) = app.engine.problem() {
        return Err(unready(component, why));
    }
    app.requests
        .readiness
        .check(|| app.run(|app| app.engine.store().partitions().map(drop).map_err(store_unready)))
        .await?;
    Ok(Json(health(&app)))
}

fn store_unready(error: StoreError) -> Problem {
    unready("store", error.to_string())
}

/// The error for a component that is not ready. The cause goes to the log only, because the endpoint is public and a
/// cause may contain addresses and files.
fn unready(component: &str, why: impl std::fmt::Display) -> Problem {
    let message = format!("This node accepts no work: its {component} is not ready. The node's log shows the reason.");
    Problem::new(Code::Unavailable, message).with(serde_json::json!({ "component": component })).because(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_names_the_component_without_the_cause() {
        let problem = store_unready(StoreError::Unavailable("no connection to 10.0.0.7:5432".into()));
        assert_eq!(problem.details["component"], "store");
        assert!(!problem.message.contains("10.0.0.7") && problem.full_message().contains("10.0.0.7"), "{problem:?}");
    }
}
