//! The cases of the conformance suite about the queue of events.

use super::{
    Subject,
    op::{Turn, continues, key, opens},
};
use crate::{
    Batch, Change, ChangeOutcome, DueTimes, EventCursor, Fence, PartOutcome, Put, RECORDING_KEY, ResourceKey,
    ResourceRow, SUBSCRIPTION_KIND, Store,
};

const ORGANIZATION: &str = "acme";

/// Writes a subscription, with the key by which it takes part in commits or without it.
fn subscribe(store: &dyn Store, organization: &str, id: &str, version: u64, is_recording: bool) {
    let key = |(field, value): (&str, &str)| ResourceKey { field: field.into(), value: value.into(), is_unique: false };
    let resource = ResourceRow {
        kind: SUBSCRIPTION_KIND.into(),
        organization: organization.into(),
        id: id.into(),
        version: 0,
        keys: is_recording.then(|| key(RECORDING_KEY)).into_iter().collect(),
        body: b"body".to_vec(),
    };
    let change = Change { puts: vec![Put { resource, expected: version }], ..Change::default() };
    assert_eq!(store.catalogue().change(&change), Ok(ChangeOutcome::Done));
}

fn commit(store: &dyn Store, epoch: u64, turns: &[Turn]) {
    let parts = turns.iter().map(Turn::part).collect();
    let batch = Batch { fences: vec![Fence { partition: 0, epoch }], parts, sealing: [0; 32] };
    let answers = store.commit(&batch).unwrap();
    assert!(answers.iter().all(|answer| *answer == PartOutcome::Durable), "{answers:?}");
}

fn of_organization(turn: Turn) -> Turn {
    Turn { organization: Some(ORGANIZATION), ..turn }
}

/// Execution, first and newest frame of each row that is due.
fn rows(store: &dyn Store, subscription: &str, until_ms: u64) -> Vec<(u8, u64, u64)> {
    let rows = store.event_queue().due_events(subscription, DueTimes::by(until_ms), 99).unwrap();
    rows.iter().map(|row| (row.execution.0[15], row.sequence, row.newest)).collect()
}

/// Id and organization of each due subscription.
fn subscriptions(store: &dyn Store, due: DueTimes) -> Vec<String> {
    let found = store.event_queue().due_subscriptions(due).unwrap();
    found.iter().map(|due| format!("{} {}", due.id, due.organization)).collect()
}

fn first(store: &dyn Store, subscription: &str) -> EventCursor {
    store.event_queue().due_events(subscription, DueTimes::by(u64::MAX), 1).unwrap().remove(0)
}

pub(super) fn check(subject: &mut impl Subject) {
    let store = subject.store();
    let epoch = store.claim(0, "node").unwrap();
    assert_eq!(key(3).0[15], 3, "the last byte of a key is the number of its execution");
    commit(store, epoch, &[of_organization(opens(0))]);
    subscribe(store, ORGANIZATION, "s1", 0, true);
    subscribe(store, ORGANIZATION, "s2", 0, true);
    subscribe(store, ORGANIZATION, "silent", 0, false);
    subscribe(store, "globex", "theirs", 0, true);
    // A commit before the subscription is not in the queue, and neither are executions of others.
    assert_eq!(subscriptions(store, DueTimes::by(u64::MAX)), Vec::<String>::new());
    commit(store, epoch, &[continues(0, 0), of_organization(Turn { frames: 3, ..opens(1) }), opens(2)]);
    assert_eq!(subscriptions(store, DueTimes::by(0)), ["s1 acme", "s2 acme"]);
    assert_eq!(rows(store, "s1", 0), [(0, 1, 1), (1, 0, 2)]);
    assert_eq!(rows(store, "silent", u64::MAX), vec![]);
    assert_eq!(rows(store, "theirs", u64::MAX), vec![]);
    // A refused part is not in the queue.
    let batch = Batch { parts: vec![continues(1, 2).part()], ..Batch::default() };
    assert!(store.commit(&batch).is_ok_and(|answers| answers != [PartOutcome::Durable]));
    assert_eq!(rows(store, "s1", 0), [(0, 1, 1), (1, 0, 2)]);
    moves(store, epoch);
    subject.reopen();
    let store = subject.store();
    assert_eq!(rows(store, "s1", u64::MAX), [(1, 3, 3)]);
    assert_eq!(store.event_queue().count_events("s2", 99), Ok(2));
    assert_eq!(store.event_queue().count_events("s2", 1), Ok(1));
    // The rows of a subscription that was enabled in the meantime stay.
    store.event_queue().remove_events("s2").unwrap();
    assert_eq!(store.event_queue().count_events("s2", 99), Ok(2));
    subscribe(store, ORGANIZATION, "s2", 1, false);
    store.event_queue().remove_events("s2").unwrap();
    assert_eq!(subscriptions(store, DueTimes::by(u64::MAX)), ["s1 acme"]);
    times(store);
}

