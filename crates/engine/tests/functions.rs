//! Turns with functions: an execution is stored before its first function, and can be canceled or time out while
//! functions run.

use std::{collections::VecDeque, sync::Arc};

use mainspring_engine::{
    clock::ClockReading,
    clock::MonotonicMs,
    evaluator::{InProcess, Suspended},
    journal_loader::Loader,
    lease::{LeaseTiming, Leases},
    membership::{Heartbeat, NodeSession},
    shard::{AttemptRecovery, Event, Keys, NewExecution, Output, PendingInput, Shard, Ticket},
    start_request::{StartRequest, row},
};
use mainspring_kernel::{
    decide::DECIDE_VERSION,
    definition::{Syntax, compile, read},
    effect::Outcome,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    state::{ExecutionStatus, State},
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, Node, Store, memory::MemoryStore};

const NOW: u64 = 1_767_225_600_000;
const LEASE: LeaseTiming = LeaseTiming { lease_ms: 10_000 };

const FUNCTIONS: &str = r#"{"constraints": {"timeoutMs": 60000}, "steps": [
    {"id": "f", "type": "code", "code": "export default () => 1"},
    {"id": "g", "type": "code", "code": "export default () => 2"}]}"#;

const CHECKED: &str = r#"{"steps": [{"type": "parallel", "id": "p", "steps": [
    {"id": "a", "type": "bash", "command": "true", "outputSchema": {"type": "object"}},
    {"id": "b", "type": "bash", "command": "true"}]}]}"#;

fn key() -> ExecutionKey {
    ExecutionKey::new(NOW, [1; 10])
}

/// A shard with its outputs, and a store.
struct Driver {
    store: MemoryStore,
    shard: Shard,
    now: u64,
    commits: VecDeque<(u64, Arc<Batch>)>,
    evaluations: VecDeque<(u64, Box<Suspended>)>,
    loads: Vec<(ExecutionKey, u64)>,
    seen: Vec<String>,
}

impl Driver {
    fn on(store: &MemoryStore) -> Self {
        let mut driver = Self {
            store: store.clone(),
            shard: Shard::new(Leases::none(), Keys { sealing: [1; 32], salting: [2; 32] }, usize::MAX),
            now: NOW,
            commits: VecDeque::new(),
            evaluations: VecDeque::new(),
            loads: Vec::new(),
            seen: Vec::new(),
        };
        driver.hold();
        driver
    }

    /// Acquires all partitions of the store.
    fn hold(&mut self) {
        let shared: Arc<dyn Store> = Arc::new(self.store.clone());
        let node = Node {
            name: "a".into(),
            address: "".into(),
            release: "0".into(),
            decide_version: DECIDE_VERSION,
            accepts_partitions: true,
        };
        self.store.set_now(NOW);
        let reading = || ClockReading { monotonic: MonotonicMs(0), wall_ms: NOW };
        let Heartbeat::Renewed(renewal) =
            NodeSession::new(shared, LEASE, node).heartbeat(&Default::default(), false, reading)
        else {
            panic!("not called")
        };
        self.handle(Event::LeaseRenewed(renewal));
    }

    fn handle(&mut self, event: Event) {
        self.shard.handle(self.now, event);
        self.shard.flush();
        while let Some(output) = self.shard.next_output() {
            match output {
                Output::Commit { commit_id, batch } => self.commits.push_back((commit_id, batch)),
                Output::Load(execution, number) => self.loads.push((execution, number)),
                Output::Evaluate { evaluation, suspended, .. } => self.evaluations.push_back((evaluation, suspended)),
                Output::Perform { attempt, .. } => self.seen.push(format!("perform {}", attempt.step)),
                Output::Stop { instance, .. } => self.seen.push(format!("stop {}", instance.step)),
                Output::Kill { instance, .. } => self.seen.push(format!("kill {}", instance.step)),
                Output::Reconcile { attempt, .. } => self.seen.push(format!("adopt {}", attempt.step)),
                Output::Reply(_, reply) => self.seen.push(format!("reply {}", reply.is_ok())),
                Output::Quarantine(_, why) => panic!("quarantined: {why}"),
                _ => {}
            }
        }
    }

