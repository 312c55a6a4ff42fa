//! Split turns: an execution of any length takes one frame at a time and little stack, and other executions have turns
//! in between.

use std::{collections::VecDeque, sync::Arc};

use mainspring_engine::{
    clock::ClockReading,
    clock::MonotonicMs,
    inbox,
    journal_loader::Loader,
    lease::{LeaseTiming, Leases},
    membership::{Heartbeat, NodeSession},
    shard::{Event, Keys, NewExecution, Output, PendingInput, Shard, ShardError, Ticket},
    start_request::{StartRequest, row},
};
use mainspring_kernel::{
    decide::DECIDE_VERSION,
    definition::{Syntax, compile, read},
    input::Input,
    key::ExecutionKey,
    limits::TURN_RECORDS_MAX,
    plan::Plan,
    state::ExecutionStatus,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, EnqueueRequest, Node, ReadLimit, Store, memory::MemoryStore};

const NOW: u64 = 1_767_225_600_000;
const LEASE: LeaseTiming = LeaseTiming { lease_ms: 10_000 };

/// Much less than the 2 MiB of a thread of the runtime.
const STACK_BYTES: usize = 256 * 1024;

const SPINS: &str = r#"{"constraints":{"maxSteps":1000000},"steps":[{"type":"loop","id":"spin","while":{"ref":"@index","lt":ROUNDS},
    "maxRounds":1000000,"steps":[{"type":"conditional","id":"c","condition":true,"then":[]}]}]}"#;
const WAITS: &str = r#"{"steps":[{"type":"signal","id":"s","signal":"go"}]}"#;

fn plan(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

fn spins(rounds: u32) -> Arc<Plan> {
    plan(&SPINS.replace("ROUNDS", &rounds.to_string()))
}

fn key(number: u8) -> ExecutionKey {
    ExecutionKey::new(NOW, [number; 10])
}

/// A shard with its outputs.
struct Driver {
    store: MemoryStore,
    member: NodeSession,
    shard: Shard,
    now: u64,
    monotonic: MonotonicMs,
    commits: VecDeque<(u64, Arc<Batch>)>,
    /// Executions of the written parts, with their numbers of frames, in order.
    written: Vec<(ExecutionKey, usize)>,
    records: usize,
    longest: usize,
    loads: Vec<(ExecutionKey, u64)>,
    replies: Vec<(Ticket, Result<bool, ShardError>)>,
    quarantined: Vec<ExecutionKey>,
    lost: bool,
}

impl Driver {
    fn on(store: &MemoryStore, name: &str) -> Self {
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let node = Node {
            name: name.into(),
            address: "".into(),
            release: "0".into(),
            decide_version: DECIDE_VERSION,
            accepts_partitions: true,
        };
        let mut driver = Self {
            store: store.clone(),
            member: NodeSession::new(shared, LEASE, node),
            shard: Shard::new(Leases::none(), Keys { sealing: [1; 32], salting: [2; 32] }, usize::MAX),
            now: NOW,
            monotonic: MonotonicMs(0),
            commits: VecDeque::new(),
            written: Vec::new(),
            records: 0,
            longest: 0,
            loads: Vec::new(),
            replies: Vec::new(),
            quarantined: Vec::new(),
            lost: false,
        };
        driver.heartbeat();
        driver
    }

    fn read_clocks(&self) -> ClockReading {
        ClockReading { monotonic: self.monotonic, wall_ms: NOW }
    }

    fn heartbeat(&mut self) {
        let reading = self.read_clocks();
        let Heartbeat::Renewed(renewal) = self.member.heartbeat(&Default::default(), false, || reading) else {
            panic!("not called")
        };
        self.handle(Event::LeaseRenewed(renewal));
    }

    fn handle(&mut self, event: Event) {
        self.shard.expire(self.read_clocks());
        self.shard.handle(self.now, event);
        self.run_outputs();
    }

    fn run_outputs(&mut self) {
        self.shard.flush();
        while let Some(output) = self.shard.next_output() {
            match output {
                Output::Commit { commit_id, batch } => self.commits.push_back((commit_id, batch)),
                Output::Load(execution, number) => self.loads.push((execution, number)),
                Output::Reply(ticket, reply) => self.replies.push((ticket, reply.map(|taken| taken.changed))),
                Output::Notify(frame) => {
                    self.records += frame.records.len();
                    self.longest = self.longest.max(frame.records.len());
                }
                Output::Quarantine(execution, _) => self.quarantined.push(execution),
                Output::Lost(_) => self.lost = true,
                _ => {}
            }
        }
    }

    fn submit(&mut self, execution: ExecutionKey, plan: &Arc<Plan>, ticket: u64) {
        self.start_as(execution, StartRequest::new(plan.clone(), "me"), plan, ticket);
    }

    fn start_as(&mut self, execution: ExecutionKey, mut request: StartRequest, plan: &Arc<Plan>, ticket: u64) {
        request.bounds.max_steps = Some(1_000_000);
        let stored_plans = request.stored_plans();
        let start = Box::new(request.start(execution));
        let (row, plan, ticket) = (row(execution, &start, plan, self.now), plan.clone(), Some(Ticket(ticket)));
        let (message, audit) = (None, None);
        let submission = NewExecution { execution, plan, stored_plans, start, row, message, ticket, audit };
        self.handle(Event::Start(Box::new(submission)));
    }

    /// Writes the commit in flight, if there is one.
    fn write(&mut self) {
        let Some((commit_id, batch)) = self.commits.pop_front() else { return };
        self.written.extend(batch.parts.iter().map(|part| (part.execution, part.frames.len())));
        let answer = self.store.commit(&batch);
        drop(batch);
        self.handle(Event::Committed { commit_id, answer });
    }

    fn load_all(&mut self) {
        let loader = Loader::new(Arc::new(self.store.clone()), [1; 32]).among_nodes();
        for (execution, number) in std::mem::take(&mut self.loads) {
            let answer = Box::new(loader.load(execution));
            self.handle(Event::Loaded(execution, number, answer));
        }
    }

    /// Runs like a driver, until there is no work at this time.
    fn run(&mut self) {
        loop {
            self.write();
            self.load_all();
            if self.shard.next_wake().is_some_and(|at| at <= self.now) {
                self.handle(Event::Wake);
            } else if self.commits.is_empty() && self.loads.is_empty() {
                return;
            }
        }
    }

    fn is_in_memory(&self, execution: ExecutionKey) -> bool {
        self.shard.has(execution)
    }

    fn status(&self, execution: ExecutionKey) -> ExecutionStatus {
        let loader = Loader::new(Arc::new(self.store.clone()), [1; 32]);
        loader.journal(execution).unwrap().unwrap().journal.state.status()
    }
}

fn store() -> MemoryStore {
    let store = MemoryStore::new();
    store.set_now(NOW);
    store
}

fn on_a_small_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap();
    });
}

