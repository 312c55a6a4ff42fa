//! Frames decode to what was encoded, and damaged frames are rejected.

use alloc::{boxed::Box, format, string::ToString, vec, vec::Vec};

use super::*;
use crate::{
    budget::{Budget, Limits, Usage},
    effect::{ChildEnd, Outcome, PinnedTool, Report},
    evaluation::Evaluated,
    failure::{Class, Failure},
    hash::hex,
    input::{Lineage, Parent, Pinned, Policy, Queue, Start, Timer},
    instance::Instance,
    key::ExecutionKey,
    leases::LeaseChange,
    plan::Decision,
    record::{Ending, FailureDisposition, HaltReason, Payload, Purpose, SkipReason, StopReason},
    value::Value,
};

fn salt_of(place: usize) -> [u8; 16] {
    [place as u8 + 1; 16]
}

fn instance() -> Instance {
    Instance { step: 3, rounds: vec![1, 300] }
}

fn policy() -> Policy {
    Policy { max_steps: 50, max_parallel: 4, timeout_ms: Some(1000), max_output_bytes: None }
}

fn failure() -> Failure {
    Failure::new(Class::Failed, "bash_exit_code:3", "it said no").with_details(Value::from("details"))
}

fn text(text: &str) -> Value {
    Value::text(text)
}

fn start() -> Start {
    Start {
        execution_id: "e".into(),
        workflow_hash: Hash::of(b"w"),
        plan_hash: Hash::of(b"p"),
        input: text("input"),
        variables: text("variables"),
        trigger: text("trigger"),
        policy: policy(),
        attempt: 1,
        by: "owner".into(),
        workspace: Some("/w".into()),
        lineage: None,
        queue: None,
    }
}

/// Inputs of the first release.
fn inputs() -> Vec<Input> {
    let receipt = |outcome| Input::Receipt { instance: instance(), attempt: 2, outcome };
    let mut inputs = vec![Input::Start(start().into())];
    inputs.extend(
        [
            Outcome::Done(text("done")),
            Outcome::Failed(failure()),
            Outcome::Stopped(text("stopped")),
            Outcome::Interrupted,
        ]
        .map(receipt),
    );
    let timers = [
        Timer::Deadline,
        Timer::Attempt(instance(), 1),
        Timer::Retry(instance(), 2),
        Timer::Sleep(instance()),
        Timer::Gate(instance(), 1),
    ];
    inputs.extend(timers.map(Input::Timer));
    let (decision, by) = (Decision::Deny, "owner".into());
    inputs.push(Input::Decide { instance: instance(), gate: 1, decision, by, reason: text("reason") });
    inputs.push(Input::Signal { id: "i".into(), name: "n".into(), payload: text("payload") });
    inputs.push(Input::Cancel { reason: "r".into(), by: "owner".into() });
    inputs.push(Input::Continue);
    inputs
}

fn records() -> Vec<Record> {
    let payload = |value: &str| Payload::Known(text(value));
    let started = Record::Started {
        execution_id: "e".into(),
        workflow_hash: Hash::of(b"w"),
        plan_hash: Hash::of(b"p"),
        decide_version: 1,
        policy: policy(),
        attempt: 1,
        by: "owner".into(),
        input: payload("input"),
        variables: payload("variables"),
        context: payload("context"),
        deadline: None,
    };
    let gate = Record::GateOpened {
        instance: instance(),
        gate: 1,
        question: payload("question"),
        approvers: vec!["a".into(), "b".into()],
        count: 2,
        expires_at: 99,
        on_timeout: Decision::Approve,
        purpose: Purpose::Interrupted,
    };
    let (decision, reason) = (Decision::Approve, payload("reason"));
    vec![
        started,
        Record::StepSkipped { instance: instance(), reason: SkipReason::ConditionFalse },
        Record::StepStarted { instance: instance(), input: payload("resolved"), intent: Some(Hash::of(b"i")) },
        Record::BranchTaken { instance: instance(), block: Some(2) },
        Record::AttemptStarted { instance: instance(), attempt: 1, timeout_at: Some(7) },
        Record::AttemptStopping { instance: instance(), attempt: 1, reason: StopReason::Ending },
        Record::AttemptFailed { instance: instance(), attempt: 1, fault: failure().into(), retry_at: Some(9) },
        Record::WaitStarted { instance: instance(), until: None },
        gate,
        Record::GateDecided { instance: instance(), gate: 1, decision, by: None, reason },
        Record::StepCompleted { instance: instance(), output: payload("output") },
        Record::StepFailed {
            instance: instance(),
            fault: failure().into(),
            disposition: FailureDisposition::Tolerated,
        },
        Record::StepCancelled { instance: instance(), reason: "r".into() },
        Record::SignalKept { id: "i".into(), name: "n".into(), payload: payload("payload") },
        Record::SignalTaken { instance: instance(), id: "i".into() },
        Record::CancelRequested { reason: "r".into(), by: "owner".into() },
        Record::DeadlineHeld { remaining_ms: 5 },
        Record::DeadlineSet { at: 6 },
        Record::EndingBegun { ending: Ending::Completed { output: payload("output") } },
        Record::EndingBegun {
            ending: Ending::Failed { fault: failure().into(), instance: Some(instance()), stops: true },
        },
        Record::EndingBegun { ending: Ending::Cancelled { reason: "r".into() } },
        Record::Ended { with_failures: true },
        Record::TurnSplit,
        Record::TurnJoined,
    ]
}

