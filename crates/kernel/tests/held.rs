//! Tests of the limits on memory and journal size of one execution. Ended rounds and inputs of ended steps are dropped,
//! the rest is counted, and an execution above a limit ends with the reason.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainspring_kernel::{
    decide::{Turn, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    hash::Hash,
    input::{Input, Lineage, Pinned, Policy, Start},
    instance::Instance,
    json,
    key::ExecutionKey,
    limits::{
        EXECUTION_MEMORY_BYTES_MAX, LOOP_ITEMS_MAX, OUTPUT_BYTES_MAX, SIGNAL_BYTES_MAX, VALUE_BYTES_MAX,
        VALUE_MEMORY_BYTES_MAX,
    },
    plan::Plan,
    record::{Ending, Record},
    state::{ExecutionStatus, SignalRejection, State, Status},
    value::{Map, Value},
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Serializes the tests of this program, because they share one allocator.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

const KEY: ExecutionKey = ExecutionKey([7; 16]);

fn plan_of(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan)
}

fn start(input: Value) -> Input {
    Input::Start(Box::new(Start {
        execution_id: "case".into(),
        workflow_hash: Hash::default(),
        plan_hash: Hash::default(),
        input,
        variables: Value::Map(Map::new()),
        trigger: Value::Null,
        policy: Policy { max_steps: 1_000_000, max_parallel: 10_000, timeout_ms: None, max_output_bytes: None },
        attempt: 1,
        by: "ann".into(),
        workspace: None,
        lineage: None,
        queue: None,
    }))
}

/// Processes an input, including split turns, until the execution waits or ends. Every function returns `output`.
fn take_in(state: &mut State, input: Input, output: &Value, mut seen: impl FnMut(&State, &Turn)) {
    let mut input = input;
    loop {
        let gives = |asked: &[&Evaluation]| vec![Evaluated::of(Ok(output.clone())); asked.len()];
        let turn = decide_with(state, &input, 0, gives).expect("legal");
        seen(state, &turn);
        if !state.journal.is_split {
            return;
        }
        input = Input::Continue;
    }
}

fn run(text: &str, input: Value, output: &Value, seen: impl FnMut(&State, &Turn)) -> State {
    let mut state = State::new(KEY, plan_of(text));
    take_in(&mut state, start(input), output, seen);
    state
}

fn code_of(state: &State) -> &str {
    match &state.end.ending {
        Some(Ending::Failed { fault, .. }) => &fault.code,
        Some(Ending::Completed { .. }) => "completed",
        _ => "none",
    }
}

fn items(count: u64) -> Value {
    (0..count).map(Value::from).collect::<Vec<_>>().into()
}

/// Returns a list of objects with one field, which takes the most memory for its encoded size.
fn dense(bytes: usize) -> Value {
    vec![Value::map([("a", Value::from(1u64))]); bytes / 4 - 2].into()
}

const SKIPS: &str = "steps: [{id: l, type: loop, forEach: {ref: '@input'}, steps: [{id: a, type: tool, tool: T, when: false}, {id: b, type: tool, tool: T, when: false}, {id: c, type: conditional, condition: true, then: [{id: d, type: tool, tool: T, when: false}]}]}]";

const WHILE: &str = "steps: [{id: l, type: loop, while: {ref: '@index', lt: N}, maxRounds: 1000000, steps: [{id: a, type: tool, tool: T, when: false}, {id: f, type: code, code: '() => 1'}]}]";

#[test]
fn ended_rounds_use_no_memory() {
    let _one = one();
    for (text, rounds) in [(SKIPS, 20_000), (&WHILE.replace('N', "3000"), 3_000)] {
        let most = std::cell::Cell::new(0);
        let state =
            run(text, items(rounds), &Value::from(1u64), |state, _| most.set(most.get().max(state.steps.len())));
        assert_eq!(code_of(&state), "completed", "{text}");
        // A turn may end some rounds beyond the open ones.
        assert!(most.get() < 40, "{} steps are held of {rounds} rounds", most.get());
        assert!(state.counts.memory_bytes < 5_000_000, "{} bytes", state.counts.memory_bytes);
    }
}

