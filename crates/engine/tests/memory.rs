//! The bound of the memory of one organization's active executions on a node.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use mainspring_engine::{
    evaluator::{InProcess, Suspended},
    journal_loader::Loader,
    lease::Leases,
    limits::{EXECUTION_BYTES_MIN, HELD_BACK_MS_MAX, HELD_BACK_RETRY_MS},
    shard::{Event, Keys, NewExecution, Output, PendingInput, Shard},
    start_request::{StartRequest, row},
};
use mainspring_kernel::{
    cbor,
    definition::{Syntax, compile, read},
    effect::Outcome,
    input::{Input, Lineage, ORGANIZATION_IN_TRIGGER, Parent},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    record::Ending,
    state::ExecutionStatus,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{AuditedNotes, Batch, Fence, QuarantineRelease, ReadLimit, memory::MemoryStore};

const START: u64 = 1_767_225_600_000;
const BUSY: &str = r#"{"steps":[{"type":"bash","id":"a","command":"true"}]}"#;
const WAITS: &str = r#"{"steps":[{"type":"signal","id":"s","signal":"go"},{"type":"bash","id":"a","command":"true"}]}"#;
/// Its first turn is decided outside the driver, and has the maximum of records of one turn.
const SPLITS: &str = r#"{"constraints":{"maxSteps":1000000},"steps":[{"type":"loop","id":"spin","while":true,
    "maxRounds":1000000,"steps":[{"type":"conditional","id":"c","condition":true,"then":[]}]}]}"#;
const THINKS: &str = r#"{"steps":[{"type":"code","id":"f","code":"export default () => 1"}]}"#;

/// A node whose commits and loads are answered at once, and whose attempts end on request of the test.
struct Bench {
    store: Arc<MemoryStore>,
    shard: Shard,
    loader: Loader,
    now: u64,
    outputs: VecDeque<Output>,
    loads: usize,
    performed: Vec<ExecutionKey>,
    killed: Vec<ExecutionKey>,
    evaluations: Vec<(ExecutionKey, u64, Box<Suspended>)>,
    parents: BTreeMap<u8, u8>,
}

impl Bench {
    fn new(bytes_max: u64) -> Self {
        let store = Arc::new(MemoryStore::default());
        let epoch = store.claim(0, "test").unwrap();
        let keys = Keys { sealing: [1; 32], salting: [2; 32] };
        let mut shard = Shard::new(Leases::alone(1, [Fence { partition: 0, epoch }]), keys, 0);
        shard.bound_memory(bytes_max);
        let loader = Loader::new(store.clone(), [1; 32]);
        let (outputs, performed, killed) = (VecDeque::new(), Vec::new(), Vec::new());
        let (evaluations, parents) = (Vec::new(), BTreeMap::new());
        Self { store, shard, loader, now: START, outputs, loads: 0, performed, killed, evaluations, parents }
    }

