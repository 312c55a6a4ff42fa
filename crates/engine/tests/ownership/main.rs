//! A shard of a cluster: the partitions that it acquires, releases and loses, and the work in them.

mod clocks;

use std::{collections::VecDeque, sync::Arc};

use mainspring_engine::{
    clock::ClockReading,
    clock::MonotonicMs,
    evaluator::InProcess,
    journal_loader::Loader,
    lease::{LeaseTiming, Leases},
    membership::{Heartbeat, LeaseRenewal, NodeSession},
    shard::{
        AttemptRecovery, Event, Handoff, Keys, LoadAnswer, NewExecution, Output, PendingInput, Reply, Shard,
        ShardError, Taken, Ticket,
    },
    start_request::{StartRequest, row},
};
use mainspring_kernel::{
    decide::QUEUES_SINCE,
    definition::{Syntax, compile, read},
    effect::Outcome,
    frame::Frame,
    input::{Input, Queue, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::Status,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, CommitError, Due, Node, PartOutcome, Refusal, Store, memory::MemoryStore};

const NOW: u64 = 1_767_225_600_000;
const TERMS: LeaseTiming = LeaseTiming { lease_ms: 10_000 };
const KEY: ExecutionKey = ExecutionKey(*b"0123456\x07\x80abcdefg");

fn plan() -> Arc<Plan> {
    let text = r#"{"steps":[{"type":"bash","id":"a","command":"true"},{"type":"bash","id":"b","command":"true"}]}"#;
    plan_of(text)
}

fn plan_of(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

/// A node whose outputs are kept until the test reads them.
struct Bench {
    store: MemoryStore,
    member: NodeSession,
    shard: Shard,
    loader: Loader,
    monotonic: MonotonicMs,
    wall_ms: u64,
    commits: VecDeque<(u64, Arc<Batch>)>,
    outputs: Vec<String>,
    replies: Vec<(Ticket, Reply)>,
    passed_on: Vec<Input>,
    handoff: Handoff,
    /// The number of the last load.
    asked_for: u64,
}

impl Bench {
    fn new(store: &MemoryStore, name: &str) -> Self {
        Self::of_version(store, name, 2)
    }

    fn of_version(store: &MemoryStore, name: &str, decide_version: u32) -> Self {
        let (place, release) = (String::new(), String::new());
        let node = Node { name: name.into(), address: place, release, decide_version, accepts_partitions: true };
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let keys = Keys { sealing: [1; 32], salting: [2; 32] };
        Self {
            store: store.clone(),
            member: NodeSession::new(shared.clone(), TERMS, node),
            shard: Shard::new(Leases::none(), keys, usize::MAX),
            loader: Loader::new(shared, [1; 32]).among_nodes(),
            monotonic: MonotonicMs(0),
            wall_ms: NOW,
            commits: VecDeque::new(),
            outputs: Vec::new(),
            replies: Vec::new(),
            passed_on: Vec::new(),
            handoff: Handoff::default(),
            asked_for: 0,
        }
    }

    fn heartbeat(&mut self) {
        let renewal = self.renewal();
        self.on_renewed(renewal);
    }

    fn read_clocks(&self) -> ClockReading {
        ClockReading { monotonic: self.monotonic, wall_ms: self.wall_ms }
    }

    fn renewal(&mut self) -> Box<LeaseRenewal> {
        let reading = self.read_clocks();
        let answer = self.member.heartbeat(&std::mem::take(&mut self.handoff), false, || reading);
        let Heartbeat::Renewed(renewal) = answer else { panic!("{answer:?}") };
        renewal
    }

    fn on_renewed(&mut self, renewal: Box<LeaseRenewal>) {
        self.handle(Event::LeaseRenewed(renewal));
    }

    fn handle(&mut self, event: Event) {
        self.shard.expire(self.read_clocks());
        self.shard.handle(self.shard.now(self.read_clocks()), event);
        self.run_outputs();
    }

    fn run_outputs(&mut self) {
        self.shard.expire(self.read_clocks());
        self.shard.flush();
        while let Some(output) = self.shard.next_output() {
            let text = match output {
                Output::Commit { commit_id, batch } => {
                    self.commits.push_back((commit_id, batch));
                    "commit".into()
                }
                Output::Reply(ticket, reply) => {
                    self.replies.push((ticket, reply));
                    "reply".into()
                }
                Output::PassOn(_, input, remote) => {
                    self.passed_on.push(input);
                    let of_others = if remote.is_some() { " for others" } else { "" };
                    remote.into_iter().for_each(|remote| self.store.end_remote(self.name(), &[remote]).unwrap());
                    format!("pass on{of_others}")
                }
                Output::StopRemote(remote) => {
                    self.store.stop_remote(&remote).unwrap();
                    format!("stop {} elsewhere", remote.number)
                }
                Output::Load(_, number) => {
                    self.asked_for = number;
                    "load".into()
                }
                Output::Perform { attempt, .. } => format!("perform {} {}", attempt.step, attempt.number),
                Output::Stop { attempt, .. } => format!("stop {attempt}"),
                Output::Kill { attempt, .. } => format!("kill {attempt}"),
                Output::Reconcile { attempt, .. } => format!("adopt {} {}", attempt.step, attempt.number),
                Output::Acquired(partitions) => format!("acquired {partitions:?}"),
                Output::Handoff(handoff) => {
                    let text = format!("released {}, running {}", handoff.fences.len(), handoff.running.len());
                    self.handoff.extend(handoff);
                    text
                }
                Output::Lost(partitions) => format!("lost {partitions:?}"),
                Output::Notify(frame) => format!("notify {}", frame.sequence),
                Output::Forget { .. } => continue,
                other => panic!("unexpected: {other:?}"),
            };
            self.outputs.push(text);
        }
    }

    fn name(&self) -> &str {
        self.member.name()
    }

    fn submit(&mut self) {
        self.submit_plan(plan());
    }

    fn submit_plan(&mut self, plan: Arc<Plan>) {
        self.submit_in(None, plan);
    }

    fn submit_in(&mut self, queue: Option<Queue>, plan: Arc<Plan>) {
        let request = StartRequest::new(plan.clone(), "me");
        let stored_plans = request.stored_plans();
        let start = Box::new(Start { queue, ..request.start(KEY) });
        let row = row(KEY, &start, &plan, NOW);
        let submission = NewExecution {
            execution: KEY,
            plan,
            stored_plans,
            start,
            row,
            message: None,
            ticket: Some(Ticket(1)),
            audit: None,
        };
        self.handle(Event::Start(Box::new(submission)));
    }

    fn receipt(&mut self, step: u32) {
        let instance = Instance { step, rounds: Vec::new() };
        let input = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done(Value::Null) };
        self.handle(Event::Take(KEY, PendingInput::without_reply(input)));
    }

    fn write(&mut self) -> Vec<PartOutcome> {
        let (commit_id, batch) = self.commits.pop_front().expect("a commit");
        let answer = self.store.commit(&batch);
        let answers = answer.clone().unwrap();
        self.handle(Event::Committed { commit_id, answer });
        answers
    }

    fn cancel(&mut self) {
        let input = Input::Cancel { by: "me".into(), reason: "why".into() };
        self.handle(Event::Take(KEY, PendingInput::without_reply(input)));
        self.write();
    }

    /// Acquires free partitions and reads their due executions.
    fn take_over(&mut self) {
        self.heartbeat();
        self.handle(Event::Due(self.store.due(&[0], NOW, None, 9).unwrap()));
        self.load();
    }

    fn load(&mut self) {
        let answer = Box::new(self.loader.load(KEY));
        self.handle(Event::Loaded(KEY, self.asked_for, answer));
    }

    fn take_outputs(&mut self) -> String {
        std::mem::take(&mut self.outputs).join(", ")
    }
}

fn store() -> MemoryStore {
    let store = MemoryStore::new();
    store.set_now(NOW);
    store
}

/// Beside a node without support for queues, no frame mentions a queue: that node could not read the start of an
/// execution that it may acquire.
#[test]
fn starts_are_not_queued_beside_older_nodes() {
    for (version, is_there) in [(QUEUES_SINCE - 1, false), (QUEUES_SINCE, true)] {
        let store = store();
        let (place, release) = (String::new(), String::new());
        store
            .heartbeat(
                &Node { name: "z".into(), address: place, release, decide_version: version, accepts_partitions: true },
                1_000_000,
            )
            .unwrap();
        let mut bench = Bench::of_version(&store, "a", QUEUES_SINCE);
        bench.heartbeat();
        bench.submit_in(Some(Queue::User), plan());
        let (_, batch) = bench.commits.pop_front().unwrap();
        let (frame, _) = Frame::read(&batch.parts[0].frames[0]).unwrap();
        let Input::Start(start) = &frame.input else { panic!("it begins") };
        assert_eq!(start.queue.is_some(), is_there);
        assert_eq!(frame.records.contains(&Record::Queued { queue: Queue::User }), is_there);
    }
}

#[test]
fn inputs_for_unowned_executions_are_refused() {
    let mut bench = Bench::new(&store(), "a");
    bench.submit();
    assert_eq!(bench.replies, [(Ticket(1), Err(ShardError::NotHere))]);
    bench.receipt(0);
    assert_eq!(bench.passed_on.len(), 1, "only this node has the receipt");
    let message = PendingInput { input: Input::Continue, message: Some("a message".into()), ticket: None, audit: None };
    bench.handle(Event::Take(KEY, message));
    assert_eq!(bench.take_outputs(), "reply, pass on", "a message is still in the inbox");
}

#[test]
fn owned_executions_run_until_the_lease_expires() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    bench.heartbeat();
    bench.submit();
    assert_eq!(bench.take_outputs(), "acquired [0], commit");
    // The answer arrives just before the lease expires, and the process is paused before it handles the answer.
    bench.monotonic = MonotonicMs(9_000);
    assert_eq!(bench.write(), [PartOutcome::Durable]);
    assert_eq!(
        bench.take_outputs(),
        "lost [0], notify 0, reply",
        "the frame is published since it is durable, and nothing starts"
    );
    assert_eq!(bench.replies, [(Ticket(1), Ok(Taken { changed: true }))]);
    // The next heartbeat acquires the partition again, and everything is read back.
    bench.heartbeat();
    assert_eq!(bench.take_outputs(), "acquired [0]");
    bench.handle(Event::Due(store.due(&[0], NOW, None, 9).unwrap()));
    bench.load();
    assert_eq!(bench.take_outputs(), "load, adopt a 1");
}