/// Failures of ended rounds are kept, because the outcome lists them.
#[test]
fn failures_of_ended_rounds_stay() {
    let _one = one();
    let text = "steps: [{id: l, type: loop, forEach: {ref: '@input', concurrency: 1}, steps: [{id: t, type: tool, tool: T, onError: continue}, {id: n, type: tool, tool: T, when: false}]}]";
    let mut state = run(text, items(3), &Value::Null, |_, _| {});
    for round in 0..3 {
        let instance = Instance { step: 1, rounds: vec![round] };
        let outcome = match round {
            1 => Outcome::Failed(Failure::new(Class::Failed, "no", "no")),
            _ => Outcome::Done(Value::from(7u64)),
        };
        take_in(&mut state, Input::Receipt { instance, attempt: 1, outcome }, &Value::Null, |_, _| {});
    }
    let names: Vec<String> = state.steps.keys().map(|instance| instance.name(&state.plan)).collect();
    assert_eq!((code_of(&state), names), ("completed", vec!["l".into(), "L[1].t".replace('L', "l")]));
    assert!(state.end.with_failures);
}

/// The condition of a loop reads the last round, and steps after the loop read its output.
#[test]
fn referenced_outputs_stay_in_memory() {
    let _one = one();
    let text = "steps: [{id: l, type: loop, until: {ref: '@f.n', gte: 3}, steps: [{id: f, type: code, code: '() => 1'}]}, {id: r, type: return, input: '@l.n'}]";
    let mut state = State::new(KEY, plan_of(text));
    let (mut calls, mut input) = (0u64, start(Value::Null));
    loop {
        let gives = |asked: &[&Evaluation]| {
            calls += 1;
            vec![Evaluated::of(Ok(Value::map([("n", Value::from(calls))]))); asked.len()]
        };
        decide_with(&mut state, &input, 0, gives).expect("legal");
        if !state.journal.is_split {
            break;
        }
        input = Input::Continue;
    }
    assert_eq!((calls, state.output()), (3, Some(&Value::from(3u64))));
}

/// A sequence of steps with large inputs keeps none of them in memory.
#[test]
fn the_input_of_an_ended_step_is_dropped() {
    let _one = one();
    let step = |number: usize| format!("{{id: s{number}, type: code, code: '() => 1', input: {{text: '@input'}}}}");
    let steps: Vec<String> = (0..40).map(step).collect();
    let text = format!("steps: [{}]\nconstraints: {{maxSteps: 100}}", steps.join(", "));
    let input = Value::from("x".repeat(3 << 20));
    let most = std::cell::Cell::new(0);
    let state = run(&text, input, &Value::Null, |state, _| most.set(most.get().max(state.counts.memory_bytes)));
    assert_eq!(code_of(&state), "completed");
    assert!(most.get() < 16 << 20, "{} bytes", most.get());
}

/// An execution ends when the outputs of its steps exceed the memory limit, and not before.
#[test]
fn an_execution_above_its_memory_ends() {
    let _one = one();
    let output = dense(OUTPUT_BYTES_MAX);
    let step = |number: usize| format!("{{id: s{number}, type: code, code: '() => 1'}}");
    let text_of = |count: usize| {
        let steps: Vec<String> = (0..count).map(step).collect();
        format!("steps: [{}]\nconstraints: {{maxSteps: 100}}", steps.join(", "))
    };
    let most = std::cell::Cell::new(0);
    let state = run(&text_of(40), Value::Null, &output, |state, _| most.set(most.get().max(state.counts.memory_bytes)));
    let expected = format!("memory_exceeded:{EXECUTION_MEMORY_BYTES_MAX}");
    assert_eq!((code_of(&state), state.status()), (expected.as_str(), ExecutionStatus::Failed));
    assert!(most.get() < EXECUTION_MEMORY_BYTES_MAX + (512 << 20), "{} bytes", most.get());
    assert_eq!(code_of(&run(&text_of(4), Value::Null, &output, |_, _| {})), "completed");
}

