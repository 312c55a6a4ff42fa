//! Edge cases of the shard: long turns, lost commits, taken names, unreadable journals, and nodes that join late.

use std::{collections::VecDeque, sync::Arc};

use mainspring_engine::{
    inbox::{self, MessageError},
    journal_loader::Loader,
    lease::Leases,
    limits::PERMIT_WAIT_MS_MAX,
    shard::{AttemptRecovery, Event, Keys, LoadAnswer, NewExecution, Output, PendingInput, Reply, Shard, Ticket},
    start_request::{StartRequest, row, starts},
};
use mainspring_kernel::{
    apply::apply,
    cbor,
    decide::{DECIDE_VERSION, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    failure::{Class, Failure},
    frame::Frame,
    hash::Hash,
    input::{Input, Lineage, Parent, Start},
    instance::Instance,
    key::ExecutionKey,
    plan::{Decision, Plan},
    record::Record,
    state::{ExecutionStatus, State, Status},
    stored_frame::Head,
    value::Value,
};
use mainspring_store::prelude::*;
use mainspring_store::{
    AuditEntry, Batch, CommitError, EnqueueRequest, Fence, InboxMessage, Part, PartOutcome, ReadLimit, Refusal,
    memory::MemoryStore,
};

const START: u64 = 1_767_225_600_000;
const ONE: &str = r#"{"steps":[{"type":"bash","id":"a","command":"true"}]}"#;

fn plan(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan)
}

/// A shard whose commits and loads are answered by the test.
struct Bench {
    store: Arc<MemoryStore>,
    shard: Shard,
    loader: Loader,
    key: ExecutionKey,
    now: u64,
    commits: VecDeque<(u64, Arc<Batch>)>,
    loads: u32,
    /// The number of the last load.
    asked_for: u64,
    /// Number of requests to read the inbox again.
    rescans_inbox: u32,
    performed: Vec<u32>,
    stopped: Vec<u32>,
    adopts: Vec<(Instance, u32)>,
    replies: Vec<(Ticket, Reply)>,
    notified: Vec<u64>,
}

impl Bench {
    fn new() -> Self {
        Self::on(Arc::new(MemoryStore::default()), START)
    }

    /// A node that joins at a time, without an idle cache.
    fn on(store: Arc<MemoryStore>, now: u64) -> Self {
        Self::with_room(store, now, 0)
    }

    fn with_room(store: Arc<MemoryStore>, now: u64, idle_bytes_max: usize) -> Self {
        let epoch = store.claim(0, "test").unwrap();
        let keys = Keys { sealing: [1; 32], salting: [2; 32] };
        let shard = Shard::new(Leases::alone(1, [Fence { partition: 0, epoch }]), keys, idle_bytes_max);
        let loader = Loader::new(store.clone(), [1; 32]);
        let key = ExecutionKey::new(START, *b"0123456789");
        let (commits, performed, adopts) = (VecDeque::new(), Vec::new(), Vec::new());
        let (replies, notified) = (Vec::new(), Vec::new());
        Self {
            store,
            shard,
            loader,
            key,
            now,
            commits,
            loads: 0,
            asked_for: 0,
            rescans_inbox: 0,
            performed,
            stopped: Vec::new(),
            adopts,
            replies,
            notified,
        }
    }

    fn submit(&mut self, plan: &Arc<Plan>) {
        let mut request = StartRequest::new(plan.clone(), "me");
        (request.bounds.max_steps, request.bounds.max_parallel) = (Some(100_000), Some(10_000));
        request.workflows = starts(plan).into_iter().map(|name| (name.to_string(), self::plan(ONE))).collect();
        let stored_plans = request.stored_plans();
        let start = request.start(self.key);
        let row = row(self.key, &start, plan, self.now);
        let (execution, plan, start, ticket) = (self.key, plan.clone(), Box::new(start), Some(Ticket(1)));
        let submission = NewExecution { execution, plan, stored_plans, start, row, message: None, ticket, audit: None };
        self.handle(Event::Start(Box::new(submission)));
    }

    fn take(&mut self, input: Input, ticket: Option<u64>) {
        self.handle(Event::Take(
            self.key,
            PendingInput { input, message: None, ticket: ticket.map(Ticket), audit: None },
        ));
    }

