//! The driver with a store that returns little at a time and does not always answer.

#[path = "faulty_store/awkward.rs"]
mod awkward;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use mainspring_effects::{Adopted, AttemptName, BoxFuture, CancelSignal, Executor, Executors};
use mainspring_engine::{
    ClusterOptions, Engine, EngineError, EngineResources, EngineScope,
    admission::{self, Bounds, Limits},
    data_dir::DataDir,
    evaluator::{Evaluator, InProcess},
    inbox,
    lease::LeaseTiming,
    start_request::StartRequest,
};
use mainspring_kernel::{
    decide::QUEUES_SINCE,
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    hash::Hash,
    input::Input,
    key::ExecutionKey,
    plan::Plan,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{
    AuditedNotes, ClusterView, Due, EnqueueRequest, ExecutionRow, Fence, Filter, InboxMessage, Node, QuarantineRelease,
    ReadLimit, RemoteAttempt, Store, StoreError, memory::MemoryStore, partition_of,
};
use tokio::sync::Semaphore;

use awkward::{Awkward, StoreFaults};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn engine(store: Awkward, scope: EngineScope) -> Engine {
    Engine::run(
        Arc::new(store),
        [1; 32],
        (Executors::new(Vec::new()), std::sync::Arc::new(InProcess)),
        EngineResources::default(),
        scope,
    )
    .unwrap()
}

/// Repeats until a condition holds. The timeout only turns a hang into a failure.
async fn until(is_so: impl AsyncFn() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("it never comes to be so");
}

/// A workflow that only waits, for less time than the window in which timers are read.
fn request(id: &str) -> StartRequest {
    let definition = r#"{"steps":[{"type":"sleep","id":"nap","durationMs":30000}]}"#;
    let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    StartRequest { execution_id: Some(id.into()), ..StartRequest::new(Arc::new(plan), "me") }
}

#[test]
fn due_executions_are_found_behind_a_full_page() {
    let store = MemoryStore::new();
    block_on(async {
        let first = engine(Awkward::on(&store), EngineScope::named());
        for id in ["a", "b", "c"] {
            first.start(request(id)).await.unwrap();
        }
        first.drain().await;
        let due = store.due(&[0], u64::MAX, None, usize::MAX).unwrap();
        let (mut all, last) = (due.iter().map(|due| due.execution).collect::<Vec<_>>(), due[2].execution);
        all.sort();
        for (scope, found) in [(EngineScope::All, all), (EngineScope::Named([last].into()), vec![last])] {
            let again = engine(Awkward { due_at_a_time: 1, ..Awkward::on(&store) }, scope);
            until(async || again.pending().await.timed.len() >= found.len()).await;
            assert_eq!(again.pending().await.timed, found);
            again.drain().await;
        }
    });
}

/// Two starts are in the inbox, and a signal behind the first one. For a while, plans cannot be read. Both executions
/// start anyway, none is quarantined, and the signal does not precede its start.
#[test]
fn an_unavailable_store_quarantines_nothing() {
    let store = MemoryStore::new();
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::new(folder.path());
    let first = inbox::enqueue_start(&store, Some(&data_dir), request("a"), &[1; 32]).unwrap();
    let signal = Input::Signal { id: "s".into(), name: "go".into(), payload: Value::Null };
    inbox::enqueue(&store, Some(&data_dir), &[1; 32], (first, &signal), None).unwrap();
    inbox::enqueue_start(&store, Some(&data_dir), request("b"), &[1; 32]).unwrap();
    block_on(async {
        let awkward = Awkward { plans_fail: AtomicU32::new(3), ..Awkward::on(&store) };
        let engine = engine(awkward, EngineScope::named());
        until(async || store.inbox(&[0], 0, ReadLimit::of(9)).unwrap().is_empty()).await;
        for id in ["a", "b"] {
            assert_eq!(store.execution_by_id(id).unwrap().expect("it is begun").status, "running");
        }
        let state = engine.state(first).unwrap();
        assert_eq!(state.signals.kept.len(), 1, "the signal is kept for a later wait");
        engine.drain().await;
    });
}

/// Performs every attempt until the test provides the outcome, regardless of stop requests.
struct Stubborn {
    begun: AtomicU32,
    adopted: AtomicU32,
    may_end: Semaphore,
}

impl Stubborn {
    fn new() -> Arc<Self> {
        Arc::new(Self { begun: AtomicU32::new(0), adopted: AtomicU32::new(0), may_end: Semaphore::new(0) })
    }
}

impl Executor for Stubborn {
    fn performs(&self, _: &Attempt) -> bool {
        true
    }

    fn perform<'a>(&'a self, _: &'a Attempt, _: CancelSignal) -> BoxFuture<'a, Outcome> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            self.may_end.acquire().await.unwrap().forget();
            Outcome::Done(Value::Null)
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        self.adopted.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// A node with such a store and one execution, whose only step is running.
async fn node_at_work(store: &MemoryStore) -> (Engine, Arc<StoreFaults>, Arc<Stubborn>, ExecutionKey) {
    let (awkward, executor) = (Awkward::on(store), Stubborn::new());
    let faults = awkward.faults.clone();
    let workers = (Executors::new(vec![executor.clone()]), Arc::new(InProcess) as Arc<_>);
    let sharing = Some(ClusterOptions { terms: LeaseTiming { lease_ms: 2_000 }, place: String::new() });
    let resources = EngineResources { sharing, ..EngineResources::default() };
    let engine = Engine::run(Arc::new(awkward), [1; 32], workers, resources, EngineScope::All).unwrap();
    until(async || !engine.owned_partitions().is_empty()).await;
    let definition = r#"{"steps":[{"type":"bash","id":"a","command":"true"}]}"#;
    let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    let execution = engine.start(StartRequest::new(Arc::new(plan), "me")).await.unwrap().execution;
    until(async || executor.begun.load(Ordering::SeqCst) == 1).await;
    (engine, faults, executor, execution)
}

/// The lease expires in the store: the node joins under another name and acquires its partitions again.
async fn rejoin_as_new_node(store: &MemoryStore, engine: &Engine, faults: &StoreFaults) {
    let name = store.cluster_view().unwrap().nodes[0].name.clone();
    faults.take_is_shut.store(true, Ordering::SeqCst);
    store.leave(&name).unwrap();
    until(async || {
        engine.owned_partitions().is_empty() && store.cluster_view().unwrap().nodes.iter().any(|node| node.name != name)
    })
    .await;
}

#[test]
fn local_attempts_survive_a_reacquired_partition() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, faults, executor, execution) = node_at_work(&store).await;
        rejoin_as_new_node(&store, &engine, &faults).await;
        faults.take_is_shut.store(false, Ordering::SeqCst);
        until(async || faults.remote_reads.load(Ordering::SeqCst) > 0).await;
        // Inputs are received behind the load of the journal.
        engine.signal(execution, "s".into(), "go".into(), Value::Null).await.unwrap();
        executor.may_end.add_permits(9);
        until(async || store.execution(execution).unwrap().unwrap().status == "completed").await;
        let counts = [&executor.begun, &executor.adopted].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 0], "started once, and not recovered");
        engine.drain().await;
    });
}

