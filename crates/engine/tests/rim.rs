//! The engine over a store that is awkward: it gives little at a time, and does not always answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use mainspring_effects::{Adopted, AttemptName, Executor, Executors, Stop, Work};
use mainspring_engine::{
    Engine, EngineError, Ground, Reach, Sharing,
    admission::{Bounds, Limits},
    home::Home,
    inbox,
    lease::Terms,
    request::Request,
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome},
    hash::Hash,
    input::Input,
    key::ExecutionKey,
    stored::StoredFrame,
    value::Value,
};
use mainspring_store::{
    Answer, Arrived, Batch, Catalogue, CommitError, Due, ExecutionRow, Fence, Filter, GateRow, HeadRow, Late, Node,
    Origin, Posting, RemoteAttempt, Store, StoreError, Table, memory::MemoryStore,
};
use tokio::sync::Semaphore;

/// A store whose pages are small, whose plans cannot be read for a while, and of which others have parts in their hands.
struct Awkward {
    store: MemoryStore,
    due_at_a_time: usize,
    /// How many times it still does not answer when it is asked for a plan.
    plans_fail: AtomicU32,
    doors: Arc<Doors>,
}

/// What the store refuses at the moment, and how often it was asked.
#[derive(Default)]
struct Doors {
    take_is_shut: AtomicBool,
    post_is_shut: AtomicBool,
    give_up_is_shut: AtomicBool,
    list_is_shut: AtomicBool,
    ends: AtomicU32,
    posts: AtomicU32,
    remote_reads: AtomicU32,
}

impl Awkward {
    fn on(store: &MemoryStore) -> Self {
        let (plans_fail, doors) = (AtomicU32::new(0), Arc::default());
        Self { store: store.clone(), due_at_a_time: usize::MAX, plans_fail, doors }
    }
}

fn pass(is_shut: &AtomicBool) -> Result<(), StoreError> {
    match is_shut.load(Ordering::SeqCst) {
        true => Err(StoreError::Unavailable("the disk does not answer".into())),
        false => Ok(()),
    }
}

impl Store for Awkward {
    fn due(&self, partitions: &[u32], until_ms: u64, after: Option<Due>, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.store.due(partitions, until_ms, after, limit.min(self.due_at_a_time))
    }

    fn plan(&self, hash: Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        let fails = self.plans_fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match fails {
            Ok(_) => Err(StoreError::Unavailable("the disk does not answer".into())),
            Err(_) => self.store.plan(hash),
        }
    }

    fn catalogue(&self) -> &dyn Catalogue {
        self.store.catalogue()
    }

    fn claim(&self, partition: u32, holder: &str) -> Result<u64, StoreError> {
        self.store.claim(partition, holder)
    }

    fn commit(&self, batch: &Batch) -> Result<Vec<Answer>, CommitError> {
        self.store.commit(batch)
    }

    fn head(&self, execution: ExecutionKey) -> Result<Option<HeadRow>, StoreError> {
        self.store.head(execution)
    }

    fn frames(&self, execution: ExecutionKey, from: u64, limit: usize) -> Result<Vec<StoredFrame>, StoreError> {
        self.store.frames(execution, from, limit)
    }

    fn partitions(&self) -> Result<u32, StoreError> {
        self.store.partitions()
    }

    fn repartition(&self, partitions: u32) -> Result<(), StoreError> {
        self.store.repartition(partitions)
    }

    fn pin(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.store.pin(name, value)
    }

    fn pinned(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.store.pinned(name)
    }

    fn table(&self) -> Result<Table, StoreError> {
        self.store.table()
    }

    fn beat(&self, node: &Node, lease_ms: u64) -> Result<Option<Table>, StoreError> {
        self.store.beat(node, lease_ms)
    }

    fn take(&self, node: &str, partitions: &[u32]) -> Result<Vec<Fence>, StoreError> {
        pass(&self.doors.take_is_shut)?;
        self.store.take(node, partitions)
    }

    fn give_up(&self, node: &str, fences: &[Fence], running: &[RemoteAttempt]) -> Result<(), StoreError> {
        pass(&self.doors.give_up_is_shut)?;
        self.store.give_up(node, fences, running)
    }