#[test]
fn two_million_records_fit_a_small_stack() {
    let plan = spins(400_000);
    on_a_small_stack(move || {
        let mut driver = Driver::on(&store(), "a");
        driver.submit(key(1), &plan, 1);
        assert_eq!(driver.commits.len(), 1, "the first frame goes to the store at once");
        let mut turns = 0;
        while driver.is_in_memory(key(1)) {
            driver.write();
            assert_eq!(driver.replies.len(), 1, "the start is answered when its frame is durable");
            let before = driver.commits.len();
            driver.handle(Event::Wake);
            assert!(driver.commits.len() <= before + 1);
            turns += 1;
            // A heartbeat fits between any two frames.
            driver.monotonic = MonotonicMs(driver.monotonic.0 + 1_000);
            driver.heartbeat();
        }
        assert!(driver.records >= 2_000_000, "{}", driver.records);
        assert!(turns >= driver.records / (TURN_RECORDS_MAX + 16), "{turns}");
        assert!(driver.longest <= TURN_RECORDS_MAX + 16, "{}", driver.longest);
        assert!(driver.written.iter().all(|(_, frames)| *frames == 1), "a draft has one frame");
    });
}

/// Submits an execution with a split turn, and runs it for some frames.
fn amid(rounds: u32, frames: usize) -> (MemoryStore, Driver) {
    let store = store();
    let mut driver = Driver::on(&store, "a");
    driver.submit(key(1), &spins(rounds), 1);
    for _ in 1..frames {
        driver.write();
        driver.handle(Event::Wake);
    }
    driver.write();
    assert_eq!((driver.written.len(), driver.shard.has_split()), (frames, true));
    (store, driver)
}

#[test]
fn a_split_turn_continues_after_its_frames_are_durable() {
    let (_, mut driver) = amid(10_000, 2);
    driver.handle(Event::Wake);
    assert_eq!((driver.commits.len(), driver.shard.has_split()), (1, false));
    for _ in 0..3 {
        driver.handle(Event::Wake);
    }
    driver.write();
    assert_eq!(driver.written.last(), Some(&(key(1), 1)), "however often it is woken");
}

#[test]
fn a_split_turn_of_an_expired_lease_does_not_continue() {
    let (_, mut driver) = amid(10_000, 3);
    driver.monotonic = MonotonicMs(LEASE.lease_ms);
    driver.handle(Event::Wake);
    assert!(driver.lost && driver.commits.is_empty() && !driver.shard.has_split());
}

#[test]
fn other_executions_progress_between_the_frames() {
    let (_, mut driver) = amid(10_000, 2);
    driver.submit(key(2), &plan(WAITS), 2);
    driver.write();
    driver.handle(Event::Wake);
    let input = Input::Signal { id: "i".into(), name: "go".into(), payload: Value::Null };
    driver.handle(Event::Take(key(2), PendingInput { input, message: None, ticket: Some(Ticket(3)), audit: None }));
    driver.write();
    driver.write();
    assert_eq!(driver.status(key(2)), ExecutionStatus::Completed);
    assert_eq!(driver.status(key(1)), ExecutionStatus::Running);
    driver.run();
    assert_eq!(driver.status(key(1)), ExecutionStatus::Completed);
}

