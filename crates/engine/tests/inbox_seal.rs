//! Inbox messages that were not sealed with the installation's key have no effect.

use std::{sync::Arc, time::Duration};

use mainspring_effects::Executors;
use mainspring_engine::{
    Engine, EngineError, EngineResources, EngineScope, evaluator::InProcess, inbox, journal_loader::Loader,
    start_request::StartRequest,
};
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
use mainspring_store::prelude::*;
use mainspring_store::{
    Batch, EnqueueRequest, ExecutionRow, Fence, Filter, InboxMessage, Part, ReadLimit, Store, memory::MemoryStore,
};

const KEY: [u8; 32] = [1; 32];
const OTHER_KEY: [u8; 32] = [2; 32];

/// One approval of one person, and a signal step after it.
const DEFINITION: &str = r#"{"steps":[
    {"type":"approval","id":"gate","prompt":"Pay?","approvers":["ada"]},
    {"type":"signal","id":"later","signal":"go"}]}"#;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn engine(store: &MemoryStore) -> Engine {
    let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as _);
    Engine::run(Arc::new(store.clone()), KEY, workers, EngineResources::default(), EngineScope::All).unwrap()
}

fn request(id: &str) -> StartRequest {
    let plan = compile(&read(DEFINITION.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    StartRequest { execution_id: Some(id.into()), ..StartRequest::new(Arc::new(plan), "me") }
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

/// Inputs that an intruder would forge.
fn inputs() -> [Input; 4] {
    let outcome = Outcome::Done(Value::Null);
    [
        approval(),
        Input::Signal { id: "s".into(), name: "go".into(), payload: Value::Null },
        Input::Cancel { reason: "no".into(), by: "ada".into() },
        Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome },
    ]
}

/// A message as an intruder with write access to the store can create it without the key.
fn plain(execution: ExecutionKey, id: &str, input: &Input) -> InboxMessage {
    InboxMessage { execution, partition: 0, id: id.into(), body: input.encode(), enqueued_at: 0 }
}

fn put(store: &MemoryStore, message: &InboxMessage) {
    assert!(store.enqueue(&EnqueueRequest::of(message, 1)).unwrap());
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
        let victim = engine.start(request("victim")).await.unwrap().execution;
        let other = engine.start(request("other")).await.unwrap().execution;
        until(async || state(&store, victim) == ExecutionStatus::WaitingApproval).await;
        let before = frames(&store, victim);
        let genuine = inbox::message(&KEY, other, &approval(), 1, 5);
        let mut forged: Vec<InboxMessage> =
            inputs().iter().enumerate().map(|(n, input)| plain(victim, &format!("plain {n}"), input)).collect();
        forged.extend(inputs().iter().map(|input| inbox::message(&OTHER_KEY, victim, input, 1, 5)));
        // For another execution, with another id, at another time, truncated, and with one bit changed.
        forged.push(InboxMessage { execution: victim, ..genuine.clone() });
        forged.push(InboxMessage { id: "another".into(), ..genuine.clone() });
        forged.push(InboxMessage { enqueued_at: 6, id: genuine.id.clone(), ..genuine.clone() });
        forged.push(InboxMessage { body: vec![1; 20], ..plain(victim, "short", &approval()) });
        forged.push(InboxMessage { body: Vec::new(), ..plain(victim, "empty", &approval()) });
        let mut changed = inbox::message(&KEY, victim, &approval(), 1, 5);
        *changed.body.last_mut().unwrap() ^= 1;
        forged.push(InboxMessage { id: changed.id, ..plain(victim, "", &approval()) });
        for message in &forged {
            put(&store, message);
        }
        engine.limits_changed("nobody");
        until(async || store.inbox(&[0], 0, ReadLimit::of(99)).unwrap().is_empty()).await;
        assert_eq!(frames(&store, victim), before);
        assert_eq!(state(&store, victim), ExecutionStatus::WaitingApproval);
        assert!(store.head(victim).unwrap().unwrap().quarantined.is_none());
        assert!(store.late_receipts(victim).unwrap().is_empty());
        // Messages with a valid seal count.
        put(&store, &inbox::message(&KEY, victim, &approval(), 1, 7));
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
        until(async || store.inbox(&[0], 0, ReadLimit::of(99)).unwrap().is_empty()).await;
        assert!(store.execution(execution).unwrap().is_none());
        engine.drain().await;
    });
}

