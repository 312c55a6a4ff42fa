//! Receipts that cannot be decoded: each settles its attempt and fails the step, and the execution stays readable.

use std::sync::Arc;

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    inbox,
    journal_loader::{LoadAnswer, Loader},
    shard::{Event, PendingInput},
};
use mainspring_kernel::{
    effect::{Attempt, Outcome, RECEIPT_UNDECODABLE},
    failure::{Class, Failure},
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    limits::{DEPTH_MAX, RESULT_DEPTH_MAX},
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{EnqueueRequest, InboxMessage, memory::MemoryStore, partition_of};

use crate::{block_on, engine, request, status, until};

const KEY: [u8; 32] = [1; 32];

/// A call, and a step that runs after its failure.
const TOLERANT: &str = r#"{"steps":[
    {"type":"tool","id":"a","tool":"s.t","onError":"continue"},
    {"type":"return","id":"r","input":"continued"}]}"#;
const CALL: &str = r#"{"steps":[{"type":"tool","id":"a","tool":"s.t","retry":{"maxAttempts":3,"initialDelayMs":1}}]}"#;

fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| Value::List(vec![inner]))
}

/// An executor that returns one outcome. Without one, its attempts do not end by themselves.
pub(crate) struct Returns(pub(crate) Option<Outcome>);

impl Executor for Returns {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, mut stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match &self.0 {
                Some(outcome) => outcome.clone(),
                None => {
                    stop.requested().await;
                    Outcome::Stopped(Value::Null)
                }
            }
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

fn returns(outcome: Option<Outcome>) -> Executors {
    Executors::new(vec![Arc::new(Returns(outcome))])
}

/// The journal loads again, and decides again with the same result.
#[track_caller]
fn assert_readable(store: &MemoryStore, execution: ExecutionKey) {
    let loader = Loader::new(Arc::new(store.clone()), KEY);
    assert!(loader.verify(execution).is_ok_and(|verified| verified.is_some()), "{:?}", loader.verify(execution));
    let answer = loader.load(execution);
    assert!(!matches!(answer, LoadAnswer::Broken(_)), "{answer:?}");
}

fn error(store: &MemoryStore, execution: ExecutionKey) -> Option<String> {
    store.execution(execution).unwrap().unwrap().error
}

#[test]
fn a_result_that_no_journal_can_contain_fails_its_step() {
    let tool_error = || Failure::new(Class::Failed, "tool_error", "no").with_details(nested(DEPTH_MAX + 1));
    for (outcome, code) in [
        (Outcome::Done(nested(DEPTH_MAX + 1)), RECEIPT_UNDECODABLE),
        (Outcome::Done(nested(RESULT_DEPTH_MAX + 1)), RECEIPT_UNDECODABLE),
        (Outcome::Done("x".repeat(5 << 20).into()), RECEIPT_UNDECODABLE),
        (Outcome::Failed(tool_error()), "tool_error"),
    ] {
        let store = MemoryStore::new();
        block_on(async {
            let engine = engine(store.clone(), returns(Some(outcome)), None);
            let execution = engine.start(request(CALL)).await.unwrap().execution;
            until(async || status(&store, execution) == "failed").await;
            assert_eq!(error(&store, execution).as_deref(), Some(code));
            engine.drain().await;
            assert_readable(&store, execution);
        });
    }
}

/// Puts a receipt with this encoded form into the inbox, as another node forwards it.
fn forward(store: &MemoryStore, execution: ExecutionKey, body: Vec<u8>) {
    let partitions = store.partitions().unwrap();
    let partition = partition_of(execution, partitions);
    let message = InboxMessage { execution, partition, id: "forwarded".into(), body, enqueued_at: 1 };
    let message = inbox::sealed(&KEY, message);
    assert!(store.enqueue(&EnqueueRequest::of(&message, partitions)).unwrap());
    store.notify(&[partition]);
}

fn receipt(outcome: Outcome) -> Input {
    Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome }
}

#[test]
fn a_forwarded_receipt_that_cannot_be_decoded_settles_its_attempt() {
    let deep = receipt(Outcome::Done(nested(DEPTH_MAX + 1))).encode();
    let mut garbage = receipt(Outcome::Interrupted).encode();
    garbage.pop();
    // An outcome with an unknown tag, one that is cut off, and one with a text that is not UTF-8.
    let unknown = [garbage.clone(), vec![0x81, 0x18, 0x63]].concat();
    let text = [&garbage[..], &receipt(Outcome::Done("ab".into())).encode()[garbage.len()..]].concat();
    let not_utf8 = [&text[..text.len() - 2], b"\xff\xff"].concat();
    for body in [deep, garbage, unknown, not_utf8] {
        assert!(Input::decode(&body).is_err());
        let store = MemoryStore::new();
        block_on(async {
            let engine = engine(store.clone(), returns(None), None);
            let execution = engine.start(request(TOLERANT)).await.unwrap().execution;
            forward(&store, execution, body);
            until(async || status(&store, execution) == "completed").await;
            engine.drain().await;
            assert_readable(&store, execution);
            let state = Loader::new(Arc::new(store.clone()), KEY).journal(execution).unwrap().unwrap().journal.state;
            let failure = state.steps[&Instance::of_step(0)].failure.clone().expect("the step has failed");
            assert_eq!((failure.code.as_str(), failure.class), (RECEIPT_UNDECODABLE, Class::Invalid));
            assert!(store.inbox(&[0], 0, mainspring_store::ReadLimit::of(9)).unwrap().is_empty());
        });
    }
}

/// A receipt that names no step is no receipt, and quarantines its execution as any other unreadable message.
#[test]
fn a_message_without_the_head_of_a_receipt_is_unreadable() {
    let store = MemoryStore::new();
    block_on(async {
        let engine = engine(store.clone(), returns(None), None);
        let execution = engine.start(request(TOLERANT)).await.unwrap().execution;
        engine.drain().await;
        let partition = partition_of(execution, store.partitions().unwrap());
        let event = |body: Vec<u8>| {
            let message = InboxMessage { execution, partition, id: "m".into(), body, enqueued_at: 1 };
            inbox::event_of(&store, &KEY, inbox::sealed(&KEY, message))
        };
        assert!(matches!(event(vec![0x84, 0x01, 0x80]), Err(inbox::MessageError::Unreadable(_))));
        // The state machine decides if its step exists.
        let unknown = Input::Receipt { instance: Instance::of_step(99), attempt: 1, outcome: Outcome::Interrupted };
        let taken = event(unknown.encode());
        assert!(matches!(taken, Ok(Event::Take(_, PendingInput { input: Input::Receipt { .. }, .. }))));
    });
}