    fn submit(&mut self, number: u8, text: &str, organization: &str, bytes: u64) {
        let plan = Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan);
        self.submit_plan(number, plan, organization, bytes);
    }

    fn submit_plan(&mut self, number: u8, plan: Arc<Plan>, organization: &str, bytes: u64) {
        let mut request = StartRequest::new(plan.clone(), "me");
        request.bounds.max_steps = Some(1_000_000);
        request.input = Value::from("x".repeat(bytes as usize));
        request.trigger = Value::map([(ORGANIZATION_IN_TRIGGER, organization.into())]);
        let stored_plans = request.stored_plans();
        let mut start = request.start(key(number));
        start.lineage = self.parents.get(&number).map(|parent| {
            let instance = Instance { step: 0, rounds: Vec::new() };
            let parent = Some(Parent { execution: key(*parent), instance, attempt: 1 });
            Lineage { parent, depth: 1, ..Lineage::default() }
        });
        let row = row(key(number), &start, &plan, self.now);
        let (execution, start) = (key(number), Box::new(start));
        let (message, ticket, audit) = (None, None, None);
        let submission = NewExecution { execution, plan, stored_plans, start, row, message, ticket, audit };
        self.handle(Event::Start(Box::new(submission)));
    }

    fn take(&mut self, number: u8, input: Input) {
        self.handle(Event::Take(key(number), PendingInput::without_reply(input)));
    }

    fn finish(&mut self, number: u8) {
        let instance = Instance { step: 0, rounds: Vec::new() };
        self.take(number, Input::Receipt { instance, attempt: 1, outcome: Outcome::Done(Value::Null) });
    }

    fn signal(&mut self, number: u8) {
        self.take(number, Input::Signal { id: "i".into(), name: "go".into(), payload: Value::Null });
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.handle(Event::Wake);
    }

    fn handle(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            self.shard.handle(self.now, event);
            self.shard.flush();
            while let Some(output) = self.shard.next_output() {
                match output {
                    Output::Commit { commit_id, batch } => events.push_back(self.commit(commit_id, &batch)),
                    Output::Load(execution, number) => {
                        self.loads += 1;
                        let answer = Box::new(self.loader.load(execution));
                        events.push_back(Event::Loaded(execution, number, answer));
                    }
                    Output::Perform { execution, .. } => self.performed.push(execution),
                    Output::Kill { execution, .. } => self.killed.push(execution),
                    Output::Evaluate { execution, evaluation, suspended } => {
                        self.evaluations.push((execution, evaluation, suspended));
                    }
                    other => self.outputs.push_back(other),
                }
            }
        }
    }

    /// Decides the first turn that is outside the shard.
    fn decide_next(&mut self) {
        let (execution, evaluation, suspended) = self.evaluations.remove(0);
        let finished = Box::new(suspended.finish(&InProcess, &mut || false));
        self.handle(Event::Evaluated { execution, evaluation, finished });
    }

    fn commit(&self, commit_id: u64, batch: &Batch) -> Event {
        Event::Committed { commit_id, answer: self.store.commit(batch) }
    }

    /// The numbers of executions that are ending since they were canceled.
    fn canceled(&self, count: u8) -> Vec<u8> {
        let ending = |number: &u8| self.loader.journal(key(*number)).unwrap().unwrap().journal.state.end.ending;
        (0..count).filter(|number| matches!(ending(number), Some(Ending::Cancelled { .. }))).collect()
    }

    fn status(&self, number: u8) -> ExecutionStatus {
        self.loader.journal(key(number)).unwrap().unwrap().journal.state.status()
    }
}

fn key(number: u8) -> ExecutionKey {
    ExecutionKey::new(START, [number; 10])
}

/// The largest execution is canceled, and none of another organization.
#[test]
fn an_organization_above_its_memory_loses_its_largest_execution() {
    let mut bench = Bench::new(6 << 20);
    for (at, (organization, mebibytes)) in
        [("a", 1), ("a", 2), ("b", 5), ("a", 1), ("", 9), ("a", 1)].into_iter().enumerate()
    {
        bench.submit(at as u8, BUSY, organization, (mebibytes << 20) + at as u64 * EXECUTION_BYTES_MIN);
    }
    assert_eq!(bench.canceled(6), Vec::<u8>::new(), "five mebibytes and some floors");
    bench.submit(6, BUSY, "a", 1 << 20);
    assert_eq!(bench.canceled(7), [1]);
    let ending = bench.loader.journal(key(1)).unwrap().unwrap().journal.state.end.ending;
    let Some(Ending::Cancelled { reason }) = ending else { panic!("{ending:?}") };
    assert!(reason.starts_with("organization_memory_exceeded: "), "{reason}");
    assert!(
        reason.contains("bytes of memory at this node, more than 6291456, and this one takes the most"),
        "{reason}"
    );
    let audit = bench.store.audit("a", 0, ReadLimit::of(9)).unwrap();
    let entry = &audit.last().expect("an entry").entry;
    assert_eq!(
        (&*entry.action, &*entry.actor, &*entry.target),
        ("execution.cancel", "mainspring", &*key(1).to_string())
    );
    let detail = cbor::decode(&entry.detail).unwrap();
    assert_eq!(detail.get("reasonCode").and_then(Value::as_text), Some("organization_memory_exceeded"));
    assert_eq!(detail.get("organizationBytesMax"), Some(&Value::from(6u64 << 20)));
}

#[test]
fn the_youngest_root_is_canceled_among_many_small_executions() {
    let mut bench = Bench::new(8 * EXECUTION_BYTES_MIN);
    for number in 0..7 {
        bench.submit(number, BUSY, "a", 10);
    }
    // Executions that wait only for time or people have a bound of their own.
    bench.submit(9, WAITS, "a", 10);
    bench.submit(7, BUSY, "a", 10);
    bench.submit(8, BUSY, "b", 10);
    assert_eq!(bench.canceled(10), Vec::<u8>::new(), "at the bound");
    bench.parents.insert(10, 3);
    bench.submit(10, BUSY, "a", 10);
    assert_eq!(bench.canceled(11), [7], "a child is above the bound, and the youngest root is canceled");
    bench.submit(11, BUSY, "a", 10);
    assert_eq!(bench.canceled(12), [7, 11]);
}

