//! Event streams of executions, as server-sent events.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    extract::State,
    http::HeaderMap,
    response::sse::{Event, KeepAlive, Sse},
};
use mainspring_effects::partial::PartialWatch;
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    json::{self, compact},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::ExecutionRow;
use serde::Deserialize;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{
        caller::Caller,
        credential_lookup::{current_caller, is_still_valid},
        execution_access::{may_decide_among, visible_execution},
        permission::Permission,
    },
    http::{
        extract::{PathParams, QueryParams},
        problem::{Code, Problem, Result},
        request_slots::{current, on_account},
        response_memory::ResponseReservation,
        timestamps,
    },
    services::event_feed::{
        EventPosition, Next, StreamEvent,
        fill::{catch_up, feed_of},
    },
};

/// Events buffered per watcher.
const EVENTS_BUFFERED_MAX: usize = 16;

/// Time for a watcher to read these. A slower one is disconnected, and reconnects with the id of its last event.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval of checking a watcher's credential, which another node may have revoked. Changes on this node are seen at
/// once.
const CREDENTIAL_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of keep-alive comments, so that proxies do not close an idle connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The kind of an event with progress.
const PROGRESS: &str = "step.progress";

/// Interval of progress events: a few for each glance of a person.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of text in a progress event. With the interval, a watcher gets at most 80 KiB in a second.
const PROGRESS_BYTES_MAX: usize = 8 * 1024;

/// Pause before a watcher retries after a 503.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Position in the event stream.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventsQuery {
    /// Same as the header `Last-Event-ID`, for clients that cannot send headers.
    last_event_id: Option<String>,
    /// Also sends `step.progress` events with the texts of models while they grow. They have no id and are not stored.
    #[serde(default)]
    progress: bool,
}

/// Stream the events of an execution until it ends, from the start or after `Last-Event-ID`. The id of an event is
/// `FRAME.INDEX`, its position in the journal. A client that reads too slowly is disconnected and can reconnect with
/// its last id.
#[utoipa::path(get, path = "/api/executions/{id}/events", tag = "executions", params(("id" = String, Path), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event that the client received")),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, content_type = "text/event-stream", body = String)))]
async fn events(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<EventsQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_string());
    let unknown = || Problem::field("Last-Event-ID", "it must be the id of an event, as 12.0");
    let after =
        header.or(query.last_event_id).map(|text| text.parse::<EventPosition>().map_err(|()| unknown())).transpose()?;
    let asker = caller.clone();
    let row = app.run_short(move |app| visible_execution(app, &asker, &id)).await?;
    let (to, from) = mpsc::channel(EVENTS_BUFFERED_MAX);
    let permit = app.feeds.register(&caller)?;
    let partial = query.progress.then(|| Partial::new(&app, &row));
    tokio::spawn(on_account(current(), async move {
        send_events(app, caller, row, after, (partial, to)).await;
        drop(permit);
    }));
    let events = EventStream { from: ReceiverStream::new(from), reserved: None };
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)))
}

/// An event for one watcher, counted in the memory of responses until it was read.
struct BufferedEvent {
    event: Arc<StreamEvent>,
    /// False for progress, which has no position in the journal.
    has_position: bool,
    reserved: ResponseReservation,
}

/// The events of one watcher. Each event counts as memory until the connection asks for the next one, because a stalled
/// watcher keeps one event of any size in memory.
struct EventStream {
    from: ReceiverStream<BufferedEvent>,
    reserved: Option<ResponseReservation>,
}

impl Stream for EventStream {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.reserved = None;
        let next = ready!(Pin::new(&mut self.from).poll_next(context));
        Poll::Ready(next.map(|BufferedEvent { event, has_position, reserved }| {
            self.reserved = Some(reserved);
            let sent = Event::default().event(&event.kind).data(&event.data);
            Ok(if has_position { sent.id(event.position.to_string()) } else { sent })
        }))
    }
}

/// Sends an event to a watcher. False if the watcher does not read the events before it in time.
async fn send(app: &App, event: Arc<StreamEvent>, to: &mpsc::Sender<BufferedEvent>) -> bool {
    let (account, bytes) = (current(), event.data.len());
    let sent = async {
        loop {
            if let Some(reserved) = app.responses.reserve_events(&account, bytes) {
                let buffered = BufferedEvent { event, has_position: true, reserved };
                return to.send(buffered).await.is_ok();
            }
            app.responses.room_for_events(&account, bytes).await;
        }
    };
    timeout(READ_TIMEOUT, sent).await.unwrap_or(false)
}