#[test]
fn pending_outputs_are_dropped_after_the_lease() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    let (commit_id, batch) = bench.commits.pop_front().unwrap();
    let answer = bench.store.commit(&batch);
    bench.shard.handle(NOW, Event::Committed { commit_id, answer });
    bench.take_outputs();
    bench.monotonic = MonotonicMs(9_000);
    bench.run_outputs();
    assert_eq!(
        bench.take_outputs(),
        "lost [0], notify 0, reply",
        "the frame is published since it is durable, and nothing starts"
    );
}

#[test]
fn commits_of_another_owner_are_not_adopted() {
    let store = store();
    let (mut first, mut second) = (Bench::new(&store, "a"), Bench::new(&store, "b"));
    first.heartbeat();
    first.submit();
    first.write();
    assert_eq!(first.take_outputs(), "acquired [0], commit, perform a 1, notify 0, reply");
    // The first node is paused until the second one acquires the partition. Its own clock stopped as well.
    store.set_now(NOW + 10_000);
    second.wall_ms = NOW + 10_000;
    second.heartbeat();
    second.handle(Event::Due(store.due(&[0], NOW, None, 9).unwrap()));
    second.load();
    assert_eq!(second.take_outputs(), "acquired [0], load, adopt a 1");
    first.receipt(0);
    assert_eq!(first.write(), [PartOutcome::Refused(mainspring_store::Refusal::Fence)]);
    assert_eq!(first.take_outputs(), "commit, pass on, lost [0]");
    let Input::Receipt { outcome, .. } = &first.passed_on[0] else { panic!("a receipt") };
    assert_eq!(*outcome, Outcome::Done(Value::Null));
    // The receipt from the first node counts if the second one has not marked the attempt as interrupted.
    let input = first.passed_on.remove(0);
    second.handle(Event::Take(KEY, PendingInput { input, message: Some("message".into()), ticket: None, audit: None }));
    assert_eq!(second.write(), [PartOutcome::Durable]);
    assert_eq!(second.take_outputs(), "commit, perform b 1, notify 1");
}