#[test]
fn pending_receipts_survive_a_reacquired_partition() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, faults, executor, execution) = node_at_work(&store).await;
        faults.post_is_shut.store(true, Ordering::SeqCst);
        rejoin_as_new_node(&store, &engine, &faults).await;
        executor.may_end.add_permits(9);
        until(async || faults.posts.load(Ordering::SeqCst) > 0).await;
        faults.take_is_shut.store(false, Ordering::SeqCst);
        until(async || faults.remote_reads.load(Ordering::SeqCst) > 0).await;
        engine.signal(execution, "s".into(), "go".into(), Value::Null).await.unwrap();
        let posts = faults.posts.load(Ordering::SeqCst);
        until(async || faults.posts.load(Ordering::SeqCst) > posts).await;
        faults.post_is_shut.store(false, Ordering::SeqCst);
        until(async || store.execution(execution).unwrap().unwrap().status == "completed").await;
        assert_eq!(executor.begun.load(Ordering::SeqCst), 1, "what was brought back counts");
        engine.drain().await;
    });
}

#[test]
fn an_attempt_that_ended_before_the_handoff_is_not_listed_as_running() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, faults, executor, execution) = node_at_work(&store).await;
        faults.release_is_shut.store(true, Ordering::SeqCst);
        // It is the first one in the order of names, so the only partition is its share.
        let other = Node {
            name: "!".into(),
            address: String::new(),
            release: String::new(),
            decide_version: u32::MAX,
            accepts_partitions: true,
        };
        store.heartbeat(&other, 60_000).unwrap();
        until(async || engine.owned_partitions().is_empty()).await;
        let heartbeats = faults.heartbeats.load(Ordering::SeqCst);
        until(async || faults.heartbeats.load(Ordering::SeqCst) > heartbeats + 1).await;
        executor.may_end.add_permits(1);
        until(async || faults.ends.load(Ordering::SeqCst) > 0).await;
        faults.release_is_shut.store(false, Ordering::SeqCst);
        until(async || store.cluster_view().unwrap().holders.is_empty()).await;
        until(async || faults.ends.load(Ordering::SeqCst) > 1).await;
        assert_eq!(store.remote_attempts(execution).unwrap(), []);
        engine.drain().await;
    });
}