    fn remote_attempts(&self, execution: ExecutionKey) -> Result<Vec<(RemoteAttempt, String)>, StoreError> {
        let remote = self.store.remote_attempts(execution);
        self.doors.remote_reads.fetch_add(1, Ordering::SeqCst);
        remote
    }

    fn stop_remote(&self, attempt: &RemoteAttempt) -> Result<(), StoreError> {
        self.store.stop_remote(attempt)
    }

    fn end_remote(&self, node: &str, attempts: &[RemoteAttempt]) -> Result<(), StoreError> {
        self.store.end_remote(node, attempts)?;
        self.doors.ends.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn leave(&self, node: &str) -> Result<(), StoreError> {
        self.store.leave(node)
    }

    fn post(&self, posting: &Posting<'_>) -> Result<bool, StoreError> {
        self.doors.posts.fetch_add(1, Ordering::SeqCst);
        pass(&self.doors.post_is_shut)?;
        self.store.post(posting)
    }

    fn inbox(&self, partitions: &[u32], after: u64, limit: usize) -> Result<Vec<Arrived>, StoreError> {
        self.store.inbox(partitions, after, limit)
    }

    fn quarantine(&self, execution: ExecutionKey, reason: &str) -> Result<(), StoreError> {
        panic!("{execution} is set aside: {reason}")
    }

    fn release(&self, execution: ExecutionKey) -> Result<(), StoreError> {
        self.store.release(execution)
    }

    fn erase(&self, execution: ExecutionKey, sequence: u64, index: usize) -> Result<bool, StoreError> {
        self.store.erase(execution, sequence, index)
    }

    fn late(&self, execution: ExecutionKey) -> Result<Vec<Late>, StoreError> {
        self.store.late(execution)
    }

    fn execution(&self, execution: ExecutionKey) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution(execution)
    }

    fn execution_by_id(&self, id: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution_by_id(id)
    }

    fn execution_by_idempotency_key(&self, of: &Origin<'_>, key: &str) -> Result<Option<ExecutionRow>, StoreError> {
        self.store.execution_by_idempotency_key(of, key)
    }

    fn pending_approvals(
        &self,
        organization: Option<&str>,
        after: Option<(ExecutionKey, &str, u32)>,
        limit: usize,
    ) -> Result<Vec<GateRow>, StoreError> {
        self.store.pending_approvals(organization, after, limit)
    }

    fn executions(
        &self,
        filter: &Filter,
        before: Option<ExecutionKey>,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        pass(&self.doors.list_is_shut)?;
        self.store.executions(filter, before, limit)
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn engine(store: Awkward, reach: Reach) -> Engine {
    Engine::run(
        Arc::new(store),
        [1; 32],
        (Executors::new(Vec::new()), std::sync::Arc::new(mainspring_engine::evaluator::InProcess)),
        Ground::default(),
        reach,
    )
    .unwrap()
}

/// Asks until something is so. The bound only turns what would hang into a failure.
async fn until(is_so: impl AsyncFn() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("it never comes to be so");
}

/// A workflow that does nothing but wait, for less than timers are looked ahead.
fn request(id: &str) -> Request {
    let definition = r#"{"steps":[{"type":"sleep","id":"nap","durationMs":30000}]}"#;
    let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    Request { execution_id: Some(id.into()), ..Request::new(Arc::new(plan), "me") }
}

#[test]
fn what_is_due_is_found_behind_a_full_page() {
    let store = MemoryStore::new();
    block_on(async {
        let first = engine(Awkward::on(&store), Reach::named());
        for id in ["a", "b", "c"] {
            first.submit(request(id)).await.unwrap();
        }
        first.drain().await;
        let due = store.due(&[0], u64::MAX, None, usize::MAX).unwrap();
        let (mut all, last) = (due.iter().map(|due| due.execution).collect::<Vec<_>>(), due[2].execution);
        all.sort();
        for (reach, found) in [(Reach::All, all), (Reach::Named([last].into()), vec![last])] {
            let again = engine(Awkward { due_at_a_time: 1, ..Awkward::on(&store) }, reach);
            until(async || again.pending().await.timed.len() >= found.len()).await;
            assert_eq!(again.pending().await.timed, found);
            again.drain().await;
        }
    });
}

/// Two starts lie in the inbox, and a signal behind the first; for a while no plan can be read. All are begun nevertheless,
/// nothing is set aside, and the signal does not go before the start that it is for.
#[test]
fn a_store_that_does_not_answer_sets_nothing_aside() {
    let store = MemoryStore::new();
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path());
    let first = inbox::post_start(&store, Some(&home), request("a"), &[0; 32]).unwrap();
    let signal = Input::Signal { id: "s".into(), name: "go".into(), payload: Value::Null };
    inbox::post(&store, Some(&home), first, &signal).unwrap();
    inbox::post_start(&store, Some(&home), request("b"), &[0; 32]).unwrap();
    block_on(async {
        let awkward = Awkward { plans_fail: AtomicU32::new(3), ..Awkward::on(&store) };
        let engine = engine(awkward, Reach::named());
        until(async || store.inbox(&[0], 0, 9).unwrap().is_empty()).await;
        for id in ["a", "b"] {
            assert_eq!(store.execution_by_id(id).unwrap().expect("it is begun").status, "running");
        }
        let state = engine.state(first).unwrap();
        assert_eq!(state.signals.len(), 1, "the signal is kept for whoever waits for it");
        engine.drain().await;
    });
}

/// Performs every attempt until it is told what comes of them, whoever asks it to stop.
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

