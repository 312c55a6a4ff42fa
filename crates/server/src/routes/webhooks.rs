//! Webhooks: deliveries of other systems, which start executions. The webhook of the path verifies a delivery; the route
//! itself requires no credential.

use std::time::Duration;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header::ALLOW},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::permission::Permission,
    http::{
        body::Data,
        client_address::ClientAddress,
        problem::{Problem, ProblemBody, Result},
        request_bodies::BodyMemory,
        request_slots::on_account,
    },
    services::{
        execution_view::read_envelope,
        receive_webhook::{Answer, Delivery, Received, Refused, account_of, receive},
        wait::until_settled,
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(post, put, patch, get))
}

/// The execution that a delivery started.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Delivered {
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// True if an earlier delivery with the same identity had started it.
    existed: bool,
    /// `accepted`, or with `respond: wait` the status of the envelope: `ok`, `needs_approval`, `cancelled`, `failed`, or
    /// `running` if the execution has not ended in time.
    status: &'static str,
    /// With `respond: wait`: the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>, nullable = false)]
    output: Option<Data>,
}

/// The request of a handler.
struct Request {
    method: Method,
    path: Result<Path<String>, PathRejection>,
    query: RawQuery,
    headers: HeaderMap,
    from: ClientAddress,
    body: Bytes,
}

/// Receive a delivery with POST. The start is durable before the response.
///
/// The path names the webhook. The trigger says which method, signature and headers a delivery must have. A repeated
/// delivery starts nothing: it is recognized by `webhook-id`, `X-GitHub-Delivery`, `X-Delivery-Id` or `Idempotency-Key`,
/// by the id of the event for Stripe and Slack, else by its content for 24 hours. The ping of GitHub and the URL verification of
/// Slack are answered with 200 and start nothing.
#[utoipa::path(post, path = "/webhooks/{*path}", tag = "webhooks", params(("path" = String, Path)),
    request_body(content = serde_json::Value, content_type = "application/json"),
    extensions(("x-permission" = json!("public"))),
    responses(
        (status = 200, body = Delivered, description = "An earlier delivery started the execution, or it has ended within the wait"),
        (status = 202, body = Delivered), (status = 401, body = ProblemBody), (status = 404, body = ProblemBody),
        (status = 405, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn post(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    query: RawQuery,
    headers: HeaderMap,
    Extension(from): Extension<ClientAddress>,
    Extension(memory): Extension<BodyMemory>,
    body: Bytes,
) -> Response {
    answer(&app, Request { method: Method::POST, path, query, headers, from, body }, &memory).await
}

/// Receive a delivery with PUT.
#[utoipa::path(put, path = "/webhooks/{*path}", tag = "webhooks", params(("path" = String, Path)),
    request_body(content = serde_json::Value, content_type = "application/json"),
    extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Delivered), (status = 202, body = Delivered), (status = 401, body = ProblemBody),
        (status = 404, body = ProblemBody), (status = 405, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    query: RawQuery,
    headers: HeaderMap,
    Extension(from): Extension<ClientAddress>,
    Extension(memory): Extension<BodyMemory>,
    body: Bytes,
) -> Response {
    answer(&app, Request { method: Method::PUT, path, query, headers, from, body }, &memory).await
}

/// Receive a delivery with PATCH.
#[utoipa::path(patch, path = "/webhooks/{*path}", tag = "webhooks", params(("path" = String, Path)),
    request_body(content = serde_json::Value, content_type = "application/json"),
    extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Delivered), (status = 202, body = Delivered), (status = 401, body = ProblemBody),
        (status = 404, body = ProblemBody), (status = 405, body = ProblemBody), (status = 409, body = ProblemBody)))]
async fn patch(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    query: RawQuery,
    headers: HeaderMap,
    Extension(from): Extension<ClientAddress>,
    Extension(memory): Extension<BodyMemory>,
    body: Bytes,
) -> Response {
    answer(&app, Request { method: Method::PATCH, path, query, headers, from, body }, &memory).await
}

/// Receive a delivery with GET, at a webhook with a secret or a required header. It has no body.
#[utoipa::path(get, path = "/webhooks/{*path}", tag = "webhooks", params(("path" = String, Path)),
    extensions(("x-permission" = json!("public"))),
    responses((status = 200, body = Delivered), (status = 202, body = Delivered), (status = 400, body = ProblemBody),
        (status = 401, body = ProblemBody), (status = 404, body = ProblemBody), (status = 405, body = ProblemBody),
        (status = 409, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    method: Method,
    path: Result<Path<String>, PathRejection>,
    query: RawQuery,
    headers: HeaderMap,
    Extension(from): Extension<ClientAddress>,
    Extension(memory): Extension<BodyMemory>,
) -> Response {
    answer(&app, Request { method, path, query, headers, from, body: Bytes::new() }, &memory).await
}

async fn answer(app: &App, request: Request, memory: &BodyMemory) -> Response {
    match deliver(app, request, memory).await {
        Ok(response) => response,
        Err(Refused { problem, allow }) => {
            let mut response = problem.into_response();
            let allow = allow.and_then(|method| HeaderValue::from_str(&method).ok());
            allow.map(|method| response.headers_mut().insert(ALLOW, method));
            response
        }
    }
}

async fn deliver(app: &App, request: Request, memory: &BodyMemory) -> Result<Response, Refused> {
    let Request { method, path, query, headers, from, body } = request;
    let Path(path) = path.map_err(|_| Problem::not_found("webhook"))?;
    let query = query.0.unwrap_or_default();
    match receive(app, Delivery { method, path, query, headers, body, from: from.0 }).await? {
        Answer::Acknowledged(answer) => Ok(Json(Data(answer)).into_response()),
        Answer::Received(received) => {
            let (status, delivered) = answer_to(app, *received, memory).await?;
            Ok((status, Json(delivered)).into_response())
        }
    }
}

/// The response for an accepted delivery, after the wait for its output.
async fn answer_to(
    app: &App,
    Received { fired, wait_ms }: Received,
    memory: &BodyMemory,
) -> Result<(StatusCode, Delivered), Refused> {
    let existed = fired.existed;
    let status = if existed { StatusCode::OK } else { StatusCode::ACCEPTED };
    let delivered = Delivered { execution_id: fired.execution_id, existed, status: "accepted", output: None };
    // The scopes of the credential that saved the trigger apply to its responses too.
    let wait_ms = wait_ms.filter(|_| fired.owner.has(Permission::ExecutionsRead));
    let Some(wait_ms) = wait_ms else { return Ok((status, delivered)) };
    let _watching = app.feeds.register(&fired.owner)?;
    // The body is in the journal, and not needed during the wait.
    memory.release();
    let account = account_of(&fired.owner.organization);
    let envelope = async {
        until_settled(app, fired.execution, Duration::from_millis(wait_ms)).await?;
        let read = app.run(move |app| {
            let row = app.engine.store().execution(fired.execution)?.ok_or_else(Problem::concurrent_change)?;
            read_envelope(app, &fired.owner, &row)
        });
        read.await
    };
    let envelope = on_account(account, envelope).await?;
    let status = if envelope.status == "running" { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Delivered { status: envelope.status, output: Some(Data(envelope.output)), ..delivered }))
}