#[test]
fn attempts_are_killed_when_their_partition_is_lost() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    bench.write();
    bench.take_outputs();
    bench.handle(Event::LeaseExpired);
    assert_eq!(bench.take_outputs(), "kill 1, lost [0]");
    bench.receipt(0);
    assert_eq!(bench.take_outputs(), "pass on");
}

#[test]
fn a_commit_across_a_lost_partition_starts_no_attempt() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    bench.handle(Event::LeaseExpired);
    bench.heartbeat();
    bench.handle(Event::Due(vec![mainspring_store::Due { execution: KEY, wake_at: 0 }]));
    assert_eq!(bench.take_outputs(), "acquired [0], commit, lost [0], acquired [0], load");
    assert_eq!(bench.write(), [PartOutcome::Durable]);
    assert_eq!(bench.take_outputs(), "load, notify 0, reply", "a node that loads the journal starts open attempts");
    bench.load();
    assert_eq!(bench.take_outputs(), "adopt a 1");
}

#[test]
fn the_second_recovery_of_an_attempt_is_ignored() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    bench.write();
    for _ in 0..2 {
        bench.handle(Event::LeaseExpired);
        bench.take_over();
    }
    bench.take_outputs();
    let never_started = || {
        let instance = Instance { step: 0, rounds: Vec::new() };
        Event::AttemptRecovered { execution: KEY, instance, attempt: 1, recovery: AttemptRecovery::NeverStarted }
    };
    bench.handle(never_started());
    assert_eq!(bench.take_outputs(), "perform a 1");
    bench.handle(never_started());
    assert_eq!(bench.take_outputs(), "", "it is not performed twice at a time");
}