fn frame(input: Input) -> Frame {
    let (before, now, results) = (Hash::of(b"before"), 1_700_000_000_000, Vec::new());
    Frame { sequence: 4, before, now, input, results, records: records() }
}

/// Records added with loops, graphs, functions and child executions.
fn second_frame() -> Frame {
    let parent = Parent { execution: ExecutionKey([9; 16]), instance: instance(), attempt: 2 };
    let pinned = Pinned { name: "child".into(), workflow_hash: Hash::of(b"w"), plan_hash: Hash::of(b"p") };
    let lineage = Lineage { parent: Some(parent), depth: 1, workflows: vec![pinned], executions: None, budget: None };
    let input = Input::Start(Box::new(Start { lineage: Some(lineage.clone()), ..start() }));
    let results = vec![
        Evaluated { outcome: Ok(text("result")), log: text("log") },
        Evaluated { outcome: Err(failure()), log: Value::Null },
    ];
    let failed = |disposition| Record::StepFailed { instance: instance(), fault: failure().into(), disposition };
    let records = vec![
        Record::StepSkipped { instance: instance(), reason: SkipReason::NoEdgeTaken },
        Record::StepSkipped { instance: instance(), reason: SkipReason::ExecutionFailing },
        failed(FailureDisposition::Failed),
        failed(FailureDisposition::Handled),
        Record::RoundStarted { instance: instance(), round: 7 },
        Record::RoundEnded { instance: instance(), round: 7 },
        Record::FailureBoundReached { fault: failure().into() },
        Record::LineageSet { lineage },
        Record::StepLogged { instance: instance(), lines: Payload::Known(text("lines")) },
    ];
    Frame { results, records, ..frame(input) }
}

/// Inputs and records added with notifications of parents about the gates of their children.
fn third_frames() -> [Frame; 2] {
    let waits = Input::ChildWaits { instance: instance(), attempt: 2, count: 3 };
    let cancelled = Outcome::Cancelled("reason".into());
    let cancelled = Input::Receipt { instance: instance(), attempt: 2, outcome: cancelled };
    let records = vec![Record::ChildWaits { instance: instance(), count: 3 }, Record::ParentNotified];
    [waits, cancelled].map(|input| Frame { records: records.clone(), ..frame(input) })
}

/// Inputs and records added with queues.
fn fourth_frames() -> Vec<Frame> {
    let lineage = || Lineage { parent: None, depth: 0, workflows: Vec::new(), executions: None, budget: None };
    let start = |queue, lineage| Input::Start(Box::new(Start { lineage, queue: Some(queue), ..start() }));
    let inputs = [
        start(Queue::User, None),
        start(Queue::Organization, Some(lineage())),
        start(Queue::Workflow, None),
        start(Queue::Admission, None),
        Input::Admit,
    ];
    let records = vec![Record::Queued { queue: Queue::Workflow }, Record::Admitted];
    inputs.into_iter().map(|input| Frame { records: records.clone(), ..frame(input) }).collect()
}