    fn submit(&mut self, text: &str) {
        let plan: Arc<Plan> = Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan);
        let request = StartRequest::new(plan.clone(), "me");
        let stored_plans = request.stored_plans();
        let start = Box::new(request.start(key()));
        let row = row(key(), &start, &plan, self.now);
        let (message, audit) = (None, None);
        let ticket = Some(Ticket(1));
        let submission = NewExecution { execution: key(), plan, stored_plans, start, row, message, ticket, audit };
        self.handle(Event::Start(Box::new(submission)));
    }

    fn cancel(&mut self) {
        let input = Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() };
        let queued = PendingInput { input, message: None, ticket: Some(Ticket(2)), audit: None };
        self.handle(Event::Take(key(), queued));
    }

    /// Writes the commit in flight.
    fn write(&mut self) {
        let (commit_id, batch) = self.commits.pop_front().expect("a commit is on its way");
        let answer = self.store.commit(&batch);
        drop(batch);
        self.handle(Event::Committed { commit_id, answer });
    }

    fn load(&mut self) {
        let loader = Loader::new(Arc::new(self.store.clone()), [1; 32]).among_nodes();
        for (execution, number) in std::mem::take(&mut self.loads) {
            let answer = Box::new(loader.load(execution));
            self.handle(Event::Loaded(execution, number, answer));
        }
    }

    fn evaluate(&mut self, is_over: bool) {
        let (evaluation, suspended) = self.evaluations.pop_front().expect("something is to be evaluated");
        let finished = Box::new(suspended.finish(&InProcess, &mut || is_over));
        self.handle(Event::Evaluated { execution: key(), evaluation, finished });
    }

    /// Runs until there is no work at this time.
    fn run(&mut self) {
        for _ in 0..100 {
            if !self.commits.is_empty() {
                self.write();
            } else if !self.loads.is_empty() {
                self.load();
            } else if !self.evaluations.is_empty() {
                self.evaluate(false);
            } else if self.shard.next_wake().is_some_and(|at| at <= self.now) {
                self.handle(Event::Wake);
            } else {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// The same, up to the next evaluation.
    fn run_to_evaluation(&mut self) {
        while self.evaluations.is_empty() {
            match () {
                () if !self.commits.is_empty() => self.write(),
                () if !self.loads.is_empty() => self.load(),
                () => self.handle(Event::Wake),
            }
        }
    }

    fn stored(&self) -> Option<State> {
        let loader = Loader::new(Arc::new(self.store.clone()), [1; 32]);
        loader.journal(key()).unwrap().map(|read| read.journal.state)
    }
}

#[test]
fn a_start_is_durable_and_answered_before_its_first_function() {
    let mut driver = Driver::on(&MemoryStore::new());
    driver.submit(FUNCTIONS);
    assert!(driver.evaluations.is_empty(), "nothing is evaluated before the start is durable");
    driver.run_to_evaluation();
    assert_eq!(driver.seen, ["reply true"]);
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Running));
    driver.run();
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Completed));
}

#[test]
fn a_turn_ends_when_its_time_is_over() {
    let mut driver = Driver::on(&MemoryStore::new());
    driver.submit(FUNCTIONS);
    driver.run_to_evaluation();
    driver.evaluate(true);
    assert!(driver.evaluations.is_empty(), "the second function belongs to another turn");
    driver.run_to_evaluation();
    let steps = driver.stored().map(|state| state.steps.len());
    assert_eq!(steps, Some(1), "what the first has given is stored while the second runs");
    driver.run();
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Completed));
}

#[test]
fn a_cancel_does_not_wait_for_functions() {
    let mut driver = Driver::on(&MemoryStore::new());
    driver.submit(FUNCTIONS);
    driver.run_to_evaluation();
    let (evaluation, suspended) = driver.evaluations.pop_front().expect("a function runs");
    driver.cancel();
    driver.run();
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Cancelled));
    assert_eq!(driver.seen, ["reply true", "reply true"]);
    let finished = Box::new(suspended.finish(&InProcess, &mut || false));
    assert!(finished.1.is_err(), "what is abandoned is not evaluated");
    driver.handle(Event::Evaluated { execution: key(), evaluation, finished });
    assert!(driver.commits.is_empty(), "it is not awaited");
}