/// Messages that a release without seals has left count after the upgrade. The same rows do not count if they are added
/// later.
#[test]
fn messages_of_an_older_release_count_once_it_is_upgraded() {
    let store = MemoryStore::new();
    store.set_unsealed_format();
    let execution = ExecutionKey([9; 16]);
    let request = request("older");
    let start = Input::Start(Box::new(request.clone().start(execution)));
    let message = plain(execution, "start", &start);
    assert!(
        store.enqueue(&EnqueueRequest { plans: &request.stored_plans(), ..EnqueueRequest::of(&message, 1) }).unwrap()
    );
    put(&store, &plain(execution, "decide", &approval()));
    block_on(async {
        let upgraded = engine(&store);
        until(async || store.inbox(&[0], 0, ReadLimit::of(99)).unwrap().is_empty()).await;
        until(async || state(&store, execution) == ExecutionStatus::Running).await;
        upgraded.drain().await;
        put(&store, &plain(execution, "signal", &inputs()[1]));
        let again = engine(&store);
        until(async || store.inbox(&[0], 0, ReadLimit::of(99)).unwrap().is_empty()).await;
        assert_eq!(state(&store, execution), ExecutionStatus::Running);
        again.drain().await;
    });
}

fn run(store: &MemoryStore) -> Result<Engine, EngineError> {
    let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as _);
    Engine::run(Arc::new(store.clone()), KEY, workers, EngineResources::default(), EngineScope::All)
}

/// A copy of a store without the mark, with unreadable executions on top.
fn without_mark(store: &MemoryStore, unreadable: usize) -> MemoryStore {
    let copy = MemoryStore::new();
    copy.set_unsealed_format();
    let fence = Fence { partition: 0, epoch: copy.claim(0, "other").unwrap() };
    for row in store.executions(&Filter::default(), None, 9).unwrap() {
        let head = store.head(row.key).unwrap().unwrap().head;
        let frames = store.frames(row.key, 0, ReadLimit::of(99)).unwrap();
        let plans = request("any").stored_plans();
        let key = row.key;
        let part = Part { frames, head, row: Some(row), plans, ..Part::empty(key, 0) };
        copy.commit(&Batch { fences: vec![fence], parts: vec![part], sealing: KEY }).unwrap();
    }
    for number in 0..unreadable {
        let key = ExecutionKey([0xf0 + number as u8; 16]);
        let row = store.executions(&Filter::default(), None, 1).unwrap().remove(0);
        let row = ExecutionRow { key, id: format!("unreadable {number}"), ..row };
        // The frame of another execution.
        let frames = store.frames(victim(store), 0, ReadLimit::of(1)).unwrap();
        let part = Part { frames, row: Some(row), ..Part::empty(key, 0) };
        copy.commit(&Batch { fences: vec![fence], parts: vec![part], sealing: KEY }).unwrap();
    }
    copy
}

fn victim(store: &MemoryStore) -> ExecutionKey {
    store.execution_by_id("victim").unwrap().unwrap().key
}

/// An attacker removes the mark, hides the newest executions behind unreadable ones, and makes the store appear recently
/// upgraded. A message without a seal still has no effect.
#[test]
fn unsealed_messages_have_no_effect_without_the_store_mark() {
    let store = MemoryStore::new();
    block_on(async {
        let engine = engine(&store);
        let key = engine.start(request("victim")).await.unwrap().execution;
        until(async || state(&store, key) == ExecutionStatus::WaitingApproval).await;
        engine.drain().await;
        for unreadable in [0, 16] {
            let copy = without_mark(&store, unreadable);
            assert_eq!(state(&copy, key), ExecutionStatus::WaitingApproval);
            assert_eq!(copy.executions(&Filter::default(), None, 99).unwrap().len(), 1 + unreadable);
            put(&copy, &plain(key, "forged", &approval()));
            let engine = run(&copy).unwrap();
            until(async || copy.inbox(&[0], 0, ReadLimit::of(99)).unwrap().is_empty()).await;
            assert_eq!(state(&copy, key), ExecutionStatus::WaitingApproval, "{unreadable} before it");
            engine.drain().await;
        }
    });
}

/// Without executions the age of a store is unknown. Only the process that upgraded it knows.
#[test]
fn unsealed_messages_prevent_a_start_until_accepted() {
    let store = MemoryStore::new();
    let execution = ExecutionKey([9; 16]);
    let request = request("older");
    let start = Input::Start(Box::new(request.clone().start(execution)));
    let message = plain(execution, "start", &start);
    assert!(
        store.enqueue(&EnqueueRequest { plans: &request.stored_plans(), ..EnqueueRequest::of(&message, 1) }).unwrap()
    );
    block_on(async {
        let refused = run(&store).err().expect("it does not start");
        assert_eq!(refused, EngineError::Unsealed(1));
        assert!(refused.to_string().contains("mainspring upgrade --accept-unsealed"));
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        assert_eq!(inbox::seal_older(&shared, &KEY, inbox::Unsealed::Accepted), Ok(1));
        let engine = run(&store).unwrap();
        until(async || store.execution(execution).unwrap().is_some()).await;
        engine.drain().await;
    });
}