#[test]
fn a_recovery_during_a_detached_turn_counts_after_it() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit_plan(plan_of(
        r#"{"steps":[{"type":"parallel","id":"p","steps":[
            {"type":"bash","id":"a","command":"true","outputSchema":{"type":"object"}},
            {"type":"bash","id":"b","command":"true"}]}]}"#,
    ));
    bench.write();
    bench.handle(Event::LeaseExpired);
    bench.take_over();
    assert!(bench.take_outputs().ends_with("load, adopt a 1, adopt b 1"));
    let instance = |step| Instance { step, rounds: Vec::new() };
    let input = Input::Receipt { instance: instance(1), attempt: 1, outcome: Outcome::Done(Value::Null) };
    bench.shard.handle(NOW, Event::Take(KEY, PendingInput::without_reply(input)));
    let Some(Output::Evaluate { evaluation, suspended, .. }) = bench.shard.next_output() else { panic!("no check") };
    let (attempt, recovery) = (1, AttemptRecovery::NeverStarted);
    bench.handle(Event::AttemptRecovered { execution: KEY, instance: instance(2), attempt, recovery });
    assert_eq!(bench.take_outputs(), "", "its state is out");
    let finished = Box::new(suspended.finish(&InProcess, &mut || false));
    bench.handle(Event::Evaluated { execution: KEY, evaluation, finished });
    assert_eq!(bench.take_outputs(), "perform b 1, commit");
}

