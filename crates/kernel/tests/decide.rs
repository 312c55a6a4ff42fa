//! Tests of `decide`, record by record. A case is a text with one line for each input and the resulting records.

#[path = "decide/agent_failures.rs"]
mod agent_failures;
#[path = "decide/children.rs"]
mod children;
#[path = "decide/depth.rs"]
mod depth;
#[path = "decide/evaluations.rs"]
mod evaluations;
#[path = "decide/existence.rs"]
mod existence;
#[path = "decide/failures.rs"]
mod failures;
#[path = "decide/messages.rs"]
mod messages;
#[path = "decide/policy.rs"]
mod policy;
#[path = "decide/reports.rs"]
mod reports;
#[path = "decide/signals.rs"]
mod signals;

use std::{collections::BTreeSet, sync::Arc};

use mainspring_kernel::{
    apply::apply,
    cbor,
    decide::{Action, Turn, decide_with, open_attempt},
    definition::{Syntax, compile, read},
    effect::{Attempt, Outcome, PinnedTool, Progress, Report},
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    hash::Hash,
    input::{Input, Lineage, Parent, Pinned, Policy, Queue, Start, Timer},
    instance::Instance,
    key::ExecutionKey,
    limits::{
        LOOP_ITEMS_MAX, OUTPUT_BYTES_MAX, TURN_BYTES_MAX, TURN_EVALUATIONS_MAX, TURN_RECORDS_MAX, VALUE_BYTES_MAX,
    },
    plan::{Decision, Plan},
    record::{Ending, Payload, Record},
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

const KEY: ExecutionKey = ExecutionKey([7; 16]);

fn fresh(key: ExecutionKey, steps: &str) -> State {
    let document = read(format!("steps:\n{steps}").as_bytes(), Syntax::Yaml).expect("it reads");
    State::new(key, Arc::new(compile(&document).expect("it compiles").plan))
}

fn start(input: Value) -> Input {
    Input::Start(Box::new(Start {
        execution_id: "case".into(),
        workflow_hash: Hash::default(),
        plan_hash: Hash::default(),
        input,
        variables: Value::Map(Map::new()),
        trigger: Value::Null,
        policy: Policy { max_steps: 50, max_parallel: 4, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    }))
}

/// Processes an input, which must be legal.
fn take_in(state: &mut State, input: &Input, now: u64) -> Turn {
    decide_with(state, input, now, |_| Vec::new()).expect("legal")
}

/// Processes an input and all turns that continue it, and returns them as one turn.
fn take_in_whole(
    state: &mut State,
    input: &Input,
    now: u64,
    mut answer: impl FnMut(&[&Evaluation]) -> Vec<Evaluated>,
) -> Turn {
    let mut whole = decide_with(state, input, now, &mut answer).expect("legal");
    while state.journal.is_split {
        let turn = decide_with(state, &Input::Continue, now, &mut answer).expect("legal");
        whole.records.pop();
        whole.records.extend(turn.records);
        whole.results.extend(turn.results);
        whole.actions.extend(turn.actions);
        whole.messages.extend(turn.messages);
    }
    whole
}

fn at(plan: &Plan, step: &str) -> Instance {
    Instance::parse(step, plan).expect("a step of the plan")
}

/// Returns a start in a queue for an execution with a timeout of one second.
fn start_in(queue: Queue) -> Input {
    let Input::Start(start) = start(Value::Null) else { unreachable!("it is one") };
    let policy = Policy { timeout_ms: Some(1000), ..start.policy };
    Input::Start(Box::new(Start { policy, queue: Some(queue), ..*start }))
}

/// Returns a start for an execution that may start the workflow `other` and has `depth` ancestors.
fn start_among(depth: u32, parent: Option<Parent>) -> Box<Start> {
    let Input::Start(start) = start(Value::Null) else { unreachable!("it is one") };
    let pinned = Pinned { name: "other".into(), workflow_hash: Hash::default(), plan_hash: Hash::default() };
    Box::new(Start {
        lineage: Some(Lineage { parent, depth, workflows: vec![pinned], executions: None, budget: None }),
        ..*start
    })
}

/// Parses an input: `start`, `start of 0 1` with items, `start parent`, `queue user`, `admit`, `time over`, `a#1 done`,
/// `a#1 cancelled user`, `a#1 waits 1`, `a#2 due`, `a gate 1 due`, `a gate 1 approve ann`, `signal go s1`, and
/// `cancel word`.
fn input(plan: &Plan, words: &str) -> Input {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let attempt =
        |text: &str| text.split_once('#').map(|(step, attempt)| (at(plan, step), number(attempt))).expect("#");
    match words.split(' ').collect::<Vec<_>>()[..] {
        ["start"] => start(Value::Null),
        ["start", "of", ref items @ ..] => {
            start(items.iter().map(|item| Value::from(u64::from(number(item)))).collect::<Vec<_>>().into())
        }
        ["start", "parent"] => Input::Start(start_among(0, None)),
        ["queue", "user"] => start_in(Queue::User),
        ["queue", "workflow"] => start_in(Queue::Workflow),
        ["admit"] => Input::Admit,
        ["time", "over"] => Input::Timer(Timer::Deadline),
        ["signal", name, id] => Input::Signal { id: id.into(), name: name.into(), payload: Value::Null },
        ["cancel", reason] => Input::Cancel { reason: reason.into(), by: "ann".into() },
        [step, "gate", gate, "due"] => Input::Timer(Timer::Gate(at(plan, step), number(gate))),
        [step, "gate", gate, "accept", content] => Input::Decide {
            instance: at(plan, step),
            gate: number(gate),
            decision: Decision::Approve,
            by: "ann".into(),
            reason: Value::map([("content", Value::map([("name", content.into())]))]),
        },
        [step, "gate", gate, decision, by] => Input::Decide {
            instance: at(plan, step),
            gate: number(gate),
            decision: Decision::parse(decision).expect("a decision"),
            by: by.into(),
            reason: Value::Null,
        },
        [which, "cancelled", reason] => {
            let (instance, attempt) = attempt(which);
            Input::Receipt { instance, attempt, outcome: Outcome::Cancelled(reason.into()) }
        }
        [which, "waits", count] => {
            let (instance, attempt) = attempt(which);
            Input::ChildWaits { instance, attempt, count: number(count) }
        }
        [which, "due"] => {
            let (instance, attempt) = attempt(which);
            Input::Timer(Timer::Retry(instance, attempt))
        }
        [which, outcome] => {
            let (instance, attempt) = attempt(which);
            let outcome = match outcome {
                "done" => Outcome::Done(Value::Null),
                "failed" => Outcome::Failed(Failure::new(Class::Failed, "no", "no")),
                "down" => Outcome::Failed(Failure::new(Class::Transient, "down", "down")),
                "stopped" => Outcome::Stopped(Value::Null),
                "interrupted" => Outcome::Interrupted,
                "pins" => Outcome::Reported(Box::new(Report::Tools(vec![PinnedTool {
                    name: "s.x".into(),
                    digest: Hash::of(b"x"),
                }]))),
                "continues" => Outcome::Reported(Box::new(Report::Continued("task 1".into()))),
                "asks" => {
                    Outcome::Reported(Box::new(Report::Asked { question: form_question(), handle: "held".into() }))
                }
                _ => panic!("no outcome: {outcome}"),
            };
            Input::Receipt { instance, attempt, outcome }
        }
        _ => panic!("no input: {words}"),
    }
}

fn form_question() -> Value {
    let name = Value::map([("type", "string".into()), ("minLength", 2u32.into())]);
    let properties = Value::map([("name", name)]);
    let form = Value::map([
        ("type", "object".into()),
        ("properties", properties),
        ("required", vec![Value::from("name")].into()),
    ]);
    Value::map([("server", "s".into()), ("tool", "x".into()), ("message", "Who?".into()), ("form", form)])
}

/// Formats a record: its name, its step, and the detail that distinguishes it from others of its kind.
fn words(plan: &Plan, record: &Record) -> String {
    let debug = format!("{record:?}");
    let name = debug.split([' ', '{']).next().unwrap_or_default();
    let step = record.instance().map(|instance| format!(" {}", instance.name(plan))).unwrap_or_default();
    let detail = match record {
        Record::AttemptStarted { attempt, .. }
        | Record::AttemptStopping { attempt, .. }
        | Record::AttemptContinued { attempt, .. }
        | Record::AttemptResumed { attempt, .. }
        | Record::AttemptFailed { attempt, .. } => format!("#{attempt}"),
        Record::GateOpened { gate, .. } | Record::GateDecided { gate, .. } => format!(" gate {gate}"),
        Record::StepFailed { fault, .. } => format!(" {}", fault.code),
        Record::StepCancelled { reason, .. } => format!(" {reason}"),
        Record::Queued { queue } => format!(" {}", queue.name()),
        Record::DeadlineHeld { remaining_ms } => format!(" {remaining_ms}"),
        Record::DeadlineSet { at } => format!(" {at}"),
        Record::SignalKept { id, .. } | Record::SignalTaken { id, .. } => format!(" {id}"),
        Record::EndingBegun { ending: Ending::Completed { .. } } => " completed".into(),
        Record::EndingBegun { ending: Ending::Failed { fault, .. } } => format!(" failed {}", fault.code),
        Record::EndingBegun { ending: Ending::Cancelled { reason } } => format!(" cancelled {reason}"),
        _ => String::new(),
    };
    format!("{name}{step}{detail}")
}

fn records_words(plan: &Plan, turn: &Turn) -> String {
    let records: Vec<_> = turn.records.iter().map(|record| words(plan, record)).collect();
    if records.is_empty() { "nothing".into() } else { records.join(", ") }
}

/// A queued execution starts no step and keeps its signals. Its deadline counts from its admission.
#[test]
fn a_queued_execution_starts_when_it_is_admitted() {
    let steps = "  - {id: go, type: signal, signal: go}\n  - {id: a, type: tool, tool: A}\n";
    let state = check(
        steps,
        "0 queue user: Started, Queued user, DeadlineHeld 1000
         5000 time over: nothing
         5001 signal go s1: SignalKept s1
         5002 a#1 done: nothing
         6000 admit: Admitted, StepStarted go, SignalTaken go s1, StepCompleted go, StepStarted a, AttemptStarted a#1, \
                     DeadlineSet 7000
         6001 admit: nothing
         6999 time over: nothing
         7000 time over: EndingBegun failed execution_timeout:1000, AttemptStopping a#1
         7001 a#1 stopped: StepCancelled a execution_ending, Ended",
    );
    assert_eq!(state.status(), ExecutionStatus::Failed);
}

#[test]
fn an_execution_cancelled_in_a_queue_never_starts() {
    let state = check(
        "  - {id: a, type: tool, tool: A}\n",
        "0 queue workflow: Started, Queued workflow, DeadlineHeld 1000
         1 cancel enough: CancelRequested, EndingBegun cancelled enough, Ended
         2 admit: nothing",
    );
    assert_eq!((state.status(), state.steps.len()), (ExecutionStatus::Cancelled, 0));
    // An execution that was never queued ignores an admission.
    check(
        "  - {id: a, type: tool, tool: A}\n",
        "0 admit: nothing\n0 start: Started, StepStarted a, AttemptStarted a#1\n1 admit: nothing",
    );
}

/// An execution with an invalid input fails without waiting in the queue. Older versions of `decide` have no queue.
#[test]
fn an_execution_with_invalid_input_is_not_queued() {
    let text = "inputSchema: {type: object}\nsteps: [{id: a, type: tool, tool: A}]";
    let plan = Arc::new(compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan);
    for (outcome, expected) in [
        (Ok(Value::Null), "Queued user"),
        (Err(Failure::new(Class::Invalid, "no", "no")), "EndingBegun failed invalid_input"),
    ] {
        let mut state = State::new(KEY, plan.clone());
        let evaluated = Evaluated::of(outcome);
        let turn = decide_with(&mut state, &start_in(Queue::User), 0, |_| vec![evaluated.clone()]).expect("legal");
        assert_eq!(words(&plan, &turn.records[1]), expected);
        assert_eq!(state.status() == ExecutionStatus::Pending, expected.starts_with("Queued"));
    }
    let mut state = State { decide_version: 2, ..fresh(KEY, "  - {id: a, type: tool, tool: A}\n") };
    let turn = take_in(&mut state, &start_in(Queue::User), 0);
    assert_eq!(records_words(&state.plan, &turn), "Started, StepStarted a, AttemptStarted a#1");
}

/// Processes the inputs of a case, each at its time in milliseconds, and compares the records with the expected ones.
/// Returns the final state.
fn check(steps: &str, picture: &str) -> State {
    check_from(fresh(KEY, steps), picture)
}

/// The same, for an execution that has not begun.
fn check_from(mut state: State, picture: &str) -> State {
    let plan = state.plan.clone();
    let drawn: Vec<String> =
        picture.lines().map(|line| line.trim().into()).filter(|line: &String| !line.is_empty()).collect();
    let mut decided = Vec::new();
    for line in &drawn {
        let (what, _) = line.split_once(": ").expect("an input and what comes of it");
        let (now, input_words) = what.split_once(' ').expect("a time and an input");
        let now = now.parse().expect("milliseconds");
        let turn = take_in(&mut state, &input(&plan, input_words), now);
        decided.push(format!("{what}: {}", records_words(&plan, &turn)));
    }
    assert_eq!(decided, drawn, "\n{}\n", decided.join("\n"));
    state
}

#[test]
fn each_gate_of_an_interruption_has_its_own_number() {
    check(
        "- {id: pay, type: tool, tool: PAY, onInterrupted: ask}",
        "
        0 start: Started, StepStarted pay, AttemptStarted pay#1
        1 pay#1 interrupted: AttemptFailed pay#1, GateOpened pay gate 1
        2 pay gate 1 approve ann: GateDecided pay gate 1, AttemptStarted pay#2
        3 pay#2 interrupted: AttemptFailed pay#2, GateOpened pay gate 2
        4 pay gate 1 approve ann: nothing
        5 pay gate 2 approve ann: GateDecided pay gate 2, AttemptStarted pay#3
        6 pay#3 interrupted: AttemptFailed pay#3, GateOpened pay gate 3
        7 pay gate 3 due: nothing
        86400006 pay gate 3 due: GateDecided pay gate 3, StepFailed pay interrupted, EndingBegun failed interrupted, Ended
        ",
    );
}

/// A decision in the millisecond in which the gate expires is too late.
#[test]
fn a_decision_at_the_expiry_of_a_gate_is_too_late() {
    let steps = "- {id: gate, type: approval, ttlMs: 1000}";
    let begun = "0 start: Started, StepStarted gate, GateOpened gate gate 1";
    check(
        steps,
        &format!(
            "{begun}
            1000 gate gate 1 approve ann: nothing
            1000 gate gate 1 due: GateDecided gate gate 1, StepCancelled gate approval_timeout, EndingBegun cancelled approval_timeout, Ended"
        ),
    );
    check(
        steps,
        &format!(
            "{begun}
            999 gate gate 1 approve ann: GateDecided gate gate 1, StepCompleted gate, EndingBegun completed, Ended"
        ),
    );
}

/// A gate with a recorded decision does not expire. No turn ends between the two records, but a journal might.
#[test]
fn a_gate_that_is_decided_does_not_expire() {
    let mut state = fresh(KEY, "- {id: gate, type: approval, ttlMs: 1000, onTimeout: approve}");
    let plan = state.plan.clone();
    take_in(&mut state, &start(Value::Null), 0);
    let decided = Record::GateDecided {
        instance: at(&plan, "gate"),
        gate: 1,
        decision: Decision::Approve,
        by: Some("ann".into()),
        reason: Payload::Known(Value::Null),
    };
    apply(&mut state, &decided, 10).expect("legal");
    let turn = take_in(&mut state, &input(&plan, "gate gate 1 due"), 1000);
    assert_eq!(records_words(&plan, &turn), "nothing");
}

#[test]
fn a_cancelled_execution_has_the_reason() {
    let waits = "
        - id: all
          type: parallel
          steps:
            - {id: work, type: tool, tool: WORK}
            - {id: nap, type: sleep, durationMs: 1000}
            - {id: gate, type: approval}
        ";
    let begun = "0 start: Started, StepStarted all, StepStarted nap, WaitStarted nap, StepStarted gate, GateOpened gate gate 1, StepStarted work, AttemptStarted work#1";
    check(
        waits,
        &format!(
            "{begun}
            1 cancel too_late: CancelRequested, EndingBegun cancelled too_late, StepCancelled nap too_late, StepCancelled gate too_late, AttemptStopping work#1
            2 work#1 stopped: StepCancelled work execution_ending, StepCancelled all too_late, Ended
            "
        ),
    );
    check(
        waits,
        &format!(
            "{begun}
            1 gate gate 1 deny ann: GateDecided gate gate 1, StepCancelled gate approval_denied, EndingBegun cancelled approval_denied, StepCancelled nap approval_denied, AttemptStopping work#1
            2 work#1 stopped: StepCancelled work execution_ending, StepCancelled all approval_denied, Ended
            "
        ),
    );
    check(
        waits,
        &format!(
            "{begun}
            1 work#1 failed: StepFailed work no, StepCancelled nap sibling_failed, StepCancelled gate sibling_failed, StepFailed all no, EndingBegun failed no, Ended
            "
        ),
    );
}

/// Two steps wait after a first failure when a sibling fails. The one that waits for a retry fails with its own reason;
/// the gate of the other one is canceled.
#[test]
fn a_failure_cancels_open_gates_and_pending_retries() {
    check(
        "
        - id: all
          type: parallel
          steps:
            - {id: first, type: tool, tool: WORK}
            - {id: again, type: tool, tool: WORK}
            - {id: doubt, type: tool, tool: WORK, onInterrupted: ask}
        ",
        "
        0 start: Started, StepStarted all, StepStarted first, AttemptStarted first#1, StepStarted again, AttemptStarted again#1, StepStarted doubt, AttemptStarted doubt#1
        1 again#1 down: AttemptFailed again#1
        2 doubt#1 interrupted: AttemptFailed doubt#1, GateOpened doubt gate 1
        3 first#1 failed: StepFailed first no, StepFailed again down, StepCancelled doubt sibling_failed, StepFailed all no, EndingBegun failed no, Ended
        ",
    );
}

#[test]
fn a_signal_is_consumed_once_and_not_by_an_ending_execution() {
    check(
        "
        - {id: work, type: tool, tool: WORK}
        - {id: wait, type: signal, signal: go}
        - {id: more, type: tool, tool: WORK}
        ",
        "
        0 start: Started, StepStarted work, AttemptStarted work#1
        1 signal go s1: SignalKept s1
        2 signal go s1: nothing
        3 work#1 done: StepCompleted work, StepStarted wait, SignalTaken wait s1, StepCompleted wait, StepStarted more, AttemptStarted more#1
        4 signal go s1: nothing
        5 cancel user: CancelRequested, EndingBegun cancelled user, AttemptStopping more#1
        6 signal go s2: nothing
        7 more#1 stopped: StepCancelled more execution_ending, Ended
        ",
    );
}

/// Returns the attempts that start in the first turn.
fn sent_out(key: ExecutionKey, steps: &str, given: Value) -> Vec<Attempt> {
    let turn = take_in(&mut fresh(key, steps), &start(given), 0);
    let attempt = |action| match action {
        Action::Perform { attempt, .. } => *attempt,
        Action::Stop { .. } | Action::Lease { .. } => panic!("only attempts are due"),
    };
    turn.actions.into_iter().map(attempt).collect()
}

#[test]
fn an_input_has_an_exact_limit() {
    let steps = "- {id: a, type: tool, tool: T, arguments: {text: \"@input\"}}";
    let text = |bytes: usize| Value::Text("x".repeat(bytes));
    // The CBOR header of this text is as long as that of a text near the limit.
    let around = cbor::encode(&sent_out(KEY, steps, text(100_000))[0].params).len() - 100_000;
    let largest = sent_out(KEY, steps, text(VALUE_BYTES_MAX - around));
    assert_eq!(cbor::encode(&largest[0].params).len(), VALUE_BYTES_MAX);

    let mut state = fresh(KEY, steps);
    let turn = take_in(&mut state, &start(text(VALUE_BYTES_MAX - around + 1)), 0);
    let decided = records_words(&state.plan, &turn);
    assert_eq!(decided, "Started, StepFailed a input_too_large, EndingBegun failed input_too_large, Ended");
    assert_eq!(turn.actions, []);
}

/// The same limit applies to the input of a function.
#[test]
fn the_input_of_a_function_has_an_exact_limit() {
    let steps = "- {id: a, type: code, code: f, input: \"@input\"}";
    let around = cbor::encode(&Value::Text("x".repeat(100_000))).len() - 100_000;
    for (bytes, decided) in [
        (VALUE_BYTES_MAX, "Started, StepStarted a, StepCompleted a, EndingBegun completed, Ended"),
        (VALUE_BYTES_MAX + 1, "Started, StepFailed a input_too_large, EndingBegun failed input_too_large, Ended"),
        (VALUE_BYTES_MAX + 2, "Started, StepFailed a input_too_large, EndingBegun failed input_too_large, Ended"),
    ] {
        let mut state = fresh(KEY, steps);
        let given = start(Value::Text("x".repeat(bytes - around)));
        let answer = |_: &[&Evaluation]| vec![Evaluated { outcome: Ok(Value::Null), log: Value::Null }];
        let turn = take_in_whole(&mut state, &given, 0, answer);
        assert_eq!(records_words(&state.plan, &turn), decided, "{bytes}");
    }
}

/// A turn is split when it exceeds a limit of a frame: records, results of evaluations, or bytes.
#[test]
fn a_turn_is_cut_at_each_of_its_bounds() {
    let begin = |steps: &str, given: Value, gives: Value| {
        let mut state = fresh(KEY, steps);
        let Input::Start(mut begins) = start(given) else { unreachable!("it is one") };
        (begins.policy.max_steps, begins.policy.max_parallel) = (1_000_000, 10_000);
        let answer = |asked: &[&Evaluation]| asked.iter().map(|_| Evaluated::of(Ok(gives.clone()))).collect();
        let mut turn = decide_with(&mut state, &Input::Start(begins), 0, answer).expect("legal");
        if steps.contains("code") {
            // No function runs before the first frame is stored.
            assert!(turn.results.is_empty() && state.journal.is_split);
            turn = decide_with(&mut state, &Input::Continue, 0, answer).expect("legal");
        }
        (turn, state.journal.is_split)
    };
    let functions: String =
        (0..TURN_EVALUATIONS_MAX + 9).map(|at| format!("- {{id: f{at}, type: code, code: f}}\n")).collect();
    let (turn, is_split) = begin(&functions, Value::Null, Value::Null);
    assert_eq!((turn.results.len(), is_split), (TURN_EVALUATIONS_MAX, true));

    let skipped: String =
        (0..TURN_RECORDS_MAX + 9).map(|at| format!("- {{id: s{at}, type: tool, tool: T, when: false}}\n")).collect();
    let (turn, is_split) = begin(&skipped, Value::Null, Value::Null);
    assert_eq!((turn.records.len(), turn.results.len(), is_split), (TURN_RECORDS_MAX + 1, 0, true));

    // Inputs and outputs of functions count separately. Each value is slightly smaller than the limit, and there is one
    // more than fits.
    const SIZE: usize = OUTPUT_BYTES_MAX;
    let large = |bytes: usize| Value::Text("x".repeat(bytes - 1000));
    for (input, given, gives) in [(", input: '@input'", large(SIZE), Value::Null), ("", Value::Null, large(SIZE))] {
        let count = TURN_BYTES_MAX / SIZE + 1;
        let steps: String = (0..2 * count).map(|at| format!("- {{id: f{at}, type: code, code: f{input}}}\n")).collect();
        let (turn, is_split) = begin(&steps, given, gives);
        assert_eq!((turn.results.len(), is_split), (count, true), "{input}");
    }

    let text = large(VALUE_BYTES_MAX);
    let calls = 2 * TURN_BYTES_MAX / VALUE_BYTES_MAX;
    let branches: String = (0..calls)
        .map(|at| format!("  - {{id: t{at}, type: tool, tool: T, arguments: {{a: \"@input\"}}}}\n"))
        .collect();
    let (turn, is_split) = begin(&format!("- id: all\n  type: parallel\n  steps:\n{branches}"), text, Value::Null);
    assert!(is_split && turn.records.len() < TURN_RECORDS_MAX && turn.results.is_empty());
    assert!((1..calls).contains(&turn.actions.len()), "{} of {calls} calls", turn.actions.len());
}

#[test]
fn the_items_of_a_loop_have_an_exact_limit() {
    let steps = "- {id: l, type: loop, forEach: {ref: '@input'}, steps: [{id: a, type: tool, tool: T}]}";
    let begun = "Started, StepStarted l, RoundStarted l, StepStarted l[0].a, AttemptStarted l[0].a#1";
    let refused = "Started, StepFailed l too_many_items, EndingBegun failed too_many_items, Ended";
    for (items, decided) in [(LOOP_ITEMS_MAX, begun), (LOOP_ITEMS_MAX + 1, refused), (LOOP_ITEMS_MAX + 2, refused)] {
        let mut state = fresh(KEY, steps);
        let turn = take_in(&mut state, &start(vec![Value::Null; items].into()), 0);
        assert_eq!(records_words(&state.plan, &turn), decided, "{items}");
    }
}

/// External systems identify work by its intent. It must be the same for all attempts of the same work, and different
/// for other work.
#[test]
fn the_intent_depends_only_on_the_work() {
    let intent = |key, steps| sent_out(key, steps, Value::Null)[0].intent;
    let this = intent(KEY, "- {id: a, type: tool, tool: T, arguments: {n: 1}}");
    assert_eq!(this.hex(), "e4e0bb2fed4faba3bf69141d273ea19794d64cd02c6419ff2d4d26c108cba110");
    let others = [
        intent(ExecutionKey([8; 16]), "- {id: a, type: tool, tool: T, arguments: {n: 1}}"),
        intent(KEY, "- {id: b, type: tool, tool: T, arguments: {n: 1}}"),
        intent(KEY, "- {id: a, type: tool, tool: U, arguments: {n: 1}}"),
        intent(KEY, "- {id: a, type: tool, tool: T, arguments: {n: 2}}"),
        intent(KEY, "- {id: a, type: agent, goal: T}"),
        intent(KEY, "- {id: a, type: agent_message, goal: T}"),
    ];
    let all: BTreeSet<Hash> = others.into_iter().chain([this]).collect();
    assert_eq!(all.len(), 7);

    let again = "- {id: a, type: tool, tool: T, arguments: {n: 1}, retry: {maxAttempts: 3, initialDelayMs: 1000}}";
    let mut state = fresh(KEY, again);
    let plan = state.plan.clone();
    let mut intents = Vec::new();
    for (now, words) in [(0, "start"), (1, "a#1 interrupted"), (2, "a#2 down"), (10_000, "a#3 due")] {
        let turn = take_in(&mut state, &input(&plan, words), now);
        for action in turn.actions {
            let Action::Perform { attempt, .. } = action else { panic!("nothing is to be stopped") };
            intents.push((attempt.number, attempt.intent));
        }
    }
    assert_eq!(intents, [(1, this), (2, this), (3, this)]);
}

/// Returns the jitter of each retry of two steps that fail at the same times.
fn jitters(key: ExecutionKey) -> Vec<u64> {
    const DELAY_MS: u64 = 1_000_000_000;
    let retry = format!(
        "retry: {{maxAttempts: 4, initialDelayMs: {DELAY_MS}, maxDelayMs: {DELAY_MS}, backoff: fixed, jitter: 1}}"
    );
    let steps = format!(
        "- {{type: parallel, steps: [{{id: a, type: tool, tool: T, {retry}}}, {{id: b, type: tool, tool: T, {retry}}}]}}"
    );
    let mut state = fresh(key, &steps);
    let plan = state.plan.clone();
    take_in(&mut state, &start(Value::Null), 0);
    let mut jitters = Vec::new();
    for attempt in 1..=3 {
        for step in ["a", "b"] {
            let failed = input(&plan, &format!("{step}#{attempt} down"));
            let before = state.now;
            take_in(&mut state, &failed, before);
            let retry_at = state.steps[&at(&plan, step)].times.wake_at.expect("it is tried again");
            jitters.push(retry_at - before - DELAY_MS);
        }
        for step in ["a", "b"] {
            let due = input(&plan, &format!("{step}#{} due", attempt + 1));
            let now = state.now + 2 * DELAY_MS;
            take_in(&mut state, &due, now);
        }
    }
    assert!(jitters.iter().all(|jitter| *jitter <= DELAY_MS), "{jitters:?}");
    jitters
}

#[test]
fn each_delay_has_its_own_jitter_and_replay_repeats_it() {
    let (these, others) = (jitters(KEY), jitters(ExecutionKey([8; 16])));
    assert_eq!(these, jitters(KEY));
    let different: BTreeSet<u64> = these.into_iter().chain(others).collect();
    assert_eq!(different.len(), 12);
}

/// A turn may be split after a failure and before the halted steps are canceled. A decision to repeat an interrupted
/// attempt must have no effect in between.
#[test]
fn a_turn_split_by_a_failure_repeats_no_record() {
    let mut seen = 0;
    for skipped in TURN_RECORDS_MAX - 5..TURN_RECORDS_MAX {
        let mut steps = String::from(
            "  - {id: go, type: tool, tool: T}\n  - {id: doubt, type: tool, tool: T, onInterrupted: ask}\n",
        );
        steps.extend((0..skipped).map(|number| format!("  - {{id: s{number}, type: tool, tool: T, when: false}}\n")));
        steps += "  - {id: bad, type: tool, tool: T, when: {ref: '@input.no', gt: 1}}\norder: edges\nedges:\n";
        steps.extend((0..skipped).map(|number| format!("  - {{from: go, to: s{number}}}\n")));
        steps += "  - {from: go, to: bad}\n";
        let mut state = fresh(KEY, &steps);
        let plan = state.plan.clone();
        let mut turn = |words: &str| {
            let turn = take_in(&mut state, &input(&plan, words), 0);
            (turn, state.journal.is_split, state.open_gates().count())
        };
        turn("start");
        turn("doubt#1 interrupted");
        let (failing, is_split, open) = turn("go#1 done");
        let has_failed = failing.records.iter().any(|record| matches!(record, Record::StepFailed { .. }));
        if !has_failed || !is_split || open == 0 {
            continue;
        }
        seen += 1;
        let (late, ..) = turn("doubt gate 1 approve ann");
        assert!(!late.records.iter().any(|record| matches!(record, Record::AttemptStarted { .. })), "{skipped}");
        assert_eq!(state.open_gates().count(), 0);
    }
    assert_eq!(seen, 1, "no turn was cut between the failure and what follows from it");
}

/// A skipped `return` does not delay the next one.
#[test]
fn every_return_of_a_block_begins_before_its_siblings() {
    check(
        "
        - id: all
          type: parallel
          steps:
            - {id: nap, type: sleep, durationMs: 1000}
            - {id: no, type: return, when: false}
            - {id: yes, type: return}
        ",
        "0 start: Started, StepStarted all, StepSkipped no, StepStarted yes, StepCompleted yes, EndingBegun completed, StepCompleted all, Ended",
    );
}

/// Steps around a `return` that ended the execution complete, even if other steps inside them were canceled.
#[test]
fn a_block_that_contains_a_return_completes() {
    check(
        "
        - id: all
          type: parallel
          steps:
            - {id: one, type: conditional, condition: true, then: [{id: yes, type: return}]}
            - {id: nap, type: sleep, durationMs: 1000}
        ",
        "0 start: Started, StepStarted all, StepStarted one, BranchTaken one, StepStarted nap, WaitStarted nap, StepStarted yes, StepCompleted yes, EndingBegun completed, StepCancelled nap execution_ending, StepCompleted one, StepCancelled all execution_ending, Ended",
    );
}

/// A failure that halts a loop makes every block be checked again. The condition of a step that is ready to start must
/// not be evaluated a second time, because its result may have changed.
#[test]
fn a_ready_step_is_not_started_twice() {
    let steps = "
        - {id: first, type: code, code: f, outputVariable: flag}
        - id: all
          type: parallel
          steps:
            - id: one
              type: conditional
              condition: true
              then: [{id: x, type: tool, tool: T, when: {variable: flag, equals: 1}}]
            - id: two
              type: conditional
              condition: true
              then:
                - {id: second, type: code, code: f, outputVariable: flag}
                - id: l
                  type: loop
                  onError: continue
                  forEach: {ref: '@input'}
                  steps: [{id: bad, type: sleep, durationMs: '@item'}]
    ";
    let mut state = fresh(KEY, steps);
    let mut flag = 0u32;
    let turn = take_in_whole(&mut state, &start(vec!["no duration".into()].into()), 0, |_| {
        flag += 1;
        vec![Evaluated::of(Ok(flag.into()))]
    });
    assert_eq!(
        records_words(&state.plan, &turn),
        "Started, StepStarted first, StepCompleted first, StepStarted all, StepStarted one, BranchTaken one, StepStarted two, BranchTaken two, StepStarted second, StepCompleted second, StepStarted l, RoundStarted l, StepFailed l[0].bad invalid_duration, RoundEnded l, StepFailed l invalid_duration, StepCompleted two, StepStarted x, AttemptStarted x#1"
    );
}

/// After a split turn, the steps that still have to be checked are found again.
#[test]
fn steps_without_a_taken_edge_are_skipped_after_a_split() {
    let count = TURN_RECORDS_MAX + 9;
    let mut steps = String::from("- {id: go, type: tool, tool: T}\n");
    steps.extend((0..count).map(|at| format!("- {{id: s{at}, type: sleep, durationMs: 1000}}\n")));
    steps += "order: edges\nedges:\n";
    steps.extend((0..count).map(|at| format!("- {{from: go, to: s{at}, when: on_failure}}\n")));
    let mut state = fresh(KEY, &steps);
    let plan = state.plan.clone();
    take_in(&mut state, &start(Value::Null), 0);
    take_in(&mut state, &input(&plan, "go#1 done"), 0);
    let last = at(&plan, &format!("s{}", count - 1));
    assert_eq!((state.journal.is_split, state.step_status(&last)), (true, Status::Pending));
    take_in(&mut state, &Input::Continue, 0);
    assert_eq!((state.status(), state.step_status(&last)), (ExecutionStatus::Completed, Status::Skipped));
}