#[test]
fn several_split_turns_write_one_frame_each_in_turn() {
    let (_, mut driver) = amid(10_000, 1);
    driver.submit(key(2), &spins(10_000), 2);
    driver.write();
    driver.written.clear();
    for _ in 0..6 {
        driver.handle(Event::Wake);
        driver.write();
    }
    let order: Vec<_> = driver.written.iter().map(|(execution, frames)| (*execution == key(1), *frames)).collect();
    assert_eq!(order, [(true, 1), (false, 1), (true, 1), (false, 1), (true, 1), (false, 1)]);
}

/// The first frame consumes the start message. A node that crashes because of an execution does not receive its start
/// again, and the next owner continues from the stored frames.
#[test]
fn every_node_that_takes_over_gets_further() {
    let store = store();
    let plan = spins(6_000);
    let mut request = StartRequest::new(plan.clone(), "me");
    request.bounds.max_steps = Some(1_000_000);
    let plans = request.stored_plans();
    let start = Input::Start(Box::new(request.start(key(1))));
    let message = inbox::message(&[1; 32], key(1), &start, store.partitions().unwrap(), NOW);
    let posting = EnqueueRequest { plans: &plans, ..EnqueueRequest::of(&message, store.partitions().unwrap()) };
    assert!(store.enqueue(&posting).unwrap());
    let partitions: Vec<u32> = (0..store.partitions().unwrap()).collect();
    let mut runs = 0;
    while runs == 0 || store.head(key(1)).unwrap().is_some() && !has_ended(&store) {
        let mut driver = Driver::on(&store, &format!("run {runs}"));
        for arrived in store.inbox(&partitions, 0, ReadLimit::of(9)).unwrap() {
            assert_eq!(runs, 0, "the start is read once");
            driver.handle(inbox::event_of(&store, &[1; 32], arrived.message).unwrap());
        }
        driver.handle(Event::Due(store.due(&partitions, NOW, None, 9).unwrap()));
        let before = store.head(key(1)).unwrap().map_or(0, |row| row.head.sequence + 1);
        driver.load_all();
        driver.handle(Event::Wake);
        driver.write();
        let after = store.head(key(1)).unwrap().map_or(0, |row| row.head.sequence + 1);
        assert_eq!(after, before + 1, "one more frame for each run");
        driver.member.leave();
        runs += 1;
    }
    assert!(runs > 4, "{runs}");
}

fn has_ended(store: &MemoryStore) -> bool {
    let row = store.execution(key(1)).unwrap();
    row.is_some_and(|row| row.completed_at.is_some())
}

#[test]
fn a_deadline_ends_an_endless_turn() {
    let text = SPINS.replace("ROUNDS", "1000000").replace("{\"maxSteps\"", "{\"timeoutMs\":5000,\"maxSteps\"");
    let mut driver = Driver::on(&store(), "a");
    driver.submit(key(1), &plan(&text), 1);
    for _ in 0..3 {
        driver.write();
        driver.handle(Event::Wake);
    }
    driver.now += 5_000;
    driver.run();
    assert_ne!(driver.status(key(1)), ExecutionStatus::Completed);
    assert!(driver.quarantined.is_empty() && driver.written.len() < 60, "{}", driver.written.len());
}

#[test]
fn a_cancel_ends_an_endless_turn() {
    let (_, mut driver) = amid(1_000_000, 3);
    let input = Input::Cancel { by: "me".into(), reason: "why".into() };
    driver.handle(Event::Take(key(1), PendingInput { input, message: None, ticket: Some(Ticket(2)), audit: None }));
    driver.run();
    assert_eq!(driver.status(key(1)), ExecutionStatus::Cancelled);
    assert_eq!(driver.replies.last(), Some(&(Ticket(2), Ok(true))));
}

/// A plan that no compiler produces: a block names a step that does not exist.
fn impossible() -> Arc<Plan> {
    let mut plan = Plan::clone(&plan(WAITS));
    plan.steps.clear();
    Arc::new(plan)
}

#[test]
fn a_panic_quarantines_only_its_execution() {
    let mut driver = Driver::on(&store(), "a");
    driver.submit(key(2), &plan(WAITS), 2);
    driver.run();
    driver.start_as(key(1), StartRequest::new(plan(WAITS), "me"), &impossible(), 1);
    driver.run();
    assert_eq!(driver.quarantined, [key(1)]);
    let Some((Ticket(1), Err(ShardError::Quarantined(why)))) = driver.replies.pop() else {
        panic!("{:?}", driver.replies)
    };
    assert!(why.contains("panicked"), "{why}");
    assert!(!driver.shard.has(key(1)));
    let input = Input::Signal { id: "i".into(), name: "go".into(), payload: Value::Null };
    driver.handle(Event::Take(key(2), PendingInput { input, message: None, ticket: Some(Ticket(3)), audit: None }));
    driver.run();
    assert_eq!(driver.status(key(2)), ExecutionStatus::Completed);
}
