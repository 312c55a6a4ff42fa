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
    door::{as_of_now, is_still_in},
    extract::{Asked, Named},
    feed::{Next, Place, Told, catch_up},
    identity::{Caller, Permission},
    problem::{Answer, Code, Problem},
    responses::HeldResponse,
    slots::{current, on_account},
    starting::visible,
    view::may_decide_among,
};

/// Events buffered per watcher.
const ON_THE_WAY: usize = 16;

/// Time for a watcher to read these. A slower one is disconnected, and reconnects with the id of its last event.
const PATIENCE: Duration = Duration::from_secs(30);

/// Interval of checking a watcher's credential, which another node may have revoked. Changes on this node are seen at
/// once.
const CREDENTIAL_LOOK: Duration = Duration::from_secs(10);

/// Interval of keep-alive comments, so that proxies do not close an idle connection.
const BREATH: Duration = Duration::from_secs(15);

/// Pause before a watcher retries after a 503.
const REPEATED_AFTER: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Where to go on.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventsQuery {
    /// Same as the header `Last-Event-ID`, for clients that cannot send headers.
    last_event_id: Option<String>,
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
    Named(id): Named<String>,
    Asked(query): Asked<EventsQuery>,
    headers: HeaderMap,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?").to_string());
    let unknown = || Problem::field("Last-Event-ID", "it must be the id of an event, as 12.0");
    let after = header.or(query.last_event_id).map(|text| text.parse::<Place>().map_err(|()| unknown())).transpose()?;
    let asker = caller.clone();
    let row = app.look(move |app| visible(app, &asker, &id)).await?;
    let (to, from) = mpsc::channel(ON_THE_WAY);
    let place = app.feeds.place(&caller)?;
    tokio::spawn(on_account(current(), async move {
        carry(app, caller, row, after, to).await;
        drop(place);
    }));
    let events = Sending { from: ReceiverStream::new(from), held: None };
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(BREATH)))
}

/// An event for one watcher, counted in the memory of responses until it was read.
struct Sent {
    told: Arc<Told>,
    held: HeldResponse,
}

/// The events of one watcher. Each event counts as memory until the connection asks for the next one, because a stalled
/// watcher keeps one event of any size in memory.
struct Sending {
    from: ReceiverStream<Sent>,
    held: Option<HeldResponse>,
}

impl Stream for Sending {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.held = None;
        let next = ready!(Pin::new(&mut self.from).poll_next(context));
        Poll::Ready(next.map(|Sent { told, held }| {
            self.held = Some(held);
            Ok(Event::default().id(told.place.to_string()).event(&told.kind).data(&told.data))
        }))
    }
}

/// Sends an event to a watcher. False if the watcher does not read the events before it in time.
async fn send(app: &App, told: Arc<Told>, to: &mpsc::Sender<Sent>) -> bool {
    let (account, bytes) = (current(), told.data.len());
    let sent = async {
        loop {
            if let Some(held) = app.responses.hold_events(&account, bytes) {
                return to.send(Sent { told, held }).await.is_ok();
            }
            app.responses.room_for_events(&account, bytes).await;
        }
    };
    timeout(PATIENCE, sent).await.unwrap_or(false)
}

/// Sends all events behind a position to one watcher, until the execution ends or the watcher does not read any more.
async fn carry(app: App, caller: Caller, row: ExecutionRow, mut after: Option<Place>, to: mpsc::Sender<Sent>) {
    let key = row.key;
    let feed = app.feeds.of(&app, key);
    let mut reader = feed.reader();
    // A new watcher may catch up from the journal; one that falls behind later is disconnected.
    let mut may_catch_up = true;
    let mut follower = app.watched.follow(&caller);
    let mut look_at = Instant::now() + CREDENTIAL_LOOK;
    loop {
        // Checked on every event, because a busy stream never pauses.
        if follower.has_changed() || Instant::now() >= look_at {
            look_at = Instant::now() + CREDENTIAL_LOOK;
            if !may_watch(&app, &caller).await {
                return;
            }
        }
        match feed.next(after) {
            Next::Told(told) => {
                after = Some(told.place);
                may_catch_up = false;
                let told = for_watcher(&app, &caller, &row, told).await;
                if !send(&app, told, &to).await {
                    return;
                }
            }
            Next::Behind if may_catch_up => {
                let page = tokio::select! {
                    page = page(&app, key, after) => page,
                    () = to.closed() => return,
                };
                let Some((page, _held)) = page else { return };
                for told in page {
                    after = Some(told.place);
                    let told = for_watcher(&app, &caller, &row, Arc::new(told)).await;
                    if !send(&app, told, &to).await {
                        return;
                    }
                }
            }
            Next::Behind | Next::Over => return,
            Next::None => tokio::select! {
                () = to.closed() => return,
                more = reader.changed() => if !more { return },
                () = follower.changed() => {}
                () = sleep_until(look_at) => {}
            },
        }
    }
}