/// Frames that are decided and not written are not lost by the cancel.
#[test]
fn a_cancel_waits_for_frames_in_flight() {
    let mut driver = Driver::on(&MemoryStore::new());
    driver.submit(CHECKED);
    driver.run();
    let receipt = |step| {
        let instance = Instance { step, rounds: Vec::new() };
        PendingInput::without_reply(Input::Receipt {
            instance,
            attempt: 1,
            outcome: Outcome::Done(Value::map([("n", 1u64.into())])),
        })
    };
    driver.handle(Event::Take(key(), receipt(2)));
    driver.handle(Event::Take(key(), receipt(1)));
    assert_eq!((driver.commits.len(), driver.evaluations.len()), (1, 1));
    driver.cancel();
    assert!(driver.loads.is_empty(), "the receipt of the one step is not durable");
    driver.write();
    assert_eq!(driver.loads.len(), 1);
    driver.evaluations.clear();
    driver.run();
    let state = driver.stored().expect("it has begun");
    assert_eq!(state.status(), ExecutionStatus::Cancelled);
    let of = |step| state.steps[&Instance { step, rounds: Vec::new() }].status.name();
    assert_eq!((of(1), of(2)), ("cancelled", "completed"));
}

#[test]
fn the_time_of_an_execution_does_not_wait_for_functions() {
    let mut driver = Driver::on(&MemoryStore::new());
    driver.submit(FUNCTIONS);
    driver.run_to_evaluation();
    driver.evaluations.clear();
    assert_eq!(driver.shard.next_wake(), Some(NOW + 60_000));
    driver.now = NOW + 60_000;
    driver.handle(Event::Wake);
    driver.run();
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Failed));
}

/// The node crashes between two frames of a split turn. The next owner reads the journal and continues.
#[test]
fn a_split_turn_continues_after_a_load() {
    let store = MemoryStore::new();
    let mut driver = Driver::on(&store);
    driver.submit(FUNCTIONS);
    driver.write();
    assert!(driver.stored().expect("it has begun").journal.is_split);
    let mut next = Driver::on(&store);
    next.now = NOW + 20_000;
    next.hold();
    next.handle(Event::Due(vec![mainspring_store::Due { execution: key(), wake_at: 0 }]));
    next.run();
    assert_eq!(next.stored().map(|state| state.status()), Some(ExecutionStatus::Completed));
}

/// An attempt is in the journal and was never started. It is canceled before that is known.
#[test]
fn an_attempt_canceled_before_its_start_never_starts() {
    let store = MemoryStore::new();
    let mut driver = Driver::on(&store);
    driver.submit(r#"{"steps": [{"id": "a", "type": "bash", "command": "true"}]}"#);
    let (_, batch) = driver.commits.pop_front().expect("a commit is on its way");
    store.commit(&batch).expect("it is written");
    let mut next = Driver::on(&store);
    next.handle(Event::Due(vec![mainspring_store::Due { execution: key(), wake_at: 0 }]));
    next.run();
    assert_eq!(next.seen, ["adopt a"]);
    next.cancel();
    next.run();
    let instance = Instance { step: 0, rounds: Vec::new() };
    next.handle(Event::AttemptRecovered {
        execution: key(),
        instance,
        attempt: 1,
        recovery: AttemptRecovery::NeverStarted,
    });
    next.run();
    assert!(!next.seen.iter().any(|seen| seen.starts_with("perform")), "{:?}", next.seen);
    assert_eq!(next.stored().map(|state| state.status()), Some(ExecutionStatus::Cancelled));
}

/// A split turn waits in its queue, and an input before it requires an evaluation.
#[test]
fn a_split_turn_that_waits_for_a_function_continues() {
    let mut driver = Driver::on(&MemoryStore::new());
    driver.submit(
        r#"{"steps": [{"id": "f", "type": "code", "code": "export default () => 1"},
            {"id": "g", "type": "code", "code": "export default () => 2"},
            {"id": "h", "type": "code", "code": "export default () => 3"}]}"#,
    );
    driver.run_to_evaluation();
    driver.evaluate(true);
    driver.write();
    assert!(driver.shard.has_split());
    let input = Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null };
    driver.handle(Event::Take(key(), PendingInput::without_reply(input)));
    assert_eq!(driver.evaluations.len(), 1, "the second function");
    driver.handle(Event::Wake);
    driver.evaluate(true);
    driver.run();
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Completed));
}