/// A receipt that arrives while the execution is ending is journaled and takes no memory.
#[test]
fn receipts_of_an_ending_execution_use_no_memory() {
    let _one = one();
    let text = "steps: [{id: l, type: loop, forEach: {ref: '@input', concurrency: 100}, steps: [{id: t, type: tool, tool: T}]}]";
    let mut state = run(text, items(50), &Value::Null, |_, _| {});
    take_in(&mut state, Input::Cancel { reason: "r".into(), by: "ann".into() }, &Value::Null, |_, _| {});
    let before = state.counts.memory_bytes;
    for round in 0..49 {
        let input = Input::Receipt {
            instance: Instance { step: 1, rounds: vec![round] },
            attempt: 1,
            outcome: Outcome::Done(dense(OUTPUT_BYTES_MAX)),
        };
        take_in(&mut state, input, &Value::Null, |_, turn| {
            assert!(turn.records.iter().any(|record| matches!(record, Record::StepCompleted { .. })));
        });
    }
    assert_eq!(state.status(), ExecutionStatus::CancelRequested);
    assert!(state.counts.memory_bytes <= before, "{} bytes, and {before} before", state.counts.memory_bytes);
}

/// A loop with too large outputs ends as soon as they exceed the limit, not after its last round.
#[test]
fn a_loop_ends_as_soon_as_its_outputs_are_too_large() {
    let _one = one();
    let text = "steps: [{id: l, type: loop, forEach: {ref: '@input', concurrency: 1}, steps: [{id: f, type: code, code: '() => 1'}]}]";
    let output = Value::from("y".repeat(OUTPUT_BYTES_MAX - 16));
    let most = std::cell::Cell::new(0);
    let state = run(text, items(1_000), &output, |state, _| most.set(most.get().max(state.counts.memory_bytes)));
    assert_eq!(code_of(&state), "output_too_large");
    let rounds = state.counts.visits - 1;
    assert!((16..20).contains(&rounds), "{rounds} rounds began");
    assert!(most.get() < 4 * VALUE_BYTES_MAX as u64, "{} bytes", most.get());
}

/// Repeated values fill the journal even if none of them stays in memory.
#[test]
fn an_execution_above_its_journal_ends() {
    let _one = one();
    let text = "steps: [{id: l, type: loop, while: true, maxRounds: 1000000, steps: [{id: t, type: code, code: '() => 1', input: {text: '@input'}}]}]";
    let state = run(text, "x".repeat(VALUE_BYTES_MAX - 64).into(), &Value::Null, |_, _| {});
    assert_eq!(code_of(&state), "journal_exceeded:1073741824");
    assert!((200..300).contains(&state.counts.visits), "{} visits", state.counts.visits);
}

/// The blocks that a turn opens count towards its limit, so a turn ends long before the largest possible number of
/// blocks.
#[test]
fn a_turn_opens_a_bounded_number_of_slots() {
    let _one = one();
    let step = |number: usize| format!("{{id: s{number}, type: tool, tool: T, when: false}}");
    let steps: Vec<String> = (0..5_000).map(step).collect();
    let head = "steps:\n- id: l\n  type: loop\n  forEach: {ref: '@input', concurrency: 10000}\n  steps:\n";
    let text = format!("{head}  - {{id: w, type: sleep, durationMs: 1000}}\n  - {}\n", steps.join("\n  - "));
    let mut turns = 0;
    let state = run(&text, items(300), &Value::Null, |_, turn| {
        let rounds = turn.records.iter().filter(|record| matches!(record, Record::RoundStarted { .. })).count();
        assert!(rounds <= 100, "{rounds} rounds of 5,000 steps began in one turn");
        turns += 1;
    });
    assert_eq!(state.status(), ExecutionStatus::Running);
    assert!(turns >= 4, "{turns} turns");
    assert!(state.counts.memory_bytes > 300 * 5_000 * 20, "{} bytes", state.counts.memory_bytes);
}