#[test]
fn a_second_load_of_a_journal_changes_nothing() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    bench.write();
    for _ in 0..2 {
        bench.handle(Event::LeaseExpired);
        bench.heartbeat();
        bench.handle(Event::Due(vec![mainspring_store::Due { execution: KEY, wake_at: 0 }]));
    }
    bench.load();
    bench.receipt(0);
    bench.take_outputs();
    bench.load();
    assert_eq!(bench.write(), [PartOutcome::Durable]);
    bench.receipt(1);
    assert_eq!(bench.take_outputs(), "perform b 1, notify 1, commit", "decisions in between are still there");
}

/// The execution is loaded because of the commit, and is in memory when it would be loaded for the receipt.
#[test]
fn a_receipt_survives_a_failed_load_during_an_old_commit() {
    for second_answers in [true, false] {
        let mut bench = Bench::new(&store(), "a");
        bench.heartbeat();
        bench.submit();
        bench.write();
        let signal = || Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null };
        bench.handle(Event::Take(KEY, PendingInput::without_reply(signal())));
        let (commit_id, _) = bench.commits.pop_front().unwrap();
        bench.handle(Event::LeaseExpired);
        bench.heartbeat();
        bench.receipt(0);
        let unavailable = || Box::new(LoadAnswer::Unavailable("the disk is busy".into()));
        bench.handle(Event::Loaded(KEY, bench.asked_for, unavailable()));
        bench.handle(Event::Committed { commit_id, answer: Err(CommitError::Unknown("?".into())) });
        if !second_answers {
            bench.handle(Event::Take(KEY, PendingInput::without_reply(signal())));
            bench.handle(Event::Loaded(KEY, bench.asked_for, unavailable()));
            bench.shard.handle(NOW + 2_000, Event::Wake);
            bench.run_outputs();
        }
        bench.take_outputs();
        bench.load();
        bench.shard.handle(NOW + 4_000, Event::Wake);
        bench.write();
        let state = bench.loader.journal(KEY).unwrap().unwrap().journal.state;
        assert_eq!(state.steps[&Instance::of_step(0)].status, Status::Completed, "{second_answers}");
    }
}

#[test]
fn a_caller_of_a_commit_in_doubt_is_not_redirected() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    let (commit_id, batch) = bench.commits.pop_front().unwrap();
    bench.store.commit(&batch).unwrap();
    bench.handle(Event::LeaseExpired);
    bench.handle(Event::Committed { commit_id, answer: Err(CommitError::Unknown("?".into())) });
    let (_, reply) = bench.replies.pop().unwrap();
    assert!(matches!(&reply, Err(ShardError::Store(why)) if why.contains("unknown")), "{reply:?}");
}

#[test]
fn a_reacquired_partition_has_its_new_epoch() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    bench.heartbeat();
    store.claim(0, "other").unwrap();
    store.acquire("a", &[0]).unwrap();
    bench.heartbeat();
    assert_eq!(bench.take_outputs(), "acquired [0], lost [0], acquired [0]");
    assert_eq!(bench.shard.held().collect::<Vec<_>>(), [0]);
    bench.submit();
    assert_eq!(bench.write(), [PartOutcome::Durable]);
}

#[test]
fn idle_partitions_are_released_first() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    store.repartition(2).unwrap();
    bench.heartbeat();
    assert_eq!(bench.shard.held().collect::<Vec<_>>(), [0, 1]);
    bench.submit();
    bench.write();
    bench.take_outputs();
    let busy = mainspring_store::partition_of(KEY, 2);
    assert!(!bench.shard.idle().contains(&busy));
    Bench::new(&store, "b").heartbeat();
    bench.heartbeat();
    assert_eq!(bench.take_outputs(), "released 1, running 0");
    assert_eq!(bench.shard.held().collect::<Vec<_>>(), [busy]);
    Bench::new(&store, "b").heartbeat();
    bench.heartbeat();
    assert_eq!(bench.take_outputs(), "");
}