/// A cancel is sent to the children of an execution in a message. Until then they cause no other cancel.
#[test]
fn children_of_a_canceled_execution_cause_no_other_cancel() {
    let mut bench = Bench::new(8 * EXECUTION_BYTES_MIN);
    for number in 0..4 {
        bench.submit(number, BUSY, "a", 10);
    }
    for number in 4..8 {
        bench.parents.insert(number, 3);
        bench.submit(number, BUSY, "a", 10);
    }
    bench.parents.insert(8, 1);
    bench.submit(8, BUSY, "a", 10);
    assert_eq!(bench.canceled(9), [3]);
    // Five slots are free: those of the root and of its four children.
    for number in 9..13 {
        bench.parents.insert(number, 1);
        bench.submit(number, BUSY, "a", 10);
        assert_eq!(bench.canceled(number + 1), [3], "{number}");
    }
    bench.parents.insert(13, 1);
    bench.submit(13, BUSY, "a", 10);
    assert_eq!(bench.canceled(14), [2, 3]);
}

#[test]
fn canceled_executions_are_killed_above_twice_the_bound() {
    let mut bench = Bench::new(4 * EXECUTION_BYTES_MIN);
    for number in 0..8 {
        bench.submit(number, BUSY, "a", 10);
    }
    assert_eq!((bench.canceled(8), &bench.killed), (vec![4, 5, 6, 7], &Vec::new()), "at twice the bound");
    bench.submit(8, BUSY, "a", 10);
    let killed = std::mem::take(&mut bench.killed);
    assert_eq!(killed, [4, 5, 6, 7].map(key));
    bench.submit(9, BUSY, "a", 10);
    assert_eq!((bench.killed.len(), bench.canceled(10)), (0, vec![4, 5, 6, 7, 8, 9]), "each is killed once");
}

/// A cancel whose commit was not written is lost, and the execution counts again.
#[test]
fn a_cancel_that_is_lost_leaves_no_execution_uncounted() {
    let mut bench = Bench::new(2 << 20);
    bench.submit(0, BUSY, "a", 1 << 20);
    bench.submit(1, BUSY, "a", 2 << 20);
    assert_eq!(bench.canceled(2), [1]);
    bench.finish(1);
    assert_eq!(bench.status(1), ExecutionStatus::Cancelled);
    bench.submit(2, BUSY, "a", (1 << 20) - 8 * EXECUTION_BYTES_MIN);
    assert_eq!(bench.canceled(3), [1], "what has ended takes nothing");
}

#[test]
fn loading_a_journal_waits_for_memory() {
    let mut bench = Bench::new(4 << 20);
    bench.submit(0, WAITS, "a", 2 << 20);
    bench.submit(1, BUSY, "a", 3 << 20);
    bench.signal(0);
    assert_eq!((bench.loads, bench.canceled(2)), (1, vec![]));
    bench.pass(HELD_BACK_RETRY_MS);
    bench.signal(0);
    assert_eq!((bench.loads, bench.canceled(2), bench.performed.len()), (1, vec![], 1), "it is not read in vain");
    bench.finish(1);
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!((bench.loads, bench.performed.last()), (2, Some(&key(0))), "its signal was kept");
    // A cancel does not wait for memory.
    bench.submit(2, WAITS, "a", 3 << 20);
    bench.take(2, Input::Cancel { reason: "why".into(), by: "me".into() });
    assert_eq!((bench.status(2), bench.canceled(3)), (ExecutionStatus::Cancelled, vec![2]));
    // The executions that fill the memory may wait for this one.
    bench.submit(3, WAITS, "a", 3 << 19);
    bench.submit(4, BUSY, "a", 1 << 20);
    bench.signal(3);
    bench.pass(HELD_BACK_MS_MAX - 1);
    assert_eq!(bench.canceled(5), [2]);
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!(bench.performed.last(), Some(&key(3)));
    assert_eq!(bench.canceled(5), [0, 2], "and then the largest is canceled");
}

#[test]
fn the_state_of_an_abandoned_evaluation_counts_until_its_end() {
    let mut bench = Bench::new(4 << 20);
    bench.submit(0, THINKS, "a", 3 << 20);
    while bench.evaluations.is_empty() {
        bench.pass(1);
    }
    bench.take(0, Input::Cancel { reason: "why".into(), by: "me".into() });
    assert_eq!(bench.status(0), ExecutionStatus::Cancelled, "it did not wait for the function");
    // One mebibyte of twice the bound is left: three are on evaluation threads, one is active, and three do not stop.
    bench.submit(1, BUSY, "a", 3 << 20);
    bench.take(1, Input::Cancel { reason: "why".into(), by: "me".into() });
    bench.submit(2, BUSY, "a", 1 << 20);
    bench.submit(3, WAITS, "a", 1 << 20);
    let loads = bench.loads;
    bench.signal(3);
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!((bench.loads, bench.performed.len()), (loads + 1, 2), "it is held back");
    let (execution, evaluation, suspended) = bench.evaluations.pop().unwrap();
    let finished = Box::new(suspended.finish(&InProcess, &mut || false));
    bench.handle(Event::Evaluated { execution, evaluation, finished });
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!(bench.performed.last(), Some(&key(3)));
}