    fn perform<'a>(&'a self, _: &'a Attempt, _: Stop) -> Work<'a, Outcome> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            self.may_end.acquire().await.unwrap().forget();
            Outcome::Done(Value::Null)
        })
    }

    fn adopt<'a>(&'a self, _: &'a Attempt) -> Work<'a, Adopted> {
        self.adopted.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}

/// A node whose store is awkward, with one execution of one step that is being performed.
async fn node_at_work(store: &MemoryStore) -> (Engine, Arc<Doors>, Arc<Stubborn>, ExecutionKey) {
    let (awkward, executor) = (Awkward::on(store), Stubborn::new());
    let doors = awkward.doors.clone();
    let workers = (Executors::new(vec![executor.clone()]), Arc::new(mainspring_engine::evaluator::InProcess) as Arc<_>);
    let sharing = Some(Sharing { terms: Terms { lease_ms: 2_000 }, place: String::new() });
    let ground = Ground { sharing, ..Ground::default() };
    let engine = Engine::run(Arc::new(awkward), [1; 32], workers, ground, Reach::All).unwrap();
    until(async || !engine.held().is_empty()).await;
    let definition = r#"{"steps":[{"type":"bash","id":"a","command":"true"}]}"#;
    let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
    let execution = engine.submit(Request::new(Arc::new(plan), "me")).await.unwrap().execution;
    until(async || executor.begun.load(Ordering::SeqCst) == 1).await;
    (engine, doors, executor, execution)
}

/// The store has not heard of the node for too long: it goes on under another name, and holds what it held.
async fn lives_anew(store: &MemoryStore, engine: &Engine, doors: &Doors) {
    let name = store.table().unwrap().nodes[0].name.clone();
    doors.take_is_shut.store(true, Ordering::SeqCst);
    store.leave(&name).unwrap();
    until(async || engine.held().is_empty() && store.table().unwrap().nodes.iter().any(|node| node.name != name)).await;
}

#[test]
fn what_runs_here_is_not_interrupted_when_its_partition_comes_back() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, doors, executor, execution) = node_at_work(&store).await;
        lives_anew(&store, &engine, &doors).await;
        doors.take_is_shut.store(false, Ordering::SeqCst);
        until(async || doors.remote_reads.load(Ordering::SeqCst) > 0).await;
        // What is asked for by now is taken in behind the journal.
        engine.signal(execution, "s".into(), "go".into(), Value::Null).await.unwrap();
        executor.may_end.add_permits(9);
        until(async || store.execution(execution).unwrap().unwrap().status == "completed").await;
        let counts = [&executor.begun, &executor.adopted].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 0], "begun once, and nobody asked what became of it");
        engine.drain().await;
    });
}

