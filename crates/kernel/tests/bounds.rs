//! Tests of limits that no definition can exceed: started executions, rounds, and the size of turns and frames.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use mainspring_kernel::{
    decide::{Action, Decided, Turn, decide, decide_with},
    definition::{Syntax, compile, read},
    effect::Outcome,
    evaluation::{Evaluated, Evaluation},
    failure::{Class, Failure},
    frame::Frame,
    hash::Hash,
    input::{Input, Lineage, Pinned, Policy, Start, Timer},
    instance::Instance,
    journal::Fold,
    key::ExecutionKey,
    limits::{
        EVALUATIONS_AT_A_TIME_MAX, OUTPUT_BYTES_MAX, TURN_EVALUATIONS_MAX, TURN_RECORDS_MAX, UNCOUNTED_MAX,
        VALUE_BYTES_MAX,
    },
    plan::Plan,
    record::{Ending, Record},
    state::{ExecutionStatus, State, Status},
    value::{Map, Value},
};

const KEY: ExecutionKey = ExecutionKey([7; 16]);

fn plan_of(text: &str) -> Arc<Plan> {
    Arc::new(compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan)
}

fn start(input: Value, executions: Option<u32>) -> Box<Start> {
    let workflows = ["w", "leaf"];
    let pinned = |name: &str| Pinned {
        name: name.into(),
        workflow_hash: Hash::of(name.as_bytes()),
        plan_hash: Hash::of(name.as_bytes()),
    };
    let lineage = Lineage { parent: None, depth: 0, workflows: workflows.map(pinned).into(), executions, budget: None };
    Box::new(Start {
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
        lineage: Some(lineage),
        queue: None,
    })
}

fn instance(state: &State, name: &str) -> Instance {
    Instance::parse(name, &state.plan).expect("an instance of the plan")
}

/// Processes an input; every function returns null.
fn take_in(state: &mut State, input: &Input, now: u64) -> Turn {
    let null = |asked: &[&Evaluation]| vec![Evaluated::of(Ok(Value::Null)); asked.len()];
    decide_with(state, input, now, null).expect("legal")
}

fn started(text: &str, input: Value) -> (State, Turn) {
    let mut state = State::new(KEY, plan_of(text));
    let turn = take_in(&mut state, &Input::Start(start(input, None)), 0);
    (state, turn)
}

fn receipt(state: &State, name: &str, outcome: Outcome) -> Input {
    Input::Receipt { instance: instance(state, name), attempt: 1, outcome }
}

fn code_of(state: &State) -> String {
    match &state.end.ending {
        Some(Ending::Failed { fault, .. }) => fault.code.clone(),
        other => format!("{other:?}").split([' ', '{']).next().unwrap_or_default().into(),
    }
}

/// Runs a tree of executions to its end. Returns the number of executions and the state of the root.
fn tree(plans: &[(&str, &str)], input: Value, executions: u32) -> (usize, State) {
    let plans: BTreeMap<Hash, Arc<Plan>> =
        plans.iter().map(|(name, text)| (Hash::of(name.as_bytes()), plan_of(text))).collect();
    let mut states: BTreeMap<ExecutionKey, State> = BTreeMap::new();
    states.insert(KEY, State::new(KEY, plans[&Hash::of(b"w")].clone()));
    let mut inbox = VecDeque::from([(KEY, Input::Start(start(input, Some(executions))))]);
    while let Some((to, input)) = inbox.pop_front() {
        if let Input::Start(start) = &input {
            states.entry(to).or_insert_with(|| State::new(to, plans[&start.plan_hash].clone()));
        }
        let state = states.get_mut(&to).expect("it has begun");
        let turn = take_in(state, &input, 0);
        if state.journal.is_split {
            inbox.push_back((to, Input::Continue));
        }
        inbox.extend(turn.messages.into_iter().map(|letter| (letter.to, letter.input)));
    }
    (states.len(), states.remove(&KEY).expect("it has begun"))
}

const EIGHT: &str = "steps: [{id: all, type: parallel, steps: [{id: a, type: subworkflow, workflow: w}, {id: b, type: subworkflow, workflow: w}, {id: c, type: subworkflow, workflow: w}, {id: d, type: subworkflow, workflow: w}]}]";