/// The event for one watcher. An event of a gate gets the resume token if the watcher may decide there at this time.
async fn for_watcher(app: &App, caller: &Caller, row: &ExecutionRow, told: Arc<Told>) -> Arc<Told> {
    let Some(opens) = &told.opens else { return told };
    let (asker, row, approvers) = (caller.clone(), row.clone(), opens.approvers.clone());
    let may_decide = app.look(move |app| {
        let now = as_of_now(app, &asker)?;
        Ok(now.is_some_and(|now| may_decide_among(&now, &row, &approvers)))
    });
    match (may_decide.await, json::value(told.data.as_bytes())) {
        (Ok(true), Ok(Value::Map(mut event))) => {
            event.insert("resumeToken".into(), opens.token.as_str().into());
            Arc::new(Told { data: compact(&Value::Map(event)), ..Told::clone(&told) })
        }
        // If the check fails, the event lacks the token; the execution's own response shows it.
        _ => told,
    }
}

async fn may_watch(app: &App, caller: &Caller) -> bool {
    let asker = caller.clone();
    matches!(app.look(move |app| is_still_in(app, &asker, Permission::ExecutionsRead)).await, Ok(true))
}

/// The next page of events from the journal, with their memory; `None` if there are none or they cannot be read.
async fn page(app: &App, key: ExecutionKey, after: Option<Place>) -> Option<(Vec<Told>, HeldResponse)> {
    loop {
        let page = repeated(|| app.run(move |app| catch_up(app, key, after))).await.ok()?;
        if page.is_empty() {
            return None;
        }
        let bytes = page.iter().map(|told| told.data.len()).sum();
        if let Some(held) = app.responses.hold_events(&current(), bytes) {
            return Some((page, held));
        }
        // Drops the page and reads it again once there is room, because waiting pages are in no memory budget.
        drop(page);
        app.responses.room_for_events(&current(), bytes).await;
    }
}

/// Retries after a 503: a watcher waits longer for a slot than a request does, because it would otherwise lose its
/// place in the stream.
async fn repeated<T, F: Future<Output = Answer<T>>>(mut ask: impl FnMut() -> F) -> Answer<T> {
    loop {
        match ask().await {
            Err(problem) if problem.code == Code::Unavailable => sleep(REPEATED_AFTER).await,
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use tokio_stream::StreamExt;

    use super::*;
    use crate::{responses::Responses, slots::Account};

    #[tokio::test(start_paused = true)]
    async fn a_watcher_without_a_slot_asks_again_and_one_that_is_refused_does_not() {
        for (code, times) in [(Code::Unavailable, 3), (Code::InternalError, 1)] {
            let mut asked = 0;
            let answer = repeated(|| {
                asked += 1;
                let answer = if asked < 3 { Err(Problem::new(code, "no")) } else { Ok(asked) };
                async move { answer }
            });
            assert_eq!(answer.await.is_ok(), code == Code::Unavailable);
            assert_eq!(asked, times);
        }
    }

    #[tokio::test]
    async fn an_event_counts_until_the_connection_asks_for_the_next() {
        let (responses, account) = (Responses::default(), Account::of(&Method::GET, "/", "acme", "vic"));
        let (to, from) = mpsc::channel(ON_THE_WAY);
        let told = Told { place: "0.0".parse().unwrap(), kind: "k".into(), data: "{}".into(), opens: None };
        let held = responses.hold_events(&account, 16 * 1024 * 1024).unwrap();
        assert!(to.send(Sent { told: Arc::new(told), held }).await.is_ok());
        let mut events = Sending { from: ReceiverStream::new(from), held: None };
        assert!(events.next().await.is_some());
        assert!(!responses.has_room(&account), "what the connection has not taken counts");
        assert!(timeout(Duration::ZERO, events.next()).await.is_err());
        assert!(responses.has_room(&account));
    }
}