/// One execution per member.
struct OneEach;

impl Limits for OneEach {
    fn of(&self, _: &dyn Store, _: &str) -> Result<Bounds, String> {
        Ok(Bounds { user: 1, organization: 9, workflow: None, live: 1_000 })
    }
}

/// Waits for a signal that is never sent.
const WAITS: &str = r#"{"steps":[{"type":"signal","id":"s","signal":"n"}]}"#;

fn plan(definition: &str) -> Arc<Plan> {
    Arc::new(compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

/// A workflow of an organization that only waits.
fn of(organization: &str, id: &str) -> StartRequest {
    let trigger = Value::map([("type", "manual".into()), ("organizationId", organization.into())]);
    StartRequest { trigger, execution_id: Some(id.into()), ..StartRequest::new(plan(WAITS), "me") }
}

/// An engine with concurrency limits.
fn counting(store: &MemoryStore, sharing: Option<ClusterOptions>) -> (Engine, Arc<StoreFaults>) {
    let awkward = Awkward::on(store);
    let faults = awkward.faults.clone();
    let workers = (Executors::new(Vec::new()), Arc::new(InProcess) as Arc<_>);
    let resources = EngineResources { limits: Some(Arc::new(OneEach)), sharing, ..EngineResources::default() };
    (Engine::run(Arc::new(awkward), [1; 32], workers, resources, EngineScope::All).unwrap(), faults)
}

fn sharing() -> Option<ClusterOptions> {
    Some(ClusterOptions { terms: LeaseTiming { lease_ms: 60_000 }, place: String::new() })
}

fn status(store: &MemoryStore, execution: ExecutionKey) -> String {
    store.execution(execution).unwrap().unwrap().status
}

/// A queued execution starts with the end of another one, and not only after the next read of the store. While the
/// store cannot be read, no execution is admitted.
#[test]
fn a_freed_slot_is_used_immediately() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, faults) = counting(&store, None);
        let status = |key| status(&store, key);
        let [first, second, third] =
            [engine.start(of("o", "a")), engine.start(of("o", "b")), engine.start(of("o", "c"))];
        let (first, second, third) = (first.await.unwrap(), second.await.unwrap(), third.await.unwrap());
        let [first, second, third] = [first, second, third].map(|submitted| submitted.execution);
        assert_eq!([first, second, third].map(status), ["running", "pending", "pending"]);
        faults.list_is_shut.store(true, Ordering::SeqCst);
        let refused = engine.start(of("p", "d")).await;
        assert!(matches!(&refused, Err(EngineError::Stopped(why)) if why.contains("does not answer")), "{refused:?}");
        assert!(engine.cancel(second, "no", "me").await.unwrap());
        assert!(engine.cancel(first, "no", "me").await.unwrap());
        until(async || status(third) == "running").await;
        faults.list_is_shut.store(false, Ordering::SeqCst);
        let fourth = engine.start(of("p", "d")).await.unwrap();
        assert_eq!(status(fourth.execution), "running");
        engine.drain().await;
    });
}

