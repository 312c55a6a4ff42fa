//! Subscriptions to events: lists, reads, creates, changes, tests and deletes them.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use mainspring_triggers::limits::WAITING_EXECUTIONS_MAX;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{caller::Caller, token::random},
    http::{
        body::{Body, Tagged, if_match},
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most},
        problem::{ProblemBody, Result},
        timestamps,
    },
    resources::{
        EventSubscription, SubscriptionState,
        repository::{Listing, Repository},
    },
    services::events::{
        cloud_event::of_test,
        delivery::{Delivered, send},
        save_subscription::{self, NewSubscription, SubscriptionDraft, SubscriptionWithState},
    },
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(enable))
        .routes(routes!(disable))
        .routes(routes!(rotate_secret))
        .routes(routes!(test))
}

/// A subscription to events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SubscriptionBody {
    /// Id, unique in the installation.
    id: String,
    /// Display name.
    name: String,
    /// Address of the endpoint.
    url: String,
    /// Types of events and prefixes.
    types: Vec<String>,
    /// Ids of the workflows; null for all executions of the organization.
    workflows: Option<Vec<String>>,
    /// True if events are sent.
    enabled: bool,
    /// The secret of signatures. Only in the responses to its creation and rotation.
    secret: Option<String>,
    /// Deliveries are also signed with the previous secret until this time, RFC 3339.
    previous_secret_until: Option<String>,
    #[serde(flatten)]
    deliveries: SubscriptionDeliveries,
    /// Id of the member who created it.
    created_by: String,
    /// Time of creation, RFC 3339.
    created_at: String,
    /// Time of the last change, RFC 3339.
    updated_at: String,
}

/// The queue of a subscription, and its failures.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SubscriptionDeliveries {
    /// Executions with events that wait, up to 100,001.
    waiting_executions: usize,
    /// Failed attempts since the last success.
    failures: u32,
    /// Last failed attempt.
    last_failure: Option<LastFailureBody>,
    /// Reason why the server has paused it; `enable` ends the pause.
    paused: Option<PausedBody>,
    /// Time since which events are not recorded because too many executions wait, RFC 3339; `enable` continues.
    overflowed_at: Option<String>,
}

/// A failed attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastFailureBody {
    /// Time, RFC 3339.
    at: String,
    /// The same as in `webhook-id`.
    event_id: String,
    /// Error code, such as `http_status:503`, or `subscription_secret_unreadable` if the secret was encrypted with another
    /// key: rotate it.
    error: String,
}

/// Reason of a pause.
#[derive(Debug, Serialize, ToSchema)]
struct PausedBody {
    /// `failing`, `gone` or `failed_deliveries_full`.
    code: String,
    /// Reason and remedy.
    message: String,
    /// Time, RFC 3339.
    at: String,
}

/// A page of subscriptions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Subscriptions {
    /// Items in the order of their ids.
    subscriptions: Vec<SubscriptionBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// The result of a delivery on request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryResult {
    /// True if the endpoint has answered with a status from 200 to 299.
    delivered: bool,
    /// Id of the event, the same as in `webhook-id`.
    event_id: String,
    /// Status of the answer; null without one.
    status: Option<u16>,
    /// Error code; null if it was delivered.
    error: Option<String>,
}

impl DeliveryResult {
    pub(super) fn of(event_id: String, delivered: &Delivered) -> Self {
        match delivered {
            Delivered::Accepted(status) => Self { delivered: true, event_id, status: Some(*status), error: None },
            Delivered::Failed(failure) => {
                let status = failure.error.strip_prefix("http_status:").and_then(|status| status.parse().ok());
                Self { delivered: false, event_id, status, error: Some(failure.error.clone()) }
            }
        }
    }
}

/// A request without fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoFields {}

/// Fields of the request that replaces the secret.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SecretRotation {
    /// True if the secret is replaced although the previous one is valid, which ends its validity. Default false.
    #[serde(default)]
    force: bool,
}

fn body(app: &App, subscription: SubscriptionWithState, secret: Option<String>) -> Result<SubscriptionBody> {
    let SubscriptionWithState { stored, state } = subscription;
    let SubscriptionState { failures, last_failure, paused, .. } = state;
    let waiting_executions = app.engine.store().event_queue().count_events(&stored.id, WAITING_EXECUTIONS_MAX + 1)?;
    let now_ms = app.now_ms();
    let EventSubscription { name, url, types, workflows, enabled, overflowed_at, previous, .. } = stored.body;
    Ok(SubscriptionBody {
        id: stored.id,
        name,
        url,
        types,
        workflows,
        enabled,
        secret,
        previous_secret_until: previous
            .filter(|previous| previous.until > now_ms)
            .map(|previous| timestamps::text(previous.until)),
        deliveries: SubscriptionDeliveries {
            waiting_executions,
            failures,
            last_failure: last_failure.map(|failure| LastFailureBody {
                at: timestamps::text(failure.at),
                event_id: failure.event,
                error: failure.error,
            }),
            paused: paused.map(|paused| PausedBody {
                code: paused.code,
                message: paused.message,
                at: timestamps::text(paused.at),
            }),
            overflowed_at: overflowed_at.map(timestamps::text),
        },
        created_by: stored.body.created_by,
        created_at: timestamps::text(stored.body.created_at),
        updated_at: timestamps::text(stored.body.updated_at),
    })
}

fn tagged(app: &App, subscription: SubscriptionWithState, secret: Option<String>) -> Result<Tagged<SubscriptionBody>> {
    Ok(Tagged { tag: subscription.stored.tag(), body: body(app, subscription, secret)? })
}

