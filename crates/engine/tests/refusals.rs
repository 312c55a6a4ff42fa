//! Rows that cannot be written: only their execution is quarantined, with the message of the store.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use mainspring_engine::{
    inbox,
    journal_loader::Loader,
    lease::Leases,
    limits::{BATCH_BYTES_MAX, REFUSALS_ALONE_MAX, REFUSALS_MAX},
    shard::{Event, Keys, NewExecution, Output, PendingInput, Shard, ShardError, Ticket},
    start_request::{CHILD_NOT_STARTED, StartRequest, row},
};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    effect::Outcome,
    failure::{Class, Failure},
    input::{Input, Lineage, Parent, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{Batch, CommitError, Fence, HeadRow, InboxEntry, ReadLimit, memory::MemoryStore};

const NOW: u64 = 1_767_225_600_000;
const WAITS: &str = r#"{"steps":[{"type":"signal","id":"a","signal":"go"},{"type":"signal","id":"b","signal":"go"}]}"#;
const SENTENCE: &str = "duplicate key value violates unique constraint (23505)";

fn plan() -> Arc<Plan> {
    Arc::new(compile(&read(WAITS.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

fn key(number: u8) -> ExecutionKey {
    ExecutionKey::new(NOW, [number; 10])
}

/// A shard whose store refuses every batch with a part of certain executions, as a database does on a conflicting row.
struct Driver {
    store: MemoryStore,
    loader: Loader,
    shard: Shard,
    now: u64,
    refused: BTreeSet<ExecutionKey>,
    /// The same, with locks of other transactions.
    blocked: BTreeSet<ExecutionKey>,
    /// Consecutive commits that were not written: now, and the maximum.
    failed_in_a_row: (usize, usize),
    commits: VecDeque<(u64, Arc<Batch>)>,
    /// The number of parts of each commit.
    sizes: Vec<usize>,
    replies: BTreeMap<u64, Result<bool, ShardError>>,
    quarantined: BTreeMap<ExecutionKey, String>,
    rescans_inbox: usize,
}

impl Driver {
    fn new() -> Self {
        let store = MemoryStore::new();
        let epoch = store.claim(0, "test").unwrap();
        let keys = Keys { sealing: [1; 32], salting: [2; 32] };
        Self {
            loader: Loader::new(Arc::new(store.clone()), keys.sealing),
            store,
            shard: Shard::new(Leases::alone(1, [Fence { partition: 0, epoch }]), keys, usize::MAX),
            now: NOW,
            refused: BTreeSet::new(),
            blocked: BTreeSet::new(),
            failed_in_a_row: (0, 0),
            commits: VecDeque::new(),
            sizes: Vec::new(),
            replies: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            rescans_inbox: 0,
        }
    }

    fn run_outputs(&mut self) {
        self.shard.flush();
        while let Some(output) = self.shard.next_output() {
            match output {
                Output::Commit { commit_id, batch } => self.commits.push_back((commit_id, batch)),
                Output::Load(execution, number) => {
                    let answer = Box::new(self.loader.load(execution));
                    self.shard.handle(self.now, Event::Loaded(execution, number, answer));
                    self.shard.flush();
                }
                Output::Reply(Ticket(ticket), reply) => {
                    drop(self.replies.insert(ticket, reply.map(|taken| taken.changed)))
                }
                Output::Quarantine(execution, why) => {
                    self.store.quarantine(execution, &why).unwrap();
                    drop(self.quarantined.insert(execution, why));
                }
                Output::RescanInbox => self.rescans_inbox += 1,
                Output::Stalled(why) | Output::Fatal(why) => panic!("the store works: {why}"),
                _ => {}
            }
        }
    }

    fn handle(&mut self, event: Event) {
        self.shard.handle(self.now, event);
    }

    /// Writes all pending commits.
    fn write(&mut self) {
        self.run_outputs();
        for _ in 0..1_000 {
            let Some((commit_id, batch)) = self.commits.pop_front() else { return };
            self.sizes.push(batch.parts.len());
            let has = |of: &BTreeSet<ExecutionKey>| batch.parts.iter().any(|part| of.contains(&part.execution));
            let answer = match (has(&self.refused), has(&self.blocked)) {
                (true, _) => Err(CommitError::Refused(SENTENCE.into())),
                (_, true) => Err(CommitError::Blocked("canceling statement due to lock timeout (55P03)".into())),
                _ => self.store.commit(&batch),
            };
            let (now, most) = self.failed_in_a_row;
            let now = if answer.is_ok() { 0 } else { now + 1 };
            self.failed_in_a_row = (now, most.max(now));
            drop(batch);
            self.handle(Event::Committed { commit_id, answer });
            self.run_outputs();
        }
        panic!("commits never end");
    }

    /// Advances the time to the next request of the shard.
    fn wake(&mut self) {
        let at = self.shard.next_wake().expect("nothing is to be done any more");
        self.now = self.now.max(at);
        self.handle(Event::Wake);
        self.write();
    }

    fn submit(&mut self, number: u8, input: Value, message: bool) {
        self.submit_of(number, input, message, None);
    }

    fn submit_of(&mut self, number: u8, input: Value, message: bool, lineage: Option<Lineage>) {
        let submission = self.submission(number, input, message, lineage);
        self.handle(Event::Start(submission));
    }

    fn submission(&self, number: u8, input: Value, message: bool, lineage: Option<Lineage>) -> Box<NewExecution> {
        let (execution, plan) = (key(number), plan());
        let mut request = StartRequest { input, ..StartRequest::new(plan.clone(), "me") };
        let stored_plans = request.stored_plans();
        request.bounds.max_steps = None;
        let start = Box::new(Start { lineage, ..request.start(execution) });
        let row = row(execution, &start, &plan, self.now);
        let (ticket, message) = match message {
            true => (None, Some("start".to_owned())),
            false => (Some(Ticket(number.into())), None),
        };
        Box::new(NewExecution {
            execution,
            plan,
            stored_plans,
            start,
            row,
            message: message.map(Into::into),
            ticket,
            audit: None,
        })
    }

    /// The failures that the parent of the children in these tests received.
    fn notified(&self) -> Vec<Failure> {
        let messages = self.store.inbox(&[0], 0, ReadLimit::of(10)).unwrap();
        let of_parent = messages.into_iter().filter(|arrived| arrived.message.execution == key(PARENT));
        let failure = |arrived: InboxEntry| match inbox::event_of(&self.store, &[1; 32], arrived.message).unwrap() {
            Event::Take(_, PendingInput { input: Input::Receipt { outcome: Outcome::Failed(failure), .. }, .. }) => {
                failure
            }
            other => panic!("{other:?}"),
        };
        of_parent.map(failure).collect()
    }

    fn signal(&mut self, number: u8, id: &str, ticket: Option<u64>) {
        let input = Input::Signal { id: id.into(), name: "go".into(), payload: Value::Null };
        let queued = PendingInput { ticket: ticket.map(Ticket), ..PendingInput::without_reply(input) };
        self.handle(Event::Take(key(number), queued));
    }

    fn head(&self, number: u8) -> Option<u64> {
        self.store.head(key(number)).unwrap().map(|row| row.head.sequence)
    }
}

#[test]
fn an_unwritable_part_is_found_by_bisection() {
    for (count, bad) in [(1, 0), (2, 1), (7, 3), (64, 63), (64, 0)] {
        let mut driver = Driver::new();
        (0..count).for_each(|number| driver.submit(number, Value::Null, false));
        driver.write();
        let before: Vec<_> = (0..count).map(|number| driver.head(number).unwrap()).collect();
        driver.refused.insert(key(bad));
        driver.sizes.clear();
        (0..count).for_each(|number| driver.signal(number, "one", Some(100 + u64::from(number))));
        driver.write();
        for number in 0..count {
            let moved = driver.head(number).unwrap() > before[usize::from(number)];
            assert_eq!(moved, number != bad, "execution {number} of {count}");
            assert_eq!(driver.replies[&(100 + u64::from(number))].is_ok(), number != bad);
        }
        let halvings = 2 * usize::from(count).next_power_of_two().ilog2() as usize + 2;
        assert!(driver.sizes.len() <= halvings, "{count}: {:?}", driver.sizes);
        assert_eq!(driver.quarantined.len(), 0, "a single refusal proves nothing");
    }
}

#[test]
fn a_part_refused_while_others_succeed_is_quarantined() {
    let mut driver = Driver::new();
    [1, 2].into_iter().for_each(|number| driver.submit(number, Value::Null, false));
    driver.write();
    driver.refused.insert(key(1));
    driver.signal(1, "one", None);
    driver.write();
    // While no other execution is written, the store may be the cause.
    for _ in 0..2 * REFUSALS_MAX {
        driver.wake();
    }
    assert_eq!(driver.quarantined.len(), 0);
    driver.signal(2, "one", Some(9));
    driver.write();
    assert_eq!(driver.replies[&9], Ok(true));
    driver.wake();
    assert!(driver.quarantined[&key(1)].contains(SENTENCE), "{:?}", driver.quarantined);
    assert_eq!(driver.shard.next_wake(), None);
    driver.signal(1, "two", Some(10));
    driver.write();
    assert!(matches!(&driver.replies[&10], Err(ShardError::Quarantined(why)) if why.contains(SENTENCE)));
}

#[test]
fn a_part_refused_for_minutes_is_quarantined_without_other_writes() {
    for bad in [vec![1], vec![1, 2]] {
        let mut driver = Driver::new();
        [1, 2].into_iter().for_each(|number| driver.submit(number, Value::Null, false));
        driver.write();
        driver.refused.extend(bad.iter().map(|number| key(*number)));
        bad.iter().for_each(|number| driver.signal(*number, "one", None));
        driver.write();
        let began = driver.now;
        let mut tries = 1;
        while driver.quarantined.is_empty() && tries < 3 * REFUSALS_ALONE_MAX {
            driver.wake();
            tries += 1;
        }
        if bad.len() == 1 {
            assert!(driver.quarantined[&key(1)].contains(SENTENCE), "{:?}", driver.quarantined);
            assert_eq!(tries, REFUSALS_ALONE_MAX);
            assert!(driver.now - began >= 120_000, "{} ms", driver.now - began);
        } else {
            assert!(driver.quarantined.is_empty(), "several refused parts may not be the cause");
        }
    }
}

#[test]
fn a_locked_part_is_not_quarantined_and_others_progress() {
    for bad in [0, 63] {
        let mut driver = Driver::new();
        (0..64).for_each(|number| driver.submit(number, Value::Null, false));
        driver.write();
        let before = driver.head(bad);
        driver.blocked.insert(key(bad));
        (0..64).for_each(|number| driver.signal(number, "one", None));
        driver.write();
        // The whole batch and its first half fail. Then the faulty part is alone with its lock.
        assert!(driver.failed_in_a_row.1 <= 3, "{:?}", driver.failed_in_a_row);
        for round in 0..2 * REFUSALS_ALONE_MAX {
            driver.signal((bad + 1) % 64, &format!("again {round}"), None);
            driver.wake();
        }
        assert_eq!((driver.quarantined.len(), driver.head(bad)), (0, before));
        driver.blocked.clear();
        driver.wake();
        assert!(driver.head(bad) > before, "it continues as soon as the lock is released");
    }
}

#[test]
fn a_part_accepted_after_refusals_loses_nothing() {
    let mut driver = Driver::new();
    [1, 2].into_iter().for_each(|number| driver.submit(number, Value::Null, false));
    driver.write();
    driver.refused.insert(key(1));
    driver.signal(1, "one", None);
    driver.signal(2, "one", None);
    driver.write();
    driver.refused.clear();
    let before = driver.head(1);
    driver.wake();
    assert!(driver.head(1) > before, "the input was kept and is taken in again");
    // From then on it shares commits with others.
    driver.sizes.clear();
    [1, 2].into_iter().for_each(|number| driver.signal(number, "two", None));
    driver.write();
    assert_eq!(driver.sizes, [2]);
}

#[test]
fn an_unwritable_start_is_refused_and_its_message_discarded() {
    let mut driver = Driver::new();
    driver.refused.insert(key(1));
    [1, 2].into_iter().for_each(|number| driver.submit(number, Value::Null, false));
    driver.write();
    assert!(matches!(&driver.replies[&1], Err(ShardError::Store(why)) if why == SENTENCE), "{:?}", driver.replies);
    assert_eq!(driver.replies[&2], Ok(true));
    // The same with a message, which is read again as often as the shard requests it.
    driver.submit(1, Value::Null, true);
    driver.write();
    let mut rounds = 0;
    while driver.quarantined.is_empty() {
        driver.signal(2, &rounds.to_string(), None);
        driver.wake();
        if std::mem::take(&mut driver.rescans_inbox) > 0 {
            driver.submit(1, Value::Null, true);
            driver.write();
        }
        rounds += 1;
        assert!(rounds <= REFUSALS_MAX, "it is tried for ever");
    }
    driver.sizes.clear();
    driver.submit(1, Value::Null, true);
    driver.write();
    assert_eq!((driver.sizes.len(), driver.head(1)), (0, None), "nothing is tried any more");
}

/// The number of the parent of the children in these tests. It is not in the store.
const PARENT: u8 = 7;

fn child() -> Option<Lineage> {
    let parent = Parent { execution: key(PARENT), instance: Instance { step: 0, rounds: vec![] }, attempt: 1 };
    Some(Lineage { parent: Some(parent), depth: 1, workflows: vec![], executions: Some(10), budget: None })
}

#[test]
fn the_parent_of_an_unwritable_child_is_notified() {
    let mut driver = Driver::new();
    driver.submit(2, Value::Null, false);
    driver.write();
    driver.refused.insert(key(1));
    driver.submit_of(1, Value::Null, true, child());
    driver.write();
    let mut rounds = 0;
    while driver.quarantined.is_empty() {
        driver.signal(2, &rounds.to_string(), None);
        driver.wake();
        if std::mem::take(&mut driver.rescans_inbox) > 0 {
            driver.submit_of(1, Value::Null, true, child());
            driver.write();
        }
        rounds += 1;
        assert!(rounds <= REFUSALS_MAX, "it is tried for ever");
    }
    // The store has refused that commit as well. It is repeated, and deletes the message.
    assert_eq!(driver.notified(), []);
    driver.refused.clear();
    driver.wake();
    let notified = driver.notified();
    let [failure] = &notified[..] else { panic!("{notified:?}") };
    assert_eq!((failure.class, failure.code.as_str()), (Class::Internal, CHILD_NOT_STARTED));
    assert!(failure.message.contains(SENTENCE), "{}", failure.message);
    driver.sizes.clear();
    driver.submit_of(1, Value::Null, true, child());
    driver.write();
    assert_eq!(driver.head(1), None, "it begins no more");
}

#[test]
fn a_refusal_of_a_child_that_the_store_refuses_is_repeated() {
    let mut driver = Driver::new();
    driver.blocked.insert(key(1));
    let failure = Failure::new(Class::Policy, "too_many", "there is no room");
    driver.handle(Event::TurnAway(driver.submission(1, Value::Null, true, child()), failure.clone()));
    driver.write();
    driver.wake();
    assert_eq!(driver.notified(), []);
    // The message is read again in the meantime, and there is room.
    driver.submit_of(1, Value::Null, true, child());
    driver.write();
    assert_eq!(driver.head(1), None, "the refusal is on its way");
    driver.blocked.clear();
    driver.wake();
    assert_eq!((driver.notified(), driver.head(1)), (vec![failure], None));
}

#[test]
fn a_child_does_not_start_during_its_refusal() {
    let mut driver = Driver::new();
    let failure = Failure::new(Class::Policy, "too_many", "there is no room");
    driver.handle(Event::TurnAway(driver.submission(1, Value::Null, true, child()), failure.clone()));
    driver.run_outputs();
    assert_eq!(driver.commits.len(), 1);
    driver.submit_of(1, Value::Null, true, child());
    driver.write();
    assert_eq!((driver.notified(), driver.head(1)), (vec![failure], None));
}

#[test]
fn an_input_does_not_shorten_the_backoff_of_a_locked_part() {
    let mut driver = Driver::new();
    [1, 2].into_iter().for_each(|number| driver.submit(number, Value::Null, false));
    driver.write();
    driver.blocked.insert(key(1));
    driver.signal(1, "first", None);
    driver.write();
    driver.sizes.clear();
    for number in 0..20 {
        driver.signal(1, &format!("more {number}"), None);
        driver.signal(2, &format!("more {number}"), None);
        driver.write();
    }
    assert_eq!(driver.sizes.len(), 2, "the other execution waits for two signals, and nothing else is committed");
    driver.blocked.clear();
    driver.wake();
    assert!(driver.head(1).is_some_and(|sequence| sequence > 1));
}

#[test]
fn a_commit_is_bounded_in_bytes_and_has_at_least_one_part() {
    let large = |bytes: usize| Value::from("x".repeat(bytes).as_str());
    let mut driver = Driver::new();
    (0..5).for_each(|number| driver.submit(number, large(BATCH_BYTES_MAX / 4), false));
    driver.write();
    assert_eq!(driver.sizes, [4, 1], "the part at the bound is the last");
    assert!((0..5).all(|number| driver.replies[&number] == Ok(true)));
    let mut driver = Driver::new();
    driver.submit(0, large(BATCH_BYTES_MAX + 1), false);
    driver.submit(1, large(1), false);
    driver.write();
    assert_eq!(driver.sizes, [1, 1]);
}

/// A change of a head by another program.
type Change = fn(&mut HeadRow);

#[test]
fn a_tampered_head_quarantines_only_its_execution() {
    let changes: [(&str, Change); 2] =
        [("heads.partition", |head| head.partition = 7), ("heads.ended", |head| head.ended = true)];
    for (column, change) in changes {
        let mut driver = Driver::new();
        [1, 2].into_iter().for_each(|number| driver.submit(number, Value::Null, false));
        driver.write();
        driver.store.change_head(key(1), change);
        [1, 2].into_iter().for_each(|number| driver.signal(number, "one", Some(u64::from(10 + number))));
        driver.write();
        assert!(driver.quarantined[&key(1)].contains(column), "{:?}", driver.quarantined);
        assert_eq!(driver.quarantined.len(), 1);
        assert_eq!(driver.replies[&12], Ok(true));
        assert!(driver.shard.held().eq([0]), "{column}: the others' partition is lost");
    }
}
