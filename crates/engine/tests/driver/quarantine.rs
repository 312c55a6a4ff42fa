//! Quarantined executions: their attempts end, and their receipts count after a release.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    ClusterOptions, Engine, inbox,
    journal_loader::Loader,
    quarantine::{self, Act, Place, Released},
    start_request::StartRequest,
};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    input::Input,
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{
    AuditedNotes, EnqueueRequest, Filter, InboxMessage, QuarantineRelease, READ_BYTES, ReadLimit, StoreError,
    memory::MemoryStore,
};
use tokio::sync::Semaphore;

use crate::{
    WAITS, block_on, engine,
    hooked_store::{Call, Hooked},
    lease, plan, request, status, until,
};

pub(crate) const BASH: &str = r#"{"steps":[{"type":"bash","id":"a","command":"true","onInterrupted":"fail"}]}"#;

/// The id of a message that quarantines its execution.
const UNREADABLE: &str = "unreadable";

/// Performs attempts until they may end, or are stopped.
pub(crate) struct Steps {
    begun: AtomicU32,
    stopped: AtomicU32,
    may_end: Semaphore,
    /// Attempts ignore stop requests.
    is_stubborn: bool,
}

impl Steps {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::with(false))
    }

    fn with(is_stubborn: bool) -> Self {
        let (begun, stopped) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { begun, stopped, may_end: Semaphore::new(0), is_stubborn }
    }

    pub(crate) fn started_count(&self) -> u32 {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn stopped(&self) -> u32 {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn end_one(&self) {
        self.may_end.add_permits(1);
    }
}

impl Executor for Steps {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, mut stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let is_stubborn = self.is_stubborn;
            let stopped = async {
                stop.requested().await;
                self.stopped.fetch_add(1, Ordering::SeqCst);
                if is_stubborn {
                    std::future::pending().await
                }
            };
            tokio::select! {
                permit = self.may_end.acquire() => {
                    permit.unwrap().forget();
                    Outcome::Done(Value::Null)
                }
                () = stopped => Outcome::Stopped(Value::Null),
            }
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// An execution with one running step is quarantined because of an unreadable message, which is then removed.
async fn quarantined_at_work(
    store: &MemoryStore,
    steps: &Arc<Steps>,
    sharing: Option<ClusterOptions>,
) -> (Engine, ExecutionKey) {
    let hooked = Hooked::on(store, |_| Ok(()));
    let removed = hooked.removed.clone();
    let engine = engine(hooked, Executors::new(vec![steps.clone()]), sharing);
    until(async || !engine.owned_partitions().is_empty()).await;
    let execution = engine.start(request(BASH)).await.unwrap().execution;
    until(async || steps.started_count() == 1).await;
    let unreadable = InboxMessage { execution, partition: 0, id: UNREADABLE.into(), body: vec![7], enqueued_at: 0 };
    store.enqueue(&EnqueueRequest::of(&inbox::sealed(&[1; 32], unreadable), 1)).unwrap();
    until(async || steps.stopped() == 1).await;
    assert!(store.head(execution).unwrap().unwrap().quarantined.is_some());
    removed.lock().unwrap().insert(UNREADABLE.into());
    (engine, execution)
}

fn release(store: &MemoryStore, execution: ExecutionKey) {
    store.release_quarantine(&QuarantineRelease { execution, parent: None, audited: AuditedNotes::of(&[]) }).unwrap();
    inbox::enqueue(store, None, &[1; 32], (execution, &Input::Continue), None).unwrap();
}

#[test]
fn attempts_of_a_quarantined_execution_are_interrupted() {
    for sharing in [None, lease(60_000)] {
        let store = MemoryStore::new();
        block_on(async {
            let steps = Steps::new();
            let (engine, execution) = quarantined_at_work(&store, &steps, sharing).await;
            release(&store, execution);
            until(async || status(&store, execution) == "failed").await;
            assert_eq!(store.execution(execution).unwrap().unwrap().error.as_deref(), Some("interrupted"));
            engine.drain().await;
        });
    }
}

/// The attempt ended before the stop request: its receipt counts, and it is not performed again.
#[test]
fn a_receipt_during_the_quarantine_counts_after_a_release() {
    for sharing in [None, lease(60_000)] {
        let store = MemoryStore::new();
        block_on(async {
            let steps = Arc::new(Steps::with(true));
            let (engine, execution) = quarantined_at_work(&store, &steps, sharing).await;
            steps.end_one();
            until(async || store.inbox(&[0], 0, ReadLimit::of(9)).unwrap().len() == 2).await;
            release(&store, execution);
            until(async || status(&store, execution) == "completed").await;
            assert_eq!(steps.started_count(), 1);
            engine.drain().await;
        });
    }
}

/// The execution is released while the attempt still runs, and its receipt follows.
#[test]
fn an_attempt_running_at_the_release_is_awaited() {
    for sharing in [None, lease(60_000)] {
        let store = MemoryStore::new();
        block_on(async {
            let steps = Arc::new(Steps::with(true));
            let (engine, execution) = quarantined_at_work(&store, &steps, sharing).await;
            release(&store, execution);
            engine.signal(execution, "s".into(), "go".into(), Value::Null).await.unwrap();
            steps.end_one();
            until(async || status(&store, execution) == "completed").await;
            assert_eq!(steps.started_count(), 1);
            engine.drain().await;
        });
    }
}

/// A parent that waits for a child, which waits for a signal. No engine runs them.
fn tree(store: &MemoryStore) -> [ExecutionKey; 2] {
    let parent = r#"{"steps":[{"type":"subworkflow","id":"k","workflow":"child"}]}"#;
    let workflows = [("child".to_string(), plan(WAITS))].into();
    block_on(async {
        let engine = engine(store.clone(), Executors::new(Vec::new()), None);
        let parent = engine.start(StartRequest { workflows, ..request(parent) }).await.unwrap().execution;
        until(async || store.executions(&Filter::default(), None, 9).unwrap().len() == 2).await;
        let child = store.executions(&Filter::default(), None, 9).unwrap().into_iter().find(|row| row.key != parent);
        engine.drain().await;
        [parent, child.unwrap().key]
    })
}

fn release_as_operator(store: &MemoryStore, execution: ExecutionKey) -> Released {
    let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
    let act = Act { key: &[1; 32], by: "ada", reason: "it is well", audit: &[] };
    quarantine::release(Place { store, loader: &loader, data_dir: None }, execution, &act).unwrap()
}

fn received(store: &MemoryStore, execution: ExecutionKey) -> usize {
    let messages = store.inbox(&[0], 0, ReadLimit::of(99)).unwrap();
    messages.iter().filter(|arrived| arrived.message.execution == execution).count()
}

/// The parent was notified, but its engine cannot write: the release withdraws the notification.
#[test]
fn a_release_withdraws_the_notification_and_both_continue() {
    let store = MemoryStore::new();
    let [parent, child] = tree(&store);
    store.quarantine(child, "by hand").unwrap();
    block_on(async {
        let hooked = Hooked::on(&store, |call| match call {
            Call::Commit => Err(StoreError::Unavailable("the disk is full".into())),
            _ => Ok(()),
        });
        let engine = engine(hooked, Executors::new(Vec::new()), None);
        engine.activate(parent);
        until(async || received(&store, parent) == 1).await;
        until(async || engine.problem().is_some()).await;
        engine.drain().await;
    });
    assert_eq!(release_as_operator(&store, child), Released::Resumed);
    assert_eq!(received(&store, parent), 0);
    block_on(async {
        let engine = engine(store.clone(), Executors::new(Vec::new()), None);
        engine.activate(parent);
        assert!(engine.signal(child, "s".into(), "go".into(), Value::Null).await.unwrap());
        until(async || status(&store, parent) == "completed").await;
        assert_eq!(store.executions(&Filter::default(), None, 9).unwrap().len(), 2, "there was no second attempt");
        engine.drain().await;
    });
}

/// The parent ends by itself, and no longer waits when its child is released.
#[test]
fn a_released_child_is_canceled_if_its_parent_continued() {
    let store = MemoryStore::new();
    let [parent, child] = tree(&store);
    store.quarantine(child, "by hand").unwrap();
    block_on(async {
        let engine = engine(store.clone(), Executors::new(Vec::new()), None);
        engine.activate(parent);
        until(async || status(&store, parent) == "failed").await;
        assert_eq!(release_as_operator(&store, child), Released::Canceled);
        until(async || status(&store, child) == "cancelled").await;
        engine.drain().await;
    });
}

/// The message is behind more bytes than one page contains.
#[test]
fn a_message_behind_a_long_backlog_is_reported_as_waiting() {
    let store = MemoryStore::new();
    let key = |number: u8| ExecutionKey([number; 16]);
    for number in 1..=3 {
        let body = vec![1; READ_BYTES * 2 / 3];
        let message = InboxMessage { execution: key(number), partition: 0, id: "a".into(), body, enqueued_at: 0 };
        store.enqueue(&EnqueueRequest::of(&message, 1)).unwrap();
    }
    let message = InboxMessage { execution: key(9), partition: 0, id: "b".into(), body: vec![1], enqueued_at: 0 };
    store.enqueue(&EnqueueRequest::of(&message, 1)).unwrap();
    for (execution, id, is_waiting) in
        [(9, Some("b"), true), (9, None, true), (9, Some("a"), false), (3, Some("a"), true), (4, None, false)]
    {
        assert_eq!(inbox::is_waiting(&store, key(execution), id), Ok(is_waiting), "{execution} {id:?}");
    }
}
