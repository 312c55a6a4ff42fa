//! Fills a feed: past events from the journal, new events from the engine, and events of other nodes by polling the
//! store.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use mainspring_engine::{
    EngineError,
    clock::now_ms,
    progress::Events,
    resume_token::{Opened, token_of},
    shard::CommittedFrame,
};
use mainspring_kernel::{
    json::compact,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::State,
    time::rfc3339,
    value::{Map, Value},
};
use mainspring_store::is_final;
use tokio::time;

use super::{EventPosition, Feed, OpenedGate, RING, RING_BYTES_MAX, StreamEvent};
use crate::{
    app::App,
    auth::execution_access::is_for_admins,
    http::{
        problem::Result,
        request_slots::{current, on_account},
    },
};

/// Interval of checking for watchers of the feed, and for frames that another node has written.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A frame, as far as its events need it.
struct FrameRecords {
    sequence: u64,
    now: u64,
    /// The plan of the execution after the frame.
    plan: Arc<Plan>,
    records: Vec<Record>,
}

/// The frames of an execution from a sequence number on, and its state after them.
struct Journal {
    state: State,
    frames: Vec<FrameRecords>,
    next: u64,
}

/// The feed of an execution, which a task fills while it has watchers.
pub(crate) fn feed_of(app: &App, key: ExecutionKey) -> Arc<Feed> {
    let (feed, is_new) = app.feeds.open(key);
    if is_new {
        tokio::spawn(on_account(current(), run(app.clone(), key, Arc::downgrade(&feed))));
    }
    feed
}

/// Fills a feed until the execution has ended or the feed has no watchers.
async fn run(app: App, key: ExecutionKey, feed: Weak<Feed>) {
    let Some(journal) = wait_for_journal(&app, key, &feed).await else { return };
    let id = name(&journal.state);
    let mut encoder = EventEncoder::new(*app.engine.key(), &journal.state, &id);
    let mut next = journal.next;
    if !push_journal(&feed, &mut encoder, &journal) {
        return;
    }
    // Events from before the subscription are found by the first poll, which happens at once.
    let mut frames = app.engine.watch_in_time(key);
    let mut is_watched = true;
    let mut poll = time::interval(POLL_INTERVAL);
    poll.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            frame = frames.recv(), if is_watched => {
                // The engine closes the subscription when it quarantines the execution, when it stops, and when this
                // task reads too slowly.
                is_watched = frame.is_some();
                frame
            }
            _ = poll.tick() => {
                if !is_watched {
                    (frames, is_watched) = (app.engine.watch_in_time(key), true);
                }
                None
            }
        };
        match frame {
            Some(frame) if frame.sequence < next => {}
            Some(frame) if frame.sequence == next && !is_final(frame.status.name()) => {
                next += 1;
                if !push(&feed, encode_committed(&mut encoder, &frame), false) {
                    return;
                }
            }
            other => {
                if feed.strong_count() == 0 {
                    return;
                }
                if other.is_none() && !has_grown(&app, key, next).await {
                    continue;
                }
                let Some(more) = read(&app, key, next).await else { continue };
                next = more.next;
                if !push_journal(&feed, &mut encoder, &more) {
                    return;
                }
            }
        }
    }
}

/// Waits for the journal: an execution that another node has yet to start has none.
async fn wait_for_journal(app: &App, key: ExecutionKey, feed: &Weak<Feed>) -> Option<Journal> {
    let mut poll = time::interval(POLL_INTERVAL);
    loop {
        poll.tick().await;
        if feed.strong_count() == 0 {
            return None;
        }
        if let Some(found) = read(app, key, 0).await {
            return Some(found);
        }
    }
}

async fn has_grown(app: &App, key: ExecutionKey, next: u64) -> bool {
    let head = app.run_short(move |app| Ok(app.engine.store().head(key)?)).await;
    head.ok().flatten().is_some_and(|row| row.head.sequence >= next)
}

async fn read(app: &App, key: ExecutionKey, from: u64) -> Option<Journal> {
    app.run(move |app| journal(app, key, from)).await.ok().flatten()
}