/// Sends all events behind a position to one watcher, until the execution ends or the watcher does not read any more.
async fn send_events(
    app: App,
    caller: Caller,
    row: ExecutionRow,
    mut after: Option<EventPosition>,
    (mut partial, to): (Option<Partial>, mpsc::Sender<BufferedEvent>),
) {
    let key = row.key;
    let feed = feed_of(&app, key);
    let mut reader = feed.reader();
    // A new watcher may catch up from the journal; one that falls behind later is disconnected.
    let mut may_catch_up = true;
    let mut credential = app.catalogue_watch.watch(&caller);
    let mut check_at = Instant::now() + CREDENTIAL_CHECK_INTERVAL;
    loop {
        // Checked on every event, because a busy stream never pauses.
        if credential.has_changed() || Instant::now() >= check_at {
            check_at = Instant::now() + CREDENTIAL_CHECK_INTERVAL;
            if !may_watch(&app, &caller).await {
                return;
            }
        }
        match feed.next(after) {
            Next::Event(event) => {
                after = Some(event.position);
                may_catch_up = false;
                let event = for_watcher(&app, &caller, &row, event).await;
                if !send(&app, event, &to).await {
                    return;
                }
            }
            Next::Behind if may_catch_up => {
                let page = tokio::select! {
                    page = page(&app, key, after) => page,
                    () = to.closed() => return,
                };
                let Some((page, _reserved)) = page else { return };
                for event in page {
                    after = Some(event.position);
                    let event = for_watcher(&app, &caller, &row, Arc::new(event)).await;
                    if !send(&app, event, &to).await {
                        return;
                    }
                }
            }
            Next::Behind | Next::Over => return,
            Next::None => tokio::select! {
                () = to.closed() => return,
                more = reader.changed() => if !more { return },
                () = credential.changed() => {}
                () = sleep_until(check_at) => {}
                partial = next_progress(&mut partial) => partial.send(&app, &to),
            },
        }
    }
}

/// The progress of attempts, for one watcher. It never delays the events of the journal: a watcher that reads slowly gets
/// larger pieces later, and none after the attempt has ended.
struct Partial {
    watch: PartialWatch,
    execution_id: String,
    next_at: Instant,
}

impl Partial {
    fn new(app: &App, row: &ExecutionRow) -> Self {
        let watch = app.engine.partial_texts().watch(row.key);
        Self { watch, execution_id: row.id.clone(), next_at: Instant::now() }
    }

    /// Sends what is new, if the watcher has read enough of what was sent before.
    fn send(&mut self, app: &App, to: &mpsc::Sender<BufferedEvent>) {
        self.next_at = Instant::now() + PROGRESS_INTERVAL;
        let Some(reserved) = app.responses.reserve_events(&current(), PROGRESS_BYTES_MAX) else { return };
        // Half of the buffer is left to events of the journal.
        if to.capacity() < EVENTS_BUFFERED_MAX / 2 {
            return;
        }
        let pieces = self.watch.take(PROGRESS_BYTES_MAX);
        let texts = pieces.into_iter().map(|piece| {
            Value::map([
                ("attempt", piece.attempt.into()),
                ("stepId", piece.step.into()),
                ("text", piece.text.into()),
                ("truncated", piece.is_cut.into()),
            ])
        });
        let data = Value::map([
            ("executionId", self.execution_id.as_str().into()),
            ("texts", texts.collect::<Vec<_>>().into()),
            ("ts", timestamps::text(now_ms()).into()),
            ("type", PROGRESS.into()),
        ]);
        let position = EventPosition::default();
        let event = StreamEvent { position, kind: PROGRESS.into(), data: compact(&data), opens: None };
        // A watcher that has gone is noticed by the caller.
        let _ = to.try_send(BufferedEvent { event: Arc::new(event), has_position: false, reserved });
    }
}