/// The gate before a call, added with policies of effects.
fn fifth_frame() -> Frame {
    let gate = Record::GateOpened {
        instance: instance(),
        gate: 1,
        question: Payload::Known(text("question")),
        approvers: Vec::new(),
        count: 1,
        expires_at: 3,
        on_timeout: Decision::Deny,
        purpose: Purpose::Call,
    };
    Frame { records: vec![gate], ..frame(Input::Continue) }
}

/// Inputs and records added with budgets.
fn sixth_frames() -> [Frame; 2] {
    let budget = Budget { limits: Limits([Some(1), None, Some(2), None, None]), asks: true, warn_percent: 80 };
    let lineage = Lineage { parent: None, depth: 0, workflows: Vec::new(), executions: None, budget: Some(budget) };
    let begins = Input::Start(Box::new(Start { lineage: Some(lineage), ..start() }));
    let usage = Usage { tokens: 1, cost: 2, model_calls: 3, tool_calls: 4, time_ms: 5 };
    let end = ChildEnd::Done(text("output"));
    let outcome = Outcome::ChildWithUsage { end, executions: 2, usage: Box::new(usage), raised: Box::new(usage) };
    let child = Input::Receipt { instance: instance(), attempt: 1, outcome };
    let gate = Record::GateOpened {
        instance: instance(),
        gate: 1,
        question: Payload::Known(text("question")),
        approvers: Vec::new(),
        count: 1,
        expires_at: 3,
        on_timeout: Decision::Deny,
        purpose: Purpose::Budget,
    };
    let Record::GateOpened { question, approvers, .. } = gate.clone() else { unreachable!("it is one") };
    let asked = Record::GateOpened {
        instance: instance(),
        gate: 2,
        question,
        approvers,
        count: 1,
        expires_at: 3,
        on_timeout: Decision::Deny,
        purpose: Purpose::Question,
    };
    let records = vec![
        Record::BudgetReserved { instance: instance(), amount: usage },
        Record::BudgetSettled { instance: instance(), amount: usage },
        Record::BudgetRaised { agent: Some(instance()), amount: usage },
        Record::BudgetWarned { agent: None, usage },
        gate,
        asked,
    ];
    [begins, child].map(|input| Frame { records: records.clone(), ..frame(input) })
}

/// The input and the records added with `finally`.
fn seventh_frame() -> Frame {
    let records = vec![
        Record::FinallyBegun { outcome: "failed".into(), deadline: 7 },
        Record::FinallyHalted { reason: HaltReason::Timeout, by: None },
        Record::FinallyHalted { reason: HaltReason::Cancelled, by: Some("owner".into()) },
        Record::FinallyEnded,
    ];
    Frame { records, ..frame(Input::SkipCleanup { by: "owner".into() }) }
}

/// The input and the records added with conversations.
fn eighth_frame() -> Frame {
    let kept = |from, by| Record::MessageKept {
        conversation: "chat".into(),
        from,
        by,
        id: "1".into(),
        content: Payload::Known(text("hello")),
    };
    let records = vec![
        kept(Some(instance()), None),
        kept(None, Some("owner".into())),
        Record::MessagesRead { instance: instance(), count: 2 },
        Record::AttemptStopping { instance: instance(), attempt: 1, reason: StopReason::Message },
    ];
    let (conversation, content) = (Some("chat".into()), text("hello"));
    let input = Input::Message { id: "1".into(), conversation, content, interrupt: true, by: "owner".into() };
    Frame { records, ..frame(input) }
}

/// The inputs and the records added with leases of budgets.
fn lease_frames() -> [Frame; 2] {
    let notice = || Payload::Known(text("notice"));
    let usage = Usage { tokens: 1, cost: 2, model_calls: 3, tool_calls: 4, time_ms: 0 };
    let amount = Limits([Some(1), None, Some(2), None, None]);
    let granted = || LeaseChange::Granted { amount, until: 7, notice: notice() };
    let refused = || LeaseChange::Refused { notice: notice() };
    let changed = |change| Record::LeaseChanged { lease: 2, change };
    let records = vec![
        Record::LeaseAwaited { instance: instance(), attempt: 1, lease: 2, amount: usage },
        changed(granted()),
        changed(refused()),
        changed(LeaseChange::Returned { spent: usage }),
    ];
    let inputs = [granted(), refused()].map(|change| Input::Lease { lease: 2, change });
    inputs.map(|input| Frame { records: records.clone(), ..frame(input) })
}

