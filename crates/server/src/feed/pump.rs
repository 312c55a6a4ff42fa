//! Fills a feed: past events from the journal, new events from the engine, and events of other nodes by polling the
//! store.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use mainspring_engine::{
    EngineError,
    engine::now_ms,
    progress::Events,
    shard::Moment,
    token::{Opened, token_of},
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

use super::{Feed, Opens, Place, RING, RING_BYTES_MAX, Told};
use crate::{app::App, problem::Answer};

/// Interval of two checks: whether the feed still has watchers, and whether the execution continues on another node.
const LOOK: Duration = Duration::from_millis(500);

/// The records of one frame.
struct Happened {
    sequence: u64,
    now: u64,
    records: Vec<Record>,
}

/// The frames of an execution from a sequence number on, and its state after them.
struct Journal {
    state: State,
    frames: Vec<Happened>,
    next: u64,
}

/// Fills a feed until the execution has ended or the feed has no watchers.
pub(super) async fn run(app: App, key: ExecutionKey, feed: Weak<Feed>) {
    let Some(begun) = begun(&app, key, &feed).await else { return };
    let (id, plan) = (name(&begun.state), begun.state.plan.clone());
    let mut teller = Teller::new(*app.engine.key(), &begun.state, &id, &plan);
    let mut next = begun.next;
    if !tell(&feed, &mut teller, &begun) {
        return;
    }
    // Events from before the subscription are found by the first poll, which happens at once.
    let mut moments = app.engine.watch_in_time(key);
    let mut is_watched = true;
    let mut look = time::interval(LOOK);
    look.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        let moment = tokio::select! {
            moment = moments.recv(), if is_watched => {
                // The engine closes the subscription when it quarantines the execution, when it stops, and when this
                // task reads too slowly.
                is_watched = moment.is_some();
                moment
            }
            _ = look.tick() => {
                if !is_watched {
                    (moments, is_watched) = (app.engine.watch_in_time(key), true);
                }
                None
            }
        };
        match moment {
            Some(moment) if moment.sequence < next => {}
            Some(moment) if moment.sequence == next && !is_final(moment.status.name()) => {
                next += 1;
                if !push(&feed, of_moment(&mut teller, &moment), false) {
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
                if !tell(&feed, &mut teller, &more) {
                    return;
                }
            }
        }
    }
}

/// Waits for the journal: an execution that another node has yet to start has none.
async fn begun(app: &App, key: ExecutionKey, feed: &Weak<Feed>) -> Option<Journal> {
    let mut look = time::interval(LOOK);
    loop {
        look.tick().await;
        if feed.strong_count() == 0 {
            return None;
        }
        if let Some(found) = read(app, key, 0).await {
            return Some(found);
        }
    }
}

async fn has_grown(app: &App, key: ExecutionKey, next: u64) -> bool {
    let head = app.look(move |app| Ok(app.engine.store().head(key)?)).await;
    head.ok().flatten().is_some_and(|row| row.head.sequence >= next)
}

async fn read(app: &App, key: ExecutionKey, from: u64) -> Option<Journal> {
    app.run(move |app| journal(app, key, from)).await.ok().flatten()
}

fn journal(app: &App, key: ExecutionKey, from: u64) -> Answer<Option<Journal>> {
    let mut frames = Vec::new();
    let read = app.engine.loader().frames(key, |_, frame| {
        if frame.sequence >= from {
            frames.push(Happened { sequence: frame.sequence, now: frame.now, records: frame.records.clone() });
        }
    });
    let read = read.map_err(EngineError::from)?;
    Ok(read.map(|read| Journal { next: read.journal.head.sequence + 1, state: read.journal.state, frames }))
}

fn name(state: &State) -> String {
    state.start.as_ref().map_or_else(|| state.key.to_string(), |start| start.execution_id.clone())
}

/// False if the feed has no watchers or will not grow any more.
fn push(feed: &Weak<Feed>, told: Vec<Told>, is_over: bool) -> bool {
    let Some(feed) = feed.upgrade() else { return false };
    // An empty list is pushed too: watchers that wait for a status check it again.
    feed.push(told, is_over);
    !is_over
}

fn tell(feed: &Weak<Feed>, teller: &mut Teller<'_>, journal: &Journal) -> bool {
    let mut told: Vec<Told> = journal.frames.iter().flat_map(|frame| teller.of_frame(frame)).collect();
    let is_over = journal.state.ended_at.is_some();
    if is_over {
        told.extend(teller.finished(&journal.state, journal.next.saturating_sub(1)));
    }
    push(feed, told, is_over)
}

fn of_moment(teller: &mut Teller<'_>, moment: &Moment) -> Vec<Told> {
    let Moment { sequence, now, records, .. } = moment;
    teller.of_frame(&Happened { sequence: *sequence, now: *now, records: records.clone() })
}