/// Three attempts of an earlier process that were interrupted, each followed by a function.
const INTERRUPTED: &str = r#"{"nodes": [
    {"id": "a", "type": "bash", "command": "true", "onInterrupted": "fail", "continueOnError": true},
    {"id": "b", "type": "bash", "command": "true", "onInterrupted": "fail", "continueOnError": true},
    {"id": "c", "type": "bash", "command": "true", "onInterrupted": "fail", "continueOnError": true},
    {"id": "f", "type": "code", "code": "export default () => 1"},
    {"id": "g", "type": "code", "code": "export default () => 2"},
    {"id": "h", "type": "code", "code": "export default () => 3"}],
    "edges": [{"from": "a", "to": "f", "when": "always"}, {"from": "b", "to": "g", "when": "always"},
        {"from": "c", "to": "h", "when": "always"}]}"#;

/// Loads an execution whose first commit was written and whose attempts never reported.
fn after_a_crash(definition: &str) -> Driver {
    let store = MemoryStore::new();
    let mut driver = Driver::on(&store);
    driver.submit(definition);
    driver.write();
    let mut next = Driver::on(&store);
    next.handle(Event::Due(vec![mainspring_store::Due { execution: key(), wake_at: 0 }]));
    next.run();
    next
}

fn recovered(step: u32, recovery: AttemptRecovery) -> Event {
    Event::AttemptRecovered { execution: key(), instance: Instance { step, rounds: Vec::new() }, attempt: 1, recovery }
}

#[test]
fn attempts_recovered_during_an_evaluation_are_all_settled() {
    let mut driver = after_a_crash(INTERRUPTED);
    assert_eq!(driver.seen, ["adopt a", "adopt b", "adopt c"]);
    (0..3).for_each(|step| driver.handle(recovered(step, AttemptRecovery::Interrupted)));
    driver.run();
    let state = driver.stored().expect("it is stored");
    assert_eq!((state.status(), state.end.with_failures), (ExecutionStatus::Completed, true));
}

#[test]
fn an_attempt_recovered_during_an_evaluation_ends_with_its_lease() {
    let mut driver = after_a_crash(INTERRUPTED);
    driver.handle(recovered(0, AttemptRecovery::Interrupted));
    driver.handle(recovered(1, AttemptRecovery::StillRunning));
    assert_eq!(driver.evaluations.len(), 1, "the function after a");
    driver.handle(Event::LeaseExpired);
    assert!(driver.seen.contains(&"kill 1".into()), "{:?}", driver.seen);
}

#[test]
fn a_receipt_before_the_recovery_of_its_attempt_counts() {
    let mut driver = after_a_crash(
        r#"{"nodes": [{"id": "a", "type": "bash", "command": "true"}, {"id": "s", "type": "signal", "signal": "go"},
            {"id": "f", "type": "code", "code": "export default () => 1"}], "edges": [{"from": "s", "to": "f"}]}"#,
    );
    let signal = Input::Signal { id: "i".into(), name: "go".into(), payload: Value::Null };
    driver.handle(Event::Take(key(), PendingInput::without_reply(signal)));
    assert_eq!(driver.evaluations.len(), 1, "the function after the signal");
    let instance = Instance { step: 0, rounds: Vec::new() };
    let receipt = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done(Value::Null) };
    driver.handle(Event::Take(key(), PendingInput::without_reply(receipt)));
    driver.handle(recovered(0, AttemptRecovery::Interrupted));
    driver.run();
    assert!(!driver.seen.iter().any(|seen| seen.starts_with("perform")), "{:?}", driver.seen);
    assert_eq!(driver.stored().map(|state| state.status()), Some(ExecutionStatus::Completed));
}