#[test]
fn a_changed_partition_count_releases_everything() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    bench.heartbeat();
    bench.submit();
    store.repartition(4).unwrap();
    bench.take_outputs();
    assert_eq!(bench.write(), [PartOutcome::Refused(mainspring_store::Refusal::Fence)]);
    assert_eq!(bench.take_outputs(), "reply, lost [0]");
    assert_eq!(bench.replies, [(Ticket(1), Err(ShardError::NotHere))]);
    bench.heartbeat();
    assert_eq!(bench.take_outputs(), "", "others may believe for a while that they hold what they held");
    store.set_now(NOW + 10_000);
    let mut second = Bench::new(&store, "b");
    second.wall_ms = NOW + 10_000;
    second.heartbeat();
    assert_eq!(second.take_outputs(), "acquired [0, 1, 2, 3]");
}

/// A node that owns the only partition and runs a step, and a second node that owns the partition now.
fn handed_over() -> (Bench, Bench) {
    let store = store();
    let (mut second, mut first) = (Bench::new(&store, "a"), Bench::new(&store, "b"));
    first.heartbeat();
    first.submit();
    first.write();
    assert_eq!(first.take_outputs(), "acquired [0], commit, perform a 1, notify 0, reply");
    second.heartbeat();
    first.heartbeat();
    assert_eq!(first.take_outputs(), "released 1, running 1");
    assert_eq!(first.shard.held().count(), 0);
    first.heartbeat();
    second.take_over();
    assert_eq!(second.take_outputs(), "acquired [0], load", "it continues at the first one");
    (first, second)
}

#[test]
fn running_attempts_stay_when_their_partition_is_released() {
    let (mut first, mut second) = handed_over();
    first.receipt(0);
    assert_eq!(first.take_outputs(), "pass on for others");
    let input = first.passed_on.remove(0);
    second.handle(Event::Take(KEY, PendingInput { input, message: Some("message".into()), ticket: None, audit: None }));
    assert_eq!(second.write(), [PartOutcome::Durable]);
    assert_eq!(second.take_outputs(), "commit, perform b 1, notify 1");
    // Attempts that have ended are not recovered.
    second.store.leave("b").unwrap();
    second.heartbeat();
    assert_eq!(second.take_outputs(), "");
}

#[test]
fn the_owner_stops_attempts_on_other_nodes() {
    let (mut first, mut second) = handed_over();
    second.cancel();
    assert_eq!(second.take_outputs(), "commit, stop 1 elsewhere, notify 1");
    first.heartbeat();
    assert_eq!(first.take_outputs(), "stop 1");
    // Repeated with every heartbeat, in case the first request was lost.
    second.heartbeat();
    first.heartbeat();
    assert_eq!((second.take_outputs().as_str(), first.take_outputs().as_str()), ("stop 1 elsewhere", "stop 1"));
    // A new load of the execution finds the request as well.
    second.handle(Event::LeaseExpired);
    second.take_over();
    assert_eq!(second.take_outputs(), "lost [0], acquired [0], load, stop 1 elsewhere");
}

#[test]
fn attempts_of_a_dead_node_are_recovered() {
    let (_, mut second) = handed_over();
    second.heartbeat();
    assert_eq!(second.take_outputs(), "");
    second.store.leave("b").unwrap();
    second.heartbeat();
    assert_eq!(second.take_outputs(), "adopt a 1");
    second.heartbeat();
    assert_eq!(second.take_outputs(), "", "once");
}

#[test]
fn a_commit_in_flight_completes_before_the_handoff() {
    let store = store();
    let (mut second, mut first) = (Bench::new(&store, "a"), Bench::new(&store, "b"));
    first.heartbeat();
    first.submit();
    second.heartbeat();
    first.heartbeat();
    assert_eq!(first.take_outputs(), "acquired [0], commit");
    assert_eq!(first.write(), [PartOutcome::Durable]);
    assert_eq!(first.take_outputs(), "perform a 1, notify 0, reply, released 1, running 1");
}

