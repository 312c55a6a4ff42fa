//! Reads of the inbox: few for any number of messages, none that blocks the driver, and none that hides a message.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Instant,
};

use mainspring_effects::Executors;
use mainspring_engine::{
    Engine, EngineResources, EngineScope,
    evaluator::Evaluator,
    inbox,
    limits::{HELD_UP_EACH_BYTES_MAX, TAKEN_BYTES_MAX},
    start_request::StartRequest,
};
use mainspring_kernel::input::Input;
use mainspring_store::prelude::*;
use mainspring_store::{EnqueueRequest, Filter, InboxMessage, StoreError, memory::MemoryStore};

use crate::{
    WAITS, block_on, engine,
    hooked_store::{Call, Hooked},
    lease, plan, request, status, until,
};

/// Reads of the inbox per commit: one for the new messages, and one more if another commit was written during the
/// first.
const READS_PER_COMMIT: u64 = 2;

/// A root execution with this many children, each with four children of its own.
fn tree(children: usize, leaf: &str) -> StartRequest {
    let leaves = ["a", "b", "c", "d"].map(|id| format!(r#"{{"type":"subworkflow","id":"{id}","workflow":"leaf"}}"#));
    let middle = format!(r#"{{"steps":[{{"type":"parallel","id":"all","steps":[{}]}}]}}"#, leaves.join(","));
    let root = r#"{"constraints":{"maxSteps":100000,"maxParallel":10000},"steps":[{"type":"subworkflow","id":"k",
        "workflow":"middle","forEach":{"ref":"@input.items","concurrency":10000}}]}"#;
    let items: Vec<String> = (0..children).map(|number| number.to_string()).collect();
    let input =
        mainspring_kernel::json::read(format!(r#"{{"items":[{}]}}"#, items.join(",")).as_bytes()).unwrap().value;
    let workflows = [("middle".to_string(), plan(&middle)), ("leaf".to_string(), plan(leaf))].into();
    StartRequest { workflows, input, ..request(root) }
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    commits: AtomicU64,
}

fn counted(store: &MemoryStore) -> (Hooked, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let counting = counts.clone();
    let hooked = Hooked::on(store, move |call| {
        match call {
            Call::Inbox => counting.reads.fetch_add(1, Ordering::SeqCst),
            Call::Commit => counting.commits.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        Ok(())
    });
    (hooked, counts)
}

/// Many parts of one commit enqueue messages, and one read returns all of them.
#[test]
fn a_commit_with_many_messages_causes_few_inbox_reads() {
    for sharing in [None, lease(60_000)] {
        let store = MemoryStore::new();
        let (hooked, counts) = counted(&store);
        block_on(async {
            let began = Instant::now();
            let engine = engine(hooked, Executors::new(Vec::new()), sharing);
            until(async || !engine.owned_partitions().is_empty()).await;
            let leaf = r#"{"steps":[{"type":"return","id":"r","input":1}]}"#;
            let root = engine.start(tree(300, leaf)).await.unwrap().execution;
            until(async || status(&store, root) == "completed").await;
            let [reads, commits] = [&counts.reads, &counts.commits].map(|count| count.load(Ordering::SeqCst));
            let every_second = 2 * (began.elapsed().as_secs() + 2);
            assert!(reads <= READS_PER_COMMIT * commits + every_second, "{reads} reads for {commits} commits");
            engine.drain().await;
        });
    }
}

/// A loaded parent activates each of its children, which does not cause a read of the inbox for each.
#[test]
fn loading_a_parent_causes_few_inbox_reads() {
    let store = MemoryStore::new();
    block_on(async {
        let first = engine(store.clone(), Executors::new(Vec::new()), None);
        let root = first.start(tree(100, WAITS)).await.unwrap().execution;
        until(async || store.executions(&Filter::default(), None, 1_000).unwrap().len() == 501).await;
        first.drain().await;
        let (hooked, counts) = counted(&store);
        let began = Instant::now();
        let again = engine(hooked, Executors::new(Vec::new()), None);
        until(async || again.pending().await.live.len() >= 101).await;
        let reads = counts.reads.load(Ordering::SeqCst);
        assert!(reads <= 4 + began.elapsed().as_secs(), "{reads} reads");
        assert!(again.cancel(root, "enough", "me").await.unwrap());
        until(async || status(&store, root) == "cancelled").await;
        again.drain().await;
    });
}

/// At most one read of each kind is in progress, for any number of requests.
#[test]
fn reads_of_a_slow_store_do_not_pile_up() {
    let store = MemoryStore::new();
    let (under_way, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (gate, counting, seen) = (Gate::shut(), under_way.clone(), most.clone());
    let waits = gate.clone();
    let is_open = Arc::new(AtomicBool::new(false));
    let open = is_open.clone();
    let hooked = Hooked::on(&store, move |call| {
        if call == Call::Inbox && open.load(Ordering::SeqCst) {
            let now = counting.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            waits.pass();
            counting.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    });
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), lease(60_000));
        is_open.store(true, Ordering::SeqCst);
        let _opening = Opening(gate.clone());
        until(async || !engine.owned_partitions().is_empty()).await;
        let leaf = r#"{"steps":[{"type":"return","id":"r","input":1}]}"#;
        let roots = [engine.start(tree(20, leaf)).await.unwrap(), engine.start(tree(20, leaf)).await.unwrap()];
        until(async || under_way.load(Ordering::SeqCst) > 0).await;
        for _ in 0..50 {
            let row = engine.start(tree(2, leaf)).await.unwrap();
            until(async || status(&store, row.execution) == "running").await;
        }
        gate.open();
        for root in roots {
            until(async || status(&store, root.execution) == "completed").await;
        }
        assert!(most.load(Ordering::SeqCst) <= 2, "{most:?} at the same time");
        engine.drain().await;
    });
}

/// Blocks its callers until it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn shut() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn pass(&self) {
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }

    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Opens a gate at its end, even if a test fails, since the runtime waits for the blocked threads.