/// Waits until there is progress to send; forever for a watcher that has not asked for it.
async fn next_progress(partial: &mut Option<Partial>) -> &mut Partial {
    match partial {
        Some(partial) => {
            sleep_until(partial.next_at).await;
            partial.watch.changed().await;
            partial
        }
        None => std::future::pending().await,
    }
}

/// The event for one watcher. An event of a gate gets the resume token if the watcher may decide there at this time.
async fn for_watcher(app: &App, caller: &Caller, row: &ExecutionRow, event: Arc<StreamEvent>) -> Arc<StreamEvent> {
    let Some(opens) = &event.opens else { return event };
    let (asker, row, opened) = (caller.clone(), row.clone(), opens.clone());
    let may_decide = app.run_short(move |app| {
        let now = current_caller(app, &asker)?;
        Ok(now.is_some_and(|now| may_decide_among(&now, &row, &opened.approvers, opened.is_for_admins)))
    });
    match (may_decide.await, json::value(event.data.as_bytes())) {
        (Ok(true), Ok(Value::Map(mut map))) => {
            map.insert("resumeToken".into(), opens.token.as_str().into());
            Arc::new(StreamEvent { data: compact(&Value::Map(map)), ..StreamEvent::clone(&event) })
        }
        // If the check fails, the event lacks the token; the execution's own response shows it.
        _ => event,
    }
}

async fn may_watch(app: &App, caller: &Caller) -> bool {
    let asker = caller.clone();
    matches!(app.run_short(move |app| is_still_valid(app, &asker, Permission::ExecutionsRead)).await, Ok(true))
}

/// The next page of events from the journal, with their memory; `None` if there are none or they cannot be read.
async fn page(
    app: &App,
    key: ExecutionKey,
    after: Option<EventPosition>,
) -> Option<(Vec<StreamEvent>, ResponseReservation)> {
    loop {
        let page = with_retries(|| app.run(move |app| catch_up(app, key, after))).await.ok()?;
        if page.is_empty() {
            return None;
        }
        let bytes = page.iter().map(|event| event.data.len()).sum();
        if let Some(reserved) = app.responses.reserve_events(&current(), bytes) {
            return Some((page, reserved));
        }
        // Drops the page and reads it again once there is room, because waiting pages are in no memory budget.
        drop(page);
        app.responses.room_for_events(&current(), bytes).await;
    }
}

/// Retries after a 503: a watcher waits longer for a slot than a request does, because it would otherwise lose its
/// place in the stream.
async fn with_retries<T, F: Future<Output = Result<T>>>(mut ask: impl FnMut() -> F) -> Result<T> {
    loop {
        match ask().await {
            Err(problem) if problem.code == Code::Unavailable => sleep(RETRY_PAUSE).await,
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use tokio_stream::StreamExt;

    use super::*;
    use crate::http::{request_slots::Account, response_memory::Responses};

    #[tokio::test(start_paused = true)]
    async fn a_watcher_retries_after_a_503_only() {
        for (code, times) in [(Code::Unavailable, 3), (Code::InternalError, 1)] {
            let mut calls = 0;
            let answer = with_retries(|| {
                calls += 1;
                let answer = if calls < 3 { Err(Problem::new(code, "no")) } else { Ok(calls) };
                async move { answer }
            });
            assert_eq!(answer.await.is_ok(), code == Code::Unavailable);
            assert_eq!(calls, times);
        }
    }

    #[tokio::test]
    async fn an_event_is_reserved_until_the_next_is_polled() {
        let (responses, account) = (Responses::default(), Account::of(&Method::GET, "/", "acme", "vic"));
        let (to, from) = mpsc::channel(EVENTS_BUFFERED_MAX);
        let event = StreamEvent { position: "0.0".parse().unwrap(), kind: "k".into(), data: "{}".into(), opens: None };
        let reserved = responses.reserve_events(&account, 16 * 1024 * 1024).unwrap();
        assert!(to.send(BufferedEvent { event: Arc::new(event), has_position: true, reserved }).await.is_ok());
        let mut events = EventStream { from: ReceiverStream::new(from), reserved: None };
        assert!(events.next().await.is_some());
        assert!(!responses.has_room(&account), "what the connection has not taken counts");
        assert!(timeout(Duration::ZERO, events.next()).await.is_err());
        assert!(responses.has_room(&account));
    }
}
