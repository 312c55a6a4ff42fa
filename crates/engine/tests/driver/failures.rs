//! Panics. A panic in the work of an execution quarantines that execution. A panic of the driver ends the engine with
//! an error.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    Engine, EngineError, EngineResources, EngineScope,
    admission::{Bounds, Limits},
    evaluator::{Evaluator, InProcess},
    start_request::StartRequest,
};
use mainspring_kernel::{
    effect::{Attempt, Outcome},
    key::ExecutionKey,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Node, Store, StoreError, memory::MemoryStore};

use crate::{
    WAITS, block_on, engine,
    hooked_store::{Call, Hooked},
    inbox::{Gate, Opening},
    lease, request, status, until,
};

const BASH: &str = r#"{"steps":[{"type":"bash","id":"a","command":"true","onInterrupted":"fail"}]}"#;
const CODE: &str = r#"{"steps":[{"type":"code","id":"c","code":"export default () => 1"}]}"#;

/// An executor whose attempts wait for a permit to end.
#[derive(Default)]
struct Scripted {
    begun: AtomicU32,
    may_end: Option<Arc<tokio::sync::Semaphore>>,
    panics_at_forget: bool,
    panics_at_adopt: bool,
}

impl Executor for Scripted {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let may_end = self.may_end.clone();
        Box::pin(async move {
            if let Some(may_end) = may_end {
                may_end.acquire().await.unwrap().forget();
            }
            Outcome::Done(Value::Null)
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        assert!(!self.panics_at_adopt, "planted: reconciling");
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {
        assert!(!self.panics_at_forget, "planted: forgetting");
    }
}

#[test]
fn a_driver_panic_stops_the_engine_and_is_reported() {
    let store = MemoryStore::new();
    block_on(async {
        let may_end = Arc::new(tokio::sync::Semaphore::new(0));
        let executor = Scripted { panics_at_forget: true, may_end: Some(may_end.clone()), ..Scripted::default() };
        let engine = Arc::new(engine(store.clone(), Executors::new(vec![Arc::new(executor)]), None));
        let execution = engine.start(request(BASH)).await.unwrap().execution;
        assert_eq!(engine.why_stopped(), None);
        let asks: Vec<_> = (0..50)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    loop {
                        // A caller waits for a reply at the time of the panic.
                        if let Err(error) = engine.start(request(WAITS)).await {
                            return error;
                        }
                    }
                })
            })
            .collect();
        may_end.add_permits(1);
        for ask in asks {
            let error = ask.await.unwrap();
            assert!(matches!(&error, EngineError::Stopped(why) if why.contains("panicked")), "{error:?}");
        }
        let why = engine.why_stopped().expect("the engine has stopped");
        assert!(why.contains("panicked") && why.contains("start it again"), "{why}");
        let error = engine.cancel(execution, "no", "me").await.unwrap_err();
        assert!(matches!(&error, EngineError::Stopped(why) if why.contains("panicked")), "{error:?}");
        engine.drain().await;
        assert_eq!(status(&store, execution), "completed", "what was durable before is");
    });
}

struct Panics;

impl Evaluator for Panics {
    fn call(&self, _: &mainspring_sandbox::Request) -> mainspring_sandbox::Response {
        panic!("planted: evaluating")
    }
}

/// The step fails instead of waiting forever.
#[test]
fn a_panicking_evaluation_fails() {
    let store = MemoryStore::new();
    block_on(async {
        let workers = (Executors::new(Vec::new()), Arc::new(Panics) as Arc<dyn Evaluator>);
        let engine =
            Engine::run(Arc::new(store.clone()), [1; 32], workers, EngineResources::default(), EngineScope::All)
                .unwrap();
        let execution = engine.start(request(CODE)).await.unwrap().execution;
        until(async || status(&store, execution) == "failed").await;
        let row = store.execution(execution).unwrap().unwrap();
        assert_eq!(row.error.as_deref(), Some("evaluation_panicked"));
        engine.drain().await;
    });
}

#[test]
fn a_journal_that_causes_a_panic_is_quarantined() {
    let store = MemoryStore::new();
    block_on(async {
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let bad = first.start(request(WAITS)).await.unwrap().execution;
        let good = first.start(request(WAITS)).await.unwrap().execution;
        first.drain().await;
        let hooked = Hooked::on(&store, move |call| {
            assert!(call != Call::Frames(bad), "planted: reading");
            Ok(())
        });
        let again = engine(hooked, Executors::new(Vec::new()), None);
        let refused = again.signal(bad, "i".into(), "go".into(), Value::Null).await;
        assert!(matches!(&refused, Err(EngineError::Quarantined(why)) if why.contains("planted")), "{refused:?}");
        until(async || store.head(bad).unwrap().unwrap().quarantined.is_some()).await;
        assert!(again.signal(good, "i".into(), "go".into(), Value::Null).await.unwrap());
        until(async || status(&store, good) == "completed").await;
        again.drain().await;
    });
}