/// A signal that exceeds the memory limit is rejected.
#[test]
fn a_signal_beyond_the_memory_is_refused() {
    let _one = one();
    let text = "steps: [{id: s, type: signal, signal: go}]";
    let mut state = run(text, Value::Null, &Value::Null, |_, _| {});
    let payload = dense(SIGNAL_BYTES_MAX);
    for number in 0.. {
        let id = format!("n{number}");
        if let Some(rejection) = state.signal_rejection(&id, "other", &payload) {
            assert_eq!((rejection, number > 3), (SignalRejection::Full, true), "{number} signals");
            break;
        }
        let payload = payload.clone();
        take_in(&mut state, Input::Signal { id, name: "other".into(), payload }, &Value::Null, |_, _| {});
    }
    assert_eq!((state.status(), state.end.ending.is_none()), (ExecutionStatus::Running, true));
    assert!(state.counts.memory_bytes <= EXECUTION_MEMORY_BYTES_MAX);
}

/// The counted memory approximates the measured memory: at most a fifth too low, at most three times too high.
#[test]
fn the_memory_estimate_covers_the_allocator() {
    let _one = one();
    let texts = "steps: [{id: l, type: loop, forEach: {ref: '@input', concurrency: 10000}, steps: [{id: t, type: tool, tool: T}]}]";
    let values = [
        ("numbers", vec![Value::from(1u64); 100_000].into()),
        ("objects of one field", dense(200_000)),
        ("objects of twelve fields", {
            let fields = (0..12).map(|at| (format!("field-{at}"), Value::from("text"))).collect::<Map>();
            vec![Value::Map(fields); 3_000].into()
        }),
        ("texts", (0..20_000).map(|at| Value::from(format!("text number {at}"))).collect::<Vec<_>>().into()),
    ];
    for (name, input) in values {
        let plan = plan_of(if name == "numbers" { texts } else { "steps: [{id: t, type: tool, tool: T}]" });
        let input: Value = if name == "numbers" { items(5_000) } else { input };
        let before = ALLOCATOR.current_usage();
        let mut state = State::new(KEY, plan);
        take_in(&mut state, start(input.clone()), &Value::Null, |_, _| {});
        let held = (ALLOCATOR.current_usage() - before) as u64;
        let counted = state.counts.memory_bytes;
        assert!(held <= counted + counted / 4 + 64 * 1024, "{name}: {held} bytes are held, {counted} counted");
        assert!(counted <= 3 * held, "{name}: {held} bytes are held, {counted} counted");
        assert!(state.steps.values().any(|step| step.status == Status::Running));
    }
}

/// A child that waits for people is canceled when its parent ends, like a gate of the parent, and does not stop the
/// deadline of the parent.
#[test]
fn a_child_that_waits_for_an_approval_does_not_delay_an_end() {
    let _one = one();
    let text = "steps: [{id: p, type: parallel, steps: [{id: c, type: tool, tool: T}, {id: s, type: subworkflow, workflow: w}, {id: r, type: conditional, condition: true, then: [{id: w, type: tool, tool: T}, {id: e, type: return}]}]}]";
    let mut state = State::new(KEY, plan_of(text));
    let Input::Start(mut begins) = start(Value::Null) else { unreachable!() };
    begins.policy.timeout_ms = Some(3_000);
    begins.lineage = Some(Lineage {
        parent: None,
        depth: 0,
        workflows: vec![Pinned { name: "w".into(), workflow_hash: Hash::default(), plan_hash: Hash::default() }],
        executions: None,
        budget: None,
    });
    take_in(&mut state, Input::Start(begins), &Value::Null, |_, _| {});
    let of = |state: &State, name: &str| Instance::parse(name, &state.plan).expect("an instance");
    let done = |instance| Input::Receipt { instance, attempt: 1, outcome: Outcome::Done(Value::Null) };
    let (child, other, last) = (of(&state, "s"), of(&state, "c"), of(&state, "w"));
    let waits = Input::ChildWaits { instance: child.clone(), attempt: 1, count: 1 };
    take_in(&mut state, waits, &Value::Null, |_, _| {});
    let mut letters = Vec::new();
    take_in(&mut state, done(last), &Value::Null, |_, turn| letters.extend(turn.messages.clone()));
    assert!(letters.iter().any(|letter| matches!(letter.input, Input::Cancel { .. })), "{letters:?}");
    assert_eq!((state.end.deadline.is_some(), state.status()), (true, ExecutionStatus::Running));
    let outcome = Outcome::Cancelled("execution_ending".into());
    take_in(&mut state, Input::Receipt { instance: child, attempt: 1, outcome }, &Value::Null, |_, _| {});
    assert_eq!(state.status(), ExecutionStatus::Running, "what is in flight is awaited");
    take_in(&mut state, done(other), &Value::Null, |_, _| {});
    assert_eq!(state.status(), ExecutionStatus::Completed);
}