#[test]
fn attempts_of_an_unreadable_execution_stay_when_it_is_released() {
    let store = store();
    let (mut second, mut first) = (Bench::new(&store, "a"), Bench::new(&store, "b"));
    first.heartbeat();
    first.submit();
    first.write();
    let input = Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null };
    first.handle(Event::Take(KEY, PendingInput { input, message: None, ticket: Some(Ticket(2)), audit: None }));
    let (commit_id, _) = first.commits.pop_front().unwrap();
    first.handle(Event::Committed { commit_id, answer: Err(CommitError::Unknown("?".into())) });
    first.handle(Event::Loaded(KEY, first.asked_for, Box::new(LoadAnswer::Unavailable("the server begins".into()))));
    first.take_outputs();
    second.heartbeat();
    first.heartbeat();
    assert_eq!(first.take_outputs(), "released 1, running 1");
    first.heartbeat();
    second.take_over();
    assert_eq!(second.take_outputs(), "acquired [0], load", "it is not recovered");
    first.receipt(0);
    assert_eq!(first.take_outputs(), "pass on for others");
}

/// A node whose commit has just become durable, and which then releases its only partition to a new node.
fn about_to_hand_over() -> (Bench, Bench) {
    let store = store();
    let (mut second, mut first) = (Bench::new(&store, "a"), Bench::new(&store, "b"));
    first.heartbeat();
    first.submit();
    second.heartbeat();
    let renewal = first.renewal();
    first.on_renewed(renewal);
    let (commit_id, batch) = first.commits.pop_front().unwrap();
    let answer = first.store.commit(&batch);
    first.shard.handle(NOW, Event::Committed { commit_id, answer });
    (first, second)
}

#[test]
fn inputs_without_a_commit_are_forwarded() {
    let (mut first, _) = about_to_hand_over();
    let instance = Instance { step: 0, rounds: Vec::new() };
    // The receipt arrives before the next commit is submitted.
    let input = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done(Value::Null) };
    first.handle(Event::Take(KEY, PendingInput::without_reply(input)));
    assert_eq!(
        first.take_outputs(),
        "acquired [0], commit, perform a 1, notify 0, reply, pass on for others, released 1, running 1"
    );
}

#[test]
fn an_attempt_of_a_returned_execution_stays_on_its_node() {
    let (mut first, mut second) = handed_over();
    second.store.leave("a").unwrap();
    first.take_over();
    assert_eq!(first.take_outputs(), "acquired [0], load");
    first.cancel();
    assert_eq!(first.take_outputs(), "commit, stop 1, notify 1");
    second.handle(Event::LeaseExpired);
    first.receipt(0);
    first.write();
    assert_eq!(first.take_outputs(), "commit, notify 2");
}

#[test]
fn a_heartbeat_sent_before_a_release_returns_no_partition() {
    let store = store();
    let (mut second, mut first) = (Bench::new(&store, "a"), Bench::new(&store, "b"));
    first.heartbeat();
    first.submit();
    second.heartbeat();
    first.heartbeat();
    let renewal = first.renewal();
    first.write();
    assert_eq!(first.take_outputs(), "acquired [0], commit, perform a 1, notify 0, reply, released 1, running 1");
    first.on_renewed(renewal);
    assert_eq!((first.take_outputs().as_str(), first.shard.held().count()), ("", 0));
}

#[test]
fn attempts_for_other_owners_stop_when_the_lease_expires() {
    let (mut first, _) = handed_over();
    first.monotonic = MonotonicMs(9_000);
    first.handle(Event::Wake);
    assert_eq!(first.take_outputs(), "kill 1");
    first.handle(Event::Wake);
    assert_eq!(first.take_outputs(), "", "once");
    first.receipt(0);
    assert_eq!(first.take_outputs(), "pass on for others", "a node that learns of this node in time waits for it");
}

