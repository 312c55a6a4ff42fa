//! Several organizations in one shard: each has its turns, independent of the backlog of another.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use mainspring_engine::{
    evaluator::{Begun, InProcess, Rest, Suspended},
    journal_loader::Loader,
    lease::Leases,
    shard::{Event, Keys, NewExecution, Output, PendingInput, Shard},
    start_request::{StartRequest, row},
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    input::{Input, ORGANIZATION_IN_TRIGGER},
    key::ExecutionKey,
    plan::Plan,
    record::Ending,
    state::State,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, Fence, memory::MemoryStore};

const START: u64 = 1_000_000;

/// Executions of one organization beside a single one of another.
const MANY: u64 = 400;

/// Duration of the step in `SLEEP`.
const SLEEP_MS: u64 = 1_000;

const SLEEP: &str = r#"{"steps":[{"type":"sleep","id":"s","durationMs":1000}]}"#;

/// Its turns are split and never end.
const SPLIT: &str = r#"{"constraints":{"maxSteps":1000000},"steps":[{"type":"loop","id":"spin","while":true,
    "maxRounds":1000000,"steps":[{"type":"conditional","id":"c","condition":true,"then":[]}]}]}"#;

/// A function, followed by some thousands of records.
const LONG: &str = r#"{"constraints":{"maxSteps":1000000},"steps":[
    {"type":"code","id":"f","code":"export default () => ({n: 7})"},
    {"type":"loop","id":"spin","while":true,"maxRounds":3000,"steps":[
        {"type":"conditional","id":"c","condition":true,"then":[]}]}]}"#;