/// List the event subscriptions of the organization. Secrets are not returned.
#[utoipa::path(get, path = "/api/event-subscriptions", tag = "event subscriptions", params(PageQuery),
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = Subscriptions)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<Subscriptions>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let listing = Listing { after: page.cursor, most, ..Listing::default() };
        let found = repository.list::<EventSubscription>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        let bodies =
            found.rows.into_iter().map(|stored| body(app, save_subscription::with_state(repository, stored)?, None));
        Ok(Json(Subscriptions { subscriptions: bodies.collect::<Result<_>>()?, next_cursor }))
    })
    .await
}

/// Get an event subscription.
#[utoipa::path(get, path = "/api/event-subscriptions/{id}", tag = "event subscriptions", params(("id" = String, Path)),
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = SubscriptionBody)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Tagged<SubscriptionBody>> {
    app.run(move |app| tagged(app, save_subscription::read(app, &caller.organization, &id)?, None)).await
}

/// Subscribe an endpoint to events. Deliveries are CloudEvents, signed by Standard Webhooks. A generated secret is in this
/// response only.
#[utoipa::path(post, path = "/api/event-subscriptions", tag = "event subscriptions", request_body = NewSubscription,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 201, body = SubscriptionBody), (status = 409, body = ProblemBody)))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(new): Body<NewSubscription>,
) -> Result<(StatusCode, Tagged<SubscriptionBody>)> {
    app.run(move |app| {
        let (created, secret) = save_subscription::create(app, &caller, &new)?;
        Ok((StatusCode::CREATED, tagged(app, created, secret)?))
    })
    .await
}

/// Change fields of an event subscription. Omitted fields keep their values. With `If-Match`, only if the version matches
/// the `ETag`.
#[utoipa::path(patch, path = "/api/event-subscriptions/{id}", tag = "event subscriptions",
    params(("id" = String, Path)), request_body = SubscriptionDraft,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = SubscriptionBody), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn update(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    Body(draft): Body<SubscriptionDraft>,
) -> Result<Tagged<SubscriptionBody>> {
    let seen = if_match(&headers)?;
    app.run(move |app| tagged(app, save_subscription::update(app, &caller, &id, &draft, seen)?, None)).await
}

/// Delete an event subscription with its failed deliveries. Events that wait are not sent.
#[utoipa::path(delete, path = "/api/event-subscriptions/{id}", tag = "event subscriptions",
    params(("id" = String, Path)), extensions(("x-permission" = json!("organization:write"))),
    responses((status = 204), (status = 409, body = ProblemBody), (status = 412, body = ProblemBody)))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    let seen = if_match(&headers)?;
    app.run(move |app| {
        save_subscription::delete(app, &caller, &id, seen)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Enable an event subscription, and end its pause. Events that waited are sent at once.
#[utoipa::path(post, path = "/api/event-subscriptions/{id}/enable", tag = "event subscriptions",
    params(("id" = String, Path)), request_body = NoFields,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = SubscriptionBody), (status = 409, body = ProblemBody)))]
async fn enable(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(NoFields {}): Body<NoFields>,
) -> Result<Tagged<SubscriptionBody>> {
    set_enabled(app, caller, id, true).await
}

/// Disable an event subscription. Events that wait, and those until it is enabled again, are not sent.
#[utoipa::path(post, path = "/api/event-subscriptions/{id}/disable", tag = "event subscriptions",
    params(("id" = String, Path)), request_body = NoFields,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = SubscriptionBody), (status = 409, body = ProblemBody)))]
async fn disable(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(NoFields {}): Body<NoFields>,
) -> Result<Tagged<SubscriptionBody>> {
    set_enabled(app, caller, id, false).await
}

async fn set_enabled(app: App, caller: Caller, id: String, enabled: bool) -> Result<Tagged<SubscriptionBody>> {
    let draft = SubscriptionDraft { enabled: Some(enabled), ..SubscriptionDraft::default() };
    app.run(move |app| tagged(app, save_subscription::update(app, &caller, &id, &draft, None)?, None)).await
}

/// Replace the secret by a generated one, which is in this response only. Deliveries are signed with both for 24 hours. In
/// this time a further rotation is a 409, unless it is forced.
#[utoipa::path(post, path = "/api/event-subscriptions/{id}/rotate-secret", tag = "event subscriptions",
    params(("id" = String, Path)), request_body = SecretRotation,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = SubscriptionBody), (status = 409, body = ProblemBody)))]
async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(SecretRotation { force }): Body<SecretRotation>,
) -> Result<Tagged<SubscriptionBody>> {
    app.run(move |app| {
        let (rotated, secret) = save_subscription::rotate_secret(app, &caller, &id, force)?;
        tagged(app, rotated, Some(secret))
    })
    .await
}

/// Send an event of the type `workflow.subscription.test` once, also while the subscription is disabled or paused.
#[utoipa::path(post, path = "/api/event-subscriptions/{id}/test", tag = "event subscriptions",
    params(("id" = String, Path)), request_body = NoFields,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = DeliveryResult)))]
async fn test(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    Body(NoFields {}): Body<NoFields>,
) -> Result<Json<DeliveryResult>> {
    let organization = caller.organization.clone();
    let stored = app.run(move |app| Ok(save_subscription::read(app, &organization, &id)?.stored)).await?;
    let time = timestamps::text(app.now_ms());
    let event = of_test(&caller.organization, &stored.id, format!("test-{}", random(16)?), &time);
    let delivered = send(&app, &caller.organization, &stored, &event).await;
    Ok(Json(DeliveryResult::of(event.id, &delivered)))
}