#[test]
fn attempts_of_an_expired_session_are_not_awaited() {
    let (mut first, _) = handed_over();
    first.handle(Event::LeaseExpired);
    assert_eq!(first.take_outputs(), "kill 1");
    first.receipt(0);
    assert_eq!(first.take_outputs(), "pass on");
}

#[test]
fn unstarted_attempts_do_not_start_after_the_lease_expires() {
    let (mut first, mut second) = about_to_hand_over();
    first.shard.flush();
    first.take_outputs();
    first.monotonic = MonotonicMs(9_000);
    first.run_outputs();
    assert_eq!(first.take_outputs(), "notify 0, reply, released 1, running 0");
    // The store receives the next heartbeat in time: the node is alive, and no node waits for attempts that it has not
    // started.
    first.heartbeat();
    first.take_outputs();
    second.take_over();
    assert_eq!(second.take_outputs(), "acquired [0], load, adopt a 1");
}

#[test]
fn callers_of_an_unknown_commit_are_not_redirected() {
    let mut bench = Bench::new(&store(), "a");
    bench.heartbeat();
    bench.submit();
    let (commit_id, batch) = bench.commits.pop_front().unwrap();
    bench.store.commit(&batch).unwrap();
    bench.handle(Event::Committed { commit_id, answer: Err(CommitError::Unknown("?".into())) });
    // The lease expires during the load.
    bench.monotonic = MonotonicMs(9_000);
    bench.run_outputs();
    let (_, reply) = bench.replies.pop().unwrap();
    assert!(matches!(&reply, Err(ShardError::Store(why)) if why.contains("unknown")), "{reply:?}");
}

#[test]
fn a_commit_of_an_old_epoch_releases_no_new_lease() {
    let store = store();
    let mut bench = Bench::new(&store, "a");
    bench.heartbeat();
    bench.submit();
    bench.handle(Event::LeaseExpired);
    store.claim(0, "other").unwrap();
    store.acquire("a", &[0]).unwrap();
    bench.heartbeat();
    bench.take_outputs();
    assert!(matches!(bench.write()[..], [PartOutcome::Refused(Refusal::Fence)]));
    assert_eq!(bench.shard.held().collect::<Vec<_>>(), [0]);
    // Nothing of it was written, and the caller receives an error.
    bench.load();
    let (_, reply) = bench.replies.pop().unwrap();
    assert!(matches!(reply, Err(ShardError::Store(_))), "{reply:?}");
}

#[test]
fn a_load_before_an_old_commit_is_repeated() {
    // The first load happens before the commit becomes durable, or after it. In the first case it is outdated.
    for is_late in [false, true] {
        let mut bench = Bench::new(&store(), "a");
        bench.heartbeat();
        let steps = r#"{"steps":[{"type":"signal","id":"s","signal":"n"},{"type":"bash","id":"b","command":"true"}]}"#;
        bench.submit_plan(plan_of(steps));
        bench.write();
        let input = Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null };
        bench.handle(Event::Take(KEY, PendingInput { input, message: None, ticket: Some(Ticket(2)), audit: None }));
        // The commit is slow. The lease expires, and a late heartbeat acquires all partitions again.
        let mut renewal = bench.renewal();
        bench.monotonic = MonotonicMs(9_000);
        bench.run_outputs();
        renewal.until.monotonic = MonotonicMs(18_000);
        bench.on_renewed(renewal);
        bench.handle(Event::Due(vec![Due { execution: KEY, wake_at: 0 }]));
        let (read, number) = (bench.loader.load(KEY), bench.asked_for);
        let come = Event::Loaded(KEY, number, Box::new(read));
        if is_late {
            assert_eq!(bench.write(), [PartOutcome::Durable]);
            bench.handle(come);
        } else {
            bench.handle(come);
            assert_eq!(bench.write(), [PartOutcome::Durable]);
        }
        bench.take_outputs();
        bench.load();
        assert!(bench.take_outputs().contains("adopt b"), "b is never performed");
    }
}