/// A quarantined child may be released and resumed, so its share of the execution limit is not given to others.
#[test]
fn a_quarantined_child_keeps_its_share_of_the_execution_bound() {
    let _one = one();
    let text = "steps: [{id: s, type: subworkflow, workflow: w, onError: continue}, {id: t, type: tool, tool: T}]";
    for (code, given) in [("other", 1), ("child_quarantined", 10)] {
        let mut state = State::new(KEY, plan_of(text));
        let Input::Start(mut begins) = start(Value::Null) else { unreachable!() };
        begins.lineage = Some(Lineage {
            parent: None,
            depth: 0,
            workflows: vec![Pinned { name: "w".into(), workflow_hash: Hash::default(), plan_hash: Hash::default() }],
            executions: Some(10),
            budget: None,
        });
        take_in(&mut state, Input::Start(begins), &Value::Null, |_, _| {});
        assert_eq!(state.counts.executions, 10);
        let outcome = Outcome::Failed(Failure::new(Class::Internal, code, "no"));
        let instance = Instance::of_step(0);
        take_in(&mut state, Input::Receipt { instance, attempt: 1, outcome }, &Value::Null, |_, _| {});
        assert_eq!(state.counts.executions, given, "{code}");
    }
}

/// Data that would need far more memory than its text is rejected before it is allocated.
#[test]
fn dense_data_is_refused() {
    let _one = one();
    let small = r#"{"":1},"#;
    for (count, is_read) in [(60_000, true), (590_000, false)] {
        let text = format!("[{}1]", small.repeat(count));
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let read = json::data(text.as_bytes());
        let peak = (ALLOCATOR.peak_usage() - before) as u64;
        assert_eq!(read.is_ok(), is_read, "{count}");
        assert!(peak < VALUE_MEMORY_BYTES_MAX + VALUE_MEMORY_BYTES_MAX / 4, "{peak} bytes for {count} objects");
    }
    let items = r#"{"go":false},"#.repeat(LOOP_ITEMS_MAX - 1);
    assert!(json::data(format!("[{items}1]").as_bytes()).is_ok(), "the longest list of a loop is read");
    let ordinary =
        r#"{"id":123456,"name":"a name of some length","tags":["one","two"],"price":12.5,"at":"2026-01-01"},"#;
    let text = format!("[{}1]", ordinary.repeat(VALUE_BYTES_MAX / ordinary.len()));
    assert!(json::data(text.as_bytes()).is_ok(), "four megabytes of ordinary records are read");
}

/// Values composed of other values have the same limit.
#[test]
fn a_value_made_of_dense_values_is_refused() {
    let _one = one();
    let text = "steps: [{id: f, type: code, code: '() => 1'}, {id: t, type: tool, tool: T, arguments: {a: '@f', b: '@f', c: '@f'}}]";
    let state = run(text, Value::Null, &dense(OUTPUT_BYTES_MAX), |_, _| {});
    assert_eq!(code_of(&state), "input_too_large");
    let text = "steps: [{id: p, type: parallel, steps: [{id: a, type: code, code: '() => 1'}, {id: b, type: code, code: '() => 1'}, {id: c, type: code, code: '() => 1'}]}]";
    let state = run(text, Value::Null, &dense(OUTPUT_BYTES_MAX), |_, _| {});
    assert_eq!(code_of(&state), "output_too_large");
}