pub(crate) struct Opening(pub(crate) Arc<Gate>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Starts and messages that need a slow store do not delay heartbeats or unrelated work.
#[test]
fn a_slow_store_does_not_delay_heartbeats() {
    let store = MemoryStore::new();
    let (gate, heartbeats) = (Gate::shut(), Arc::new(AtomicU64::new(0)));
    let (waits, counting) = (gate.clone(), heartbeats.clone());
    let hooked = Hooked::on(&store, move |call| {
        match call {
            Call::Plan(_) | Call::Quarantine(_) | Call::Row => waits.pass(),
            Call::Heartbeat => drop(counting.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        Ok(())
    });
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), lease(900));
        let _opening = Opening(gate.clone());
        until(async || !engine.owned_partitions().is_empty()).await;
        let here = engine.start(request(WAITS)).await.unwrap().execution;
        let posted: Vec<_> =
            (0..20).map(|_| inbox::enqueue_start(&store, None, request(WAITS), &[1; 32]).unwrap()).collect();
        let unreadable = InboxMessage { execution: here, partition: 0, id: "x".into(), body: vec![7], enqueued_at: 0 };
        let unreadable = inbox::sealed(&[1; 32], unreadable);
        store.enqueue(&EnqueueRequest::of(&unreadable, 1)).unwrap();
        let before = heartbeats.load(Ordering::SeqCst);
        until(async || heartbeats.load(Ordering::SeqCst) >= before + 12).await;
        assert_eq!(engine.owned_partitions().len(), 1, "nothing was lost");
        assert!(posted.iter().all(|key| status(&store, *key) == "unknown"), "their plan is not read yet");
        let other = engine.start(request(WAITS)).await.unwrap().execution;
        assert!(engine.cancel(other, "enough", "me").await.unwrap());
        gate.open();
        for key in posted {
            until(async || status(&store, key) == "running").await;
        }
        until(async || store.head(here).unwrap().unwrap().quarantined.is_some()).await;
        engine.drain().await;
    });
}

/// More unreadable messages than fit into one page do not hide the messages behind them.
#[test]
fn unreadable_messages_do_not_hide_others() {
    for sharing in [None, lease(60_000)] {
        let store = MemoryStore::new();
        let unreadable = plan(r#"{"steps":[{"type":"signal","id":"other","signal":"go"}]}"#);
        let request_of = |number: usize| StartRequest {
            execution_id: Some(format!("e{number}")),
            ..StartRequest::new(unreadable.clone(), "me")
        };
        for number in 0..10_001 {
            inbox::enqueue_start(&store, None, request_of(number), &[1; 32]).unwrap();
        }
        let last = inbox::enqueue_start(&store, None, request(WAITS), &[1; 32]).unwrap();
        let hash = request_of(0).stored_plans()[0].hash;
        let is_shut = Arc::new(AtomicBool::new(true));
        let shut = is_shut.clone();
        let hooked = Hooked::on(&store, move |call| match call {
            Call::Plan(of) if of == hash && shut.load(Ordering::SeqCst) => {
                Err(StoreError::Unavailable("this plan cannot be read".into()))
            }
            _ => Ok(()),
        });
        block_on(async {
            let engine = engine(hooked, Executors::new(Vec::new()), sharing);
            until(async || status(&store, last) == "running").await;
            assert!(store.execution_by_id("e0").unwrap().is_none());
            // The cursor did not skip them: they are read again.
            is_shut.store(false, Ordering::SeqCst);
            until(async || store.inbox(&[0], 0, mainspring_store::ReadLimit::of(1)).unwrap().is_empty()).await;
            assert_eq!(store.execution_by_id("e10000").unwrap().unwrap().status, "running");
            engine.drain().await;
        });
    }
}

/// A message that arrives during a read is received, in its order.
#[test]
fn messages_of_one_execution_are_received_in_order() {
    let store = MemoryStore::new();
    let start = inbox::enqueue_start(&store, None, request(WAITS), &[1; 32]).unwrap();
    let fails = Arc::new(AtomicI64::new(3));
    let failures = fails.clone();
    let hooked = Hooked::on(&store, move |call| match call {
        Call::Plan(_) if failures.fetch_sub(1, Ordering::SeqCst) > 0 => Err(StoreError::Unavailable("not now".into())),
        _ => Ok(()),
    });
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), lease(60_000));
        let signal =
            Input::Signal { id: "i".into(), name: "go".into(), payload: mainspring_kernel::value::Value::Null };
        inbox::enqueue(&store, None, &[1; 32], (start, &signal), None).unwrap();
        until(async || status(&store, start) == "completed").await;
        engine.drain().await;
    });
}

