//! Inbox messages that were not written with the installation's key change nothing.

use std::{sync::Arc, time::Duration};

use mainspring_effects::Executors;
use mainspring_engine::{Engine, Ground, Reach, evaluator::InProcess, inbox, load::Loader, request::Request};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::Outcome,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    plan::Decision,
    state::ExecutionStatus,
    value::Value,
};
use mainspring_store::{Letter, Most, Posting, Store, memory::MemoryStore};

const KEY: [u8; 32] = [1; 32];
const OTHER_KEY: [u8; 32] = [2; 32];

/// One gate for one person, and a wait for a signal beside it.
const DEFINITION: &str = r#"{"steps":[
    {"type":"approval","id":"gate","prompt":"Pay?","approvers":["ada"]},
    {"type":"signal","id":"later","signal":"go"}]}"#;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn engine(store: &MemoryStore) -> Engine {
    let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as _);
    Engine::run(Arc::new(store.clone()), KEY, workers, Ground::default(), Reach::All).unwrap()
}

fn request(id: &str) -> Request {
    let plan = compile(&read(DEFINITION.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    Request { execution_id: Some(id.into()), ..Request::new(Arc::new(plan), "me") }
}

#[track_caller]
fn until(is_so: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    let asking = async move {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    let caller = std::panic::Location::caller();
    async move {
        let ended = tokio::time::timeout(Duration::from_secs(20), asking).await;
        assert!(ended.is_ok(), "the condition of {caller} never holds");
    }
}

fn approval() -> Input {
    let (instance, decision) = (Instance::of_step(0), Decision::Approve);
    Input::Decide { instance, gate: 1, decision, by: "ada".into(), reason: Value::Null }
}

/// The inputs that an intruder would like to be believed.
fn inputs() -> [Input; 4] {
    let outcome = Outcome::Done(Value::Null);
    [
        approval(),
        Input::Signal { id: "s".into(), name: "go".into(), payload: Value::Null },
        Input::Cancel { reason: "no".into(), by: "ada".into() },
        Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome },
    ]
}

/// A message as an intruder with write access to the store, and without the key, can make it.
fn plain(execution: ExecutionKey, id: &str, input: &Input) -> Letter {
    Letter { execution, partition: 0, id: id.into(), body: input.encode(), posted_at: 0 }
}

fn put(store: &MemoryStore, message: &Letter) {
    assert!(store.post(&Posting::of(message, 1)).unwrap());
}

fn frames(store: &MemoryStore, execution: ExecutionKey) -> u64 {
    store.head(execution).unwrap().unwrap().head.sequence
}

fn state(store: &MemoryStore, execution: ExecutionKey) -> ExecutionStatus {
    let read = Loader::new(Arc::new(store.clone()), KEY).journal(execution).unwrap().unwrap();
    read.journal.state.status()
}

#[test]
fn a_forged_message_changes_nothing_and_leaves_the_inbox() {
    let store = MemoryStore::new();
    block_on(async {
        let engine = engine(&store);
        let victim = engine.submit(request("victim")).await.unwrap().execution;
        let other = engine.submit(request("other")).await.unwrap().execution;
        until(async || state(&store, victim) == ExecutionStatus::WaitingApproval).await;
        let before = frames(&store, victim);
        let genuine = inbox::letter(&KEY, other, &approval(), 1, 5);
        let mut forged: Vec<Letter> =
            inputs().iter().enumerate().map(|(n, input)| plain(victim, &format!("plain {n}"), input)).collect();
        forged.extend(inputs().iter().map(|input| inbox::letter(&OTHER_KEY, victim, input, 1, 5)));
        // A message to somebody else, under another id, at another time, cut off, and with one bit changed.
        forged.push(Letter { execution: victim, ..genuine.clone() });
        forged.push(Letter { id: "another".into(), ..genuine.clone() });
        forged.push(Letter { posted_at: 6, id: genuine.id.clone(), ..genuine.clone() });
        forged.push(Letter { body: vec![1; 20], ..plain(victim, "short", &approval()) });
        forged.push(Letter { body: Vec::new(), ..plain(victim, "empty", &approval()) });
        let mut changed = inbox::letter(&KEY, victim, &approval(), 1, 5);
        *changed.body.last_mut().unwrap() ^= 1;
        forged.push(Letter { id: changed.id, ..plain(victim, "", &approval()) });
        for message in &forged {
            put(&store, message);
        }
        engine.limits_changed("nobody");
        until(async || store.inbox(&[0], 0, Most::of(99)).unwrap().is_empty()).await;
        assert_eq!(frames(&store, victim), before);
        assert_eq!(state(&store, victim), ExecutionStatus::WaitingApproval);
        assert!(store.head(victim).unwrap().unwrap().quarantined.is_none());
        assert!(store.late(victim).unwrap().is_empty());
        // Messages with the key count.
        put(&store, &inbox::letter(&KEY, victim, &approval(), 1, 7));
        until(async || state(&store, victim) == ExecutionStatus::Running).await;
        engine.drain().await;
    });
}

#[test]
fn a_forged_start_starts_nothing() {
    let store = MemoryStore::new();
    block_on(async {
        let engine = engine(&store);
        let execution = ExecutionKey([9; 16]);
        let start = Input::Start(Box::new(request("forged").start(execution)));
        put(&store, &plain(execution, "start", &start));
        until(async || store.inbox(&[0], 0, Most::of(99)).unwrap().is_empty()).await;
        assert!(store.execution(execution).unwrap().is_none());
        engine.drain().await;
    });
}

/// Messages that a release without seals has left count after the upgrade; the same rows put there later do not.
#[test]
fn messages_of_an_older_release_count_once_it_is_upgraded() {
    let store = MemoryStore::new();
    let execution = ExecutionKey([9; 16]);
    let request = request("older");
    let start = Input::Start(Box::new(request.clone().start(execution)));
    let message = plain(execution, "start", &start);
    assert!(store.post(&Posting { plans: &request.stored_plans(), ..Posting::of(&message, 1) }).unwrap());
    put(&store, &plain(execution, "decide", &approval()));
    block_on(async {
        let upgraded = engine(&store);
        until(async || store.inbox(&[0], 0, Most::of(99)).unwrap().is_empty()).await;
        until(async || state(&store, execution) == ExecutionStatus::Running).await;
        upgraded.drain().await;
        put(&store, &plain(execution, "signal", &inputs()[1]));
        let again = engine(&store);
        until(async || store.inbox(&[0], 0, Most::of(99)).unwrap().is_empty()).await;
        assert_eq!(state(&store, execution), ExecutionStatus::Running);
        again.drain().await;
    });
}