#[test]
fn a_tree_that_grows_without_end_fails_at_its_bound() {
    for executions in [1, 2, 10, 500, 3_000] {
        let (count, root) = tree(&[("w", EIGHT)], Value::Null, executions);
        assert!(count <= executions as usize + 1, "{count} executions, and {executions} may be started");
        assert!(code_of(&root).starts_with("max_executions_exceeded:"), "{}", code_of(&root));
    }
}

/// Starts as many executions as the limit allows: in a concurrent loop, one after another, and by nested children.
#[test]
fn a_tree_within_its_bound_runs() {
    let items = |count: u64| Value::map([("items", (0..count).map(Value::from).collect::<Vec<_>>().into())]);
    let each = |concurrency: u32, workflow: &str, waits: bool| {
        format!(
            "steps: [{{id: k, type: subworkflow, workflow: {workflow}, wait: {waits}, forEach: {{ref: '@input.items', concurrency: {concurrency}}}}}]"
        )
    };
    let leaf = "steps: [{id: c, type: conditional, condition: true, then: []}]";
    for (concurrency, waits) in [(1, true), (7, true), (10_000, true), (1, false), (10_000, false)] {
        let plans = each(concurrency, "leaf", waits);
        let (count, root) = tree(&[("w", &plans), ("leaf", leaf)], items(40), 40);
        assert_eq!((count, root.status()), (41, ExecutionStatus::Completed), "{concurrency} {waits}");
        let (count, root) = tree(&[("w", &plans), ("leaf", leaf)], items(41), 40);
        assert_eq!((count, code_of(&root).as_str()), (41, "max_executions_exceeded:40"), "{concurrency} {waits}");
    }
    // The first child uses none of its share, and the second needs nearly all of it.
    let two = "steps: [{id: a, type: subworkflow, workflow: leaf}, {id: b, type: subworkflow, workflow: w, input: {n: 1}, when: {not: {ref: '@input.n'}}}, {id: c, type: subworkflow, workflow: leaf, when: {ref: '@input.n'}}]";
    let (count, root) = tree(&[("w", two), ("leaf", leaf)], Value::Map(Map::new()), 4);
    assert_eq!((count, root.status()), (5, ExecutionStatus::Completed));
}

/// A chain of detached children may be as long as the limit of its tree.
#[test]
fn a_chain_of_detached_children_ends_at_the_bound() {
    let (count, root) =
        tree(&[("w", "steps: [{id: again, type: subworkflow, workflow: w, wait: false}]")], Value::Null, 200);
    assert_eq!((count, root.status()), (201, ExecutionStatus::Completed));
}

const BESIDE: &str = "
steps:
  - id: all
    type: parallel
    steps:
      - {id: slow, type: tool, tool: SLOW, onError: continue, retry: {maxAttempts: 3, initialDelayMs: 1}}
      - {id: nap, type: sleep, durationMs: 1000}
      - {id: first, type: tool, tool: FIRST, bail: true}
  - {id: after, type: tool, tool: AFTER}
";

#[test]
fn a_successful_end_waits_for_open_attempts() {
    let refused = Failure::new(Class::Transient, "no", "it said no");
    for outcome in [Outcome::Done("late".into()), Outcome::Failed(refused), Outcome::Interrupted] {
        let (mut state, _) = started(BESIDE, Value::Null);
        let done = receipt(&state, "first", Outcome::Done("enough".into()));
        let turn = take_in(&mut state, &done, 1);
        assert_eq!(turn.actions, [], "nothing is stopped and nothing begins");
        assert_eq!((state.status(), state.end.ending.is_some()), (ExecutionStatus::Running, true));
        assert_eq!(state.step_status(&instance(&state, "nap")), Status::Cancelled, "nothing new starts");
        let ended = receipt(&state, "slow", outcome.clone());
        let turn = take_in(&mut state, &ended, 2);
        assert_eq!(turn.actions, []);
        let expected = if matches!(outcome, Outcome::Done(_)) { Status::Completed } else { Status::Failed };
        assert_eq!(state.step_status(&instance(&state, "slow")), expected);
        assert_eq!((state.status(), state.end.with_failures), (ExecutionStatus::Completed, false), "{outcome:?}");
        assert_eq!(state.output(), Some(&"enough".into()));
    }
}