#[test]
fn what_is_being_posted_here_is_not_interrupted_when_its_partition_comes_back() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, doors, executor, execution) = node_at_work(&store).await;
        doors.post_is_shut.store(true, Ordering::SeqCst);
        lives_anew(&store, &engine, &doors).await;
        executor.may_end.add_permits(9);
        until(async || doors.posts.load(Ordering::SeqCst) > 0).await;
        doors.take_is_shut.store(false, Ordering::SeqCst);
        until(async || doors.remote_reads.load(Ordering::SeqCst) > 0).await;
        engine.signal(execution, "s".into(), "go".into(), Value::Null).await.unwrap();
        let posts = doors.posts.load(Ordering::SeqCst);
        until(async || doors.posts.load(Ordering::SeqCst) > posts).await;
        doors.post_is_shut.store(false, Ordering::SeqCst);
        until(async || store.execution(execution).unwrap().unwrap().status == "completed").await;
        assert_eq!(executor.begun.load(Ordering::SeqCst), 1, "what was brought back counts");
        engine.drain().await;
    });
}

#[test]
fn an_attempt_that_ended_before_its_partition_was_given_up_does_not_go_on_for_others() {
    let store = MemoryStore::new();
    block_on(async {
        let (engine, doors, executor, execution) = node_at_work(&store).await;
        doors.give_up_is_shut.store(true, Ordering::SeqCst);
        // Before all others in the order of names: the only partition is its share.
        let other = Node { name: "!".into(), place: String::new(), release: String::new(), decide_version: u32::MAX };
        store.beat(&other, 60_000).unwrap();
        until(async || engine.held().is_empty()).await;
        executor.may_end.add_permits(1);
        until(async || doors.ends.load(Ordering::SeqCst) > 0).await;
        doors.give_up_is_shut.store(false, Ordering::SeqCst);
        until(async || store.table().unwrap().holders.is_empty()).await;
        until(async || doors.ends.load(Ordering::SeqCst) > 1).await;
        assert_eq!(store.remote_attempts(execution).unwrap(), []);
        engine.drain().await;
    });
}

/// One of each person.
struct OneEach;

impl Limits for OneEach {
    fn of(&self, _: &dyn Store, _: &str) -> Result<Bounds, String> {
        Ok(Bounds { user: 1, organization: 9, workflow: None })
    }
}

/// Whoever waits for a place begins with the end that makes room, and not only at the next look into the store; while the
/// store cannot be looked into, nobody is let in by guessing.
#[test]
fn a_place_that_is_left_is_taken_at_once() {
    let store = MemoryStore::new();
    let of = |organization: &str, id: &str| Request {
        trigger: Value::map([("type", "manual".into()), ("organizationId", organization.into())]),
        ..request(id)
    };
    block_on(async {
        let awkward = Awkward::on(&store);
        let doors = awkward.doors.clone();
        let workers = (Executors::new(Vec::new()), Arc::new(mainspring_engine::evaluator::InProcess) as Arc<_>);
        let ground = Ground { limits: Some(Arc::new(OneEach)), ..Ground::default() };
        let engine = Engine::run(Arc::new(awkward), [1; 32], workers, ground, Reach::All).unwrap();
        let status = |key| store.execution(key).unwrap().unwrap().status;
        let [first, second, third] =
            [engine.submit(of("o", "a")), engine.submit(of("o", "b")), engine.submit(of("o", "c"))];
        let (first, second, third) = (first.await.unwrap(), second.await.unwrap(), third.await.unwrap());
        let [first, second, third] = [first, second, third].map(|submitted| submitted.execution);
        assert_eq!([first, second, third].map(status), ["running", "pending", "pending"]);
        doors.list_is_shut.store(true, Ordering::SeqCst);
        let refused = engine.submit(of("p", "d")).await;
        assert!(matches!(&refused, Err(EngineError::Stopped(why)) if why.contains("does not answer")), "{refused:?}");
        assert!(engine.cancel(second, "no", "me").await.unwrap());
        assert!(engine.cancel(first, "no", "me").await.unwrap());
        until(async || status(third) == "running").await;
        doors.list_is_shut.store(false, Ordering::SeqCst);
        let fourth = engine.submit(of("p", "d")).await.unwrap();
        assert_eq!(status(fourth.execution), "running");
        engine.drain().await;
    });
}