#[test]
fn reads_and_heartbeats_continue_after_a_panic() {
    let store = MemoryStore::new();
    let (reads, heartbeats, dues) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let is_open = Arc::new(AtomicBool::new(false));
    let open = is_open.clone();
    let hooked = Hooked::on(&store, move |call| {
        if !open.load(Ordering::SeqCst) {
            return Ok(());
        }
        let count = match call {
            Call::Inbox => &reads,
            Call::Heartbeat => &heartbeats,
            Call::Due => &dues,
            _ => return Ok(()),
        };
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "planted: the first of its kind");
        Ok(())
    });
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), lease(2_000));
        is_open.store(true, Ordering::SeqCst);
        let posted = mainspring_engine::inbox::enqueue_start(&store, None, request(WAITS), &[1; 32]).unwrap();
        until(async || status(&store, posted) == "running").await;
        engine.drain().await;
    });
}

/// Another message of the same page is received.
#[test]
fn a_panic_in_decoding_a_message_delays_no_other_message() {
    let store = MemoryStore::new();
    let bad = request(BASH);
    let hash = bad.stored_plans()[0].hash;
    let hooked = Hooked::on(&store, move |call| {
        assert!(call != Call::Plan(hash), "planted: decoding");
        Ok(())
    });
    mainspring_engine::inbox::enqueue_start(&store, None, bad, &[1; 32]).unwrap();
    let good = mainspring_engine::inbox::enqueue_start(&store, None, request(WAITS), &[1; 32]).unwrap();
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), None);
        until(async || status(&store, good) == "running").await;
        engine.drain().await;
    });
}

#[test]
fn an_attempt_is_interrupted_if_its_recovery_panics() {
    let store = MemoryStore::new();
    block_on(async {
        let may_end = Some(Arc::new(tokio::sync::Semaphore::new(0)));
        let first = Arc::new(Scripted { may_end, ..Scripted::default() });
        let before = engine(store.clone(), Executors::new(vec![first.clone()]), None);
        let execution = before.start(request(BASH)).await.unwrap().execution;
        until(async || first.begun.load(Ordering::SeqCst) == 1).await;
        drop(before);
        let second = Arc::new(Scripted { panics_at_adopt: true, ..Scripted::default() });
        let again = engine(store.clone(), Executors::new(vec![second.clone()]), None);
        until(async || status(&store, execution) == "failed").await;
        assert_eq!(store.execution(execution).unwrap().unwrap().error.as_deref(), Some("interrupted"));
        assert_eq!(second.begun.load(Ordering::SeqCst), 0);
        again.drain().await;
    });
}

/// One execution per member.
struct OneEach;

impl Limits for OneEach {
    fn of(&self, _: &dyn Store, _: &str) -> Result<Bounds, String> {
        Ok(Bounds { user: 1, organization: 9, workflow: None, live: 1_000 })
    }
}

/// The slot of an execution that the driver quarantines is free at once, without a read of the store.
#[test]
fn a_quarantine_by_the_driver_frees_the_slot() {
    let store = MemoryStore::new();
    let of = |id: &str| {
        let trigger = Value::map([("type", "manual".into()), ("organizationId", "o".into())]);
        StartRequest { trigger, execution_id: Some(id.into()), ..request(WAITS) }
    };
    let counting = |store: Arc<dyn Store>| {
        let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as Arc<dyn Evaluator>);
        let resources = EngineResources { limits: Some(Arc::new(OneEach)), ..EngineResources::default() };
        Engine::run(store, [1; 32], workers, resources, EngineScope::All).unwrap()
    };
    block_on(async {
        let first = counting(Arc::new(store.clone()));
        let runs = first.start(of("a")).await.unwrap().execution;
        let waits = first.start(of("b")).await.unwrap().execution;
        assert_eq!([runs, waits].map(|key| status(&store, key)), ["running", "pending"]);
        first.drain().await;
        let (reads, is_shut) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (schedule, shut) = (reads.clone(), is_shut.clone());
        let again = counting(Arc::new(Hooked::on(&store, move |call| match call {
            Call::Frames(of) if of == runs => panic!("planted: reading"),
            Call::Executions if shut.load(Ordering::SeqCst) => Err(StoreError::Unavailable("not now".into())),
            Call::Executions => {
                schedule.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            _ => Ok(()),
        })));
        // A third execution is queued, so the organization has been read.
        let third = again.start(of("c")).await.unwrap().execution;
        assert_eq!((status(&store, third).as_str(), reads.load(Ordering::SeqCst) > 0), ("pending", true));
        is_shut.store(true, Ordering::SeqCst);
        assert!(again.signal(runs, "i".into(), "go".into(), Value::Null).await.is_err());
        until(async || status(&store, waits) == "running").await;
        assert_eq!(status(&store, third), "pending");
        again.drain().await;
    });
}