#[test]
fn an_ending_execution_can_be_canceled_or_time_out() {
    let ending = |input: Input, now: u64| {
        let mut state = State::new(KEY, plan_of(BESIDE));
        let mut begins = start(Value::Null, None);
        begins.policy.timeout_ms = Some(5_000);
        take_in(&mut state, &Input::Start(begins), 0);
        let done = receipt(&state, "first", Outcome::Done("enough".into()));
        take_in(&mut state, &done, 1);
        let turn = take_in(&mut state, &input, now);
        let slow = instance(&state, "slow");
        assert_eq!(turn.actions, [Action::Stop { instance: slow, attempt: 1 }]);
        let stopped = receipt(&state, "slow", Outcome::Stopped(Value::Null));
        take_in(&mut state, &stopped, now + 1);
        (state.status(), code_of(&state))
    };
    let cancel = Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() };
    assert_eq!(ending(cancel, 2), (ExecutionStatus::Cancelled, "Some(Cancelled".into()));
    assert_eq!(
        ending(Input::Timer(Timer::Deadline), 5_000),
        (ExecutionStatus::Failed, "execution_timeout:5000".into())
    );
}

/// The start is a frame of its own, so that it is stored and visible while functions run.
#[test]
fn no_function_runs_in_the_first_turn() {
    for text in [
        "steps: [{id: f, type: code, code: f}]",
        "steps: [{id: p, type: parallel, steps: [{id: f, type: code, code: f}, {id: t, type: tool, tool: T}]}]",
        "nodes: [{id: f, type: code, code: f}, {id: g, type: code, code: f}]\nedges: [{from: f, to: g}]",
    ] {
        let (mut state, turn) = started(text, Value::Null);
        assert!(turn.results.is_empty() && turn.actions.is_empty() && state.journal.is_split, "{text}");
        assert_eq!(turn.records.last(), Some(&Record::TurnSplit));
        let turn = take_in(&mut state, &Input::Continue, 0);
        assert!(!turn.results.is_empty(), "{text}");
    }
}

/// A turn evaluates a limited number of functions at a time, and ends after a limited number in total.
#[test]
fn a_turn_evaluates_a_few_functions_at_a_time_and_ends_after_some() {
    let functions: Vec<String> = (0..200).map(|at| format!("{{id: f{at}, type: code, code: f}}")).collect();
    let text = format!("steps: [{{id: p, type: parallel, steps: [{}]}}]", functions.join(", "));
    let (mut state, _) = started(&text, Value::Null);
    let (mut turns, mut most) = (Vec::new(), 0);
    while state.journal.is_split {
        let turn = decide_with(&mut state, &Input::Continue, 0, |asked| {
            most = most.max(asked.len());
            vec![Evaluated::of(Ok(Value::Null)); asked.len()]
        });
        turns.push(turn.expect("legal").results.len());
    }
    assert_eq!(state.status(), ExecutionStatus::Completed);
    assert_eq!((turns.iter().sum::<usize>(), most), (200, EVALUATIONS_AT_A_TIME_MAX));
    assert!(turns.iter().all(|results| *results <= TURN_EVALUATIONS_MAX), "{turns:?}");
}