/// No turn of the execution is decided yet. Its row names the organization.
#[test]
fn an_execution_counts_during_its_first_detached_turn() {
    let mut bench = Bench::new(4 << 20);
    bench.submit(0, WAITS, "a", 2 << 20);
    bench.shard.share_always();
    bench.submit(1, SPLITS, "a", 3 << 20);
    assert_eq!((bench.evaluations.len(), bench.shard.tenant(key(1))), (1, "a"));
    let loads = bench.loads;
    bench.signal(0);
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!((bench.loads, bench.performed.len()), (loads + 1, 0), "there is no room for its journal");
    // The largest is canceled, and the cancel waits for the turn.
    bench.submit(2, BUSY, "a", 2 << 20);
    assert_eq!(bench.performed, [key(2)]);
    bench.decide_next();
    assert_eq!(bench.status(1), ExecutionStatus::Cancelled);
    assert_eq!(bench.status(2), ExecutionStatus::Running);
    // The sums no longer contain it.
    bench.finish(2);
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!(bench.performed.last(), Some(&key(0)));
    bench.submit(3, BUSY, "a", (2 << 20) - 8 * EXECUTION_BYTES_MIN);
    assert_eq!(bench.status(3), ExecutionStatus::Running);
}

/// The cancel for memory waits for a turn outside the shard, and another input precedes it.
#[test]
fn a_pending_cancel_causes_no_other_cancel() {
    let mut bench = Bench::new(4 * EXECUTION_BYTES_MIN);
    bench.submit(0, BUSY, "a", 10);
    bench.submit(1, BUSY, "a", 10);
    bench.shard.share_always();
    bench.submit(2, SPLITS, "a", 10);
    bench.signal(2);
    for child in [3, 4] {
        bench.parents.insert(child, 0);
        bench.submit(child, BUSY, "a", 10);
    }
    // The newest root is 2, whose cancel waits behind the signal. Then another execution starts in a free slot.
    bench.finish(3);
    bench.submit(5, BUSY, "a", 10);
    while !bench.evaluations.is_empty() {
        bench.decide_next();
    }
    assert_eq!(bench.canceled(6), [2]);
}

/// A deadline does not wait for memory, like a cancel.
#[test]
fn a_deadline_loads_an_execution_without_free_memory() {
    let mut bench = Bench::new(4 << 20);
    for number in [1, 2] {
        bench.submit(number, BUSY, "a", 1 << 20);
        bench.take(number, Input::Cancel { reason: "why".into(), by: "me".into() });
    }
    bench.submit(0, &THINKS.replacen('{', r#"{"constraints":{"timeoutMs":5000},"#, 1), "a", 3 << 20);
    while bench.evaluations.is_empty() {
        bench.pass(1);
    }
    bench.submit(3, BUSY, "a", 1 << 19);
    bench.submit(4, BUSY, "a", 1 << 18);
    bench.pass(5_000);
    assert_eq!(bench.status(0), ExecutionStatus::Failed);
}

/// The delay of a journal starts again if its execution was quarantined in the meantime.
#[test]
fn a_release_restarts_the_delay_of_a_journal_load() {
    let mut bench = Bench::new(4 << 20);
    bench.submit(0, WAITS, "a", 2 << 20);
    bench.submit(1, BUSY, "a", 3 << 20);
    bench.signal(0);
    bench.store.quarantine(key(0), "a fault").unwrap();
    bench.pass(HELD_BACK_MS_MAX);
    assert_eq!((bench.loads, bench.performed.len()), (2, 1), "it is read, and quarantined");
    let audited = AuditedNotes { notes: &[], audit: &[], sealing: [1; 32] };
    bench.store.release_quarantine(&QuarantineRelease { execution: key(0), parent: None, audited }).unwrap();
    bench.signal(0);
    assert_eq!((bench.loads, bench.performed.len()), (3, 1), "there is no room for it");
    bench.finish(1);
    bench.pass(HELD_BACK_RETRY_MS);
    assert_eq!(bench.performed.last(), Some(&key(0)));
}