fn journal(app: &App, key: ExecutionKey, from: u64) -> Result<Option<Journal>> {
    let mut frames = Vec::new();
    let read = app.engine.loader().frames(key, |state, frame| {
        if frame.sequence >= from {
            let (plan, records) = (state.plan.clone(), frame.records.clone());
            frames.push(FrameRecords { sequence: frame.sequence, now: frame.now, plan, records });
        }
    });
    let read = read.map_err(EngineError::from)?;
    Ok(read.map(|read| Journal { next: read.journal.head.sequence + 1, state: read.journal.state, frames }))
}

fn name(state: &State) -> String {
    state.start.as_ref().map_or_else(|| state.key.to_string(), |start| start.execution_id.clone())
}

/// False if the feed has no watchers or will not grow any more.
fn push(feed: &Weak<Feed>, events: Vec<StreamEvent>, is_over: bool) -> bool {
    let Some(feed) = feed.upgrade() else { return false };
    // An empty list is pushed too: watchers that wait for a status check it again.
    feed.push(events, is_over);
    !is_over
}

fn push_journal(feed: &Weak<Feed>, encoder: &mut EventEncoder<'_>, journal: &Journal) -> bool {
    encoder.plan = journal.state.plan.clone();
    let mut events: Vec<StreamEvent> = journal.frames.iter().flat_map(|frame| encoder.of_frame(frame)).collect();
    let is_over = journal.state.end.ended_at.is_some();
    if is_over {
        events.extend(encoder.finished(&journal.state, journal.next.saturating_sub(1)));
    }
    push(feed, events, is_over)
}

fn encode_committed(encoder: &mut EventEncoder<'_>, frame: &CommittedFrame) -> Vec<StreamEvent> {
    let CommittedFrame { sequence, now, plan, records, .. } = frame;
    encoder.plan = plan.clone();
    encoder.of_frame(&FrameRecords { sequence: *sequence, now: *now, plan: plan.clone(), records: records.clone() })
}

/// One page of events of the journal behind a position, as many as fit into a ring.
pub(crate) fn catch_up(app: &App, key: ExecutionKey, after: Option<EventPosition>) -> Result<Vec<StreamEvent>> {
    let Some(found) = journal(app, key, 0)? else { return Ok(Vec::new()) };
    let id = name(&found.state);
    let mut encoder = EventEncoder::new(*app.engine.key(), &found.state, &id);
    let last = found.state.end.ended_at.is_some().then_some(found.next.saturating_sub(1));
    let frames = found.frames.iter().map(Some).chain(last.map(|_| None));
    let events = frames.flat_map(|frame| match (frame, last) {
        (Some(frame), _) => encoder.of_frame(frame),
        (None, last) => encoder.finished(&found.state, last.unwrap_or_default()),
    });
    Ok(page_behind(events, after))
}

/// The events behind a position, as many as fit into a ring and at least one. The iterator is not read further.
fn page_behind(events: impl Iterator<Item = StreamEvent>, after: Option<EventPosition>) -> Vec<StreamEvent> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    for event in events.filter(|event| after.is_none_or(|after| event.position > after)) {
        bytes += event.data.len();
        if page.len() == RING || bytes > RING_BYTES_MAX && !page.is_empty() {
            break;
        }
        page.push(event);
    }
    page
}

/// Encodes records as events with their positions.
struct EventEncoder<'a> {
    events: Events<'a>,
    id: &'a str,
    key: [u8; 32],
    execution: ExecutionKey,
    /// The number of the dispatch, from 1.
    attempt: u32,
    /// The plan of the execution now, which the tokens of its open gates depend on.
    plan: Arc<Plan>,
    /// The last frame and the number of its events so far.
    last: (u64, u32),
}

impl<'a> EventEncoder<'a> {
    fn new(key: [u8; 32], state: &State, id: &'a str) -> Self {
        let attempt = state.start.as_ref().map_or(0, |start| start.attempt);
        Self { events: Events::new(id), id, key, execution: state.key, attempt, plan: state.plan.clone(), last: (0, 0) }
    }