/// A quarantined execution has no slot, neither in the store nor, if it is quarantined here, before the next read.
#[test]
fn a_quarantined_execution_frees_its_slot() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, _) = counting(&store, None);
        let mut keys = Vec::new();
        for id in ["a", "b", "c"] {
            keys.push(engine.start(of("o", id)).await.unwrap().execution);
        }
        assert_eq!(status(&store, keys[1]), "pending");
        engine.drain().await;
        store.quarantine(keys[0], "by another node").unwrap();
        let (engine, faults) = counting(&store, None);
        until(async || status(&store, keys[1]) == "running").await;
        // No read reports this one.
        faults.may_quarantine.store(true, Ordering::SeqCst);
        faults.list_is_shut.store(true, Ordering::SeqCst);
        let unreadable =
            InboxMessage { execution: keys[1], partition: 0, id: "message".into(), body: Vec::new(), enqueued_at: 0 };
        let unreadable = inbox::sealed(&[1; 32], unreadable);
        store.enqueue(&EnqueueRequest::of(&unreadable, 1)).unwrap();
        until(async || status(&store, keys[2]) == "running").await;
        assert!(store.head(keys[1]).unwrap().unwrap().quarantined.is_some());
        // A released execution counts again, even beyond the limit, and no other one starts.
        faults.list_is_shut.store(false, Ordering::SeqCst);
        store
            .release_quarantine(&QuarantineRelease { execution: keys[0], parent: None, audited: AuditedNotes::of(&[]) })
            .unwrap();
        store
            .release_quarantine(&QuarantineRelease { execution: keys[1], parent: None, audited: AuditedNotes::of(&[]) })
            .unwrap();
        engine.limits_changed("o");
        let last = engine.start(of("o", "d")).await.unwrap().execution;
        assert!(engine.cancel(keys[2], "no", "me").await.unwrap());
        let lists = faults.lists.load(Ordering::SeqCst);
        engine.limits_changed("o");
        until(async || faults.lists.load(Ordering::SeqCst) > lists).await;
        assert_eq!(status(&store, last), "pending");
        engine.drain().await;
    });
}

/// A detached child has a slot of its own, and is queued if none is free.
#[test]
fn detached_children_are_counted() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, _) = counting(&store, None);
        let parent = plan(
            r#"{"steps":[{"type":"subworkflow","id":"aside","workflow":"child","wait":false},
                {"type":"subworkflow","id":"awaited","workflow":"child"}]}"#,
        );
        let request = of("o", "parent");
        let workflows = [("child".to_string(), plan(WAITS))].into();
        let request = StartRequest { trigger: request.trigger, workflows, ..StartRequest::new(parent, "me") };
        let parent = engine.start(request).await.unwrap().execution;
        let children = || {
            let rows = store.executions(&Filter::default(), None, 9).unwrap().into_iter();
            rows.filter(|row| row.key != parent).collect::<Vec<_>>()
        };
        until(async || children().len() == 2).await;
        let said = |row: &ExecutionRow| (row.trigger_type.clone(), row.status.clone());
        let mut found: Vec<_> = children().iter().map(said).collect();
        found.sort();
        let [awaited, aside] = [("subworkflow", "running"), ("subworkflow_detached", "pending")];
        assert_eq!(found, [awaited, aside].map(|(kind, status)| (kind.to_string(), status.to_string())));
        let aside = children().into_iter().find(|row| row.status == "pending").unwrap().key;
        assert!(engine.cancel(parent, "no", "me").await.unwrap());
        until(async || status(&store, aside) == "running").await;
        engine.drain().await;
        // A later engine on this store counts it as well.
        let (engine, _) = counting(&store, None);
        let next = engine.start(of("o", "next")).await.unwrap().execution;
        assert_eq!(status(&store, next), "pending");
        assert!(engine.cancel(aside, "no", "me").await.unwrap());
        until(async || status(&store, next) == "running").await;
        engine.drain().await;
    });
}

/// A node beside another one, given its name and its release, on a store of two partitions. Each owns one of them.
async fn beside(store: &MemoryStore, decide_version: u32) -> (Engine, Arc<StoreFaults>, Node, u32) {
    let name = "!".to_string();
    let other = Node { name, address: String::new(), release: String::new(), decide_version, accepts_partitions: true };
    store.heartbeat(&other, 600_000).unwrap();
    let theirs = store.acquire(&other.name, &[1]).unwrap();
    assert_eq!(theirs.len(), 1);
    let (engine, faults) = counting(store, sharing());
    until(async || !engine.owned_partitions().is_empty()).await;
    assert_eq!(engine.owned_partitions(), [0].into());
    (engine, faults, other, 1)
}

/// An organization of this partition, out of two.
fn organization_in(partition: u32) -> String {
    let of = |name: &String| admission::partition_of_organization(name, 2) == partition;
    (0..).map(|number| format!("o{number}")).find(of).unwrap()
}

