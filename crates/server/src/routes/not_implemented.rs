//! Routes of the specification that this build lacks. They answer with 501.

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    http::{
        extract::PathParams,
        problem::{Code, Problem, ProblemBody, Result},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(proposals, propose))
        .routes(routes!(review))
        .routes(routes!(apply))
        .routes(routes!(rollback))
}

fn not_yet(what: &str) -> Problem {
    Problem::new(Code::NotAvailable, format!("{what} is not in this build yet."))
}

/// List proposed changes of a workflow. Not available in this release.
#[utoipa::path(get, path = "/api/workflows/{id}/proposals", tag = "proposals",
    extensions(("x-permission" = json!("workflows:read"))), params(("id" = String, Path)),
    responses((status = 501, body = ProblemBody)))]
async fn proposals(_: PathParams<String>) -> Result<()> {
    Err(not_yet("Listing proposals"))
}

/// Propose a change of a workflow. Not available in this release.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals", tag = "proposals",
    extensions(("x-permission" = json!("workflows:write"))), params(("id" = String, Path)),
    responses((status = 501, body = ProblemBody)))]
async fn propose(_: PathParams<String>) -> Result<()> {
    Err(not_yet("Proposing a change"))
}

/// Approve or reject a proposal. Not available in this release.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals/{proposalId}/review", tag = "proposals",
    extensions(("x-permission" = json!("approvals:decide"))), params(("id" = String, Path), ("proposalId" = String, Path)),
    responses((status = 501, body = ProblemBody)))]
async fn review(_: PathParams<(String, String)>) -> Result<()> {
    Err(not_yet("Reviewing a proposal"))
}

/// Apply an approved proposal. Not available in this release.
#[utoipa::path(post, path = "/api/workflows/{id}/proposals/{proposalId}/apply", tag = "proposals",
    extensions(("x-permission" = json!("approvals:decide"))), params(("id" = String, Path), ("proposalId" = String, Path)),
    responses((status = 501, body = ProblemBody)))]
async fn apply(_: PathParams<(String, String)>) -> Result<()> {
    Err(not_yet("Applying a proposal"))
}

/// Restore an earlier version of a workflow. Not available in this release.
#[utoipa::path(post, path = "/api/workflows/{id}/rollback", tag = "proposals",
    extensions(("x-permission" = json!("workflows:write"))), params(("id" = String, Path)),
    responses((status = 501, body = ProblemBody)))]
async fn rollback(_: PathParams<String>) -> Result<()> {
    Err(not_yet("Rolling back"))
}