/// The last record of a turn stores the point at which its time was over, so a replay ends at the same point.
#[test]
fn a_turn_that_ran_out_of_time_replays_equally() {
    let functions: Vec<String> =
        (0..20).map(|at| format!("{{id: f{at}, type: code, code: f, outputSchema: {{type: 'null'}}}}")).collect();
    for kind in ["type: parallel, steps: [", "type: conditional, condition: true, then: ["] {
        let text = format!("steps: [{{id: p, {kind}{}]}}]", functions.join(", "));
        for over_after in 1..12 {
            let mut state = State::new(KEY, plan_of(&text));
            let mut fold = Fold::new(KEY, state.plan.clone());
            let mut input = Input::Start(start(Value::Null, None));
            let (mut before, mut yields) = (Hash::default(), 0);
            for sequence in 0.. {
                let (mut decided, mut pauses) = (decide(&mut state, &input, 0).expect("legal"), 0);
                let turn = loop {
                    match decided {
                        Decided::Turn(turn) => break turn,
                        Decided::Paused(mut paused) => {
                            pauses += 1;
                            if pauses >= over_after {
                                paused.yield_after();
                            }
                            let results = paused.evaluations().map(|_| Evaluated::of(Ok(Value::Null))).collect();
                            decided = paused.resume(&mut state, results).expect("legal");
                        }
                    }
                };
                yields += usize::from(matches!(turn.records.last(), Some(Record::TurnYielded { .. })));
                let frame = Frame { sequence, before, now: 0, input, results: turn.results, records: turn.records };
                let (stored, hash) = frame.store(&|_| [1; 16]);
                before = hash;
                assert!(fold.push_deciding(&stored).expect("it is decided again in the same way"));
                if !state.journal.is_split {
                    break;
                }
                input = Input::Continue;
            }
            assert_eq!(state.status(), ExecutionStatus::Completed);
            assert!(over_after > 3 || yields > 0, "{over_after}: {yields}");
        }
    }
}

#[test]
fn the_output_of_an_execution_is_bounded() {
    let text = |bytes: usize| Value::map([("x", Value::Text("x".repeat(bytes)))]);
    let to_end = |steps: &str, input: Value| {
        let (mut state, turn) = started(steps, input);
        while state.journal.is_split {
            take_in(&mut state, &Input::Continue, 0);
        }
        (state, turn)
    };
    let given = "steps: [{id: out, type: return, input: ['@input.x', '@input.x']}]";
    let (state, _) = to_end(given, text(VALUE_BYTES_MAX / 2 - 100));
    assert_eq!(state.status(), ExecutionStatus::Completed);
    let (state, _) = to_end(given, text(VALUE_BYTES_MAX / 2));
    assert_eq!(code_of(&state), "output_too_large");
    let output = "output: ['@input.x', '@input.x']\nsteps: [{id: a, type: conditional, condition: true, then: []}]";
    let (state, _) = to_end(output, text(VALUE_BYTES_MAX / 2));
    assert_eq!(code_of(&state), "output_too_large");
    let asked = "steps: [{id: ok, type: approval, items: ['@input.x', '@input.x']}]";
    let (state, _) = to_end(asked, text(VALUE_BYTES_MAX / 2));
    assert_eq!(code_of(&state), "input_too_large");
}

/// The output of a child becomes the output of a step. An output that is too large for a step fails the child.
#[test]
fn the_output_of_a_child_has_the_bound_of_a_step() {
    let around = 9;
    for (bytes, expected) in [(OUTPUT_BYTES_MAX - around, 1), (OUTPUT_BYTES_MAX, 0)] {
        let parent = "steps: [{id: sub, type: subworkflow, workflow: leaf, input: '@input'}]";
        let child = "steps: [{id: out, type: return, input: '@input'}]";
        let (_, root) = tree(&[("w", parent), ("leaf", child)], Value::Text("x".repeat(bytes)), 5);
        let sub = &root.steps[&instance(&root, "sub")];
        assert_eq!(usize::from(sub.status == Status::Completed), expected, "{bytes}");
        let message = sub.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
        assert!(expected == 1 || message.contains("the output of the execution"), "{message}");
    }
}

/// The combined output of branches has a limit.
#[test]
fn the_combined_output_of_branches_is_bounded() {
    let mut branches: Vec<String> = (0..20).map(|at| format!("{{id: t{at}, type: tool, tool: T}}")).collect();
    branches.push("{id: last, type: tool, tool: T}".into());
    let text = format!("steps: [{{id: p, type: parallel, steps: [{}]}}]", branches.join(", "));
    let (mut state, _) = started(&text, Value::Null);
    for at in (0..20).map(|at| format!("t{at}")).chain(["last".into()]) {
        let done = receipt(&state, &at, Outcome::Done(Value::Text("x".repeat(OUTPUT_BYTES_MAX - 100))));
        take_in(&mut state, &done, 1);
    }
    assert_eq!(code_of(&state), "output_too_large");
}