/// The node that counts an execution is notified of its end.
#[test]
fn the_counting_node_is_notified_of_an_end() {
    let store = MemoryStore::new();
    store.repartition(2).unwrap();
    block_on(async {
        let (engine, faults, _, theirs) = beside(&store, u32::MAX).await;
        let organization = organization_in(theirs);
        let execution = engine.start(of(&organization, "a")).await.unwrap().execution;
        until(async || faults.notifications.lock().unwrap().remove(&theirs)).await;
        assert_eq!(status(&store, execution), "pending");
        engine.enqueue(execution, &Input::Admit, None).unwrap();
        until(async || status(&store, execution) == "running").await;
        faults.notifications.lock().unwrap().clear();
        assert!(engine.cancel(execution, "no", "me").await.unwrap());
        until(async || faults.notifications.lock().unwrap().contains(&theirs)).await;
        // A quarantined execution does not end, but frees its slot as well.
        faults.may_quarantine.store(true, Ordering::SeqCst);
        let execution = engine.start(of(&organization, "b")).await.unwrap().execution;
        until(async || faults.notifications.lock().unwrap().remove(&theirs)).await;
        let partition = 0;
        let unreadable = InboxMessage { execution, partition, id: "message".into(), body: Vec::new(), enqueued_at: 0 };
        let unreadable = inbox::sealed(&[1; 32], unreadable);
        store.enqueue(&EnqueueRequest::of(&unreadable, 2)).unwrap();
        until(async || faults.notifications.lock().unwrap().contains(&theirs)).await;
        engine.drain().await;
    });
}

/// A node without support for queues would quarantine an execution that it is asked to admit. The message is sent after
/// it has left.
#[test]
fn a_node_without_queue_support_gets_no_admission() {
    let store = MemoryStore::new();
    store.repartition(2).unwrap();
    let organization = organization_in(0);
    block_on(async {
        let (engine, _) = counting(&store, sharing());
        until(async || engine.owned_partitions().len() == 2).await;
        let mut keys = Vec::new();
        while keys.len() < 2 || partition_of(keys[keys.len() - 1], 2) == 0 {
            let id = format!("{}", keys.len());
            keys.push(engine.start(of(&organization, &id)).await.unwrap().execution);
        }
        let (first, theirs) = (keys[0], *keys.last().unwrap());
        for key in &keys[1..keys.len() - 1] {
            assert!(engine.cancel(*key, "no", "me").await.unwrap());
        }
        engine.drain().await;
        let (engine, faults, other, _) = beside(&store, QUEUES_SINCE - 1).await;
        engine.enqueue(first, &Input::Cancel { reason: "no".into(), by: "me".into() }, None).unwrap();
        let posts = faults.posts.load(Ordering::SeqCst);
        if partition_of(first, 2) == 0 {
            until(async || status(&store, first) == "cancelled").await;
        } else {
            store.quarantine(first, "its node is of no use").unwrap();
        }
        let lists = faults.lists.load(Ordering::SeqCst);
        until(async || faults.lists.load(Ordering::SeqCst) > lists + 2).await;
        assert_eq!((status(&store, theirs).as_str(), faults.posts.load(Ordering::SeqCst)), ("pending", posts));
        store.leave(&other.name).unwrap();
        until(async || status(&store, theirs) == "running").await;
        engine.drain().await;
    });
}

/// Blocks every evaluation until it is opened.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    asked: AtomicU32,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Ends the repeating callers even if a test fails, since the runtime waits for them.
struct Ending(Arc<AtomicBool>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Opens the gate at the end, even if a test fails, since the runtime waits for the blocked threads.
struct Opening(Arc<Gate>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Evaluator for Gate {
    fn call(&self, request: &mainspring_sandbox::Request) -> mainspring_sandbox::Response {
        self.asked.fetch_add(1, Ordering::SeqCst);
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        mainspring_sandbox::evaluate(request)
    }
}

const CODE: &str = r#"{"steps":[{"type":"code","id":"c","code":"export default () => 1"}]}"#;

/// A step whose result is passed to a function.
const THEN_CODE: &str = r#"{"steps":[{"type":"bash","id":"a","command":"true","onInterrupted":"fail"},
    {"type":"code","id":"c","code":"export default () => 1"}]}"#;