/// The lease expires during the outputs of one commit. The remaining outputs are not performed.
#[test]
fn no_attempt_starts_after_a_lease_expiry_between_outputs() {
    const LEASE_MS: u64 = 3_000;
    let store = MemoryStore::new();
    let (gate, is_held_up) = (Gate::shut(), Arc::new(AtomicBool::new(false)));
    let (waits, held_up) = (gate.clone(), is_held_up.clone());
    let notified = Arc::new(AtomicU32::new(0));
    let has_notified = notified.clone();
    let hooked = Hooked::on(&store, move |call| {
        match call {
            Call::Commit if held_up.load(Ordering::SeqCst) => waits.pass(),
            // Lost partitions are not acquired again.
            Call::Heartbeat if has_notified.load(Ordering::SeqCst) > 0 => {
                return Err(StoreError::Unavailable("not now".into()));
            }
            _ => {}
        }
        Ok(())
    });
    // The driver is blocked when the first frame of the commit is announced. Attempts that were handed out before have
    // begun when that time limit has passed.
    let executor = Arc::new(Scripted::default());
    let begun_in_time = Arc::new(AtomicU32::new(0));
    let (notifying, counted, counting) = (notified.clone(), begun_in_time.clone(), executor.clone());
    let spans: mainspring_engine::trace_spans::Spans = Arc::new(move |_| {
        if notifying.fetch_add(1, Ordering::SeqCst) == 0 {
            let began = std::time::Instant::now();
            while began.elapsed().as_millis() <= u128::from(LEASE_MS) {
                std::thread::yield_now();
            }
            counted.store(counting.begun.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    });
    block_on(async {
        let workers = (Executors::new(vec![executor.clone()]), Arc::new(InProcess) as Arc<dyn Evaluator>);
        let resources = EngineResources { sharing: lease(LEASE_MS), spans: Some(spans), ..EngineResources::default() };
        let engine = Arc::new(Engine::run(Arc::new(hooked), [1; 32], workers, resources, EngineScope::All).unwrap());
        let _opening = Opening(gate.clone());
        until(async || !engine.owned_partitions().is_empty()).await;
        is_held_up.store(true, Ordering::SeqCst);
        let submit = |definition: &'static str| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.start(request(definition)).await })
        };
        let mut asked = vec![submit(WAITS)];
        until(async || engine.pending().await.live.len() == 1).await;
        // The first execution has a span with its end, in either order of the keys.
        asked.extend([submit(r#"{"steps":[{"type":"return","id":"r","input":1}]}"#), submit(BASH), submit(BASH)]);
        until(async || engine.pending().await.live.len() == 4).await;
        is_held_up.store(false, Ordering::SeqCst);
        gate.open();
        until(async || notified.load(Ordering::SeqCst) > 0).await;
        until(async || engine.owned_partitions().is_empty()).await;
        let in_time = begun_in_time.load(Ordering::SeqCst);
        assert_eq!(executor.begun.load(Ordering::SeqCst), in_time, "nothing was begun after that");
        drop(asked);
        engine.drain().await;
    });
}

fn names(store: &MemoryStore) -> Vec<String> {
    store.cluster_view().unwrap().nodes.into_iter().map(|node| node.name).collect()
}

/// Other nodes wait for an attempt until its receipt is in their inbox.
#[test]
fn a_detached_attempt_is_listed_until_its_receipt_is_enqueued() {
    let store = MemoryStore::new();
    let is_shut = Arc::new(AtomicBool::new(true));
    let (posts, ends) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (shut, posted, ended) = (is_shut.clone(), posts.clone(), ends.clone());
    let hooked = Hooked::on(&store, move |call| match call {
        Call::Post => {
            posted.fetch_add(1, Ordering::SeqCst);
            if shut.load(Ordering::SeqCst) { Err(StoreError::Unavailable("not now".into())) } else { Ok(()) }
        }
        Call::EndRemote => {
            ended.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
        _ => Ok(()),
    });
    block_on(async {
        let may_end = Arc::new(tokio::sync::Semaphore::new(0));
        let executor = Arc::new(Scripted { may_end: Some(may_end.clone()), ..Scripted::default() });
        let engine = engine(hooked, Executors::new(vec![executor.clone()]), lease(2_000));
        until(async || !engine.owned_partitions().is_empty()).await;
        let execution: ExecutionKey = engine.start(request(BASH)).await.unwrap().execution;
        until(async || executor.begun.load(Ordering::SeqCst) == 1).await;
        // It is the first one in the order of names, so the only partition is its share.
        let other = Node {
            name: "!".into(),
            address: "".into(),
            release: "".into(),
            decide_version: u32::MAX,
            accepts_partitions: true,
        };
        store.heartbeat(&other, 600_000).unwrap();
        until(async || store.cluster_view().unwrap().holders.is_empty() && names(&store).len() == 2).await;
        assert_eq!(store.remote_attempts(execution).unwrap().len(), 1);
        may_end.add_permits(1);
        until(async || posts.load(Ordering::SeqCst) > 1).await;
        assert_eq!((ends.load(Ordering::SeqCst), store.remote_attempts(execution).unwrap().len()), (0, 1));
        is_shut.store(false, Ordering::SeqCst);
        until(async || store.remote_attempts(execution).unwrap().is_empty()).await;
        assert!(ends.load(Ordering::SeqCst) > 0);
        let waiting = store.inbox(&[0], 0, mainspring_store::ReadLimit::of(9)).unwrap();
        assert_eq!(waiting.len(), 1, "the receipt came first");
        engine.drain().await;
    });
}