#[test]
fn the_output_limit_of_a_request_applies() {
    for (bytes, expected) in [(990, "Some(Completed"), (1_000, "output_too_large")] {
        let mut state = State::new(KEY, plan_of("steps: [{id: t, type: tool, tool: T}]"));
        let mut begins = start(Value::Null, None);
        begins.policy.max_output_bytes = Some(1_000);
        take_in(&mut state, &Input::Start(begins), 0);
        let done = receipt(&state, "t", Outcome::Done(Value::Text("x".repeat(bytes))));
        take_in(&mut state, &done, 1);
        assert_eq!(code_of(&state), expected, "{bytes}");
    }
}

/// Closing many open rounds at the end of an execution takes several turns.
#[test]
fn the_end_of_many_open_rounds_is_split() {
    let items: Vec<Value> = (0..3_000u64).map(Value::from).collect();
    let text = "steps: [{id: l, type: loop, forEach: {ref: '@input', concurrency: 10000}, steps: [{id: c, type: conditional, condition: true, then: [{id: nap, type: sleep, durationMs: 1000}]}]}]";
    let (mut state, _) = started(text, items.into());
    while state.journal.is_split {
        take_in(&mut state, &Input::Continue, 0);
    }
    let mut turn = take_in(&mut state, &Input::Cancel { reason: "user_cancelled".into(), by: "ann".into() }, 1);
    let mut turns = 1;
    while state.journal.is_split {
        assert!(turn.records.len() <= TURN_RECORDS_MAX + 8, "{} records", turn.records.len());
        turn = take_in(&mut state, &Input::Continue, 1);
        turns += 1;
    }
    assert!(turns > 1 && turn.records.len() <= TURN_RECORDS_MAX + 8, "{turns} turns, {} records", turn.records.len());
    assert_eq!(state.status(), ExecutionStatus::Cancelled);
}

/// Rounds and skipped steps are not visits and have a limit of their own.
#[test]
fn rounds_and_skipped_steps_are_counted() {
    let text = "steps: [{id: l, type: loop, forEach: {ref: '@input'}, steps: [{id: no, type: tool, tool: T, when: false}]}, {id: t, type: tool, tool: T}]";
    let items: Vec<Value> = (0..10u64).map(Value::from).collect();
    for (used, expected) in [(UNCOUNTED_MAX - 20, "None"), (UNCOUNTED_MAX - 19, "rounds_and_skips_exceeded:10000000")] {
        let mut state = State::new(KEY, plan_of(text));
        state.counts.uncounted = used;
        take_in(&mut state, &Input::Start(start(items.clone().into(), None)), 0);
        let bound = state.counts.uncounted <= UNCOUNTED_MAX;
        assert!(bound, "{}", state.counts.uncounted);
        if expected != "None" {
            assert_eq!(code_of(&state), expected);
        }
    }
    let (state, _) = started(text, items.into());
    assert_eq!((state.counts.uncounted, state.status()), (20, ExecutionStatus::Running));
}

/// A `while` loop has no more rounds than its execution has visits, even if its rounds start no step.
#[test]
fn a_while_has_no_more_rounds_than_its_execution_has_visits() {
    let text = "steps: [{id: l, type: loop, while: true, maxRounds: 1000000, steps: [{id: no, type: tool, tool: T, when: false}]}]";
    let mut state = State::new(KEY, plan_of(text));
    let mut begins = start(Value::Null, None);
    begins.policy.max_steps = 50;
    take_in(&mut state, &Input::Start(begins), 0);
    assert_eq!((code_of(&state).as_str(), state.counts.uncounted), ("max_steps_exceeded:50", 100));
}

/// A frame with very many distinct values is written and read in reasonable time.
#[test]
fn a_frame_may_hold_very_many_values() {
    let values = || (0..100_000u64).map(|at| Value::from(at / 2));
    let instance = Instance::of_step(0);
    let record = |value: Value| Record::StepCompleted { instance: instance.clone(), output: value.into() };
    let frame = Frame {
        sequence: 0,
        before: Hash::default(),
        now: 0,
        input: Input::Continue,
        results: Vec::new(),
        records: values().map(record).collect(),
    };
    let (stored, _) = frame.store(&|place| [place as u8; 16]);
    assert_eq!(stored.values.len(), 50_000, "of two that are the same one is kept");
    assert_eq!(Frame::read(&stored).expect("it reads").0, frame);
}