fn plan(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

fn key(number: u64) -> ExecutionKey {
    ExecutionKey::new(START, [&[0, 0][..], &number.to_be_bytes()].concat().try_into().unwrap())
}

struct Bench {
    store: MemoryStore,
    shard: Shard,
    now: u64,
    commit: Option<(u64, Arc<Batch>)>,
    /// Turns outside the shard.
    out: VecDeque<(ExecutionKey, u64, Box<Suspended>)>,
    /// Requested journals.
    loads: Vec<(ExecutionKey, u64)>,
}

impl Bench {
    fn new() -> Self {
        let store = MemoryStore::default();
        let epoch = store.claim(0, "test").unwrap();
        let leases = Leases::alone(1, [Fence { partition: 0, epoch }]);
        let shard = Shard::new(leases, Keys { sealing: [1; 32], salting: [2; 32] }, 1 << 30);
        Self { store, shard, now: START, commit: None, out: VecDeque::new(), loads: Vec::new() }
    }

    fn handle(&mut self, event: Event) {
        self.shard.handle(self.now, event);
        self.shard.flush();
        self.take_outputs();
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.shard.next_output() {
            match output {
                Output::Commit { commit_id, batch } => {
                    assert!(self.commit.replace((commit_id, batch)).is_none(), "one commit at a time");
                }
                Output::Evaluate { execution, evaluation, suspended } => {
                    self.out.push_back((execution, evaluation, suspended));
                }
                Output::Load(execution, number) => self.loads.push((execution, number)),
                _ => {}
            }
        }
    }

    fn submit(&mut self, number: u64, organization: &str, plan: &Arc<Plan>) {
        let mut request = StartRequest::new(plan.clone(), "me");
        request.bounds.max_steps = Some(1_000_000);
        request.input = Value::from(vec![Value::Null; 300]);
        request.trigger = Value::map([(ORGANIZATION_IN_TRIGGER, organization.into())]);
        let stored_plans = request.stored_plans();
        let start = request.start(key(number));
        let row = row(key(number), &start, plan, self.now);
        let (execution, plan, start) = (key(number), plan.clone(), Box::new(start));
        let (message, ticket, audit) = (None, None, None);
        self.handle(Event::Start(Box::new(NewExecution {
            execution,
            plan,
            stored_plans,
            start,
            row,
            message,
            ticket,
            audit,
        })));
    }

    /// Writes the commit in flight, and returns the executions in it.
    fn release(&mut self) -> BTreeSet<ExecutionKey> {
        let Some((commit_id, batch)) = self.commit.take() else { return BTreeSet::new() };
        let answer = self.store.commit(&batch);
        self.handle(Event::Committed { commit_id, answer });
        batch.parts.iter().map(|part| part.execution).collect()
    }

    /// Decides the first turn outside the shard. True if it needed a function.
    fn decide_next(&mut self) -> bool {
        let (execution, evaluation, suspended) = self.out.pop_front().expect("a turn is out");
        let (finished, has_function) = match suspended.begin() {
            Begun::Finished(finished) => (finished, false),
            Begun::Paused(paused) => (Box::new(paused.finish(&InProcess, &mut || false)), true),
        };
        self.handle(Event::Evaluated { execution, evaluation, finished });
        has_function
    }

    fn load_all(&mut self) {
        let loader = Loader::new(Arc::new(self.store.clone()), [1; 32]);
        for (execution, number) in std::mem::take(&mut self.loads) {
            let answer = Box::new(loader.load(execution));
            self.handle(Event::Loaded(execution, number, answer));
        }
    }

    fn state(&self, number: u64) -> State {
        let loader = Loader::new(Arc::new(self.store.clone()), [1; 32]);
        loader.journal(key(number)).unwrap().unwrap().journal.state
    }

    fn release_all(&mut self) {
        while self.commit.is_some() {
            self.release();
        }
    }
}

/// Both organizations have had turns recently, and no work is pending.
fn shared() -> Bench {
    let mut bench = Bench::new();
    for (number, organization) in [(0, "greedy"), (1, "modest")] {
        bench.submit(number, organization, &plan(r#"{"steps":[{"type":"return","id":"r"}]}"#));
        bench.release_all();
    }
    bench
}

#[test]
fn a_commit_waits_only_for_the_share_of_another_organization() {
    let (mut bench, sleep) = (shared(), plan(SLEEP));
    // The first commit contains one execution. The others gather while it is in flight.
    (2..2 + MANY).for_each(|number| bench.submit(number, "greedy", &sleep));
    bench.submit(2 + MANY, "modest", &sleep);
    assert_eq!(bench.release().len(), 1);
    let next = bench.release();
    assert!(next.contains(&key(2 + MANY)), "the modest one waits for a commit of the greedy one");
    assert!((next.len() as u64) < MANY / 4, "{}", next.len());
    bench.release_all();
    // No execution is forgotten.
    let sleeping = bench.shard.pending().timed;
    assert_eq!(sleeping.len() as u64, MANY + 1);
}

#[test]
fn an_organization_alone_has_whole_commits() {
    let (mut bench, sleep) = (Bench::new(), plan(SLEEP));
    (0..MANY).for_each(|number| bench.submit(number, "greedy", &sleep));
    bench.release();
    assert_eq!(bench.release().len() as u64, MANY - 1);
}

#[test]
fn timers_of_one_organization_do_not_delay_another() {
    let (mut bench, sleep) = (shared(), plan(SLEEP));
    (2..2 + MANY).for_each(|number| bench.submit(number, "greedy", &sleep));
    bench.now += 1;
    bench.submit(2 + MANY, "modest", &sleep);
    bench.release_all();
    bench.now += SLEEP_MS;
    // All timers are due, the one of the modest organization last.
    bench.handle(Event::Due(Vec::new()));
    let waiting = bench.shard.pending().timed.len() as u64;
    assert!((MANY - 50..=MANY).contains(&waiting), "{waiting} of {MANY} wait");
    let (mut fired, mut events) = (bench.release(), 1);
    fired.extend(bench.release());
    assert!(fired.contains(&key(2 + MANY)), "it waits for timers of the greedy one");
    while bench.shard.next_time().is_some() {
        bench.handle(Event::Due(Vec::new()));
        fired.extend(bench.release());
        events += 1;
        assert!(events <= MANY, "timers are forgotten, or fire again and again");
    }
    while bench.commit.is_some() {
        fired.extend(bench.release());
    }
    assert_eq!(fired.len() as u64, MANY + 1);
}

/// Runs an execution to its end. Returns the number of its turns that were decided outside the driver, and of those
/// with functions.
fn run_to_the_end(bench: &mut Bench, number: u64) -> [usize; 2] {
    let counts = run_until_quiet(bench);
    assert!(bench.state(number).end.ended_at.is_some());
    counts
}

fn run_until_quiet(bench: &mut Bench) -> [usize; 2] {
    let mut counts = [0; 2];
    loop {
        bench.release_all();
        if !bench.out.is_empty() {
            counts[0] += 1;
            counts[1] += usize::from(bench.decide_next());
        } else if bench.shard.has_split() {
            bench.handle(Event::Wake);
        } else {
            return counts;
        }
    }
}

#[test]
fn a_long_turn_has_the_same_result_outside_of_the_driver() {
    let (mut alone, mut bench, long) = (Bench::new(), shared(), plan(LONG));
    alone.submit(2, "greedy", &long);
    assert_eq!(run_to_the_end(&mut alone, 2), [1, 1], "of an organization alone only what waits for a function");
    bench.submit(2, "greedy", &long);
    assert_eq!((bench.out.len(), bench.commit.is_some()), (1, false), "it is out, and nothing of it is decided here");
    // Other executions continue in the meantime, also with a short turn of the same organization.
    for (number, organization) in [(3, "modest"), (4, "greedy")] {
        bench.submit(number, organization, &plan(r#"{"steps":[{"type":"return","id":"r"}]}"#));
        assert_eq!(bench.release(), [key(number)].into());
    }
    let counts = run_to_the_end(&mut bench, 2);
    assert!(counts[0] > 2 && counts[1] == 1, "{counts:?}");
    assert_eq!(bench.state(2), alone.state(2));
}

#[test]
fn after_a_long_turn_the_next_one_is_outside_of_the_driver() {
    const EACH: &str = r#"{"constraints":{"maxSteps":1000},"steps":[
        {"type":"loop","id":"l","forEach":{"ref":"@input"},"steps":[
            {"type":"conditional","id":"c","condition":true,"then":[]}]},
        {"type":"sleep","id":"s","durationMs":1000}]}"#;
    let mut bench = shared();
    bench.submit(2, "greedy", &plan(EACH));
    run_until_quiet(&mut bench);
    assert!(bench.state(2).end.ended_at.is_none(), "{:?}", bench.state(2).end.ending);
    bench.now += SLEEP_MS;
    bench.handle(Event::Due(Vec::new()));
    assert_eq!((bench.out.len(), bench.commit.is_some()), (1, false));
    run_to_the_end(&mut bench, 2);
}

/// A cancel does not wait for the end of a turn outside the shard.
#[test]
fn inputs_during_a_long_turn_are_applied_after_it() {
    let (mut bench, split) = (shared(), plan(SPLIT));
    bench.submit(2, "greedy", &split);
    let cancel = Input::Cancel { reason: "enough".into(), by: "me".into() };
    bench.handle(Event::Take(key(2), PendingInput { input: cancel, message: None, ticket: None, audit: None }));
    assert_eq!(bench.out.len(), 1);
    run_to_the_end(&mut bench, 2);
    assert!(matches!(bench.state(2).end.ending, Some(Ending::Cancelled { .. })));
}

#[test]
fn split_turns_of_organizations_take_turns() {
    let (mut bench, split) = (shared(), plan(SPLIT));
    (2..22).for_each(|number| bench.submit(number, "greedy", &split));
    bench.submit(22, "modest", &split);
    // In their order of arrival.
    while !bench.out.is_empty() {
        bench.decide_next();
        bench.release_all();
    }
    assert!(bench.shard.has_split());
    bench.handle(Event::Wake);
    bench.handle(Event::Wake);
    let continued: BTreeSet<ExecutionKey> = bench.out.iter().map(|(execution, ..)| *execution).collect();
    assert_eq!(continued.len(), 2);
    assert!(continued.contains(&key(22)), "it waits for all split turns of the greedy one");
}

/// Many turns of the organization may wait for a thread. An execution whose deadline has passed does not wait behind
/// them.
#[test]
fn ends_are_always_decided_in_the_driver() {
    for is_cancel in [false, true] {
        let (mut bench, split) = (shared(), plan(&SPLIT.replace("{\"maxSteps\"", "{\"timeoutMs\":5000,\"maxSteps\"")));
        bench.submit(2, "greedy", &split);
        bench.decide_next();
        bench.release_all();
        bench.handle(Event::Wake);
        assert_eq!(bench.out.len(), 1, "it is decided beside the driver, and does not come back");
        if is_cancel {
            let input = Input::Cancel { reason: "enough".into(), by: "me".into() };
            bench.handle(Event::Take(key(2), PendingInput { input, message: None, ticket: None, audit: None }));
        } else {
            bench.now += 6_000;
            bench.handle(Event::Due(Vec::new()));
        }
        bench.load_all();
        bench.release_all();
        assert_eq!((bench.out.len(), bench.loads.len()), (1, 0), "it is read back once");
        assert!(bench.state(2).end.ending.is_some(), "cancel: {is_cancel}");
        // The abandoned turn still waits for a thread. It is not decided then.
        let (_, _, suspended) = bench.out.pop_front().unwrap();
        let Begun::Finished(finished) = suspended.begin() else { panic!("it waits for a function") };
        assert!(finished.1.is_err(), "cancel: {is_cancel}");
    }
}

/// Threads of low priority decide long turns: an ordinary execution does not wait for one.
#[test]
fn a_short_turn_behind_the_first_is_decided_in_the_driver() {
    const SHORT: &str = r#"{"steps":[
        {"type":"code","id":"f","code":"export default () => ({n: 7})"},{"type":"return","id":"r"}]}"#;
    for (text, is_short) in [(SHORT, true), (LONG, false)] {
        let mut bench = shared();
        bench.submit(2, "modest", &plan(text));
        if !is_short {
            bench.decide_next();
        }
        bench.release_all();
        bench.handle(Event::Wake);
        let rest = &bench.out.front().expect("the function is out").2.rest;
        assert_eq!(matches!(rest, Rest::Paused(_)), is_short, "{rest:?}");
    }
}

#[test]
fn the_organization_with_fewer_parts_is_released_first() {
    for (many, few) in [("greedy", "modest"), ("modest", "greedy")] {
        let (mut bench, sleep) = (shared(), plan(SLEEP));
        // The next commit begins with the other organization.
        bench.submit(2, few, &sleep);
        (3..7).for_each(|number| bench.submit(number, many, &sleep));
        bench.submit(13, few, &sleep);
        bench.release();
        let (commit_id, batch) = bench.commit.take().unwrap();
        assert_eq!(batch.parts.len(), 5);
        let answer = bench.store.commit(&batch);
        bench.shard.handle(bench.now, Event::Committed { commit_id, answer });
        assert!(bench.shard.has_outputs());
        let mut notified = Vec::new();
        while let Some(output) = bench.shard.next_output() {
            if let Output::Notify(frame) = output {
                notified.push(frame.execution);
            }
        }
        assert_eq!((notified.first(), notified.len()), (Some(&key(13)), 5));
        assert!(!bench.shard.has_outputs());
    }
}