/// One page of events of the journal behind a position, as many as fit into a ring.
pub(crate) fn catch_up(app: &App, key: ExecutionKey, after: Option<Place>) -> Answer<Vec<Told>> {
    let Some(found) = journal(app, key, 0)? else { return Ok(Vec::new()) };
    let (id, plan) = (name(&found.state), found.state.plan.clone());
    let mut teller = Teller::new(*app.engine.key(), &found.state, &id, &plan);
    let last = found.state.ended_at.is_some().then_some(found.next.saturating_sub(1));
    let frames = found.frames.iter().map(Some).chain(last.map(|_| None));
    let told = frames.flat_map(|frame| match (frame, last) {
        (Some(frame), _) => teller.of_frame(frame),
        (None, last) => teller.finished(&found.state, last.unwrap_or_default()),
    });
    Ok(page_behind(told, after))
}

/// The events behind a position, as many as fit into a ring and at least one. The iterator is not read further.
fn page_behind(told: impl Iterator<Item = Told>, after: Option<Place>) -> Vec<Told> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    for told in told.filter(|told| after.is_none_or(|after| told.place > after)) {
        bytes += told.data.len();
        if page.len() == RING || bytes > RING_BYTES_MAX && !page.is_empty() {
            break;
        }
        page.push(told);
    }
    page
}

/// Encodes records as events with their positions.
struct Teller<'a> {
    events: Events<'a>,
    id: &'a str,
    key: [u8; 32],
    opened: Opened<'a>,
    /// The last frame and the number of its events so far.
    last: (u64, u32),
}

impl<'a> Teller<'a> {
    fn new(key: [u8; 32], state: &State, id: &'a str, plan: &'a Arc<Plan>) -> Self {
        let attempt = state.start.as_ref().map_or(0, |start| start.attempt);
        let opened = Opened { execution: state.key, attempt, plan };
        Self { events: Events::new(id, plan), id, key, opened, last: (0, 0) }
    }

    fn of_frame(&mut self, frame: &Happened) -> Vec<Told> {
        let mut told = Vec::new();
        for record in &frame.records {
            let event = match record {
                Record::GateOpened { .. } => Some(self.gate(record, frame.now)),
                record => self.events.of_record(record, frame.now),
            };
            let opens = self.opens(record);
            told.extend(event.map(|event| Told { opens, ..self.placed(frame.sequence, &event) }));
        }
        let canceled = self.events.cancel_requested(&frame.records, frame.now);
        told.extend(canceled.map(|event| self.placed(frame.sequence, &event)));
        told
    }

    /// The resume token of a gate that a record opens, derived from its question. An erased question yields no token,
    /// because the gate cannot be decided with it.
    fn opens(&self, record: &Record) -> Option<Opens> {
        let Record::GateOpened { instance, gate, question, approvers, .. } = record else { return None };
        let prompt = question.value().get("prompt").and_then(Value::as_text)?;
        let items = question.value().get("items").cloned().unwrap_or_default();
        let token = token_of(&self.key, &self.opened, instance, *gate, (prompt, &items));
        Some(Opens { token, approvers: approvers.clone() })
    }

    /// The event of an opened gate. It lacks the resume token, which is added per watcher.
    fn gate(&self, record: &Record, now: u64) -> Value {
        let step = record.instance().map(|instance| instance.name(self.events.plan())).unwrap_or_default();
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

    fn finished(&mut self, state: &State, sequence: u64) -> Vec<Told> {
        let at = state.ended_at.unwrap_or_else(now_ms);
        let event = self.events.finished(state, at);
        vec![self.placed(sequence, &event)]
    }

    fn placed(&mut self, sequence: u64, event: &Value) -> Told {
        let index = if self.last.0 == sequence { self.last.1 } else { 0 };
        self.last = (sequence, index + 1);
        let kind = event.get("type").and_then(Value::as_text).unwrap_or_default().to_string();
        Told { place: Place { sequence, index }, kind, data: compact(event), opens: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The given number of events, three per frame.
    fn events(count: usize) -> impl Iterator<Item = Told> {
        (0..count).map(|number| {
            let place = Place { sequence: number as u64 / 3, index: number as u32 % 3 };
            Told { place, kind: "k".into(), data: String::new(), opens: None }
        })
    }

    #[test]
    fn pages_behind_a_place_have_each_event_once_also_at_the_size_of_a_page() {
        for count in [0, 1, RING - 1, RING, RING + 1, 2 * RING, 2 * RING + 1] {
            let (mut all, mut after) = (Vec::new(), None);
            loop {
                let page = page_behind(events(count), after);
                assert!(page.len() <= RING);
                let Some(last) = page.last() else { break };
                after = Some(last.place);
                all.extend(page);
            }
            assert!(all.iter().eq(&events(count).collect::<Vec<_>>()), "{count} events came as {}", all.len());
        }
        let large = |bytes: usize| {
            let of = move |told: Told| Told { data: "x".repeat(bytes), ..told };
            page_behind(events(9).map(of), None).len()
        };
        assert_eq!([RING_BYTES_MAX / 3, RING_BYTES_MAX, RING_BYTES_MAX + 1].map(large), [3, 1, 1]);
        let seen = Place { sequence: 0, index: 1 };
        assert_eq!(page_behind(events(4), Some(seen))[0].place, Place { sequence: 0, index: 2 });
    }
}