    fn of_frame(&mut self, frame: &FrameRecords) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        for record in &frame.records {
            let event = match record {
                Record::GateOpened { .. } => Some(self.gate(&frame.plan, record, frame.now)),
                record => self.events.of_record(&frame.plan, record, frame.now),
            };
            let opens = self.opens(record);
            events.extend(event.map(|event| StreamEvent { opens, ..self.encode(frame.sequence, &event) }));
        }
        let canceled = self.events.cancel_requested(&frame.records, frame.now);
        events.extend(canceled.map(|event| self.encode(frame.sequence, &event)));
        events
    }

    /// The resume token of a gate that a record opens, derived from its question. An erased question yields no token,
    /// because the gate cannot be decided with it.
    fn opens(&self, record: &Record) -> Option<OpenedGate> {
        let Record::GateOpened { instance, gate, question, approvers, purpose, .. } = record else { return None };
        let prompt = question.value().get("prompt").and_then(Value::as_text)?;
        let items = question.value().get("items").cloned().unwrap_or_default();
        let opened = Opened { execution: self.execution, attempt: self.attempt, plan: &self.plan };
        let token = token_of(&self.key, &opened, instance, *gate, (prompt, &items));
        let is_for_admins = is_for_admins(*purpose, &items);
        Some(OpenedGate { token, approvers: approvers.clone(), is_for_admins })
    }

    /// The event of an opened gate. It lacks the resume token, which is added per watcher.
    fn gate(&self, plan: &Plan, record: &Record, now: u64) -> Value {
        let step = record.instance().map(|instance| instance.name(plan)).unwrap_or_default();
        let mut map = Map::from([
            ("type".to_string(), Value::from("approval.required")),
            ("executionId".into(), self.id.into()),
            ("stepId".into(), step.as_str().into()),
            ("ts".into(), rfc3339(now).into()),
        ]);
        if let Record::GateOpened { question, expires_at, count, .. } = record {
            map.insert("prompt".into(), question.value().get("prompt").cloned().unwrap_or_default());
            map.insert("expiresAt".into(), rfc3339(*expires_at).into());
            map.insert("count".into(), (*count).into());
        }
        Value::Map(map)
    }

    fn finished(&mut self, state: &State, sequence: u64) -> Vec<StreamEvent> {
        let at = state.end.ended_at.unwrap_or_else(now_ms);
        let event = self.events.finished(state, at);
        vec![self.encode(sequence, &event)]
    }

    fn encode(&mut self, sequence: u64, event: &Value) -> StreamEvent {
        let index = if self.last.0 == sequence { self.last.1 } else { 0 };
        self.last = (sequence, index + 1);
        let kind = event.get("type").and_then(Value::as_text).unwrap_or_default().to_string();
        StreamEvent { position: EventPosition { sequence, index }, kind, data: compact(event), opens: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The given number of events, three per frame.
    fn events(count: usize) -> impl Iterator<Item = StreamEvent> {
        (0..count).map(|number| {
            let position = EventPosition { sequence: number as u64 / 3, index: number as u32 % 3 };
            StreamEvent { position, kind: "k".into(), data: String::new(), opens: None }
        })
    }

    #[test]
    fn pages_behind_a_position_contain_each_event_once() {
        for count in [0, 1, RING - 1, RING, RING + 1, 2 * RING, 2 * RING + 1] {
            let (mut all, mut after) = (Vec::new(), None);
            loop {
                let page = page_behind(events(count), after);
                assert!(page.len() <= RING);
                let Some(last) = page.last() else { break };
                after = Some(last.position);
                all.extend(page);
            }
            assert!(all.iter().eq(&events(count).collect::<Vec<_>>()), "{count} events were read as {}", all.len());
        }
        let large = |bytes: usize| {
            let of = move |event: StreamEvent| StreamEvent { data: "x".repeat(bytes), ..event };
            page_behind(events(9).map(of), None).len()
        };
        assert_eq!([RING_BYTES_MAX / 3, RING_BYTES_MAX, RING_BYTES_MAX + 1].map(large), [3, 1, 1]);
        let seen = EventPosition { sequence: 0, index: 1 };
        assert_eq!(page_behind(events(4), Some(seen))[0].position, EventPosition { sequence: 0, index: 2 });
    }
}