/// The outcomes and the records added with reports of attempts.
fn reported_frames() -> [Frame; 3] {
    let tools = || vec![PinnedTool { name: "s.x".into(), digest: Hash::of(b"x") }];
    let form = Record::GateOpened {
        instance: instance(),
        gate: 1,
        question: Payload::Known(text("question")),
        approvers: Vec::new(),
        count: 1,
        expires_at: 3,
        on_timeout: Decision::Deny,
        purpose: Purpose::Form,
    };
    let records = vec![
        Record::ToolsPinned { tools: tools() },
        Record::AttemptContinued { instance: instance(), attempt: 1, handle: Payload::Known(text("handle")) },
        Record::AttemptResumed { instance: instance(), attempt: 1, timeout_at: Some(7) },
        form,
    ];
    let asked = Report::Asked { question: text("question"), handle: text("handle") };
    [Report::Tools(tools()), Report::Continued(text("handle")), asked].map(|report| {
        let outcome = Outcome::Reported(Box::new(report));
        let receipt = Input::Receipt { instance: instance(), attempt: 1, outcome };
        Frame { records: records.clone(), ..frame(receipt) }
    })
}

fn frames() -> Vec<Frame> {
    let later = [second_frame()].into_iter().chain(third_frames()).chain(fourth_frames()).chain([fifth_frame()]);
    let later = later
        .chain(sixth_frames())
        .chain([seventh_frame(), eighth_frame()])
        .chain(lease_frames())
        .chain(reported_frames());
    inputs().into_iter().map(frame).chain(later).collect()
}

#[test]
fn every_kind_is_read_back() {
    for frame in frames() {
        assert_eq!(Input::decode(&frame.input.encode()), Ok(frame.input.clone()));
        let (stored, hash) = frame.store(&salt_of);
        assert_eq!(Frame::read(&stored), Ok((frame, hash)));
    }
}

/// The bytes of frames are frozen, because every later release must read the journals of this one.
#[test]
fn the_bytes_are_frozen() {
    let hashes: Vec<_> = inputs().into_iter().map(|input| frame(input).store(&salt_of).1.hex()).collect();
    let together = Hash::of(hashes.concat().as_bytes()).hex();
    assert_eq!(together, include_str!("frozen.txt").trim(), "frames changed: a stored journal could not be read");
    let second = second_frame().store(&salt_of).1.hex();
    assert_eq!(second, include_str!("frozen-2.txt").trim(), "frames changed: a stored journal could not be read");
    let third = third_frames().map(|frame| frame.store(&salt_of).1.hex());
    let third = Hash::of(third.concat().as_bytes()).hex();
    assert_eq!(third, include_str!("frozen-3.txt").trim(), "frames changed: a stored journal could not be read");
    let fourth = fourth_frames().into_iter().map(|frame| frame.store(&salt_of).1.hex()).collect::<Vec<_>>();
    let fourth = Hash::of(fourth.concat().as_bytes()).hex();
    assert_eq!(fourth, include_str!("frozen-4.txt").trim(), "frames changed: a stored journal could not be read");
    let fifth = fifth_frame().store(&salt_of).1.hex();
    assert_eq!(fifth, include_str!("frozen-5.txt").trim(), "frames changed: a stored journal could not be read");
    let sixth = sixth_frames().map(|frame| frame.store(&salt_of).1.hex());
    let sixth = Hash::of(sixth.concat().as_bytes()).hex();
    assert_eq!(sixth, include_str!("frozen-6.txt").trim(), "frames changed: a stored journal could not be read");
    let seventh = seventh_frame().store(&salt_of).1.hex();
    assert_eq!(seventh, include_str!("frozen-7.txt").trim(), "frames changed: a stored journal could not be read");
    let eighth = eighth_frame().store(&salt_of).1.hex();
    assert_eq!(eighth, include_str!("frozen-8.txt").trim(), "frames changed: a stored journal could not be read");
    let leases: Vec<_> = lease_frames().iter().map(|frame| frame.store(&salt_of).1.hex()).collect();
    let leases = Hash::of(leases.concat().as_bytes()).hex();
    assert_eq!(leases, include_str!("frozen-leases.txt").trim(), "frames changed: a stored journal could not be read");
    let reported = reported_frames().map(|frame| frame.store(&salt_of).1.hex());
    let reported = Hash::of(reported.concat().as_bytes()).hex();
    let frozen = include_str!("frozen-reports.txt").trim();
    assert_eq!(reported, frozen, "frames changed: a stored journal could not be read");
    let (stored, _) = Frame { records: Vec::new(), ..frame(Input::Continue) }.store(&salt_of);
    let before = Hash::of(b"before").hex();
    assert_eq!(hex(&stored.frame), format!("8701045820{before}1b0000018bcfe5680081068080"));
}

