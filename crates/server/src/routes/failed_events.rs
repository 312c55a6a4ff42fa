//! Deliveries of events that have failed: lists them, sends them again, removes them.

use axum::{Json, extract::State, http::StatusCode};
use mainspring_kernel::{key::ExecutionKey, value::Value};
use mainspring_store::{AuditEntry, Change};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::event_subscriptions::{DeliveryResult, NoFields};
use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::Body,
        extract::{PathParams, QueryParams},
        pagination::{PageQuery, most},
        problem::{Problem, ProblemBody, Result},
        timestamps,
    },
    resources::{
        EventSubscription, FailedEvent,
        repository::{Listing, Repository, Resource, Stored, entry, with_retries},
    },
    services::events::{
        cloud_event::{CloudEvent, of_execution},
        delivery::{Delivered, send},
        hops,
        journal_events::JournalEvents,
    },
};

/// Attempts of a write that conflicts with one of another request.
const TRIES: usize = 5;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(redeliver)).routes(routes!(delete))
}

/// An event that was not delivered in the time of its retries.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FailedEventBody {
    /// Id of the failed delivery, for `redeliver`.
    id: String,
    /// Id of the event, the same as in `webhook-id`.
    event_id: String,
    /// As `workflow.step.failed`.
    event_type: String,
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Number of attempts.
    attempts: u32,
    /// Time of the first attempt, RFC 3339.
    failing_since: String,
    /// Time of the last attempt, RFC 3339.
    failed_at: String,
    /// Error code of the last attempt, such as `http_status:503`.
    error: String,
}

impl From<Stored<FailedEvent>> for FailedEventBody {
    fn from(stored: Stored<FailedEvent>) -> Self {
        let FailedEvent { event, event_type, execution_id, attempts, failing_since, failed_at, error, .. } =
            stored.body;
        let (failing_since, failed_at) = (timestamps::text(failing_since), timestamps::text(failed_at));
        Self { id: stored.id, event_id: event, event_type, execution_id, attempts, failing_since, failed_at, error }
    }
}

/// A page of failed deliveries.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FailedEvents {
    /// Items, the oldest failure first.
    failed: Vec<FailedEventBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// List the failed deliveries of an event subscription. There are at most 1,000.
#[utoipa::path(get, path = "/api/event-subscriptions/{id}/failed", tag = "event subscriptions",
    params(("id" = String, Path), PageQuery), extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = FailedEvents)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<FailedEvents>> {
    let most = most(page.limit)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        repository.require::<EventSubscription>(&id)?;
        let listing = Listing { name: Some(("subscription", id)), after: page.cursor, most, ..Listing::default() };
        let found = repository.list::<FailedEvent>(listing)?;
        let next_cursor = found.next_cursor(|last| last.id.clone());
        Ok(Json(FailedEvents { failed: found.rows.into_iter().map(FailedEventBody::from).collect(), next_cursor }))
    })
    .await
}

/// A failed delivery of a subscription.
fn failed_of(repository: Repository<'_>, subscription: &str, id: &str) -> Result<Stored<FailedEvent>> {
    let failed = repository.require::<FailedEvent>(id)?;
    if failed.body.subscription == subscription {
        return Ok(failed);
    }
    Err(Problem::not_found(FailedEvent::DISPLAY_NAME))
}

/// The event of a failed delivery, derived from its journal again.
fn event_of(app: &App, failed: &FailedEvent) -> Result<CloudEvent> {
    let unknown = || Problem::not_found("execution");
    let key = ExecutionKey::parse(&failed.execution).ok_or_else(unknown)?;
    let row = app.engine.store().execution(key)?.ok_or_else(unknown)?;
    let mut journal = JournalEvents::default();
    journal.read(app, key)?;
    let state = journal.state().ok_or_else(unknown)?;
    let event = journal.events.iter().find(|event| (event.sequence, event.index) == failed.position);
    let event = event.ok_or_else(|| Problem::not_found("event"))?;
    Ok(of_execution(&row, event, hops::of_execution(app, &row, state)?))
}

/// Send an event of a failed delivery once more, also while the subscription is paused. Removes it from the list if it is
/// delivered.
#[utoipa::path(post, path = "/api/event-subscriptions/{id}/failed/{failedId}/redeliver", tag = "event subscriptions",
    params(("id" = String, Path), ("failedId" = String, Path)), request_body = NoFields,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = DeliveryResult)))]
async fn redeliver(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, failed)): PathParams<(String, String)>,
    Body(NoFields {}): Body<NoFields>,
) -> Result<Json<DeliveryResult>> {
    let organization = caller.organization.clone();
    let read = app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &organization);
        let subscription = repository.require::<EventSubscription>(&id)?;
        let failed = failed_of(repository, &id, &failed)?;
        let event = event_of(app, &failed.body)?;
        Ok((subscription, failed, event))
    });
    let (subscription, failed, event) = read.await?;
    let delivered = send(&app, &caller.organization, &subscription, &event).await;
    let is_delivered = matches!(delivered, Delivered::Accepted(_));
    app.run(move |app| {
        let detail = [("event", Value::from(failed.body.event.as_str())), ("delivered", is_delivered.into())];
        let audit = entry(&caller, "event_subscription.redeliver", &failed.body.subscription, Value::map(detail));
        record(app, audit, is_delivered.then_some(&failed))
    })
    .await?;
    Ok(Json(DeliveryResult::of(event.id, &delivered)))
}

/// Remove a failed delivery from the list. Its event is not sent.
#[utoipa::path(delete, path = "/api/event-subscriptions/{id}/failed/{failedId}", tag = "event subscriptions",
    params(("id" = String, Path), ("failedId" = String, Path)),
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 204), (status = 404, body = ProblemBody)))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathParams((id, failed)): PathParams<(String, String)>,
) -> Result<StatusCode> {
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), &caller.organization);
        let failed = failed_of(repository, &id, &failed)?;
        let detail = Value::map([("event", failed.body.event.as_str().into())]);
        let audit = entry(&caller, "event_subscription.dismiss", &failed.body.subscription, detail);
        record(app, audit, Some(&failed))?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Adds an entry to the audit log, and removes a failed delivery unless another request has removed it.
fn record(app: &App, audit: AuditEntry, removed: Option<&Stored<FailedEvent>>) -> Result<()> {
    let repository = Repository::of(app.catalogue(), &audit.organization);
    with_retries(app.engine.store().catalogue(), TRIES, || {
        let found = removed.map(|failed| repository.get::<FailedEvent>(&failed.id)).transpose()?.flatten();
        let removals = found.iter().map(|failed| repository.removal(failed)).collect();
        let audit = vec![audit.clone()];
        Ok((Change { removals, audit, sealing: *app.engine.key(), ..Change::default() }, ()))
    })
}