    fn handle(&mut self, event: Event) {
        self.shard.handle(self.now, event);
        self.shard.flush();
        while let Some(output) = self.shard.next_output() {
            match output {
                Output::Commit { commit_id, batch } => self.commits.push_back((commit_id, batch)),
                Output::Load(_, number) => {
                    self.loads += 1;
                    self.asked_for = number;
                }
                Output::Perform { attempt, .. } => self.performed.push(attempt.number),
                Output::Reconcile { instance, attempt, .. } => self.adopts.push((instance, attempt.number)),
                Output::Reply(ticket, reply) => self.replies.push((ticket, reply)),
                Output::Notify(frame) => self.notified.push(frame.sequence),
                Output::RescanInbox => self.rescans_inbox += 1,
                Output::Stop { attempt, .. } => self.stopped.push(attempt),
                Output::Kill { .. } | Output::Forget { .. } | Output::MessagesEnqueued(_) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    fn commit_all(&mut self) {
        loop {
            while let Some((commit_id, batch)) = self.commits.pop_front() {
                let answer = self.store.commit(&batch);
                self.handle(Event::Committed { commit_id, answer });
            }
            if !self.shard.has_split() {
                return;
            }
            self.handle(Event::Wake);
        }
    }

    /// Writes the next commit or not, and answers with an unknown outcome.
    fn commit_unknown(&mut self, is_written: bool) {
        let (commit_id, batch) = self.commits.pop_front().expect("a commit");
        if is_written {
            self.store.commit(&batch).unwrap();
        }
        self.handle(Event::Committed { commit_id, answer: Err(CommitError::Unknown("?".into())) });
    }

    fn load(&mut self) {
        let answer = self.loader.load(self.key);
        self.answer_load(answer);
    }

    fn answer_load(&mut self, answer: LoadAnswer) {
        self.loads = self.loads.checked_sub(1).expect("a load");
        self.handle(Event::Loaded(self.key, self.asked_for, Box::new(answer)));
    }

    fn read_due(&mut self) {
        let due = self.store.due(&[0], self.now, None, 100).unwrap();
        self.handle(Event::Due(due));
    }

    fn reconcile_all(&mut self, recovery: AttemptRecovery) {
        for (instance, attempt) in std::mem::take(&mut self.adopts) {
            let execution = self.key;
            self.handle(Event::AttemptRecovered { execution, instance, attempt, recovery });
        }
    }

    fn state(&self) -> State {
        self.loader.journal(self.key).unwrap().unwrap().journal.state
    }
}

/// Otherwise an execution that sleeps repeatedly would be read once per wake-up, each time from its start. Each ended
/// step takes memory.
#[test]
fn idle_executions_are_evicted_only_at_the_bound() {
    let nap = |number| format!(r#"{{"type":"sleep","id":"nap{number}","durationMs":10}}"#);
    let naps = format!(r#"{{"steps":[{}]}}"#, (0..20).map(nap).collect::<Vec<_>>().join(","));
    for (room, loads) in [(1 << 20, 0..=0), (0, 20..=20), (10_000, 1..=19)] {
        let mut bench = Bench::with_room(Arc::new(MemoryStore::default()), START, room);
        bench.submit(&plan(&naps));
        bench.commit_all();
        let mut seen = 0;
        while let Some(at) = bench.shard.next_wake() {
            bench.now = at;
            bench.handle(Event::Wake);
            while bench.loads > 0 {
                bench.load();
                seen += 1;
            }
            bench.commit_all();
        }
        assert_eq!(bench.state().status(), ExecutionStatus::Completed, "{room}");
        assert!(loads.contains(&seen), "read {seen} times with room for {room}");
        assert_eq!(bench.shard.pending().live, [], "what has ended is not kept");
    }
}

#[test]
fn idle_executions_are_not_pending() {
    let mut bench = Bench::with_room(Arc::new(MemoryStore::default()), START, 1 << 20);
    bench.submit(&plan(r#"{"steps":[{"type":"approval","id":"ask"}]}"#));
    assert_eq!(bench.shard.pending().live, [bench.key]);
    bench.commit_all();
    assert_eq!(bench.shard.pending().live, []);
    bench.take(signal(), Some(2));
    assert_eq!((bench.loads, bench.shard.pending().live), (0, vec![bench.key]));
    bench.commit_all();
    assert_eq!(bench.replies.len(), 2);
}

/// Also if the outcome of the commit is unknown.
#[test]
fn an_effective_input_is_audited_once() {
    let mut bench = Bench::new();
    bench.submit(&plan(r#"{"steps":[{"type":"approval","id":"ask"}]}"#));
    bench.commit_all();
    let give = |bench: &mut Bench, id: &str, action: &str| {
        let input = Input::Signal { id: id.into(), name: "n".into(), payload: Value::Null };
        let audit = Some(Box::new(AuditEntry {
            organization: "o".into(),
            at: START,
            actor: "me".into(),
            action: action.into(),
            target: "t".into(),
            detail: vec![],
        }));
        let queued = PendingInput { input, message: None, ticket: Some(Ticket(2)), audit };
        bench.handle(Event::Take(bench.key, queued));
        if bench.loads > 0 {
            bench.load();
        }
    };
    for (id, is_written) in [("written", true), ("not written", false)] {
        give(&mut bench, id, id);
        bench.commit_unknown(is_written);
        bench.load();
        bench.commit_all();
    }
    give(&mut bench, "written", "never");
    // Inputs that arrive while the first commit is in flight share one part.
    give(&mut bench, "first", "first");
    give(&mut bench, "second", "second");
    give(&mut bench, "second", "never");
    bench.commit_all();
    let log = bench.store.audit("o", 0, ReadLimit::of(9)).unwrap();
    let actions: Vec<&str> = log.iter().map(|row| row.entry.action.as_str()).collect();
    assert_eq!(actions, ["written", "not written", "first", "second"]);
    assert!(bench.store.audit_head("o").unwrap().unwrap().is_sealed(&[1; 32], "o"));
    assert_eq!(bench.replies.len(), 7);
}

/// The list of the store equals the state, for any division of turns into commits and any loads.
#[test]
fn open_approvals_are_listed_by_the_store() {
    let two = r#"{"steps":[{"type":"approval","id":"a","count":1,"ttlMs":1000},{"type":"approval","id":"b"}]}"#;
    for (room, at_once, ending) in
        [(0, false, "b"), (1 << 20, false, "cancel"), (0, true, "b"), (1 << 20, true, "cancel")]
    {
        let mut bench = Bench::with_room(Arc::new(MemoryStore::default()), START, room);
        let listed = |bench: &Bench| {
            let rows = bench.store.pending_approvals(None, None, 9).unwrap();
            rows.into_iter()
                .map(|row| format!("{} {} {}", row.step, row.gate, row.opened_at - START))
                .collect::<Vec<_>>()
        };
        let take = |bench: &mut Bench, input: Input| {
            bench.take(input, None);
            if bench.loads > 0 {
                bench.load();
            }
            if !at_once {
                bench.commit_all();
            }
        };
        let approve = |step: u32| Input::Decide {
            instance: Instance::of_step(step),
            gate: 1,
            decision: Decision::Approve,
            by: "me".into(),
            reason: Value::Null,
        };
        bench.submit(&plan(two));
        if !at_once {
            bench.commit_all();
            assert_eq!(listed(&bench), ["a 1 0"]);
        }
        bench.now += 7;
        take(&mut bench, signal());
        bench.now += 7;
        take(&mut bench, approve(0));
        bench.commit_all();
        assert_eq!(listed(&bench), ["b 1 14"], "{room} {at_once}");
        let ending = match ending {
            "b" => approve(1),
            _ => Input::Cancel { reason: "no".into(), by: "me".into() },
        };
        take(&mut bench, ending);
        bench.commit_all();
        assert_eq!((listed(&bench).len(), bench.state().end.ended_at.is_some()), (0, true));
    }
}

/// Lists show rows: a row has an error once the execution has ended, which is the one that ended it.
#[test]
fn the_row_has_the_status_and_the_error() {
    const CLEANS: &str = r#"{"nodes":[{"id":"a","type":"bash","command":"true"},{"id":"tidy","type":"approval"}],
        "edges":[{"from":"a","to":"tidy","when":"always"}]}"#;
    let failed = |bench: &mut Bench| {
        let outcome = Outcome::Failed(Failure::new(Class::Invalid, "no_good", "it is no good"));
        bench.take(Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome }, None);
    };
    let cancelled = |bench: &mut Bench| bench.take(Input::Cancel { reason: "enough".into(), by: "me".into() }, None);
    let approved = |bench: &mut Bench| bench.take(decide_at(1, Decision::Approve), None);
    let denied = |bench: &mut Bench| bench.take(decide_at(0, Decision::Deny), None);
    let continues_on_error = r#"{"steps":[{"type":"bash","id":"a","command":"true","onError":"continue"}]}"#;
    let ask = r#"{"steps":[{"type":"approval","id":"ask"}]}"#;
    // Executions that end in the commit that starts them have a row with their end, and no change of a row.
    let miss = r#"{"steps":[{"type":"return","input":"@vars.none.of"}]}"#;
    let nothing = r#"{"steps":[{"type":"return","input":1}]}"#;
    type Given<'a> = &'a [&'a dyn Fn(&mut Bench)];
    // A child that waits for approvals is stopped: its parent has open work again, and is about to end.
    let child = r#"{"steps":[{"type":"subworkflow","id":"sub","workflow":"w"}]}"#;
    let held = |bench: &mut Bench| {
        bench.take(Input::ChildWaits { instance: Instance::of_step(0), attempt: 1, count: 1 }, None);
    };
    let stopped = |bench: &mut Bench| {
        let outcome = Outcome::Cancelled("parent_cancelled".into());
        bench.take(Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome }, None);
    };
    let cases: [(&str, Given<'_>, &[&str]); 9] = [
        (ONE, &[&failed], &["running - - -", "failed - no_good 7"]),
        (continues_on_error, &[&failed], &["running - - -", "completed with_failures - 7"]),
        (CLEANS, &[&failed, &approved], &["running - - -", "waiting_approval - - -", "failed - no_good 14"]),
        (CLEANS, &[&failed, &cancelled], &["running - - -", "waiting_approval - - -", "cancelled - enough 14"]),
        (ask, &[&cancelled], &["waiting_approval - - -", "cancelled - enough 7"]),
        (ask, &[&denied], &["waiting_approval - - -", "cancelled - approval_denied 7"]),
        (
            child,
            &[&held, &cancelled, &stopped],
            &["running - - -", "waiting_approval - - -", "cancel_requested - - -", "cancelled - enough 21"],
        ),
        (nothing, &[], &["completed - - 0"]),
        (miss, &[], &["failed - reference_not_found 0"]),
    ];
    for (definition, given, expected) in cases {
        let mut bench = Bench::with_room(Arc::new(MemoryStore::default()), START, 1 << 20);
        bench.submit(&plan(definition));
        bench.commit_all();
        let notified = |bench: &Bench| {
            let row = bench.store.execution(bench.key).unwrap().unwrap();
            let text = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            let at = text(row.completed_at.map(|at| (at - START).to_string()));
            format!("{} {} {} {at}", row.status, text(row.outcome), text(row.error))
        };
        let mut seen = vec![notified(&bench)];
        for give in given {
            bench.now += 7;
            give(&mut bench);
            bench.commit_all();
            seen.push(notified(&bench));
        }
        assert_eq!(seen, expected, "{definition}");
    }
}

fn decide_at(step: u32, decision: Decision) -> Input {
    Input::Decide { instance: Instance::of_step(step), gate: 1, decision, by: "me".into(), reason: Value::Null }
}

/// A detached child is a start of its own, and a waited-for child is a part of its parent. The entry names the
/// initiator of the root, and is in the commit that starts the child.
#[test]
fn the_start_of_a_detached_child_is_audited() {
    let lineage = |parent: Option<Parent>, depth: u32| {
        Some(Lineage { parent, depth, workflows: Vec::new(), executions: None, budget: None })
    };
    let parent = || Some(Parent { execution: ExecutionKey([9; 16]), instance: Instance::of_step(0), attempt: 1 });
    let detached = "execution.start by me of the-child: by workflow, parentExecutionId the-parent, parentStepId aside";
    for (lineage, organization, expected) in [
        (lineage(None, 1), Some("o"), Some(detached)),
        (lineage(parent(), 1), Some("o"), None),
        (lineage(None, 0), Some("o"), None),
        (None, Some("o"), None),
        (lineage(None, 1), None, None),
    ] {
        let mut bench = Bench::new();
        let mut request = StartRequest::new(plan(r#"{"steps":[{"type":"approval","id":"ask"}]}"#), "me");
        request.execution_id = Some("the-child".into());
        let said = [("type", "subworkflow"), ("parentExecutionId", "the-parent"), ("parentStepId", "aside")];
        let said = said.into_iter().chain(organization.map(|name| ("organizationId", name)));
        request.trigger = Value::map(said.map(|(key, value)| (key, Value::from(value))));
        let (plan, stored_plans) = (request.plan.clone(), request.stored_plans());
        let start = Box::new(Start { lineage, ..request.start(bench.key) });
        let again = Input::Start(start.clone());
        let row = row(bench.key, &start, &plan, START);
        let (execution, message, ticket, audit) = (bench.key, None, None, None);
        let submission = NewExecution { execution, plan, stored_plans, start, row, message, ticket, audit };
        bench.handle(Event::Start(Box::new(submission)));
        assert_eq!(bench.commits.len(), 1, "it starts and is audited in one commit");
        bench.commit_all();
        // Its start message may be delivered twice.
        bench.take(again, None);
        bench.load();
        bench.commit_all();
        let notified: Vec<String> = bench
            .store
            .audit("o", 0, ReadLimit::of(9))
            .unwrap()
            .into_iter()
            .map(|row| audit_entry(&row.entry))
            .collect();
        assert_eq!(notified, Vec::from_iter(expected), "{organization:?}");
    }
}

fn audit_entry(entry: &AuditEntry) -> String {
    let detail = cbor::decode(&entry.detail).unwrap();
    let text = |(key, value): (&String, &Value)| format!("{key} {}", value.as_text().unwrap());
    let detail: Vec<String> = detail.as_map().unwrap().iter().map(text).collect();
    format!("{} by {} of {}: {}", entry.action, entry.actor, entry.target, detail.join(", "))
}

fn signal() -> Input {
    Input::Signal { id: "i".into(), name: "n".into(), payload: Value::Null }
}

/// The turn has exactly as many records as a frame may contain, and the rest is empty.
#[test]
fn a_turn_that_ends_at_the_bound_has_ended() {
    for skipped in 4_088..4_098 {
        let mut steps: Vec<String> = (0..skipped)
            .map(|number| format!(r#"{{"type":"bash","id":"s{number}","command":"true","when":false}}"#))
            .collect();
        steps.push(r#"{"type":"approval","id":"ask"}"#.into());
        let mut bench = Bench::new();
        bench.submit(&plan(&format!(r#"{{"steps":[{}]}}"#, steps.join(","))));
        bench.commit_all();
        assert_eq!(bench.state().status(), ExecutionStatus::WaitingApproval, "{skipped}");
        assert!(!bench.state().journal.is_split);
    }
}

#[test]
fn all_callers_of_a_taken_id_get_replies() {
    let mut bench = Bench::new();
    bench.submit(&plan(ONE));
    bench.take(Input::Cancel { reason: "c".into(), by: "me".into() }, Some(2));
    let (commit_id, _) = bench.commits.pop_front().unwrap();
    let answer = Ok(vec![PartOutcome::Refused(Refusal::IdTaken(ExecutionKey([9; 16])))]);
    bench.handle(Event::Committed { commit_id, answer });
    bench.commit_all();
    assert_eq!(bench.replies.len(), 2);
}

#[test]
fn an_attempt_is_recovered_once_for_repeated_loads() {
    let mut bench = Bench::new();
    bench.submit(&plan(ONE));
    bench.commit_unknown(true);
    bench.load();
    bench.take(signal(), None);
    bench.commit_unknown(false);
    bench.load();
    bench.commit_all();
    bench.reconcile_all(AttemptRecovery::NeverStarted);
    bench.commit_all();
    assert_eq!(bench.performed, [1]);
}

#[test]
fn a_receipt_survives_an_unreadable_journal() {
    let mut bench = Bench::new();
    bench.submit(&plan(ONE));
    bench.commit_all();
    bench.take(signal(), None);
    bench.commit_unknown(false);
    let outcome = Outcome::Done(Value::Null);
    bench.take(Input::Receipt { instance: Instance::of_step(0), attempt: 1, outcome }, None);
    bench.answer_load(LoadAnswer::Unavailable("the disk is busy".into()));
    bench.now += 2_000;
    bench.handle(Event::Wake);
    bench.load();
    bench.commit_all();
    assert_eq!(bench.state().status(), ExecutionStatus::Completed);
    assert_eq!(bench.performed, [1]);
}

/// An input arrives while the store does not say if the execution exists. Then the execution starts.
#[test]
fn an_input_before_the_start_survives_a_failed_load() {
    let mut bench = Bench::with_room(Arc::new(MemoryStore::default()), START, 1 << 20);
    bench.take(signal(), None);
    bench.answer_load(LoadAnswer::Unavailable("the disk is busy".into()));
    bench.submit(&plan(r#"{"steps":[{"type":"signal","id":"s","signal":"n"}]}"#));
    bench.commit_all();
    bench.now += 2_000;
    bench.handle(Event::Wake);
    while bench.loads > 0 {
        bench.load();
    }
    bench.commit_all();
    assert_eq!(bench.state().status(), ExecutionStatus::Completed);
}

/// A node that was down for longer than a step's timeout does not report the interruption as a timeout.
#[test]
fn a_late_interruption_is_not_a_timeout() {
    let store = Arc::new(MemoryStore::default());
    let mut bench = Bench::on(store.clone(), START);
    let step = r#"{"type":"bash","id":"a","command":"true","onInterrupted":"fail","retry":{"maxAttempts":3}}"#;
    bench.submit(&plan(&format!(r#"{{"steps":[{step}]}}"#)));
    bench.commit_all();
    let mut bench = Bench::on(store, START + 600_000);
    bench.read_due();
    bench.load();
    bench.commit_all();
    bench.reconcile_all(AttemptRecovery::Interrupted);
    bench.commit_all();
    let state = bench.state();
    let step = &state.steps[&Instance::of_step(0)];
    assert_eq!((step.status, step.attempt), (Status::Failed, 1));
    assert_eq!(step.failure.as_ref().map(|failure| failure.code.as_str()), Some("interrupted"));
    assert_eq!(bench.performed, Vec::<u32>::new());
}

/// An attempt that runs on another node times out like any other.
#[test]
fn an_attempt_on_another_node_times_out() {
    let store = Arc::new(MemoryStore::default());
    let mut bench = Bench::on(store.clone(), START);
    bench.submit(&plan(ONE));
    bench.commit_all();
    let mut bench = Bench::on(store, START + 600_000);
    bench.read_due();
    bench.load();
    bench.reconcile_all(AttemptRecovery::StillRunning);
    bench.handle(Event::Wake);
    bench.commit_all();
    assert!(bench.state().steps[&Instance::of_step(0)].stopping.is_some());
}

/// Timers of other steps, and the deadline, fire during the recovery of an attempt.
#[test]
fn a_late_recovery_delays_no_other_timer() {
    let text = r#"{"constraints":{"timeoutMs":900000},"steps":[{"type":"parallel","id":"p","steps":[
        {"type":"bash","id":"a","command":"true"},{"type":"sleep","id":"nap","durationMs":700000}]}]}"#;
    let store = Arc::new(MemoryStore::default());
    let mut bench = Bench::on(store.clone(), START);
    bench.submit(&plan(text));
    bench.commit_all();
    let mut bench = Bench::on(store, START + 600_000);
    bench.read_due();
    bench.load();
    bench.handle(Event::Wake);
    assert_eq!((bench.adopts.len(), bench.shard.next_wake()), (1, Some(START + 700_000)));
    bench.now = START + 700_000;
    bench.handle(Event::Wake);
    bench.commit_all();
    let state = bench.state();
    let naps = state.steps.iter().find(|(instance, _)| instance.name(&state.plan) == "nap");
    assert_eq!(naps.map(|(_, step)| step.status), Some(Status::Completed));
    assert_eq!(bench.shard.next_wake(), Some(START + 900_000), "the deadline is next");
    bench.reconcile_all(AttemptRecovery::Interrupted);
    bench.commit_all();
    assert_eq!(bench.performed, [2], "the attempt was interrupted, and did not time out");
}

/// The outcome of its commit was unknown and its action was dropped, so the shard knows that it has not started.
#[test]
fn an_attempt_of_a_commit_in_doubt_starts_after_the_load() {
    let mut bench = Bench::new();
    bench.submit(&plan(ONE));
    bench.commit_unknown(true);
    assert_eq!(bench.performed, Vec::<u32>::new());
    bench.load();
    bench.commit_all();
    assert_eq!(bench.performed, [1], "it is not recovered");
}

/// A poll of the inbox also returns messages that the commit in flight consumes.
#[test]
fn a_message_read_twice_is_applied_once() {
    let mut bench = Bench::new();
    bench.submit(&plan(ONE));
    bench.commit_all();
    let (instance, outcome) = (Instance::of_step(0), Outcome::Done(Value::from("x".repeat(10_000))));
    let message = inbox::message(&[1; 32], bench.key, &Input::Receipt { instance, attempt: 1, outcome }, 1, START);
    assert!(bench.store.enqueue(&EnqueueRequest::of(&message, 1)).unwrap());
    let event = || inbox::event_of(&*bench.store, &[1; 32], message.clone()).unwrap();
    let [first, in_draft, in_flight] = [event(), event(), event()];
    bench.shard.handle(START, first);
    bench.handle(in_draft);
    bench.handle(in_flight);
    assert_eq!(bench.commits.len(), 1);
    bench.commit_all();
    assert_eq!(bench.state().status(), ExecutionStatus::Completed);
    assert_eq!(bench.store.late_receipts(bench.key).unwrap(), [], "the receipt is in the journal and nowhere else");
    assert!(bench.store.inbox(&[0], 0, ReadLimit::of(9)).unwrap().is_empty());
}

#[test]
fn watchers_see_a_frame_whose_commit_was_unknown() {
    for is_written in [true, false] {
        let mut bench = Bench::new();
        bench.submit(&plan(r#"{"steps":[{"type":"signal","id":"s","signal":"n"}]}"#));
        bench.commit_all();
        bench.take(signal(), None);
        bench.load();
        bench.commit_unknown(is_written);
        bench.load();
        bench.commit_all();
        assert_eq!(bench.notified, [0, 1], "{is_written}");
        assert_eq!(bench.state().status(), ExecutionStatus::Completed);
    }
}

/// Stored records may be written by an attacker, so they are checked before they are applied.
#[test]
fn a_stored_branch_that_the_step_does_not_have_is_illegal() {
    let text = r#"{"steps":[{"type":"conditional","id":"c","condition":true,"then":[]},{"type":"approval","id":"a"}]}"#;
    let plan = plan(text);
    let key = ExecutionKey([3; 16]);
    let mut state = State::new(key, plan.clone());
    let start = StartRequest::new(plan, "me").start(key);
    let turn = decide_with(&mut state.clone(), &Input::Start(Box::new(start)), START, |_| Vec::new()).unwrap();
    for record in turn.records.iter().take(2) {
        apply(&mut state, record, START).unwrap();
    }
    for block in [0, 2, 4_000_000] {
        let record = Record::BranchTaken { instance: Instance::of_step(0), block: Some(block) };
        assert!(apply(&mut state, &record, START).is_err(), "{block}");
    }
}

/// An execution of a newer release is left alone, even if its content is unknown here. It is not broken, and an
/// unreadable message does not quarantine it. An execution of this release is quarantined in the same case.
#[test]
fn executions_of_newer_releases_are_left_unchanged() {
    for (version, is_newer) in [(DECIDE_VERSION, false), (DECIDE_VERSION + 1, true)] {
        let (store, plan) = (Arc::new(MemoryStore::default()), plan(ONE));
        let request = StartRequest::new(plan.clone(), "me");
        let (key, plans) = (ExecutionKey([3; 16]), request.stored_plans());
        let start = request.start(key);
        let (row, input) = (row(key, &start, &plan, START), Input::Start(Box::new(start)));
        let mut state = State::new(key, plan);
        state.decide_version = version;
        let mut records = decide_with(&mut state, &input, START, |_| Vec::new()).unwrap().records;
        records.push(Record::Admitted);
        let (sequence, before, now, results) = (0, Hash::default(), START, Vec::new());
        let frame = Frame { sequence, before, now, input, results, records };
        let (mut stored, hash) = frame.store(&|_| [0; 16]);
        *stored.frame.last_mut().unwrap() = 0x63;
        let head = Head::sealed(&[1; 32], key, 0, hash);
        let part = Part {
            execution: key,
            partition: 0,
            expected: None,
            frames: vec![stored],
            head,
            wake_at: Some(0),
            row: Some(row),
            change: None,
            plans,
            consumed: Vec::new(),
            messages: Vec::new(),
            receipts: Default::default(),
            audit: Vec::new(),
            gates_closed: Vec::new(),
            gates_opened: Vec::new(),
        };
        let fences = vec![Fence { partition: 0, epoch: store.claim(0, "test").unwrap() }];
        let answers = store.commit(&Batch { fences, parts: vec![part], sealing: [1; 32] });
        assert_eq!(answers, Ok(vec![PartOutcome::Durable]));
        let answer = Loader::new(store.clone(), [1; 32]).load(key);
        assert_eq!(matches!(answer, LoadAnswer::Newer(_)), is_newer, "{answer:?}");
        assert_eq!(matches!(answer, LoadAnswer::Broken(_)), !is_newer, "{answer:?}");
        let message = inbox::sealed(&[1; 32], InboxMessage { body: vec![0x81, 0x17], ..message_of(key) });
        let message_error = inbox::event_of(&*store, &[1; 32], message).unwrap_err();
        assert_eq!(message_error == MessageError::Unavailable, is_newer, "{message_error:?}");
    }
}

/// A message without a seal.
fn message_of(execution: ExecutionKey) -> InboxMessage {
    InboxMessage { execution, partition: 0, id: "message".into(), body: Vec::new(), enqueued_at: START }
}

/// With work quadratic in the number of branches, this test would not end.
#[test]
fn a_wide_parallel_takes_linear_time() {
    let steps: Vec<String> =
        (0..50_000).map(|number| format!(r#"{{"type":"bash","id":"s{number}","command":"true"}}"#)).collect();
    let text = format!(r#"{{"steps":[{{"type":"parallel","id":"p","steps":[{}]}}]}}"#, steps.join(","));
    let mut bench = Bench::new();
    bench.submit(&plan(&text));
    bench.commit_all();
    assert_eq!(bench.performed.len(), 10_000);
}

/// Receives all messages in the inbox.
fn receive_messages(bench: &mut Bench) {
    for arrived in bench.store.inbox(&[0], 0, ReadLimit::of(9)).unwrap() {
        let event = inbox::event_of(&*bench.store, &[1; 32], arrived.message).unwrap();
        bench.handle(event);
    }
}

#[test]
fn a_message_behind_an_unwritten_start_is_kept() {
    let mut bench = Bench::on(Arc::new(MemoryStore::default()), START);
    let request = StartRequest::new(plan(r#"{"steps":[{"type":"signal","id":"s","signal":"n"}]}"#), "me");
    let start = Input::Start(Box::new(request.clone().start(bench.key)));
    let plans = request.stored_plans();
    for input in [&start, &Input::Cancel { reason: "c".into(), by: "parent".into() }] {
        let message = inbox::message(&[1; 32], bench.key, input, 1, START);
        assert!(bench.store.enqueue(&EnqueueRequest { plans: &plans, ..EnqueueRequest::of(&message, 1) }).unwrap());
    }
    let arrived = bench.store.inbox(&[0], 0, ReadLimit::of(9)).unwrap();
    // Both in one page and one commit.
    for arrived in arrived {
        bench.shard.handle(START, inbox::event_of(&*bench.store, &[1; 32], arrived.message).unwrap());
    }
    bench.handle(Event::Wake);
    bench.commit_unknown(false);
    bench.load();
    assert_eq!(std::mem::take(&mut bench.rescans_inbox), 1, "the beginning is to be read again");
    bench.commit_all();
    receive_messages(&mut bench);
    bench.commit_all();
    assert!(bench.store.inbox(&[0], 0, ReadLimit::of(9)).unwrap().is_empty());
    assert_eq!(bench.state().status(), ExecutionStatus::Cancelled);
}

/// Effects of its organization take all permits. Its timeout is for its script and not for those of others.
#[test]
fn the_timeout_of_an_attempt_starts_with_it() {
    let instance = Instance { step: 0, rounds: Vec::new() };
    let begin = |execution| Event::Began { execution, instance: instance.clone(), attempt: 1 };
    for waited_ms in [0, 7_000, PERMIT_WAIT_MS_MAX - 1] {
        let mut bench = Bench::new();
        bench.submit(&plan(r#"{"steps":[{"type":"bash","id":"a","command":"true","timeoutMs":1000}]}"#));
        bench.commit_all();
        bench.shard.wait_for_permit(bench.key, &instance, 1);
        bench.now += waited_ms;
        bench.handle(Event::Wake);
        bench.commit_all();
        assert_eq!(bench.stopped, [0; 0], "it waits for a permit");
        bench.handle(begin(bench.key));
        bench.now += 999;
        bench.handle(Event::Wake);
        bench.commit_all();
        assert_eq!(bench.stopped, [0; 0], "after {waited_ms} ms");
        assert_eq!(bench.shard.next_wake(), Some(bench.now + 1));
        bench.now += 1;
        bench.handle(Event::Wake);
        bench.commit_all();
        assert_eq!(bench.stopped, [1], "after {waited_ms} ms");
    }
    // It does not wait forever.
    let mut bench = Bench::new();
    bench.submit(&plan(r#"{"steps":[{"type":"bash","id":"a","command":"true","timeoutMs":1000}]}"#));
    bench.commit_all();
    bench.shard.wait_for_permit(bench.key, &instance, 1);
    bench.now += 1_000 + PERMIT_WAIT_MS_MAX;
    bench.handle(Event::Wake);
    bench.commit_all();
    assert_eq!(bench.stopped, [1]);
}