#[test]
fn equal_bodies_are_stored_once() {
    let output = || Payload::Known(text("same"));
    let records = vec![
        Record::StepCompleted { instance: instance(), output: output() },
        Record::EndingBegun { ending: Ending::Completed { output: output() } },
    ];
    let input = Input::Receipt { instance: instance(), attempt: 1, outcome: Outcome::Done(text("same")) };
    assert_eq!(Frame { records, ..frame(input) }.store(&salt_of).0.values.len(), 1);
}

#[test]
fn every_flipped_byte_is_detected() {
    for frame in frames() {
        let (stored, hash) = frame.store(&salt_of);
        for place in 0..stored.frame.len() {
            let mut flipped = stored.clone();
            flipped.frame[place] ^= 1 << (place % 8);
            // The hash chain detects each flipped bit. A frame with a flipped bit that still decodes must have another
            // hash.
            assert!(Frame::read(&flipped).is_err() || Frame::read(&flipped).unwrap().1 != hash);
        }
        for place in 0..stored.values.len() {
            let mut flipped = stored.clone();
            flipped.values[place].salt[place % 16] ^= 1;
            assert!(Frame::read(&flipped).is_err());
            let mut flipped = stored.clone();
            flipped.values[place].body.as_mut().unwrap()[0] ^= 1;
            assert!(Frame::read(&flipped).is_err());
        }
    }
}

#[test]
fn erased_values_are_marked_and_keep_the_hash_chain() {
    let (mut stored, hash) = frame(Input::Continue).store(&salt_of);
    let place =
        stored.values.iter().position(|value| value.body == Some(crate::cbor::encode(&text("output")))).unwrap();
    stored.values[place] = StoredValue { salt: [0; 16], body: None };
    let (read, read_hash) = Frame::read(&stored).unwrap();
    assert_eq!(read_hash, hash);
    assert!(read.records.contains(&Record::StepCompleted { instance: instance(), output: Payload::Erased }));
    assert!(read.records.contains(&Record::EndingBegun { ending: Ending::Completed { output: Payload::Erased } }));
    assert_eq!(Frame::erased(&stored).collect::<Vec<_>>(), [place]);

    stored.values.pop();
    let error = Frame::read(&stored).unwrap_err().to_string();
    assert!(error.contains("is not there"), "{error}");
}

#[test]
fn a_newer_frame_is_refused_with_its_version() {
    let (mut stored, _) = frame(Input::Continue).store(&salt_of);
    stored.frame[1] = 2;
    assert!(Frame::read(&stored).unwrap_err().to_string().contains("version 2"));
}

#[test]
fn the_version_of_a_start_is_read_from_a_frame_with_unknown_content() {
    for frame in frames() {
        let begins = matches!(frame.records.first(), Some(Record::Started { .. }));
        let (stored, _) = frame.store(&salt_of);
        assert_eq!(Frame::decide_version(&stored), begins.then_some(1), "{:?}", frame.records.first());
    }
    let mut begins = frame(Input::Start(Box::new(start())));
    let Some(Record::Started { decide_version, .. }) = begins.records.first_mut() else { panic!("it begins") };
    *decide_version = 77;
    begins.records.push(Record::Admitted);
    let (mut stored, _) = begins.store(&salt_of);
    // A record that this build does not know.
    *stored.frame.last_mut().unwrap() = 0x63;
    assert!(Frame::read(&stored).unwrap_err().to_string().contains("newer release"));
    assert_eq!(Frame::decide_version(&stored), Some(77));
    for length in 0..stored.frame.len() {
        // A truncated frame gives the version or nothing, never a wrong version.
        let cut = StoredFrame { frame: stored.frame[..length].to_vec(), ..stored.clone() };
        assert!(matches!(Frame::decide_version(&cut), None | Some(77)));
    }
}