/// The times of the only row of `s1`, at which it is due and is made due.
fn times(store: &dyn Store) {
    let queue = store.event_queue();
    let read = first(store, "s1");
    let failed = EventCursor { due_at: 5_000, attempts: 7, failing_since: Some(100), ..read.clone() };
    assert_eq!(queue.move_events(&read, &failed), Ok(true));
    let due = |now_ms: u64, latest_ms: u64| {
        let due = DueTimes { now_ms, latest_ms };
        assert_eq!(subscriptions(store, due).is_empty(), queue.due_events("s1", due, 99).unwrap().is_empty());
        !subscriptions(store, due).is_empty()
    };
    assert!(!due(4_999, 5_000) && due(5_000, 9_000));
    assert!(due(1_000, 4_999), "the clock was set back");
    queue.retry_events("s2").unwrap();
    assert!(!due(0, 5_000));
    queue.retry_events("s1").unwrap();
    assert_eq!(first(store, "s1"), EventCursor { due_at: 0, attempts: 0, failing_since: None, ..read });
}

/// Moves the cursors of `s1`, with commits in between.
fn moves(store: &dyn Store, epoch: u64) {
    let queue = store.event_queue();
    // A position within the frames stays; the number of attempts and the time are kept.
    let read = first(store, "s1");
    assert_eq!((read.organization.as_str(), read.due_at, read.attempts, read.failing_since), ("acme", 0, 0, None));
    let failed = EventCursor { position: 2, due_at: 500, attempts: 3, failing_since: Some(100), ..read.clone() };
    assert_eq!(queue.move_events(&read, &failed), Ok(true));
    assert_eq!(queue.move_events(&read, &failed), Ok(false), "the row has changed since");
    assert_eq!(rows(store, "s1", 499), [(1, 0, 2)]);
    let found = queue.due_events("s1", DueTimes::by(500), 99).unwrap().remove(1);
    assert_eq!(found, failed);
    // A later frame keeps the position, the time and the attempts.
    commit(store, epoch, &[continues(0, 1)]);
    let found = queue.due_events("s1", DueTimes::by(500), 99).unwrap().remove(1);
    assert_eq!(found, EventCursor { newest: 2, ..failed.clone() });
    // The end that was read is no longer the end: the row stays for the later frame.
    let to = EventCursor { sequence: 2, position: 0, due_at: 0, attempts: 0, failing_since: None, ..found.clone() };
    assert_eq!(queue.move_events(&failed, &to), Ok(true));
    assert_eq!(rows(store, "s1", 0), [(0, 2, 2), (1, 0, 2)]);
    let read = first(store, "s1");
    assert_eq!(queue.move_events(&read, &EventCursor { sequence: 3, ..read.clone() }), Ok(true));
    assert_eq!(rows(store, "s1", u64::MAX), [(1, 0, 2)], "all frames were sent");
    assert_eq!(queue.move_events(&read, &EventCursor { sequence: 3, ..read.clone() }), Ok(false));
    let read = first(store, "s1");
    assert_eq!(queue.move_events(&read, &EventCursor { sequence: 3, ..read.clone() }), Ok(true));
    assert_eq!(rows(store, "s1", u64::MAX), vec![]);
    // A later frame makes a new row, which begins with it.
    commit(store, epoch, &[continues(1, 2)]);
    assert_eq!(rows(store, "s1", 0), [(1, 3, 3)]);
}

/// Without a subscription, a commit executes no statement for events: it succeeds even after their table was dropped.
pub(super) fn check_commits_without_subscriptions(subject: &impl Subject, drop_table: impl Fn(&str)) {
    let store = subject.store();
    let epoch = store.claim(0, "node").unwrap();
    subscribe(store, ORGANIZATION, "silent", 0, false);
    commit(store, epoch, &[of_organization(opens(0))]);
    drop_table("event_cursors");
    commit(store, epoch, &[continues(0, 0), of_organization(opens(1))]);
    subscribe(store, "globex", "theirs", 0, true);
    let batch =
        Batch { fences: vec![Fence { partition: 0, epoch }], parts: vec![continues(0, 1).part()], sealing: [0; 32] };
    assert!(store.commit(&batch).is_err(), "with a subscription the table is needed");
}