/// While nothing becomes durable, received messages are limited by memory. The rest follows when there is room.
#[test]
fn intake_of_a_backlog_is_bounded_by_durable_commits() {
    const BYTES: usize = 4_000_000;
    let room = TAKEN_BYTES_MAX / BYTES;
    let store = MemoryStore::new();
    for number in 0..room + 6 {
        let input = "x".repeat(BYTES).as_str().into();
        let large = StartRequest { execution_id: Some(format!("e{number}")), input, ..request(WAITS) };
        inbox::enqueue_start(&store, None, large, &[1; 32]).unwrap();
    }
    let (gate, heartbeats) = (Gate::shut(), Arc::new(AtomicU64::new(0)));
    let (waits, counting) = (gate.clone(), heartbeats.clone());
    let hooked = Hooked::on(&store, move |call| {
        match call {
            Call::Commit => waits.pass(),
            Call::Heartbeat => drop(counting.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
        Ok(())
    });
    block_on(async {
        let engine = engine(hooked, Executors::new(Vec::new()), lease(900));
        let _opening = Opening(gate.clone());
        until(async || engine.pending().await.live.len() >= room).await;
        let before = heartbeats.load(Ordering::SeqCst);
        until(async || heartbeats.load(Ordering::SeqCst) >= before + 8).await;
        assert_eq!(engine.pending().await.live.len(), room, "nothing more is taken in");
        gate.open();
        until(async || store.executions(&Filter::default(), None, 99).unwrap().len() == room + 6).await;
        until(async || store.inbox(&[0], 0, mainspring_store::ReadLimit::of(1)).unwrap().is_empty()).await;
        engine.drain().await;
    });
}

/// A function that runs until a gate is opened.
struct Runs(Arc<Gate>);

impl Evaluator for Runs {
    fn call(&self, request: &mainspring_sandbox::Request) -> mainspring_sandbox::Response {
        self.0.pass();
        mainspring_sandbox::evaluate(request)
    }
}

/// Messages to an execution whose function is running stay in the inbox beyond a bound, and messages to other
/// executions do not.
#[test]
fn messages_to_busy_executions_leave_room_for_others() {
    const BYTES: usize = 200_000;
    let code = r#"{"steps":[{"type":"code","id":"c","code":"export default () => 1"},
        {"type":"signal","id":"s","signal":"go"}]}"#;
    for sharing in [None, lease(900)] {
        let store = MemoryStore::new();
        let gate = Gate::shut();
        block_on(async {
            let _opening = Opening(gate.clone());
            let workers = (Executors::new(Vec::new()), Arc::new(Runs(gate.clone())) as Arc<dyn Evaluator>);
            let resources = EngineResources { sharing, ..EngineResources::default() };
            let engine = Engine::run(Arc::new(store.clone()), [1; 32], workers, resources, EngineScope::All).unwrap();
            until(async || !engine.owned_partitions().is_empty()).await;
            let signal = |to, number: usize, bytes: usize| {
                let (id, payload) = (number.to_string(), "x".repeat(bytes).as_str().into());
                inbox::enqueue(&store, None, &[1; 32], (to, &Input::Signal { id, name: "go".into(), payload }), None)
                    .unwrap();
            };
            let mut held_up = Vec::new();
            for _ in 0..TAKEN_BYTES_MAX / HELD_UP_EACH_BYTES_MAX + 6 {
                let id = inbox::enqueue_start(&store, None, request(code), &[1; 32]).unwrap();
                held_up.push(id);
            }
            until(async || engine.pending().await.live.len() == held_up.len()).await;
            let other = engine.start(request(WAITS)).await.unwrap().execution;
            for number in 0..HELD_UP_EACH_BYTES_MAX / BYTES + 3 {
                held_up.iter().for_each(|execution| signal(*execution, number, BYTES));
            }
            signal(other, 0, 10);
            until(async || status(&store, other) == "completed").await;
            let (first, rest) = held_up.split_first().unwrap();
            inbox::enqueue(&store, None, &[1; 32], (*first, &cancel()), None).unwrap();
            until(async || status(&store, *first) == "cancelled").await;
            gate.open();
            until(async || rest.iter().all(|execution| status(&store, *execution) == "completed")).await;
            until(async || store.inbox(&[0], 0, mainspring_store::ReadLimit::of(1)).unwrap().is_empty()).await;
            engine.drain().await;
        });
    }
}

fn cancel() -> Input {
    Input::Cancel { reason: "enough".into(), by: "me".into() }
}