/// A node with this lease on a busy runtime that it shares with callers.
fn busy(lease_ms: u64, evaluator: Arc<dyn Evaluator>, work: impl AsyncFnOnce(Arc<Engine>, Arc<StoreFaults>)) {
    let awkward = Awkward::on(&MemoryStore::new());
    let faults = awkward.faults.clone();
    tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap().block_on(async {
        let sharing = Some(ClusterOptions { terms: LeaseTiming { lease_ms }, place: String::new() });
        let resources = EngineResources { sharing, ..EngineResources::default() };
        let workers = (Executors::new(Vec::new()), evaluator);
        let engine = Arc::new(Engine::run(Arc::new(awkward), [1; 32], workers, resources, EngineScope::All).unwrap());
        until(async || !engine.owned_partitions().is_empty()).await;
        work(engine.clone(), faults).await;
        engine.drain().await;
    });
}

async fn more_heartbeats(faults: &StoreFaults) {
    let before = faults.heartbeats.load(Ordering::SeqCst);
    until(async || faults.heartbeats.load(Ordering::SeqCst) >= before + 6).await;
}

#[test]
fn a_loaded_node_sends_heartbeats() {
    busy(3_000, Arc::new(InProcess), async |engine, faults| {
        let (is_over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let ask = |_| {
            let (engine, is_over, asked) = (engine.clone(), is_over.clone(), asked.clone());
            tokio::spawn(async move {
                let plan = plan(r#"{"steps":[{"type":"return","id":"r","input":1}]}"#);
                while !is_over.load(Ordering::SeqCst) {
                    let _ = engine.start(StartRequest::new(plan.clone(), "me")).await;
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let askers: Vec<_> = (0..2_000).map(ask).collect();
        let ending = Ending(is_over.clone());
        for _ in 0..5 {
            let (heartbeats, before) = (faults.heartbeats.load(Ordering::SeqCst), asked.load(Ordering::SeqCst));
            until(async || {
                faults.heartbeats.load(Ordering::SeqCst) > heartbeats || engine.owned_partitions().is_empty()
            })
            .await;
            let since = asked.load(Ordering::SeqCst) - before;
            // A machine that does nothing for so long is not the fault of the engine.
            assert!(
                !engine.owned_partitions().is_empty() || since < 100,
                "{since} were answered, and no heartbeat was sent"
            );
        }
        drop(ending);
        for asker in askers {
            asker.await.unwrap();
        }
    });
}

#[test]
fn a_node_with_many_evaluations_sends_heartbeats() {
    let gate = Arc::new(Gate::default());
    busy(800, gate.clone(), async |engine, faults| {
        for _ in 0..600 {
            let engine = engine.clone();
            tokio::spawn(async move { engine.start(StartRequest::new(plan(CODE), "me")).await });
        }
        until(async || gate.asked.load(Ordering::SeqCst) >= 32).await;
        let _opening = Opening(gate.clone());
        more_heartbeats(&faults).await;
    });
}

#[test]
fn pending_receipts_are_written_before_the_engine_ends() {
    let store = MemoryStore::new();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
        let (executor, gate) = (Stubborn::new(), Arc::new(Gate::default()));
        let run = |evaluator: Arc<dyn Evaluator>| {
            let workers = (Executors::new(vec![executor.clone()]), evaluator);
            Arc::new(
                Engine::run(Arc::new(store.clone()), [1; 32], workers, EngineResources::default(), EngineScope::All)
                    .unwrap(),
            )
        };
        let engine = run(gate.clone());
        let execution = engine.start(StartRequest::new(plan(THEN_CODE), "me")).await.unwrap().execution;
        until(async || executor.begun.load(Ordering::SeqCst) == 1).await;
        executor.may_end.add_permits(1);
        until(async || gate.asked.load(Ordering::SeqCst) == 1).await;
        let leaving = engine.clone();
        let leaves = tokio::spawn(async move { leaving.drain().await });
        until(async || engine.is_draining()).await;
        // The first answer shows that the drain was received, and the second one that pending work was checked.
        let _ = (engine.pending().await, engine.pending().await);
        gate.open();
        leaves.await.unwrap();
        let engine = run(Arc::new(InProcess));
        engine.activate(execution);
        until(async || store.execution(execution).unwrap().unwrap().completed_at.is_some()).await;
        let row = store.execution(execution).unwrap().unwrap();
        assert_eq!((row.status.as_str(), row.error.as_deref()), ("completed", None));
        engine.drain().await;
    });
}
